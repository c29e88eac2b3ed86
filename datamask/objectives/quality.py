"""Quality: the mean quality score of the subset. Modular, so everything about it is exact and free."""

from __future__ import annotations

import math

import torch
from torch import Tensor

SMALL, LARGE = 1e-15, 1e15
"""Between these float32 holds numbers, their sums and their squares as they are."""


class Quality:
    """``f_qua(U) = mean of q over U``.

    Scores are kept in float64 and centred for the steps, so that a large common offset costs no digits in float32.

    Attributes:
        unit: what `values` and `marginals` are multiples of: 1, or a power of two that brings scores into the range of
            float32.
    """

    def __init__(self, scores: Tensor) -> None:
        """Args: scores: ``(n,)``, any float type."""
        self.scores = scores.double()
        self.n = len(scores)
        self.mean = self.scores.mean()
        self._centred, self.unit = narrowed(self.scores - self.mean)

    def values(self, masks: Tensor) -> Tensor:
        """Mean quality of each mask in `unit`: bool ``(G, n)`` to float32 ``(G,)``, less the pool's mean (`offset`)."""
        return masks.float() @ self._centred / masks.sum(1)

    @property
    def offset(self) -> float:
        """What to add to `values` to have the mean quality itself."""
        return float(self.mean)

    def marginals(self, masks: Tensor) -> Tensor:
        """``q_i / S`` in `unit`, up to a constant, float32 ``(n,)``; the same at every mask of that size."""
        return self._centred / masks[0].sum()

    def value(self, mask: Tensor) -> float:
        """Exact mean quality of one mask ``(n,)``."""
        return float(self.scores[mask].mean())

    def final_marginals(self, mask: Tensor) -> Tensor:
        """``q_i / S``, float64 ``(n,)``."""
        return self.scores / mask.sum()

    def linear(self, size: int) -> tuple[Tensor, float]:
        """What a member adds, float64 ``(n,)``, and what there is without members, for subsets of `size`."""
        return self.scores / size, 0.0

    def gains(self, mask: Tensor) -> Tensor:
        """Add / remove differences, ``(n,)``."""
        size = int(mask.sum())
        difference = self.scores - self.scores[mask].mean()
        return torch.where(mask, difference / max(size - 1, 1), difference / (size + 1))

    def batch(self, rows: Tensor) -> Quality:
        """The same on `rows` alone."""
        return Quality(self.scores[rows])


def narrowed(numbers: Tensor) -> tuple[Tensor, float]:
    """float64 numbers as float32 multiples of a unit: 1 where float32 has room for them, else a power of two."""
    largest = float(numbers.abs().max())
    if largest == 0.0 or SMALL <= largest <= LARGE or not math.isfinite(largest):
        return numbers.float(), 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)
    return (numbers / unit).float(), unit
