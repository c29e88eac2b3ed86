"""The way to a selection beside the steps of a learner: picks, swaps, steps of a bound, told as they are made.

picks         members that greedy has picked so far
swaps         swaps made so far, by the polish
anneals       rounds of annealing so far, told where one found a better selection
refills       times that part of a token budget was freed and spent anew
dual_steps    steps of the search for a bound; ``upper_bound`` is the lowest so far, on the run's scale
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from datamask.objectives.joint import Values

POINTS = 10
"""Points that are told of a stretch whose length is known, evenly spread."""

LATER = 1.2
"""Of a stretch whose length is not known: beyond `POINTS`, the next point is told this much later than the last."""


@dataclass(frozen=True)
class TracePoint:
    """One point of the way.

    Attributes:
        metrics: what is counted there; keys as above, and as in metrics.jsonl.
        mask: bool ``(n,)``, the selection there, whose value nobody has asked for yet; None: see `values`.
        values: its values, where they are known.
    """

    metrics: dict[str, float]
    mask: Tensor | None = None
    values: Values | None = None


Trace = Callable[[TracePoint], None]


def no_trace(point: TracePoint) -> None:
    """The trace of work whose way nobody wants to know."""


def marks(total: int, points: int = POINTS) -> list[int]:
    """At most `points` whole numbers from 1 to `total`, evenly spread, `total` the last."""
    return sorted({math.ceil(total * k / points) for k in range(1, points + 1)}) if total else []


class PointSchedule:
    """Says of a rising count when the next point is due: the first `POINTS` times, then ever later."""

    def __init__(self) -> None:
        self._points, self._last = 0, 0

    def due(self, count: int) -> bool:
        """Whether a point is due at this count; true answers are remembered."""
        if count <= self._last or (self._points >= POINTS and count < LATER * self._last):
            return False
        self._points, self._last = self._points + 1, count
        return True
