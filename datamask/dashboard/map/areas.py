"""Areas of a layout: contiguous, disjoint parts of the map, each around a density peak. Pure numpy.

The rows are counted on a grid and smoothed. Going down from the densest cell, a cell belongs to the area of its densest
neighbor that is denser, or begins an area: a watershed of the density. Small areas are then merged into the one next to
them across the highest saddle, as in ToMATo (Chazal et al. 2013) but by rows, so that areas have similar sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.dashboard.map.places import first_view

ACROSS = 64
"""Cells across the first view; the grid reaches as far again on each side, and islands beyond it are in no area."""

FLOOR = 0.02
"""Rows a cell, smoothed, from which on it belongs to an area: a single row reaches some two cells."""

LEAST, MOST = 21, 24
"""Rows that an area has, and areas, where some can still be merged."""

_KERNEL = np.array([1, 8, 28, 56, 70, 56, 28, 8, 1]) / 256
"""Binomial, with a standard deviation of 1.4 cells."""


@dataclass(frozen=True)
class Areas:
    """Areas of a layout, the one with the most rows first.

    Attributes:
        cells: int32 ``(3 ACROSS, 3 ACROSS)``, the area of each cell by rising y and x; -1: none.
        codes: int32 ``(N,)``, the area of each row's cell.
        peaks: float32 ``(A, 2)``, the middle of the densest cell of each.
        corner: x and y of the grid's least corner; side: of a cell.
    """

    cells: np.ndarray
    codes: np.ndarray
    peaks: np.ndarray
    corner: tuple[float, float]
    side: float


def areas_of(points: np.ndarray) -> Areas:
    """Divide a layout, float ``(N, 2)``, into areas."""
    x0, x1, y0, y1 = first_view(points)
    width, side = 3 * ACROSS, (x1 - x0) / ACROSS
    corner = np.array([2 * x0 - x1, 2 * y0 - y1])
    across, up = np.floor((points - corner) / side).astype(np.int64).T
    inside = (across >= 0) & (across < width) & (up >= 0) & (up < width)
    cell = np.where(inside, up * width + across, 0)
    density = _smooth(np.bincount(cell[inside], minlength=width * width).reshape(width, width).astype(float)).ravel()
    basins, saddles = _basins(density, width)
    sizes = np.bincount(basins[cell[inside]], minlength=basins.max() + 1)
    merged = _merge(sizes, saddles)
    rows = np.bincount(merged, sizes, minlength=len(sizes))
    ranked = [int(basin) for basin in np.argsort(-rows, kind="stable") if rows[basin] >= LEAST]
    area_of = np.full(len(sizes) + 1, -1, np.int32)  # the last entry is read by cells of no basin
    for place, basin in enumerate(ranked):
        area_of[:-1][merged == basin] = place
    cells = area_of[basins]
    # basins are numbered by falling peak, and a merged one keeps its highest as its own
    peaks = [int(np.argmax(np.where(cells == place, density, -1.0))) for place in range(len(ranked))]
    middles = np.array([[peak % width, peak // width] for peak in peaks]).reshape(-1, 2)
    return Areas(
        cells.reshape(width, width),
        np.where(inside, cells[cell], -1).astype(np.int32),
        (corner + (middles + 0.5) * side).astype(np.float32),
        (float(corner[0]), float(corner[1])),
        float(side),
    )


def _smooth(counts: np.ndarray) -> np.ndarray:
    for axis in (0, 1):
        counts = np.apply_along_axis(lambda line: np.convolve(line, _KERNEL, "same"), axis, counts)
    return counts


def _basins(density: np.ndarray, width: int) -> tuple[np.ndarray, dict[tuple[int, int], float]]:
    """The basin of each cell, int64, -1 below `FLOOR`; and the highest saddle between every two that touch."""
    filled = np.flatnonzero(density > FLOOR)
    basin, count = np.full(len(density), -1), 0
    saddles: dict[tuple[int, int], float] = {}
    for cell in filled[np.argsort(-density[filled], kind="stable")].tolist():
        x, near = cell % width, []
        for other, there in ((cell - 1, x > 0), (cell + 1, x < width - 1), (cell - width, True), (cell + width, True)):
            if there and 0 <= other < len(density) and basin[other] >= 0:
                near.append(other)
        if not near:
            basin[cell], count = count, count + 1
            continue
        own = basin[cell] = basin[max(near, key=density.__getitem__)]
        for other in {int(basin[each]) for each in near} - {int(own)}:
            # cells come by falling density: the first one that touches is the saddle
            saddles.setdefault((min(other, int(own)), max(other, int(own))), float(density[cell]))
    return basin, saddles


def _merge(sizes: np.ndarray, saddles: dict[tuple[int, int], float]) -> np.ndarray:
    """The basin that each basin is merged into, itself among them: int64."""
    rows, into = sizes.astype(np.int64), np.arange(len(sizes))
    near: list[dict[int, float]] = [{} for _ in sizes]
    for (one, other), height in saddles.items():
        near[one][other] = near[other][one] = height
    left = set(range(len(sizes)))
    while mergeable := [basin for basin in left if near[basin]]:
        small = min(mergeable, key=lambda basin: (rows[basin], basin))
        if rows[small] >= LEAST and sum(rows[basin] >= LEAST for basin in left) <= MOST:
            break
        target = max(near[small], key=lambda basin: (near[small][basin], -basin))
        into[into == small] = target
        rows[target] += rows[small]
        left.remove(small)
        for basin, height in near[small].items():
            del near[basin][small]
            if basin != target:
                near[basin][target] = near[target][basin] = max(height, near[target].get(basin, 0.0))
    return into
