"""Names on the map: where a group of samples is at home there, and what it is called. Pure numpy.

A group is a cluster or a class of a column. Its name stands in the densest place of those where it is the commonest
group; a group that is the commonest nowhere gets no name, since whoever looked there would see others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 48
"""Along each side of the first view: about as many as names would fit beside each other if they were two letters."""

ENOUGH = 5
"""Samples of a group around its place: fewer could lie there by chance."""

MOST = 300
"""Names at most, the largest groups first; how many of them have room follows from the zoom, in the browser."""


@dataclass(frozen=True)
class RegionName:
    """A name and its place.

    Attributes:
        code: of the group.
        name: of the group, whole.
        x, y: its place in the map's coordinates.
        n: samples of the group, on and off the map's first view.
    """

    code: int
    name: str
    x: float
    y: float
    n: int


def short_names(names: Sequence[str]) -> list[str]:
    """Names without a number before them, which stays where two would be the same.

    Examples:
        >>> short_names(["1 · cat, dog", "2 · plot, axis", "3 · plot, axis", "web · 2024"])
        ['cat, dog', '2 · plot, axis', '3 · plot, axis', 'web · 2024']
    """
    parts = [name.partition(" · ") for name in names]
    short = [rest if rest and number.isdigit() else name for name, (number, _, rest) in zip(names, parts, strict=True)]
    counts = Counter(short)
    return [each if counts[each] == 1 else name for name, each in zip(names, short, strict=True)]


def region_names(
    points: np.ndarray, view: tuple[float, float, float, float], codes: np.ndarray, names: Sequence[str]
) -> list[RegionName]:
    """Where the groups are at home, the largest first.

    Args:
        points: float ``(N, 2)``. view: x0, x1, y0, y1 of the map's first view.
        codes: ``(N,)`` indices into names; -1: in no group.
        names: of the groups.
    """
    x0, x1, y0, y1 = view
    across = np.clip(((points[:, 0] - x0) / (x1 - x0) * BINS).astype(np.int64), 0, BINS - 1)
    up = np.clip(((points[:, 1] - y0) / (y1 - y0) * BINS).astype(np.int64), 0, BINS - 1)
    cell, inside = up * BINS + across, codes >= 0
    sizes = np.bincount(codes[inside], minlength=len(names))
    # a sample beyond the first view is counted at its edge, where nothing is named that does not lie there
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    best_count = np.zeros(BINS * BINS)
    commonest = np.full(BINS * BINS, -1)
    densities = {}
    for code in np.argsort(-sizes, kind="stable")[:MOST]:
        if sizes[code] < ENOUGH:
            break
        rows = order[starts[code] : starts[code + 1]]
        counts = np.bincount(cell[rows], minlength=BINS * BINS).reshape(BINS, BINS).astype(float)
        density = _around(counts).ravel()
        densities[int(code)] = density
        more = density > best_count + 1e-9
        best_count[more], commonest[more] = density[more], code
    placed = []
    for code, density in densities.items():
        home = np.where(commonest == code, density, 0.0)
        peak = int(home.argmax())
        if home[peak] < ENOUGH - 0.5:
            continue
        rows = order[starts[code] : starts[code + 1]]
        near = (np.abs(across[rows] - peak % BINS) <= 1) & (np.abs(up[rows] - peak // BINS) <= 1)
        # the median is no sample's fancy: islands beyond the first view are counted in its outermost cells
        x, y = np.median(points[rows[near]], axis=0)
        if x0 <= x <= x1 and y0 <= y <= y1:
            placed.append(RegionName(code, str(names[code]), float(x), float(y), int(sizes[code])))
    return placed


def _around(counts: np.ndarray) -> np.ndarray:
    """How many there are in three by three cells around each; nothing lies beyond the edge. ``(BINS, BINS)`` both."""
    padded = np.pad(counts, 1)
    rows: np.ndarray = padded[:-2] + padded[1:-1] + padded[2:]
    around: np.ndarray = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    return around
