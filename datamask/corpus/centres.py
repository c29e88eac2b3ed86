"""Centres of the cells that a neighbor graph is built from.

They are learned by k-means from a sample. With C centres its time grows with the square of C, and a row that is
compared with all of them takes C. So where there are more than `NEAR`, the centres themselves are put into about
sqrt(C) groups, and a row is compared with those of the nearest groups only, in learning as in use: approximate k-means
(Philbin and others 2007). Some rows so miss their nearest centre, and passes of NN-descent find what they miss.

All is computed from rounded rows, in whole numbers. Samples and first centres go by the hash of the id. So centres
depend neither on where a row stands nor on who computes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.corpus.exact_search import falling, nearest
from datamask.corpus.pair_search import Visits
from datamask.corpus.rounded_rows import slack, to_length, widened
from datamask.corpus.sampling import hash_under, uniform_rows
from datamask.corpus.threads import Tally, one_blas_thread, thread_count
from datamask.places import MEMORY, Place
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work

CELLS, CELL_ROWS = (16, 65_536), 500
"""Fewest and most cells, and the most rows of one on average, while these allow it. Cells of 1,000 rows take 1.7 times
as long on 1,000,000 clustered rows. Smaller ones than of 500 save no time: most of it goes into the lists."""

ROWS_PER_CELL = 64
"""Rows that k-means looks at, per centre."""

NEAR = 2048
"""Centres that a row is compared with, about: all, where there are no more."""

MOST_NEAREST = 128
"""Nearest cells that are found, at most, where a row is not compared with all centres."""

ROUNDS = 6

LEARNED_BY, BEGUN_BY = (1 << 62) - 10, (1 << 62) - 11
"""Seeds of the sample that centres are learned from, and of the first ones."""

ROWS_AT_ONCE, LEARNED_AT_ONCE = (1024, 8192), 32_768
"""Rows of a task, at least and at most; rows of the sample in memory."""

CENTRES_AT_ONCE = 1024

RowsAt = Callable[[np.ndarray], np.ndarray]
"""Gives rounded rows, int16 ``(n, d)``, by their rising numbers."""


def cell_count(rows: int) -> int:
    """C, the number of cells of a corpus."""
    return min(max(CELLS[0], round(math.sqrt(rows)), rows // CELL_ROWS), CELLS[1], rows)


def group_count(cells: int) -> int:
    """G, the number of groups of so many centres."""
    return round(math.sqrt(cells)) if cells > NEAR else 1


@dataclass(frozen=True)
class Centres:
    """Unit centres, rounded as rows are, and the groups that they are in.

    Attributes:
        points: int16 ``(C, d)``, by group. A cell is called by the number of its centre here.
        starts: int64 ``(G + 1,)``, where those of each group begin. middles: int16 ``(G, d)``, of the groups.
    """

    points: np.ndarray
    starts: np.ndarray
    middles: np.ndarray

    def __len__(self) -> int:
        return len(self.points)

    @classmethod
    def group(cls, points: np.ndarray) -> Centres:
        """Put centres into groups by k-means. There are fewer groups where many centres are equal."""
        groups = group_count(len(points))
        middles = points[np.arange(groups) * len(points) // groups]
        for _ in range(ROUNDS):
            group = nearest(points, middles, 1, threads=1)[0][:, 0]
            middles = _Sums.none(middles).add(points, group).means(middles)
        group = nearest(points, middles, 1, threads=1)[0][:, 0]
        counts = np.bincount(group, minlength=groups)
        some = counts > 0
        starts = np.concatenate([[0], np.cumsum(counts[some])])
        return cls(points[np.argsort(group, kind="stable")], starts, middles[some])

    @classmethod
    def learn(cls, rows_at: RowsAt, ties: np.ndarray, count: int, work: Work = UNWATCHED) -> Centres:
        """Learn the centres of a corpus.

        Args:
            rows_at: of the corpus; asked for some rows at a time, several times for each.
            ties: uint64 ``(N,)``, hashes of the ids. count: C, at most N.

        Raises:
            Stopped: from `work.poll`.
        """
        sample = uniform_rows(ties, ROWS_PER_CELL * count, LEARNED_BY)
        first = sample[np.argsort(hash_under(ties[sample], BEGUN_BY), kind="stable")[:count]]
        rising = np.argsort(first)
        points = rows_at(first[rising])[np.argsort(rising)]
        centres, quiet = cls.group(points), Work(work.poll, threads=work.threads)
        for _ in range(ROUNDS):
            sums = _Sums.none(centres.points)
            for low in range(0, len(sample), LEARNED_AT_ONCE):
                rows = rows_at(sample[low : low + LEARNED_AT_ONCE])
                sums.add(rows, centres.nearest_cells(rows, 1, quiet)[:, 0])
            centres = cls.group(sums.means(centres.points))
        return centres

    def nearest_cells(self, rows: np.ndarray, m: int, work: Work = UNWATCHED, place: Place = MEMORY) -> np.ndarray:
        """The m nearest cells of each row, by falling cosine: int32 ``(n, m)``, in that place.

        Args:
            rows: int16 ``(n, d)``, rounded. m: at most C, and at most `MOST_NEAREST` where there are several groups.

        Raises:
            Stopped: from `work.poll`.
        """
        cells, (points_wide, point_inverses) = place.empty((len(rows), m), np.int32), widened(self.points)
        step = max(ROWS_AT_ONCE[0], min(ROWS_AT_ONCE[1], -(-len(rows) // (work.threads or thread_count(16)))))
        tally = Tally(work, len(rows), lambda _: "Neighbor graph: cells")

        def task(number: int) -> None:
            part = slice(number * step, (number + 1) * step)
            cells[part] = self._nearest(rows[part], m, points_wide, point_inverses, tally.poll)
            tally.add(len(cells[part]))

        with one_blas_thread():
            tally.in_threads(task, -(-len(rows) // step), work.threads)
        return cells

    def _nearest(
        self, rows: np.ndarray, m: int, points_wide: np.ndarray, point_inverses: np.ndarray, poll: Poll
    ) -> np.ndarray:
        from datamask.corpus import kernels

        visits = Visits.of_probed(nearest(rows, self.middles, self._groups_compared(), threads=1)[0])
        wide, inverses = widened(rows)
        ties, allowed = np.arange(len(self), dtype=np.uint64), slack(rows.shape[1])
        similarities, indices = kernels.empty_heaps(len(rows), m, len(self))
        for group, who in visits.within(0, len(self.middles)):
            # a group of equal centres may be large
            for low in range(int(self.starts[group]), int(self.starts[group + 1]), CENTRES_AT_ONCE):
                poll()
                cells = slice(low, min(low + CENTRES_AT_ONCE, int(self.starts[group + 1])))
                kernels.offer_rows(
                    np.dot(wide[who], points_wide[cells].T),
                    rows[who],
                    inverses[who],
                    self.points[cells],
                    point_inverses[cells],
                    np.full(len(who), -1, np.int32),
                    np.arange(cells.start, cells.stop, dtype=np.int32),
                    who,
                    ties,
                    allowed,
                    similarities,
                    indices,
                )
        return falling(indices, similarities, ties)[0]

    def _groups_compared(self) -> int:
        """With the centres of how many groups a row is compared: the same however many cells are asked for.

        About `NEAR` centres are in them, and at least `MOST_NEAREST`, whichever they are.
        """
        sizes = np.sort(np.diff(self.starts))
        enough = int(np.searchsorted(np.cumsum(sizes), min(MOST_NEAREST, len(self)))) + 1
        return min(max(enough, math.ceil(NEAR * len(sizes) / len(self))), len(sizes))


@dataclass(frozen=True)
class _Sums:
    """Sums of the rows of each centre, int64 ``(C, d)``, and their counts, int64 ``(C,)``."""

    sums: np.ndarray
    counts: np.ndarray

    @classmethod
    def none(cls, centres: np.ndarray) -> _Sums:
        return cls(np.zeros(centres.shape, np.int64), np.zeros(len(centres), np.int64))

    def add(self, rows: np.ndarray, owner: np.ndarray) -> _Sums:
        order = np.argsort(owner, kind="stable")
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
        self.sums[owner[order[starts]]] += np.add.reduceat(rows[order], starts, axis=0, dtype=np.int64)
        self.counts[:] += np.bincount(owner, minlength=len(self.counts))
        return self

    def means(self, centres: np.ndarray) -> np.ndarray:
        """Scaled to unit length. A centre without rows, or whose rows sum to nothing, stays where it is."""
        middles = self.sums / np.maximum(self.counts, 1)[:, None]
        means = to_length(np.rint(middles, out=middles))
        return np.where(means.any(axis=1, keepdims=True), means, centres)
