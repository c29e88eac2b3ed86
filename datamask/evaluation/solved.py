"""The lambdas that a live lambda has solved, with what it takes to start from them or to answer between them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor

V = TypeVar("V")

KEPT = 64
"""Lambdas remembered: at a million rows 4 MB each, for the products; the masks are packed."""


@dataclass(frozen=True)
class Answer:
    """A selection at one lambda.

    Attributes:
        lamb: lambda.
        mask: bool ``(n,)``.
        quality, diversity, joint: as shares of the attainable gain.
        gap: no selection has a joint value more than this above; None where nothing is proved.
        exact: whether diversity is the objective's value; false: facility's listed-neighbour value, never above it.
        solved: whether this is what a run finds, rather than the quick answer.
        seconds: it took.
        solved_at: the lambda whose selection this is; None where it was made for this one.
    """

    lamb: float
    mask: np.ndarray
    quality: float
    diversity: float
    joint: float
    gap: float | None
    exact: bool
    solved: bool
    seconds: float
    solved_at: float | None = None


@dataclass(frozen=True)
class DualProducts:
    """Pair-wise similarity's dual solution ``(d,)``, and its products with the eligible rows ``(m,)``, float32."""

    y: Tensor
    products: Tensor


@dataclass
class Known:
    """A solved lambda.

    Attributes:
        answer: without the mask, which is packed into bits, one per row. upper: proved, None where nothing is.
        dual: pair-wise similarity's dual solution.
        prices: float32 ``(n,)``, facility's dual solution. logits: ``(n,)``, of a learner, to start from.
    """

    answer: Answer
    bits: np.ndarray
    rows: int
    upper: float | None
    dual: DualProducts | None = None
    prices: np.ndarray | None = None
    logits: Tensor | None = None

    @property
    def mask(self) -> np.ndarray:
        """The selection, bool ``(n,)``."""
        return np.unpackbits(self.bits, count=self.rows).astype(bool)


class Solved:
    """Solved lambdas; at most `KEPT`, the oldest go first."""

    def __init__(self) -> None:
        self._known: OrderedDict[float, Known] = OrderedDict()

    def __iter__(self) -> Iterator[tuple[float, Known]]:
        """Lambdas and what is known there, rising."""
        return iter(sorted(self._known.items()))

    @property
    def lambdas(self) -> list[float]:
        """Rising."""
        return sorted(self._known)

    def get(self, lamb: float) -> Known | None:
        """What is known at a lambda."""
        return self._known.get(lamb)

    def keep(self, lamb: float, known: Known) -> None:
        """Remember it."""
        self._known[lamb] = known
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    def nearest(self, lamb: float, part: Callable[[Known], V | None], farthest: float = 1.0) -> tuple[Known, V] | None:
        """The nearest lambda where there is this part of it, and the part; None where none is within `farthest`.

        Args:
            part: of a solved lambda, None where it has none.
        """
        candidates = [
            (abs(other - lamb), known, value)
            for other, known in self
            if (value := part(known)) is not None and abs(other - lamb) <= farthest
        ]
        return min(candidates, key=lambda candidate: candidate[0])[1:] if candidates else None

    def beside(self, lamb: float, part: Callable[[Known], V | None]) -> tuple[tuple[float, V], tuple[float, V]] | None:
        """The nearest lambdas on both sides where there is this part, with it; None where there are not two."""
        having = [(other, value) for other, known in self if (value := part(known)) is not None]
        below = [candidate for candidate in having if candidate[0] < lamb]
        above = [candidate for candidate in having if candidate[0] > lamb]
        return (below[-1], above[0]) if below and above else None
