"""The path of solutions over lambda, as far as it is solved: to start from, and to answer between."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from torch import Tensor

V = TypeVar("V")

MOST_LAMBDAS = 64
"""Lambdas remembered: at a million rows 4 MB each, for the products; the masks are packed."""


@dataclass(frozen=True)
class Answer:
    """A selection at one lambda.

    Attributes:
        lamb: lambda.
        mask: bool ``(n,)``, without the given rows, which count in every value.
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
class SolvedLambda:
    """A solved lambda.

    Attributes:
        answer: without the mask, which is packed into bits, one per row. upper: proved, None where nothing is.
        dual: pair-wise similarity's dual solution.
        prices: float32 ``(n,)``, facility's dual solution. logits: ``(n,)``, of a learner, to start from.
        weights: float32 ``(m,)``, inclusion weights of the eligible rows where the relaxation is solved.
    """

    answer: Answer
    bits: np.ndarray
    rows: int
    upper: float | None
    dual: DualProducts | None = None
    prices: np.ndarray | None = None
    logits: Tensor | None = None
    weights: Tensor | None = None

    @property
    def mask(self) -> np.ndarray:
        """The selection, bool ``(n,)``."""
        return np.unpackbits(self.bits, count=self.rows).astype(bool)


class LambdaPath:
    """The solved lambdas; at most `MOST_LAMBDAS`, the oldest go first.

    Args:
        lasting: lambdas that go only when no others are left.
    """

    def __init__(self, lasting: Collection[float] = ()) -> None:
        self._lasting = frozenset(lasting)
        self._solved: OrderedDict[float, SolvedLambda] = OrderedDict()

    def __iter__(self) -> Iterator[tuple[float, SolvedLambda]]:
        """Lambdas and their solutions, rising."""
        return iter(sorted(self._solved.items()))

    @property
    def lambdas(self) -> list[float]:
        """Rising."""
        return sorted(self._solved)

    def get(self, lamb: float) -> SolvedLambda | None:
        """The solution at a lambda; None where it is not solved."""
        return self._solved.get(lamb)

    def add(self, lamb: float, solved: SolvedLambda) -> None:
        """Remember the solution at a lambda."""
        self._solved[lamb] = solved
        while len(self._solved) > MOST_LAMBDAS:
            first = next(iter(self._solved))
            del self._solved[next((other for other in self._solved if other not in self._lasting), first)]

    def nearest(
        self, lamb: float, part: Callable[[SolvedLambda], V | None], farthest: float = 1.0
    ) -> tuple[SolvedLambda, V] | None:
        """The nearest lambda where there is this part of it, and the part; None where none is within `farthest`.

        Args:
            part: of a solved lambda, None where it has none.
        """
        candidates = [
            (abs(other - lamb), solved, value)
            for other, solved in self
            if (value := part(solved)) is not None and abs(other - lamb) <= farthest
        ]
        return min(candidates, key=lambda candidate: candidate[0])[1:] if candidates else None

    def bracket(
        self, lamb: float, part: Callable[[SolvedLambda], V | None]
    ) -> tuple[tuple[float, V], tuple[float, V]] | None:
        """The nearest lambdas on both sides where there is this part, with it; None where there are not two."""
        having = [(other, value) for other, solved in self if (value := part(solved)) is not None]
        below = [candidate for candidate in having if candidate[0] < lamb]
        above = [candidate for candidate in having if candidate[0] > lamb]
        return (below[-1], above[0]) if below and above else None
