"""Approximate nearest neighbours by cosine: only pairs in nearby parts of the corpus are compared.

The corpus is parted into cells around k-means centres (`datamask.corpus.centres`). Every row looks into the m cells
whose centres it is nearest to, and a pair is compared if either of the two looks into the other's cell: looking from
both ends finds at m = 38 of 256 what one end alone finds at 150. A true neighbour is missed only if neither looked.

That makes recall predictable: the true neighbours of a few hundred random rows say, pair by pair, which m would have
found them, and the smallest m that reaches the wanted recall is used. Where it takes so many cells that little is
saved (features without structure), all pairs are compared.

The lists depend neither on the order of the rows nor on the number of threads, for three reasons. Cosines are whole
numbers (`rounded_rows`). Samples, first centres and ties go by the hash of the id. And what is compared depends on
cells alone: a piece or a thread only says who computes it. Rows are called by their *position*, their place when all
cells are laid end to end.
"""

from __future__ import annotations

import itertools
import math
import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from datamask.corpus.centres import Centres, cell_count
from datamask.corpus.exact_search import nearest
from datamask.corpus.graph_checkpoint import NeighborLists, work_through
from datamask.corpus.pair_search import PairSearch, Visits
from datamask.corpus.sampling import uniform_rows
from datamask.corpus.threads import one_blas_thread
from datamask.places import MEMORY, Place
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Progress

AIMED_RECALL = 0.97
"""Share of the true neighbours that the probing aims at. The rest is for `datamask.corpus.neighbor_descent`: 0.99 by
cells alone finds little more, and takes 1.1 to 2.1 times as long (benchmarks/results/descent.md)."""

WORTHWHILE = 0.3
"""Share of the cells a row may look into; with more, comparing all pairs, each once, takes about as long."""

LARGE, LOOKED_AT, LOOKED_AT_BY_ALL, PASSES = 200_000, (4096, 65_536), 1 << 35, 3
"""Above so many rows, a row looks into cells of so many rows at most, and all rows together into so many: time then
grows with the rows and no faster. Where it looks into as many as it may, they may hold less than `AIMED_RECALL`, and so
many passes of NN-descent follow in the place of one. Each takes a tenth of the time of a search, and together they
bring lists with 65 % of the true neighbours to 97 %."""

LEAST_LOOKED_INTO = 4
"""Cells that a row looks into, at least. A row at the edge of its cluster may lie in a cell without any other of it.
Where one cell is enough for 97 % of the neighbors, 1 % of the rows find none, and NN-descent does not help them."""

JUDGES, JUDGES_AT_ONCE, JUDGED_BY = 256, 16, (1 << 62) - 12
"""Random rows whose true neighbours decide how many cells are looked into, and the seed that draws them."""

GROUP, GROUPS = 4096, 128
"""Rows of a task, at least: whole cells, side by side. More rows are cut into so many groups: a task is a group and a
cell, and small ones cost more than what they compare."""


def judging_rows(ties: np.ndarray) -> np.ndarray:
    """The rows whose true neighbours decide how many cells are looked into, int64, rising."""
    return uniform_rows(ties, JUDGES, JUDGED_BY)


def cells_needed(
    judges: np.ndarray,
    others: Callable[[slice], np.ndarray],
    centres: Centres,
    rows: int,
    recall: float = AIMED_RECALL,
    work: Work = UNWATCHED,
) -> int | None:
    """The least m, but for `LEAST_LOOKED_INTO`, at which the wanted share of the judges' true neighbours is found.

    Args:
        judges: int16 ``(J, d)``, rounded. others: the true neighbours of a slice of them, int16 ``(j, k, d)``.
        rows: N.

    Returns:
        m; None where it takes so many cells that comparing all pairs is as quick.
    """
    least = min(LEAST_LOOKED_INTO, len(centres))
    most = max(least, most_cells(rows, len(centres))) if rows > LARGE else int(WORTHWHILE * len(centres))
    quiet = Work(work.poll, threads=work.threads)
    for m in (*itertools.takewhile(lambda some: some < most, (16, 64, 256)), most):
        own, ranks = centres.nearest_cells(judges, m, quiet), []
        for low in range(0, len(judges), JUDGES_AT_ONCE):
            some = slice(low, low + JUDGES_AT_ONCE)
            rows_of = others(some)
            theirs = centres.nearest_cells(rows_of.reshape(-1, rows_of.shape[2]), m, quiet).reshape(
                *rows_of.shape[:2], m
            )
            ranks.append(_ranks(own[some], theirs))
        found = int(np.quantile(np.concatenate(ranks), recall, method="higher")) + 1
        if found <= m:
            return max(found, least)
    return most if rows > LARGE else None


def _ranks(judges: np.ndarray, others: np.ndarray) -> np.ndarray:
    """At which place of the nearest cells of a row the cell of another is, or the reverse, whichever comes first.

    Args:
        judges: int32 ``(j, m)``, nearest first. others: int32 ``(j, k, m)``, of others of each.

    Returns:
        int64 ``(j, k)``, m where it is at none.
    """
    either = (judges[:, None] == others[:, :, :1]) | (others == judges[:, None, :1])
    ranks: np.ndarray = np.where(either.any(axis=2), either.argmax(axis=2), judges.shape[1])
    return ranks


def passes_of(m: int, rows: int, cells: int) -> int:
    """How many passes of NN-descent follow where each of so many rows looks into m of so many cells."""
    return PASSES if rows > LARGE and m >= most_cells(rows, cells) else 1


def most_cells(rows: int, cells: int) -> int:
    """How many of its cells a row of a large corpus looks into, at most."""
    return cells_with(min(max(LOOKED_AT_BY_ALL // rows, LOOKED_AT[0]), LOOKED_AT[1]), rows, cells)


def cells_with(looked_at: int, rows: int, cells: int) -> int:
    """In how many of the cells of so many rows there are about so many of these."""
    return min(cells, max(1, math.ceil(looked_at * cells / max(rows, 1))))


@dataclass(frozen=True)
class Cells:
    """The rows of a corpus by cell, and where each of them looks.

    Attributes:
        order: int64 ``(N,)``, the row at each position. starts: int64 ``(C + 1,)``, where cells begin.
        probed: int32 ``(N, m)``, by position, the nearest cells, rising.
        passes: of NN-descent, which follow.
    """

    order: np.ndarray
    starts: np.ndarray
    probed: np.ndarray
    passes: int = 1

    @property
    def plan(self) -> str:
        """What a search by it is called in `datamask.corpus.graph_checkpoint`."""
        digest = zlib.crc32(self.probed.tobytes(), zlib.crc32(self.order.tobytes()))
        return f"rounded rows in {len(self.starts) - 1} cells, of which {self.probed.shape[1]}, {digest:x}"


def cells_of(
    rows: np.ndarray,
    k: int,
    ties: np.ndarray,
    *,
    recall: float = AIMED_RECALL,
    work: Work = UNWATCHED,
    place: Place = MEMORY,
) -> Cells | None:
    """Cells of rows in memory, as many looked into as it takes to find the wanted share of each row's k nearest others.

    Args:
        rows: int16 ``(N, d)``, rounded. ties: uint64 ``(N,)``, hashes of the ids. place: of what is large.

    Returns:
        None where it takes so many that comparing all pairs is as quick.

    Raises:
        Stopped: from `work.poll`.
    """
    centres, judges = Centres.learn(rows.__getitem__, ties, cell_count(len(rows)), work), judging_rows(ties)
    others, _ = nearest(rows[judges], rows, k, ties, names=judges, threads=work.threads, poll=work.poll)
    m = cells_needed(rows[judges], lambda some: rows[others[some]], centres, len(rows), recall, work)
    if m is None:
        return None
    near = centres.nearest_cells(rows, m, work, place)
    cell = near[:, 0].copy()
    near.sort(axis=1)
    order = np.argsort(cell, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centres)))])
    return Cells(order, starts, place.taken(near, order), passes_of(m, len(rows), len(centres)))


def nearby_pairs(
    rows: np.ndarray,
    k: int,
    cells: Cells,
    ties: np.ndarray,
    *,
    progress: Progress[NeighborLists] | None = None,
    work: Work = UNWATCHED,
    place: Place = MEMORY,
) -> NeighborLists:
    """The k most similar others of each row among those that it is compared with, as heaps; by threads.

    Args:
        rows, ties: by position. progress, work, place: as in `datamask.corpus.exact_search.all_pairs`.

    Raises:
        Stopped: from `work.poll`.
    """
    progress = progress or Progress()
    starts, probed = cells.starts, cells.probed
    group_of_cell = starts[:-1] // max(GROUP, len(rows) // GROUPS)
    edges = starts[np.searchsorted(group_of_cell, np.arange(int(group_of_cell[-1]) + 2))]
    visitors: dict[tuple[int, int], np.ndarray] = {}
    everyone = place.empty(probed.shape, np.int32)
    for group, (low, high) in enumerate(itertools.pairwise(edges)):
        visits = Visits.of_probed(probed[low:high])
        here = everyone[low:high].reshape(-1)
        np.add(visits.visitors, np.int32(low), out=here)
        here_visits = replace(visits, visitors=here)
        visitors |= {(group, cell): who for cell, who in here_visits.within(0, len(starts) - 1)}
    sizes = np.diff(starts)
    # many visitors come from near by: their pairs fill the lists with good entries early
    tasks = sorted((pair for pair in visitors if sizes[pair[1]]), key=lambda pair: (-len(visitors[pair]), pair))
    locks = [threading.Lock() for _ in range(len(edges))]
    lists = NeighborLists.begun(len(rows), k, len(tasks), cells.plan, progress, place)
    search = PairSearch(rows, ties, starts, 0, probed, lists.similarities, lists.indices)

    def task(index: int) -> None:
        group, cell = tasks[index]
        theirs = locks[int(group_of_cell[cell])]
        search.compare(visitors[group, cell], cell, to_guests=locks[group], to_hosts=theirs)

    with one_blas_thread():
        work_through(
            lists,
            task,
            progress,
            # the first ones have most pairs: half of the tasks are a small part of the work
            costs=np.array([len(visitors[task]) * sizes[task[1]] for task in tasks], float),
            work=work,
        )
    search.fill_up(rows, threads=work.threads, poll=work.poll)
    return lists
