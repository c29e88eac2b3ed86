"""The plane of the frontier: quality across, diversity up, both as shares of the attainable gain. Pure numpy.

A certificate at one lambda is a half-plane: no selection lies beyond ``lambda Q + (1 - lambda) D = bound``. What lies
above the lowest of these lines is proved unreachable.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

Point = tuple[float, float]


@dataclass(frozen=True)
class Window:
    """The part of the plane that is drawn: ``x0 < x1`` across, ``y0 < y1`` up."""

    x0: float
    x1: float
    y0: float
    y1: float

    def holds(self, x: float, y: float) -> bool:
        """Whether a point lies in it, its edges included."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def nearest(self, x: float, y: float) -> Point:
        """The point of it that lies nearest to a point."""
        return min(max(x, self.x0), self.x1), min(max(y, self.y0), self.y1)


@dataclass(frozen=True)
class HalfPlane:
    """What a bound proves: every selection has ``lamb * Q + (1 - lamb) * D <= bound``."""

    lamb: float
    bound: float


def edge(planes: Sequence[HalfPlane], window: Window, count: int = 601) -> tuple[np.ndarray, np.ndarray]:
    """How high a selection can lie in the window, as proved: places across ``(count,)``, and the height at each."""
    x = np.linspace(window.x0, window.x1, count)
    height = np.full(count, window.y1)
    for plane in planes:
        room = plane.bound - plane.lamb * x
        # at lambda 1 a place is excluded as a whole, or not at all
        up = room / (1 - plane.lamb) if plane.lamb < 1 else np.where(room < 0, window.y0, window.y1)
        height = np.minimum(height, np.maximum(up, window.y0))
    return x, height


def price(lamb: float) -> float:
    """Points of diversity that one point of quality costs at the optimum of a lambda: ``lambda / (1 - lambda)``."""
    return math.inf if lamb >= 1 else lamb / (1 - lamb)


def tangent(x: float, y: float, lamb: float, reach: float) -> tuple[Point, Point]:
    """The ends of the tangent at a point: slope ``-lambda / (1 - lambda)``, `reach` long to either side."""
    # along the line lamb * Q + (1 - lamb) * D = constant
    length = math.hypot(lamb, 1 - lamb)
    dx, dy = reach * (1 - lamb) / length, -reach * lamb / length
    return (x - dx, y - dy), (x + dx, y + dy)


def window_of(points: Iterable[Point], far: float = -0.2, margin: float = 0.06) -> Window:
    """A window around 0 to 1 on both axes that also holds moderately bad points; those beyond `far` stand at its edge.

    Args:
        points: what is to be seen.
        far: the lowest value an axis is stretched to.
        margin: free space around, in shares.
    """
    low, high = [0.0, 0.0], [1.0, 1.0]
    for point in points:
        for axis, value in enumerate(point):
            if math.isfinite(value):
                low[axis] = min(low[axis], value) if value >= far else low[axis]
                high[axis] = max(high[axis], min(value, 1.2))
    return Window(low[0] - margin, high[0] + margin, low[1] - margin, high[1] + margin)


def spaced(points: Sequence[Point], apart: float = 0.1) -> list[int]:
    """Which points get a label: every one far enough from all labelled before."""
    chosen: list[int] = []
    for place in range(len(points)):
        if all(math.dist(points[place], points[other]) >= apart for other in chosen):
            chosen.append(place)
    return chosen
