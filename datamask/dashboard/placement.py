"""Where words go in a picture so that they lie on nothing: in one column beside lines, or around points of a plane.

Pure arithmetic in pixels, y downwards. The sizes of words are estimates that rather say too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LINE = 16.0
"""Pixels that a line of words of size 12 is high."""

LETTER = 6.0
"""Pixels that one of its letters is wide, on average and rather more."""

Interval = tuple[float, float]


def width_of(text: str) -> float:
    """Pixels that a line of words takes."""
    return LETTER * len(text) + 4


def column(wanted: Sequence[float], low: float, high: float, taken: Sequence[Sequence[Interval]] = ()) -> list[float]:
    """Middles of lines of words in one column, each as near as it gets to where it is wanted.

    Words never lie on each other while the column has room for them all; they lie on what is taken only where no room
    is left beside it.

    Args:
        wanted: middles, the most important first.
        low, high: the column's ends, low < high.
        taken: for each line of words, what it should not cover; empty: nothing.
    """
    rest: list[Interval] = []
    found: list[float] = []
    half = LINE / 2
    spots = np.arange(low + half, max(high - half, low + half) + 1e-9, 1.0)
    for place, middle in enumerate(wanted):
        words = np.array([covered(spots - half, spots + half, interval) for interval in rest]).sum(axis=0)
        others = np.array([covered(spots - half, spots + half, interval)
                           for interval in (taken[place] if taken else ())]).sum(axis=0)
        far = np.abs(spots - middle)
        # on other words is worst, then on lines; distance decides between equals, and of two as far the upper one
        best = int(np.lexsort((spots, far, np.round(others, 6) + 0 * spots, np.round(words, 6) + 0 * spots))[0])
        found.append(float(spots[best]))
        rest.append((found[-1] - half, found[-1] + half))
    return found


def covered(low: np.ndarray, high: np.ndarray, interval: Interval) -> np.ndarray:
    """How much of an interval the intervals ``low`` to ``high`` cover, 0 where they do not meet."""
    return np.maximum(np.minimum(high, interval[1]) - np.maximum(low, interval[0]), 0.0)


@dataclass(frozen=True)
class Box:
    """A rectangle: ``left < right``, ``top < bottom``."""

    left: float
    top: float
    right: float
    bottom: float

    def apart(self, other: Box) -> bool:
        """Whether they share nothing but edges."""
        return (self.right <= other.left or other.right <= self.left or self.bottom <= other.top
                or other.bottom <= self.top)

    def inside(self, other: Box) -> bool:
        """Whether it lies in the other one."""
        return (self.left >= other.left and self.right <= other.right and self.top >= other.top
                and self.bottom <= other.bottom)

    def crossed(self, roads: np.ndarray) -> np.ndarray:
        """Which straight lines ``(k, 4)`` of x1, y1, x2, y2 run through it, bool ``(k,)``."""
        start, step = roads[:, :2], roads[:, 2:] - roads[:, :2]
        enter, leave = np.zeros(len(roads)), np.ones(len(roads))
        inside = np.ones(len(roads), bool)
        for axis, (low, high) in enumerate(((self.left, self.right), (self.top, self.bottom))):
            still = np.abs(step[:, axis]) < 1e-12
            inside &= ~still | ((start[:, axis] > low) & (start[:, axis] < high))
            with np.errstate(divide="ignore", invalid="ignore"):
                a, b = (low - start[:, axis]) / step[:, axis], (high - start[:, axis]) / step[:, axis]
            enter = np.where(still, enter, np.maximum(enter, np.minimum(a, b)))
            leave = np.where(still, leave, np.minimum(leave, np.maximum(a, b)))
        return inside & (enter < leave)
