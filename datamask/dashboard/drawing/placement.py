"""Where words go around the points of a picture so that they lie on nothing.

Pure arithmetic in pixels, y downwards. The sizes of words are estimates that rather say too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LINE = 16.0
"""Pixels that a line of words of size 12 is high."""

LETTER = 5.5
"""Pixels that one of its letters is wide, on average and rather more."""

MARK = 10.0
"""Pixels that a mark is wide."""

Offset = tuple[float, float, str]


def width_of(text: str) -> float:
    """Pixels that words take, of the widest of their lines."""
    return LETTER * max(map(len, text.split("\n"))) + 4


@dataclass(frozen=True)
class Box:
    """A rectangle: ``left < right``, ``top < bottom``."""

    left: float
    top: float
    right: float
    bottom: float

    def apart(self, other: Box) -> bool:
        """Whether they share nothing but edges."""
        return (
            self.right <= other.left or other.right <= self.left or self.bottom <= other.top or other.bottom <= self.top
        )

    def inside(self, other: Box) -> bool:
        """Whether it lies in the other one."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )

    def crossed(self, roads: np.ndarray) -> np.ndarray:
        """How far straight lines ``(k, 4)`` of x1, y1, x2, y2 run through it, ``(k,)``; 0 where one does not."""
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
        return np.where(inside, (leave - enter).clip(0.0), 0.0) * np.hypot(step[:, 0], step[:, 1])


@dataclass(frozen=True)
class Words:
    """Words beside a point of a plane.

    Attributes:
        text: the words, in one line or several. x, y: the point, in the plane's own units, y upwards.
        offsets: where they may stand, the best first: pixels to the right, pixels down, and which part of them stands
            there: ``left``, ``center`` or ``right``; the middle of their height is meant.
        needed: whether they stand somewhere even where there is no free place.
    """

    text: str
    x: float
    y: float
    offsets: tuple[Offset, ...]
    needed: bool = False


def compass(right: float, up: float, count: int = 12) -> tuple[Offset, ...]:
    """Offsets around a point, that of a direction first, the opposite one last."""
    length = math.hypot(right, up) or 1.0
    turns = [2 * math.pi * k / count for k in range(count)]
    turns.sort(key=lambda turn: -(math.cos(turn) * right + math.sin(turn) * up) / length)
    offsets = []
    for turn in turns:
        across, down = 9 * math.cos(turn), -14 * math.sin(turn)
        offsets.append((across, down, "center" if abs(across) < 3 else "left" if across > 0 else "right"))
    return tuple(offsets)


def rings() -> tuple[Offset, ...]:
    """Offsets on both sides of a point, the nearest first: for words that must stand somewhere near."""
    offsets = [
        (side * across, down, "left" if side > 0 else "right")
        for side in (-1, 1)
        for across in (10, 30, 60, 100)
        for down in range(-160, 161, 8)
    ]
    return tuple(sorted(offsets, key=lambda offset: math.hypot(offset[0], offset[1])))


def around(
    words: Sequence[Words],
    window: Box,
    scales: Sequence[float],
    roads: np.ndarray,
    dots: Sequence[tuple[float, float]] = (),
) -> list[Offset | None]:
    """Which offset each line of words gets, so that it covers no other, no line, no dot, and stays in the window.

    Args:
        words: the most important first.
        window: what is drawn of the plane, in its units: left, lower end as `top`, right, upper end as `bottom`.
        scales: pixels per unit at which all that must hold; a picture is drawn larger on a larger screen.
        roads: straight lines in the plane, ``(k, 4)``. dots: middles of marks in it.

    Returns:
        An offset of each; None where there is no free place and it is not needed.
    """

    def put(x: float, y: float, scale: float) -> tuple[float, float]:
        return (x - window.left) * scale, (window.bottom - y) * scale

    views = []
    for scale in scales:
        flat = np.asarray(roads, float).reshape(-1, 2, 2)
        lines = np.stack([(flat[..., 0] - window.left) * scale, (window.bottom - flat[..., 1]) * scale], axis=-1)
        whole = Box(0, 0, (window.right - window.left) * scale, (window.bottom - window.top) * scale)
        marks = [
            Box(x - MARK / 2, y - MARK / 2, x + MARK / 2, y + MARK / 2) for x, y in (put(*dot, scale) for dot in dots)
        ]
        views.append((scale, whole, lines.reshape(-1, 4), marks))
    placed: list[list[Box]] = [[] for _ in views]
    chosen: list[Offset | None] = []
    for label in words:
        width, height, best = width_of(label.text), LINE * (1 + label.text.count("\n")), None
        for offset in label.offsets:
            boxes = [_box(put(label.x, label.y, scale), offset, width, height) for scale, *_ in views]
            harm = [0, 0, 0.0]
            for box, others, (_, whole, lines, marks) in zip(boxes, placed, views):
                harm[0] += not box.inside(whole)
                harm[1] += sum(not box.apart(other) for other in others)
                harm[2] += float(box.crossed(lines).sum()) + MARK * sum(not box.apart(mark) for mark in marks)
            if best is None or harm < best[0]:
                best = (harm, offset, boxes)
            if not any(harm):
                break
        if best is None or (any(best[0]) and not label.needed):
            chosen.append(None)
            continue
        chosen.append(best[1])
        for others, box in zip(placed, best[2]):
            others.append(box)
    return chosen


def _box(point: tuple[float, float], offset: Offset, width: float, height: float) -> Box:
    left = point[0] + offset[0] - {"left": 0.0, "center": width / 2, "right": width}[offset[2]]
    return Box(left, point[1] + offset[1] - height / 2, left + width, point[1] + offset[1] + height / 2)
