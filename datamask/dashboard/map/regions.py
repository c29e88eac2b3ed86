"""Regions drawn on the map, tested against every row of the corpus and not only the points that were drawn.

The browser sends back a polygon or a box in data coordinates. All panels of a map share their coordinates, so it does
not matter in which of them it was drawn. Inside follows the even-odd rule, as in the figure itself: where a lasso
crosses itself, the doubly enclosed part is outside.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Region:
    """One closed polygon; the last corner joins the first.

    Attributes:
        kind: ``"lasso"`` or ``"box"``.
        corners: float64 ``(V, 2)``, V >= 3, finite.
    """

    kind: str
    corners: np.ndarray

    @classmethod
    def lasso(cls, xs: Iterable[float], ys: Iterable[float]) -> Region:
        """A polygon from its corners' coordinates."""
        return cls("lasso", np.column_stack([np.asarray(list(xs), float), np.asarray(list(ys), float)]))

    @classmethod
    def box(cls, xs: Iterable[float], ys: Iterable[float]) -> Region:
        """An upright box from two opposite corners, in any order."""
        (x0, x1), (y0, y1) = sorted(map(float, xs)), sorted(map(float, ys))
        return cls("box", np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]]))


def drawn_regions(shapes: object) -> list[Region]:
    """The regions a browser sent, ``[[kind, [x, ...], [y, ...]], ...]``: foreign input, so nothing of it is trusted.

    Anything that encloses nothing (a click, fewer than three corners, a corner that is not finite) is left out.
    """
    regions: list[Region] = []
    for shape in shapes if isinstance(shapes, list | tuple) else ():
        try:
            kind, xs, ys = shape
            corners = np.column_stack([np.asarray(xs, float), np.asarray(ys, float)])
        except (TypeError, ValueError):
            continue
        if (
            corners.shape[0] >= 3
            and corners.shape[1] == 2
            and np.isfinite(corners).all()
            and np.ptp(corners, axis=0).all()
        ):
            regions.append(Region("box" if kind == "box" else "lasso", corners))
    return regions


def inside(points: np.ndarray, region: Region) -> np.ndarray:
    """Which points lie inside, even-odd rule.

    Each edge is compared only with the points whose height it crosses, found by one sort: a lasso of 300 corners over
    800 000 points takes tens of milliseconds, where points times corners would take seconds.

    Args:
        points: float ``(N, 2)``; a point that is not finite is outside.

    Returns:
        bool ``(N,)``.
    """
    points = np.asarray(points, float)
    low, high = region.corners.min(axis=0), region.corners.max(axis=0)
    candidates = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
    order = candidates[np.argsort(points[candidates, 1], kind="stable")]
    xs, ys = points[order, 0], points[order, 1]
    odd = np.zeros(len(order), bool)
    for (x0, y0), (x1, y1) in zip(region.corners, np.roll(region.corners, -1, axis=0)):
        if y0 == y1:
            continue
        # half open in y, so that a corner exactly at a point's height counts for one of its two edges only
        first, last = np.searchsorted(ys, [min(y0, y1), max(y0, y1)], side="left")
        crossing = x0 + (ys[first:last] - y0) * ((x1 - x0) / (y1 - y0))
        odd[first:last] ^= xs[first:last] < crossing
    result = np.zeros(len(points), bool)
    result[order] = odd
    return result


def rows_inside(points: np.ndarray, regions: Iterable[Region]) -> np.ndarray:
    """Rows inside at least one region, ascending int64 ``(n,)``; points float ``(N, 2)``."""
    mask = np.zeros(len(points), bool)
    for region in regions:
        mask |= inside(points, region)
    return np.flatnonzero(mask)
