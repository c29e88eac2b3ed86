"""Where the samples lie on the map, which of them are drawn, and what a drawn one says about itself. Pure numpy.

Everything here belongs to a corpus and a projection. It is computed once, and every run recolours it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datamask.dashboard.map.hexagons import Hexagons, bin_hexagons

MAX_POINTS = 50_000
"""Points drawn per panel, at most; of more rows a random sample."""

HEXAGONS_FROM = 20_000
"""Above this many rows hexagons are the better picture: single points lie on top of each other."""

UNDER_HEXAGONS = 10_000
"""Samples that can be hovered over on a map of hexagons. Their texts are most of what travels to the browser."""

VIEW = 0.96
"""Share of the samples that the first view must show along each axis; the few far islands are one zoom away."""

PADDING = 1.08
"""The view is wider than that by this factor: on a map without islands it then shows everything."""

CELLS_ACROSS = (84, 72, 60, 48, 36)
"""Cells across the first view, finest first; taken is the finest whose cells hold enough rows."""

ENOUGH = 12
"""Rows that a cell should hold where most samples live: below that, its mean or share is mostly noise."""


@dataclass(frozen=True)
class Places:
    """Where the samples lie.

    Attributes:
        points: float32 ``(N, 2)``.
        drawn: int64 ``(M,)``, the rows drawn as points, in random order: whoever is drawn last covers the others, and
            must not always be the same class.
        cells: the hexagons of all N rows where these are what is seen; None where the points are.
        view: x0, x1, y0, y1 of a square around most samples: `VIEW` of them along each axis.
    """

    points: np.ndarray
    drawn: np.ndarray
    cells: Hexagons | None
    view: tuple[float, float, float, float]

    @property
    def caption(self) -> str:
        """How to read and move the picture."""
        n, m = len(self.points), len(self.drawn)
        if self.cells is None:
            return "Zoom out to see rows outside the frame."
        hover = "any row" if m == n else f"any of {m:,} random rows"
        return f"Larger hexagons have more rows. Hover to see {hover}."


def place(points: np.ndarray, hexagons: bool | None = None, seed: int = 0) -> Places:
    """Choose what is drawn of float ``(N, 2)`` finite coordinates, N >= 1.

    Args:
        hexagons: draw cells rather than points; None: above `HEXAGONS_FROM` rows.
        seed: of the sample and the drawing order.
    """
    points = np.ascontiguousarray(points, np.float32)
    if hexagons is None:
        hexagons = len(points) > HEXAGONS_FROM
    order = np.random.default_rng(seed).permutation(len(points))
    view = first_view(points)
    cells = _cells(points, view[1] - view[0]) if hexagons else None
    return Places(points, order[: UNDER_HEXAGONS if hexagons else MAX_POINTS], cells, view)


def _cells(points: np.ndarray, across: float) -> Hexagons:
    for count in CELLS_ACROSS:
        cells = bin_hexagons(points, across / count)
        if cells.quantiles(cells.counts, 0.3) >= ENOUGH:
            break
    return cells


def first_view(points: np.ndarray) -> tuple[float, float, float, float]:
    """x0, x1, y0, y1 of a square around most of some points, float ``(N, 2)``, as in `Places`."""
    # not percentiles: islands lie on one side, and cutting both sides alike would leave half the view empty
    low, high = np.array([_shortest(axis) for axis in points.astype(float).T]).T
    half = max(float((high - low).max()) / 2 * PADDING, 1e-6)
    x, y = (low + high) / 2
    return float(x - half), float(x + half), float(y - half), float(y + half)


def _shortest(values: np.ndarray) -> tuple[float, float]:
    """Ends of the shortest interval that holds `VIEW` of the values."""
    ordered = np.sort(values)
    held = min(len(ordered), max(1, round(VIEW * len(ordered))))
    first = int(np.argmin(ordered[held - 1 :] - ordered[: len(ordered) - held + 1]))
    return float(ordered[first]), float(ordered[first + held - 1])


def labels(
    ids: Sequence[object], quality: Sequence[float], texts: Sequence[str | None] | None, limit: int = 120
) -> list[str]:
    """One label per drawn row: a line with its id, one with its quality, one with the beginning of its text.

    Plain text: the map shows it as such, so no text can pose as markup.

    Args:
        ids, quality, texts: of the drawn rows, in drawing order; texts None where the corpus has none.
        limit: characters of the text.
    """
    made = []
    for i, name in enumerate(ids):
        label = f"{cut(name, 60)}\nquality score {quality[i]:.4g}"
        if texts is not None and (text := texts[i]):
            label += f"\n{cut(text[: 3 * limit], limit)}"
        made.append(label)
    return made


def cut(text: object, limit: int) -> str:
    """Any text on one line, cut at `limit` characters, at a space where one is near."""
    line = " ".join(str(text).split())
    if len(line) <= limit:
        return line
    space = line.rfind(" ", limit // 2, limit)
    return line[: space if space > 0 else limit - 1] + "…"
