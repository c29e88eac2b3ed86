"""DiSF with the pool's own mean and scale: second moments instead of correlations, hence concave and with a proof."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.objectives.budgeted import BudgetedDiSFFixed
from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll
from datamask.objectives.disf import ELEMENTS_AT_ONCE, standardise


class DiSFFixed(SetFunction):
    """``f(U) = - mean over ordered pairs a != b of (mean over U of y_a y_b)^2``, y standardised on the pool.

    With the kernel ``k_ij = (y_i . y_j)^2 - sum_a y_ia^2 y_ja^2`` it is ``-(1 / (S^2 d (d - 1))) sum_ij in U k_ij``, i
    = j included: a quadratic form of a positive semidefinite kernel, so minus it is concave in inclusion probabilities.
    It is another objective than DiSF: its bound says nothing about DiSF's value.
    """

    def __init__(self, standardised: Tensor) -> None:
        """Args: standardised: ``(n, d)``, pool mean 0 and sd 1 (0 for dead dimensions)."""
        self.y = standardised
        self.n, self.d = standardised.shape
        self.device = standardised.device
        self.pairs = max(self.d * (self.d - 1), 1)
        self._own: dict[torch.dtype, Tensor] = {}

    @classmethod
    def working_bytes(cls, n: int, d: int) -> int:
        # the standardised features, and in float64 the moments with one batch's share in them
        return 4 * n * d + 2 * 8 * d * d

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> DiSFFixed:
        return cls(standardise(features))

    @classmethod
    def bind_polled(
        cls, features: Tensor, lists: tuple[Tensor, Tensor] | None, exact_lists: bool, poll: Poll
    ) -> DiSFFixed:
        return cls(standardise(features, poll))

    def moment(self, weights: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> Tensor:
        """Off-diagonal part of ``sum_i w_i y_i y_i'``, ``(d, d)``; rows of weight 0 are skipped."""
        rows = weights.nonzero().squeeze(1)
        total = torch.zeros(self.d, self.d, dtype=dtype, device=self.device)
        for part in chunks(len(rows), ELEMENTS_AT_ONCE // (4 * self.d)):
            poll()
            y = self.y[rows[part]].to(dtype)
            total += y.T @ (y * weights[rows[part]].to(dtype)[:, None])
        return total.fill_diagonal_(0.0)

    def _against(self, moment: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        """``y_i' moment y_i`` for all i, ``(n,)``."""
        out = torch.empty(self.n, dtype=dtype, device=self.device)
        for part in chunks(self.n, ELEMENTS_AT_ONCE // (4 * self.d)):
            poll()
            y = self.y[part].to(dtype)
            out[part] = ((y @ moment) * y).sum(1)
        return out

    def own(self, dtype: torch.dtype) -> Tensor:
        """``k_ii = |y_i|^4 - sum_a y_ia^4``, ``(n,)``; found once."""
        if dtype not in self._own:
            out = torch.empty(self.n, dtype=dtype, device=self.device)
            for part in chunks(self.n, ELEMENTS_AT_ONCE // (4 * self.d)):
                squares = self.y[part].to(dtype).square()
                out[part] = squares.sum(1).square() - squares.square().sum(1)
            self._own[dtype] = out
        return self._own[dtype]

    @staticmethod
    def kernel(a: Tensor, b: Tensor) -> Tensor:
        """``k`` between rows ``(p, d)`` and ``(q, d)`` of y: ``(p, q)``."""
        return (a @ b.T).square() - a.square() @ b.square().T

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        out = torch.empty(len(masks), device=self.device)
        for j, mask in enumerate(masks):
            moment = self.moment(mask, torch.float32, poll) / mask.sum()
            out[j] = -moment.square().sum() / self.pairs
        return out

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        # linear in the mask but for the sample's own term, so the mean over masks needs one pass
        size = float(masks[0].sum())
        mean_mask = masks.float().mean(0)
        crowding = self._against(self.moment(mean_mask, torch.float32, poll), torch.float32, poll)
        own = self.own(torch.float32)
        return -(2.0 * crowding + own * (1.0 - 2.0 * mean_mask)) / (size * size * self.pairs)

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        moment = self.moment(mask, torch.float64, poll) / mask.sum()
        return -float(moment.square().sum()) / self.pairs

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """``-(2 c_i + k_ii) / (S^2 d (d - 1))`` outside, ``-(2 c_i - k_ii)`` inside, ``c_i = sum over U of k``.

        A swap is then exactly ``f(U - j + i) - f(U) = D_i - D_j + 2 k_ij / (S^2 d (d - 1))``.
        """
        size = float(mask.sum())
        crowding = self._against(self.moment(mask, torch.float64, poll), torch.float64, poll)
        own = self.own(torch.float64)
        return -(2.0 * crowding + torch.where(mask, -own, own)) / (size * size * self.pairs)

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = float(mask.sum())
        moment = self.moment(mask, torch.float64, poll)
        total = float(moment.square().sum())  # sum over members of k_ij
        crowding = self._against(moment, torch.float64, poll)
        own = self.own(torch.float64)
        value_at_mask = -total / (size * size)
        added = -(total + 2.0 * crowding + own) / (size + 1) ** 2 - value_at_mask
        others = max(size - 1, 1.0)
        removed = value_at_mask + (total - 2.0 * crowding + own) / others**2
        return torch.where(mask, removed, added) / self.pairs

    def concave(self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True) -> tuple[float, Tensor]:
        dtype = torch.float64 if wide else torch.float32
        moment = self.moment(weights, dtype, poll)
        value = -float(moment.square().sum()) / (size * size * self.pairs)
        return value, self._against(moment, dtype, poll) * (-2.0 / (size * size * self.pairs))

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        return self.kernel(self.y[outside], self.y[inside]) * (2.0 / (size * size * self.pairs))

    def batch(self, rows: Tensor, size: int) -> DiSFFixed:
        return DiSFFixed(self.y[rows])

    def budgeted(self, lengths: Tensor, budget: float) -> BudgetedDiSFFixed:
        """The same with second moments over tokens."""
        return BudgetedDiSFFixed(self.y, self.pairs, lengths, budget)

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        """Exact: a row is in with probability S / n, a pair with S (S - 1) / (n (n - 1))."""
        everything = self.moment(torch.ones(self.n, device=self.device), torch.float64, poll)
        own = float(self.own(torch.float64).sum())
        pair = (size - 1) / max(self.n - 1, 1)
        return -(own + pair * (float(everything.square().sum()) - own)) / (size * self.n * self.pairs)
