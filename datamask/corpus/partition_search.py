"""Approximate nearest neighbours by cosine: only pairs in nearby parts of the corpus are compared.

The corpus is parted into cells around k-means centres: about sqrt(N), and more where that would make large ones. Every
row looks into the m cells whose centres it is nearest to, and a pair is compared if either of the two looks into the
other's cell: looking from both ends finds at m = 38 of 256 what one end alone finds at 150. A true neighbour is missed
only if neither looked.

That makes recall predictable: the true neighbours of a few hundred random rows say, pair by pair, which m would have
found them, and the smallest m that reaches the wanted recall is used. Where it takes so many cells that little is
saved (features without structure), all pairs are compared.

*One builder.* What is here, in `exact_search` and in `neighbor_descent` builds the lists in memory, by threads, and out
of core, by tasks over files (`datamask.out_of_core.neighbour_lists`). The lists are equal, for three reasons. Cosines
are whole numbers (`rounded_rows`). Samples, first centres and ties go by the hash of the id, so nothing depends on
where a row stands. And what is compared depends on cells alone: a block of cells, a part of a block, a piece or a
thread only says who computes it. Rows are called by their *position*, their place when all cells are laid end to end.
"""

from __future__ import annotations

import itertools
import math
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.corpus.exact_search import Base, nearest
from datamask.corpus.graph_checkpoint import GraphCheckpoint, NeighborLists, work_through
from datamask.corpus.pair_search import PairSearch, Visits
from datamask.corpus.rounded_rows import to_length
from datamask.corpus.sampling import hash_under, uniform_rows
from datamask.corpus.threads import one_blas_thread
from datamask.polling import Poll, no_poll
from datamask.work.context import UNWATCHED, Work

AIMED_RECALL = 0.97
"""Share of the true neighbours that the probing aims at. The rest is for `datamask.corpus.neighbor_descent`: 0.99 by
cells alone finds little more, and takes 1.1 to 2.1 times as long (benchmarks/results/descent.md)."""

WORTHWHILE = 0.3
"""Share of the cells a row may look into; with more, comparing all pairs, each once, takes about as long."""

LOOKED_AT, LARGE = 65_536, 200_000
"""Rows in the cells that a row looks into, at most, where a corpus has more than `LARGE`: time then grows with the rows
and no faster, where all pairs would take days."""

CELLS, CELL_ROWS = (16, 16_384), 500
"""Fewest and most cells, and the most rows of one on average, while these allow it. Cells of 1,000 rows take 1.7 times
as long on 1,000,000 clustered rows. Smaller ones than of 500 do not help on 236,007 texts."""

ROWS_PER_CELL = 64
"""Rows that k-means looks at, per cell."""

LEAST_LOOKED_INTO = 4
"""Cells that a row looks into, at least. A row at the edge of its cluster may lie in a cell without any other of it.
Where one cell is enough for 97 % of the neighbors, 1 % of the rows find none, and NN-descent does not help them."""

ROUNDS = 6
JUDGES = 256
"""Random rows whose true neighbours decide how many cells are looked into."""

LEARNED_BY, BEGUN_BY, JUDGED_BY = ((1 << 62) - 10 - number for number in range(3))
"""Seeds of the samples that cells are learned from, of the first centres, and of the judges."""

GROUP, GROUPS = 4096, 128
"""Rows of a task, at least: whole cells, side by side. More rows are cut into so many groups: a task is a group and a
cell, and small ones cost more than what they compare."""


def cell_count(rows: int) -> int:
    """C, the number of cells of a corpus."""
    return min(max(CELLS[0], round(math.sqrt(rows)), rows // CELL_ROWS), CELLS[1], rows)


def learning_rows(ties: np.ndarray) -> np.ndarray:
    """The rows that cells are learned from, int64, rising. ties: uint64 ``(N,)``, hashes of the ids."""
    return uniform_rows(ties, ROWS_PER_CELL * cell_count(len(ties)), LEARNED_BY)


def judging_rows(ties: np.ndarray) -> np.ndarray:
    """The rows whose true neighbours decide how many cells are looked into, int64, rising."""
    return uniform_rows(ties, JUDGES, JUDGED_BY)


def learned_centres(
    sample: np.ndarray, ties: np.ndarray, count: int, threads: int | None = None, poll: Poll = no_poll
) -> np.ndarray:
    """Unit k-means centres, int16 ``(C, d)``, rounded as rows are.

    Args:
        sample: int16 ``(n, d)``, rounded rows; ties: uint64 ``(n,)``, hashes of their ids.
    """
    centres: np.ndarray = sample[np.argsort(hash_under(ties, BEGUN_BY), kind="stable")[:count]]
    for _ in range(ROUNDS):
        owner = nearest(sample, centres, 1, threads=threads, poll=poll)[0][:, 0]
        by_owner = np.argsort(owner, kind="stable")
        starts = np.flatnonzero(np.diff(owner[by_owner], prepend=-1))
        sums = np.zeros((len(starts), sample.shape[1]))
        for at, (low, high) in enumerate(itertools.pairwise([*starts, len(owner)])):
            sums[at] = np.rint(sample[by_owner[low:high]].sum(axis=0, dtype=np.int64) / (high - low))
        means, used = to_length(sums), owner[by_owner[starts]]
        # a centre that is nearest to no row stays where it is
        some = means.any(axis=1)
        centres[used[some]] = means[some]
    return centres


def cells_needed(
    judges: np.ndarray,
    others: Callable[[int], np.ndarray],
    centres: np.ndarray,
    rows: int,
    recall: float = AIMED_RECALL,
    poll: Poll = no_poll,
) -> int | None:
    """The least m, but for `LEAST_LOOKED_INTO`, at which the wanted share of the judges' true neighbours is found.

    Args:
        judges: int16 ``(J, d)``, rounded. others: the true neighbours of a judge by its number, int16 ``(k, d)``.
        rows: N.

    Returns:
        m; None where it takes so many cells that comparing all pairs is as quick.
    """
    points, needed = centres.astype(np.float64), []  # in which products of whole numbers are exact
    with one_blas_thread():
        for number, judge in enumerate(judges):
            poll()
            of_judge, of_others = points @ judge.astype(np.float64), others(number).astype(np.float64) @ points.T
            from_judge = (of_judge[None] > of_judge[of_others.argmax(axis=1)][:, None]).sum(axis=1)
            from_others = (of_others > of_others[:, [int(of_judge.argmax())]]).sum(axis=1)
            needed.append(np.minimum(from_judge, from_others) + 1)
    found = int(np.quantile(np.concatenate(needed), recall, method="higher"))
    least = min(max(LEAST_LOOKED_INTO, found), len(centres))
    if rows > LARGE:
        return min(least, cells_with(LOOKED_AT, rows, len(centres)))
    return least if least <= WORTHWHILE * len(centres) else None


def cells_with(looked_at: int, rows: int, cells: int) -> int:
    """In how many of the cells of so many rows there are about so many of these."""
    return min(cells, max(1, math.ceil(looked_at * cells / max(rows, 1))))


@dataclass(frozen=True)
class Cells:
    """The rows of a corpus by cell, and where each of them looks.

    Attributes:
        order: int64 ``(N,)``, the row at each position. starts: int64 ``(C + 1,)``, where cells begin.
        probed: int32 ``(N, m)``, by position, the nearest cells, rising.
    """

    order: np.ndarray
    starts: np.ndarray
    probed: np.ndarray

    @property
    def plan(self) -> str:
        """What a search by it is called in `datamask.corpus.graph_checkpoint`."""
        digest = zlib.crc32(self.probed.tobytes(), zlib.crc32(self.order.tobytes()))
        return f"rounded rows in {len(self.starts) - 1} cells, of which {self.probed.shape[1]}, {digest:x}"


def cells_of(
    rows: np.ndarray, k: int, ties: np.ndarray, *, recall: float = AIMED_RECALL, work: Work = UNWATCHED
) -> Cells | None:
    """Cells of rows in memory, as many looked into as it takes to find the wanted share of each row's k nearest others.

    Args:
        rows: int16 ``(N, d)``, rounded. ties: uint64 ``(N,)``, hashes of the ids.

    Returns:
        None where it takes so many that comparing all pairs is as quick.

    Raises:
        Stopped: from `work.poll`.
    """
    sample, judges = learning_rows(ties), judging_rows(ties)
    centres = learned_centres(rows[sample], ties[sample], cell_count(len(rows)), work.threads, work.poll)
    others, _ = nearest(rows[judges], rows, k, ties, names=judges, threads=work.threads, poll=work.poll)
    m = cells_needed(rows[judges], lambda number: rows[others[number]], centres, len(rows), recall, work.poll)
    if m is None:
        return None
    cell, probed = nearest_cells(rows, centres, m, work, work.threads)
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centres)))])
    return Cells(order, starts, probed[order])


def nearest_cells(
    rows: Base, centres: np.ndarray, m: int, work: Work = UNWATCHED, threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of each row, int32 ``(n,)``, and the m nearest ones, int32 ``(n, m)``, rising."""
    cell, probed = np.empty(len(rows), np.int32), np.empty((len(rows), m), np.int32)
    for low in range(0, len(rows), GROUP):
        part = slice(low, low + GROUP)
        work.report(low / len(rows), "Neighbor graph: cells")
        near, _ = nearest(rows[part], centres, m, threads=threads, poll=work.poll)
        cell[part], probed[part] = near[:, 0], np.sort(near, axis=1)
    return cell, probed


def nearby_pairs(
    rows: np.ndarray,
    k: int,
    cells: Cells,
    ties: np.ndarray,
    *,
    checkpoint: GraphCheckpoint | None = None,
    work: Work = UNWATCHED,
) -> NeighborLists:
    """The k most similar others of each row among those that it is compared with, as heaps; by threads.

    Args:
        rows, ties: by position. checkpoint, work: as in `datamask.corpus.exact_search.all_pairs`.

    Raises:
        Stopped: from `work.poll`.
    """
    checkpoint = checkpoint or GraphCheckpoint()
    starts, probed = cells.starts, cells.probed
    group_of_cell = starts[:-1] // max(GROUP, len(rows) // GROUPS)
    edges = starts[np.searchsorted(group_of_cell, np.arange(int(group_of_cell[-1]) + 2))]
    visitors: dict[tuple[int, int], np.ndarray] = {}
    for group, (low, high) in enumerate(itertools.pairwise(edges)):
        visits = Visits.of_probed(probed[low:high])
        visitors |= {(group, cell): who + np.int32(low) for cell, who in visits.within(0, len(starts) - 1)}
    sizes = np.diff(starts)
    # many visitors come from near by: their pairs fill the lists with good entries early
    tasks = sorted((pair for pair in visitors if sizes[pair[1]]), key=lambda pair: (-len(visitors[pair]), pair))
    locks = [threading.Lock() for _ in range(len(edges))]
    lists = checkpoint.lists(len(rows), k, len(tasks), cells.plan)
    search = PairSearch(rows, ties, starts, 0, probed, lists.similarities, lists.indices)

    def task(index: int) -> None:
        group, cell = tasks[index]
        theirs = locks[int(group_of_cell[cell])]
        search.compare(visitors[group, cell], cell, to_guests=locks[group], to_hosts=theirs)

    with one_blas_thread():
        work_through(
            lists,
            task,
            checkpoint,
            cells.plan,
            # the first ones have most pairs: half of the tasks are a small part of the work
            costs=np.array([len(visitors[task]) * sizes[task[1]] for task in tasks], float),
            work=work,
        )
    search.fill_up(rows, threads=work.threads, poll=work.poll)
    return lists
