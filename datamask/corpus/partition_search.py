"""Approximate nearest neighbours by cosine: only pairs in nearby parts of the corpus are compared.

The corpus is parted into about sqrt(N) cells around k-means centres. Every row probes the m cells whose centres it is
nearest to, and a pair is compared if either of the two probes the other's cell: looking from both ends finds at m = 38
of 256 what one end alone finds at 150. Compared pairs are exact, so a true neighbour is missed only if neither probed.

That makes recall predictable: the true neighbours of a few hundred random rows say, pair by pair, which m would have
found them, and the smallest m that reaches the wanted recall is used. Where it takes so many cells that little is
saved (features without structure), `probing` says so and the caller compares all pairs.
"""

from __future__ import annotations

import math
import threading
import zlib
from dataclasses import dataclass

import numpy as np

from datamask.corpus.exact_search import nearest
from datamask.corpus.graph_checkpoint import GraphCheckpoint, NeighborLists, work_through
from datamask.corpus.threads import one_blas_thread
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work

AIMED_RECALL = 0.97
"""Share of the true neighbours that the probing aims at. The rest is for `datamask.corpus.neighbor_descent`: 0.99 by
cells alone finds little more, and takes 1.1 to 2.1 times as long (benchmarks/results/descent.md)."""

WORTHWHILE = 0.3
"""Share of the cells a row may probe; with more, comparing all pairs, each once, takes about as long."""

CELLS = (16, 4096)
ROWS_PER_CELL = 64
"""Rows that k-means looks at, per cell."""

ROUNDS = 6
JUDGES = 256
"""Random rows whose true neighbours decide how many cells are probed."""

GROUP = 4096
"""Rows of a task, at least: whole cells, side by side."""

PIECE = 1024
"""Rows and columns multiplied at once."""


@dataclass(frozen=True)
class Probing:
    """Which cells each row looks into.

    Attributes:
        cell: int32 ``(N,)``, the row's own cell, ``0 .. C - 1``.
        probed: uint16 ``(N, m)``, the nearest cells of each row, by rising number.
        cells: C.
    """

    cell: np.ndarray
    probed: np.ndarray
    cells: int

    @property
    def plan(self) -> str:
        """What a search by it is called in `datamask.corpus.graph_checkpoint`."""
        return f"cells {self.cells} x {self.probed.shape[1]}, {zlib.crc32(self.probed.tobytes()):x}"


def probing(features: np.ndarray, k: int, *, recall: float = AIMED_RECALL, work: Work = UNWATCHED) -> Probing | None:
    """Cells, and how many of them each row must probe to find the wanted share of its k nearest others.

    Args:
        features: float32 ``(N, d)``, unit rows.
        k: others per row.
        recall: the share aimed at.

    Returns:
        None where it takes so many cells that comparing all pairs is as quick.

    Raises:
        Stopped: from `work.poll`.
    """
    n = len(features)
    rng = np.random.default_rng(0)
    count = min(max(CELLS[0], round(math.sqrt(n))), CELLS[1], n)
    with one_blas_thread():
        centres = _centres(features, count, rng, work.poll)
        judges = np.sort(rng.choice(n, min(JUDGES, n), replace=False))
        m = _cells_needed(features, centres, judges, k, recall, work.poll)
        if m > WORTHWHILE * count:
            return None
        cell, probed = np.empty(n, np.int32), np.empty((n, m), np.uint16)
        for low in range(0, n, GROUP):
            work.poll()
            work.report(low / n, "Neighbor graph: cells")
            near = features[low : low + GROUP] @ centres.T
            best = np.argpartition(-near, m - 1, axis=1)[:, :m]
            probed[low : low + GROUP] = np.sort(best, axis=1)
            cell[low : low + GROUP] = near.argmax(axis=1)
    return Probing(cell, probed, count)


def nearby_pairs(
    features: np.ndarray, k: int, probing: Probing, *, checkpoint: GraphCheckpoint | None = None, work: Work = UNWATCHED
) -> NeighborLists:
    """The k most similar other rows of each row among those that `probing` compares it with, as heaps.

    Arguments as in `datamask.corpus.exact_search.all_pairs`. A row that is compared with fewer than k others keeps
    entries without one (similarity minus infinity, index N).

    Raises:
        Stopped: from `work.poll`.
    """
    from datamask.corpus import kernels

    n = len(features)
    checkpoint = checkpoint or GraphCheckpoint()
    cells = probing.cells
    order = np.argsort(probing.cell, kind="stable").astype(np.int32)
    sizes = np.bincount(probing.cell, minlength=cells)
    ends = np.cumsum(sizes)
    members = [order[end - size : end] for end, size in zip(ends, sizes)]
    group_of = ((ends - sizes) // GROUP).astype(np.int64)
    visitors, tasks = _visitors(probing, order, sizes, group_of)
    locks = [threading.Lock() for _ in range(int(group_of.max()) + 1)]
    plan = probing.plan
    lists = checkpoint.lists(n, k, len(tasks), plan)
    similarities, indices = lists.similarities, lists.indices
    rooms = threading.local()
    cell_of, probed = probing.cell, probing.probed

    def task(index: int) -> None:
        group, cell = tasks[index]
        if not hasattr(rooms, "products"):
            rooms.products = np.empty(PIECE * PIECE, np.float32)
        guests = visitors[group, cell]
        for right in range(0, len(members[cell]), PIECE):
            hosts = members[cell][right : right + PIECE]
            columns = features[hosts]
            for left in range(0, len(guests), PIECE):
                rows = guests[left : left + PIECE]
                products = rooms.products[: len(rows) * len(hosts)].reshape(len(rows), len(hosts))
                np.dot(features[rows], columns.T, out=products)
                with locks[group]:
                    kernels.offer_listed_rows(products, rows, hosts, cell_of, probed, similarities, indices)
                with locks[group_of[cell]]:
                    kernels.offer_listed_columns(products, rows, hosts, cell_of, probed, similarities, indices)

    with one_blas_thread():
        work_through(
            lists,
            task,
            checkpoint,
            plan,
            # the first ones have most pairs: half of the tasks are a small part of the work
            costs=np.array([len(visitors[task]) * len(members[task[1]]) for task in tasks], float),
            work=work,
        )
    return lists


def _visitors(
    probing: Probing, order: np.ndarray, sizes: np.ndarray, group_of: np.ndarray
) -> tuple[dict[tuple[int, int], np.ndarray], list[tuple[int, int]]]:
    """Which rows of each group of cells probe each cell, and the (group, cell) pairs with most visitors first.

    Many visitors come from near by: their pairs fill the lists with good entries early.
    """
    visitors = {}
    row_groups = np.repeat(group_of, sizes)
    for group in range(int(group_of.max()) + 1):
        low, high = np.searchsorted(row_groups, [group, group + 1])
        rows = order[low:high]
        probed_cells = probing.probed[rows].ravel()
        by_cell = np.argsort(probed_cells, kind="stable")
        bounds = np.searchsorted(probed_cells[by_cell], np.arange(probing.cells + 1))
        from_row = rows[by_cell // probing.probed.shape[1]]
        for cell in np.flatnonzero(np.diff(bounds)):
            if sizes[cell]:
                visitors[group, int(cell)] = from_row[bounds[cell] : bounds[cell + 1]]
    return visitors, sorted(visitors, key=lambda pair: (-len(visitors[pair]), pair))


def _centres(features: np.ndarray, count: int, rng: np.random.Generator, poll: Poll) -> np.ndarray:
    """Unit k-means centres of a sample, float32 ``(count, d)``."""
    rows = np.sort(rng.choice(len(features), min(len(features), ROWS_PER_CELL * count), replace=False))
    centres: np.ndarray = features[rng.choice(rows, count, replace=False)]
    for _ in range(ROUNDS):
        sums = np.zeros(centres.shape, np.float64)
        for low in range(0, len(rows), GROUP):
            poll()
            part = features[rows[low : low + GROUP]]
            owner = (part @ centres.T).argmax(axis=1)
            by_owner = np.argsort(owner, kind="stable")
            starts = np.flatnonzero(np.r_[True, np.diff(owner[by_owner]) > 0])
            sums[owner[by_owner][starts]] += np.add.reduceat(part[by_owner], starts, axis=0)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        # a centre that nobody is nearest to stays where it is
        centres = np.where(norms > 1e-9, sums / np.maximum(norms, 1e-9), centres).astype(np.float32)
    return centres


def _cells_needed(
    features: np.ndarray, centres: np.ndarray, judges: np.ndarray, k: int, recall: float, poll: Poll
) -> int:
    """The least m at which the wanted share of the judges' true neighbours is found from one end or the other."""
    true_neighbors, _ = nearest(features[judges], features, min(k + 1, len(features)), poll=poll)
    needed = []
    for judge, others in zip(judges, true_neighbors):
        poll()
        others = others[others != judge][:k]
        of_judge, of_others = features[judge] @ centres.T, features[others] @ centres.T
        from_judge = (of_judge[None] > of_judge[of_others.argmax(axis=1)][:, None]).sum(axis=1)
        home = int(of_judge.argmax())
        from_others = (of_others > of_others[:, home][:, None]).sum(axis=1)
        needed.append(np.minimum(from_judge, from_others) + 1)
    return int(np.quantile(np.concatenate(needed), recall, method="higher"))
