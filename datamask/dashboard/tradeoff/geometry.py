"""The plane of the frontier: quality across, diversity up, both as shares of the attainable gain. Pure numpy.

A certificate at one lambda is a half-plane: no selection lies beyond ``lambda Q + (1 - lambda) D = bound``. Their
intersection is all that is not proved unreachable. It is cut out of a window, so that it is bounded and can be drawn.
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

    @property
    def corners(self) -> np.ndarray:
        """float64 ``(4, 2)``, counter-clockwise."""
        return np.array([[self.x0, self.y0], [self.x1, self.y0], [self.x1, self.y1], [self.x0, self.y1]], float)


@dataclass(frozen=True)
class HalfPlane:
    """What a bound proves: every selection has ``lamb * Q + (1 - lamb) * D <= bound``."""

    lamb: float
    bound: float

    def room(self, points: np.ndarray) -> np.ndarray:
        """How far points ``(k, 2)`` are inside, ``(k,)``; negative: beyond."""
        return self.bound - self.lamb * points[:, 0] - (1 - self.lamb) * points[:, 1]


def reachable(planes: Iterable[HalfPlane], window: Window) -> np.ndarray:
    """The part of the window that no half-plane excludes: a convex polygon, float64 ``(k, 2)``, counter-clockwise.

    Empty ``(0, 2)`` where nothing is left. The window is cut by one half-plane after the other (Sutherland and Hodgman
    1974).
    """
    polygon = window.corners
    for plane in planes:
        if not len(polygon):
            break
        room, kept = plane.room(polygon), []
        for i in range(len(polygon)):
            j = (i + 1) % len(polygon)
            if room[i] >= 0:
                kept.append(polygon[i])
            if (room[i] >= 0) != (room[j] >= 0):
                kept.append(polygon[i] + (polygon[j] - polygon[i]) * (room[i] / (room[i] - room[j])))
        polygon = np.array(kept, float).reshape(-1, 2)
    return polygon


def unreachable(planes: Sequence[HalfPlane], window: Window) -> np.ndarray:
    """The window's other part as one polygon ``(k, 2)``: along the proved edge, and back around the upper right corner.

    A half-plane of a lambda from 0 to 1 excludes whatever lies above and right of it, so the excluded part always holds
    the upper right corner. Empty where nothing is excluded.
    """
    inside = reachable(planes, window)
    corner = np.array([[window.x1, window.y1]])
    if not len(inside):
        return window.corners
    if not planes or min(plane.room(corner)[0] for plane in planes) >= 0:
        return np.zeros((0, 2))
    # the edge runs from where the polygon leaves the right or lower side to where it meets the upper or left one
    edge = inside[np.lexsort((-inside[:, 1], inside[:, 0]))]
    on_edge = np.min([np.abs(plane.room(edge)) for plane in planes], axis=0) <= 1e-9
    edge = edge[on_edge]
    first, last = edge[0], edge[-1]
    around = []
    if last[1] <= window.y0 + 1e-9:  # it ends at the lower side, so the lower right corner is excluded too
        around.append([window.x1, window.y0])
    around.append([window.x1, window.y1])
    if first[0] <= window.x0 + 1e-9:
        around.append([window.x0, window.y1])
    return np.vstack([edge, around])


def price(lamb: float) -> float:
    """Points of diversity that one point of quality costs at the optimum of a lambda: ``lambda / (1 - lambda)``."""
    return math.inf if lamb >= 1 else lamb / (1 - lamb)


def tangent(x: float, y: float, lamb: float, reach: float) -> tuple[Point, Point]:
    """The ends of the tangent at a point: slope ``-lambda / (1 - lambda)``, `reach` long to either side."""
    # along the line lamb * Q + (1 - lamb) * D = constant
    length = math.hypot(lamb, 1 - lamb)
    dx, dy = reach * (1 - lamb) / length, -reach * lamb / length
    return (x - dx, y - dy), (x + dx, y + dy)


@dataclass(frozen=True)
class Arrow:
    """What stands at the window's edge for points beyond it: its place, and its direction, of length 1."""

    x: float
    y: float
    right: float
    up: float


def edge_arrow(x: float, y: float, window: Window) -> Arrow | None:
    """The arrow of a point outside the window; None for one inside, or one without values."""
    if not (math.isfinite(x) and math.isfinite(y)) or window.holds(x, y):
        return None
    right, up = (x > window.x1) - (x < window.x0), (y > window.y1) - (y < window.y0)
    length = math.hypot(right, up)
    return Arrow(min(max(x, window.x0), window.x1), min(max(y, window.y0), window.y1), right / length, up / length)


def exits(points: Sequence[Point], window: Window) -> list[tuple[Arrow, list[int]]]:
    """Where a line through points leaves the window: arrows that go on with it, and the points each stands for.

    A stretch of points beyond the window that has none inside before or after it gets the arrow of its nearest point.
    """
    outside = [not window.holds(*point) and all(map(math.isfinite, point)) for point in points]
    passages: list[tuple[Arrow, list[int]]] = []
    place = 0
    while place < len(points):
        if not outside[place]:
            place += 1
            continue
        end = place
        while end < len(points) and outside[end]:
            end += 1
        beyond = list(range(place, end))
        pairs = [(place - 1, place), (end, end - 1)]
        inside = next((pair for pair in pairs if 0 <= pair[0] < len(points) and window.holds(*points[pair[0]])), None)
        if inside is not None:
            passages.append((crossing(points[inside[0]], points[inside[1]], window), beyond))
        else:
            arrows = [(arrow, points[k]) for k in beyond if (arrow := edge_arrow(*points[k], window)) is not None]
            nearest, _ = min(arrows, key=lambda pair: math.dist((pair[0].x, pair[0].y), pair[1]))
            passages.append((nearest, beyond))
        place = end
    return passages


def crossing(inside: Point, outside: Point, window: Window) -> Arrow:
    """Where the straight line from a point in the window to one beyond it leaves it, and which way it goes there."""
    dx, dy = outside[0] - inside[0], outside[1] - inside[1]
    share = min(
        [((window.x1 if dx > 0 else window.x0) - inside[0]) / dx] if dx else [math.inf],
        [((window.y1 if dy > 0 else window.y0) - inside[1]) / dy] if dy else [math.inf],
    )[0]
    length = math.hypot(dx, dy)
    # a rounding beyond the edge would already be outside the picture
    x, y = (
        min(max(start + share * step, low), high)
        for start, step, low, high in ((inside[0], dx, window.x0, window.x1), (inside[1], dy, window.y0, window.y1))
    )
    return Arrow(x, y, dx / length, dy / length)


def window_of(points: Iterable[Point], far: float = -0.2, margin: float = 0.06) -> Window:
    """A window around 0 to 1 on both axes that also holds moderately bad points; those beyond `far` become arrows.

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
