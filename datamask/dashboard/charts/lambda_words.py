"""Where the words of the band over lambda stand: where the fewest curves run through them.

Arithmetic in pixels of a picture of usual width, y downwards; on a wider one there is only more room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

WIDTH = 660.0
"""Pixels across of the plotting area in a window of 1440."""

LINE, LETTER = 16.0, 5.7
"""Pixels that a line of words is high, and that one of its letters is wide."""

NEVER = 1_000.0
"""What lying on other words costs, or standing outside; a curve costs a pixel of its way through the words each."""


@dataclass(frozen=True)
class Spot:
    """A place for a line of words.

    Attributes:
        across, up: the point it stands at, in the picture's own units.
        right, down: from there, in pixels, to the middle of its height.
        align: the part of it that stands there: ``left``, ``center`` or ``right``.
    """

    across: float
    up: float
    right: float
    down: float
    align: str

    @property
    def look(self) -> Mapping[str, object]:
        """As the properties of a mark."""
        return {"align": self.align, "baseline": "middle", "dx": self.right, "dy": self.down}


@dataclass
class Room:
    """The picture while its words are being placed.

    Attributes:
        points: of `views.lambdas.points`. edges, span: its ends across and up. height: in pixels.
    """

    points: pd.DataFrame
    edges: tuple[float, float]
    span: tuple[float, float]
    height: float
    _taken: list[tuple[float, float, float, float]] = field(default_factory=list)

    def place(self, text: str, spots: Sequence[Spot]) -> Spot:
        """The best of some spots, the first of equals; it is taken from then on."""
        curves = self._curves()
        boxes = [self._box(text, spot) for spot in spots]
        harm = [self._harm(box, curves) for box in boxes]
        best = int(np.argmin(harm))
        self._taken.append(boxes[best])
        return spots[best]

    def _curves(self) -> np.ndarray:
        """All curves, a pixel across apiece: float64 ``(k, 2)``."""
        across = np.arange(WIDTH)
        found = []
        for _, curve in self.points.groupby("objective", sort=False):
            curve = curve.sort_values("lambda")
            at = self._across(curve["lambda"].to_numpy())
            here = across[(across >= at[0]) & (across <= at[-1])]
            found.append(np.column_stack([here, np.interp(here, at, self._down(curve["difference"].to_numpy()))]))
        return np.concatenate(found)

    def _across(self, values: np.ndarray | float) -> np.ndarray | float:
        return (values - self.edges[0]) / (self.edges[1] - self.edges[0]) * WIDTH

    def _down(self, values: np.ndarray | float) -> np.ndarray | float:
        return (self.span[1] - values) / (self.span[1] - self.span[0]) * self.height

    def _box(self, text: str, spot: Spot) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        width = LETTER * len(text)
        left = self._across(spot.across) + spot.right - {"left": 0.0, "center": width / 2, "right": width}[spot.align]
        middle = self._down(spot.up) + spot.down
        return left, middle - LINE / 2, left + width, middle + LINE / 2

    def _harm(self, box: tuple[float, float, float, float], curves: np.ndarray) -> float:
        left, top, right, bottom = box
        outside = top < 0 or bottom > self.height
        over = sum(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
                   for other in self._taken)
        through = ((curves > (left, top)) & (curves < (right, bottom))).all(axis=1).sum()
        return NEVER * (outside + over) + float(through)
