"""Hexagonal cells: what a map shows where single points would lie on top of each other. Pure numpy.

Cells are upright hexagons of one size in data coordinates, so they keep their shape only under equal aspect, which
every map here has. Only occupied cells exist: where there is no sample there is no colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PRIOR = 10.0
"""Rows' worth of "as everywhere" mixed into each cell's share: 3 of 5 selected is not proof of 60 %."""


@dataclass(frozen=True)
class Hexagons:
    """The occupied cells.

    Attributes:
        centers: float64 ``(C, 2)``.
        radius: from centre to corner, in data units.
        cell: int32 ``(N,)``, the cell of each row.
        counts: int64 ``(C,)``, rows per cell; all at least 1.
    """

    centers: np.ndarray
    radius: float
    cell: np.ndarray
    counts: np.ndarray

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of ``(N,)`` values per cell, float64 ``(C,)``; NaN where a cell has no finite value."""
        values = np.asarray(values, float)
        known = np.isfinite(values)
        if known.all():
            return np.bincount(self.cell, values, minlength=len(self.counts)) / self.counts
        sums = np.bincount(self.cell[known], values[known], minlength=len(self.counts))
        sizes = np.bincount(self.cell[known], minlength=len(self.counts))
        return np.divide(sums, sizes, out=np.full(len(sums), np.nan), where=sizes > 0)

    def shares(
        self, mask: np.ndarray, prior: float = PRIOR, of: np.ndarray | None = None, usual: float | None = None
    ) -> np.ndarray:
        """Share of `mask` per cell, shrunk toward the usual one: ``(k + prior r) / (n + prior)``.

        Args:
            of: bool ``(N,)``, the rows that it is a share of, `mask` among them; None: all.
            usual: r; None: the mask's share of all rows.
        """
        hits = np.bincount(self.cell[np.asarray(mask, bool)], minlength=len(self.counts))
        counts = self.counts if of is None else np.bincount(self.cell[of], minlength=len(self.counts))
        return (hits + prior * (float(np.mean(mask)) if usual is None else usual)) / (counts + prior)

    def quantiles(self, values: np.ndarray, shares: float | Sequence[float]) -> np.ndarray:
        """Quantiles over all rows, each of which has its cell's value: ``np.quantile(values[cell], shares)``.

        They follow from cells and counts, so that nothing as long as the corpus is looked at.

        Args:
            values: float ``(C,)``; rows of cells without a finite one are left out.
            shares: from 0 to 1.

        Returns:
            float64, as many as shares; NaN where no row is left.
        """
        values = np.asarray(values, float)
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return np.full(np.shape(shares), np.nan)
        rising = known[np.argsort(values[known])]
        ends = np.cumsum(self.counts[rising])
        place = np.asarray(shares, float) * (ends[-1] - 1)
        low = np.floor(place).astype(np.int64)
        below, above = (
            values[rising[np.searchsorted(ends, row, side="right")]] for row in (low, np.minimum(low + 1, ends[-1] - 1))
        )
        return below + (above - below) * (place - low)

    def sizes(self, least: float = 0.42) -> np.ndarray:
        """Share of its cell that each hexagon fills, ``(C,)`` in [least, 1]: area grows with the count.

        Full where 70 % of the samples live, so that the body of the map is closed and its thin fringes look thin.
        """
        full = float(self.quantiles(self.counts, 0.3))
        return np.clip(np.sqrt(self.counts / full), least, 1.0)


def bin_hexagons(points: np.ndarray, width: float) -> Hexagons:
    """Put points into upright hexagons of a given width (flat side to flat side).

    Two interleaved square lattices hold all centres; the nearer of the two candidates is the cell.

    Args:
        points: float ``(N, 2)``, finite, N >= 1.
        width: in data units, > 0.
    """
    points = np.asarray(points, float)
    radius = width / np.sqrt(3)
    step = np.array([width, 3 * radius])
    even = np.round(points / step)
    odd = np.floor(points / step) + 0.5
    nearer_odd = (((points - odd * step) ** 2).sum(axis=1)) < (((points - even * step) ** 2).sum(axis=1))
    # doubled coordinates are whole numbers on both lattices, so they can be compared exactly
    lattice = np.where(nearer_odd[:, None], 2 * odd, 2 * even).astype(np.int64)
    lattice -= lattice.min(axis=0)
    key = lattice[:, 0] * (int(lattice[:, 1].max()) + 1) + lattice[:, 1]
    _, first, cell, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    centers = np.where(nearer_odd[first, None], odd[first], even[first]) * step
    return Hexagons(centers, float(radius), cell.ravel().astype(np.int32), counts)
