"""The plane of the frontier: quality across, diversity up, both as shares of the attainable gain. Pure numpy.

A certificate at one lambda is a half-plane: no selection lies beyond ``lambda Q + (1 - lambda) D = bound``. What lies
above the lowest of these lines is proved unreachable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class HalfPlane:
    """What a bound proves: every selection has ``lamb * Q + (1 - lamb) * D <= bound``."""

    lamb: float
    bound: float


def edge(planes: Sequence[HalfPlane], x: np.ndarray, low: float, high: float) -> np.ndarray:
    """How high a selection can lie between low and high, as proved: the height at each place x, both ``(count,)``."""
    height = np.full(len(x), high)
    for plane in planes:
        room = plane.bound - plane.lamb * x
        # at lambda 1 a place is excluded as a whole, or not at all
        up = room / (1 - plane.lamb) if plane.lamb < 1 else np.where(room < 0, low, high)
        height = np.minimum(height, np.maximum(up, low))
    return height


def price(lamb: float) -> float:
    """Points of diversity that one point of quality costs at the optimum of a lambda: ``lambda / (1 - lambda)``."""
    return math.inf if lamb >= 1 else lamb / (1 - lamb)
