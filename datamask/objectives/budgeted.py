"""Set functions under a token budget: a member counts by its tokens, and tokens not spent count as average ones.

Notation beside that of `contract`: w_i tokens of sample i, W the budget, ``u_i = w_i / W`` the share of the budget that
a member takes, ``phi_i`` what the objective sees of a sample, ``m`` its mean over the tokens of the pool. Selections
that fill a budget differ a little in their tokens. To divide by the tokens that one holds would make every mean a
quotient, which no bound could follow; to divide by W alone would pay it for what it leaves out. So the tokens left over
count as tokens of the average sample:

    sum(U) = m + sum over U of u_i (phi_i - m)

That is the token-weighted mean of the members where the budget is met exactly, moves with the scores when a constant is
added to all, and is affine in the mask. Quality is ``sum(U)`` itself. Pair-wise similarity and the DiSF with fixed
scale are minus its squared norm, less the tokens paired with their own sample:

    f(U) = -(||sum(U)||^2 - o(U)) / (1 - omega),     o(U) = omega + sum over U of u_i (u_i - omega)

with omega the token-weighted mean of u over the pool (o and omega are 0 for the DiSF, which keeps i = j). With equal
lengths and a budget met exactly these are the functions of a fixed number of rows, digit by digit. They are concave in
inclusion weights, so bounds hold as before; and as nothing in them depends on the number of members, one marginal
serves adding, removing and swapping: ``f(U - j + i) - f(U) = D_i - D_j + 2 z_i . z_j / (1 - omega)`` is exact, with
``z_i = u_i (phi_i - m)``.

Facility location is a sum over the pool and needs no change. Every other objective counts rows
(`contract.CountingRows`), by its exact add and remove differences, because its own marginals take the number of rows as
fixed.
"""

from __future__ import annotations

import abc

import torch
from torch import Tensor

from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll
from datamask.objectives.disf import ELEMENTS_AT_ONCE, Standardised
from datamask.objectives.quality import Quality, narrowed

ROWS_AT_ONCE = 65_536

NO_PAIRS = 1e-9
"""Share of the tokens' pairs that are of different samples, up to which there are none."""


def shares_of(lengths: Tensor, budget: float) -> tuple[Tensor, Tensor]:
    """u over all rows, and the weights ``(n,)`` that average over the tokens of the pool, adding up to 1.

    Rows longer than the budget, which nobody can select, are left out of the average.

    Args:
        lengths: float64 ``(n,)``, at least 0; budget: W.
    """
    counted = torch.where(lengths <= budget, lengths, 0.0)
    return lengths / budget, counted / counted.sum()


class BudgetedQuality(Quality):
    """``f_qua(U) = m + sum over U of u_i (q_i - m)``, m the token-weighted mean quality of the pool."""

    def __init__(self, scores: Tensor, lengths: Tensor, budget: float) -> None:
        """Args: scores: ``(n,)``; lengths: ``(n,)``; budget: W."""
        super().__init__(scores)
        share, average = shares_of(lengths.to(self.scores), budget)
        self.mean = average @ self.scores
        self._share = share * (self.scores - self.mean)
        self._narrow, self.unit = narrowed(self._share)

    def values(self, masks: Tensor) -> Tensor:
        return masks.float() @ self._narrow

    def marginals(self, masks: Tensor) -> Tensor:
        return self._narrow

    def value(self, mask: Tensor) -> float:
        return float(self.mean + self._share[mask].sum())

    def final_marginals(self, mask: Tensor) -> Tensor:
        return self._share

    def gains(self, mask: Tensor) -> Tensor:
        return self._share

    def linear(self, size: int) -> tuple[Tensor, float]:
        return self._share, float(self.mean)

    def batch(self, rows: Tensor) -> Quality:
        raise ValueError("a budget holds for the whole selection, not for a batch of it")


class Budgeted(SetFunction, abc.ABC):
    """``f(U) = -(||m + sum over U of z_i||^2 - o(U)) / (1 - omega)``; see the module."""

    def __init__(self, n: int, device: torch.device, lengths: Tensor, budget: float, paired: bool) -> None:
        """Args: paired: whether only pairs of different samples count (then o and omega are not 0)."""
        self.n, self.device = n, device
        self.u, self.average = (part.to(torch.float64) for part in shares_of(lengths.to(device), budget))
        self.omega = float(self.average @ self.u) if paired else 0.0
        own_pairs = self.u * (self.u - self.omega)
        self.own_pairs = own_pairs if paired else torch.zeros_like(own_pairs)
        # a budget that every row fills alone has no pairs: what is left of the value is rounding, not to be scaled up
        self.scale = 1.0 / (1.0 - self.omega) if self.omega < 1.0 - NO_PAIRS else 0.0
        self.mean = self.weighted_sum(self.average, torch.float64, no_poll)
        self.mean_square = float((self.mean * self.mean).sum())
        self.near_mean = self.products(self.mean, torch.float64, no_poll)
        self.squares = self.u.square() * (self.own() - 2.0 * self.near_mean + self.mean_square)

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> Budgeted:
        raise ValueError("bind the objective to the pool first, then call its `budgeted`")

    @abc.abstractmethod
    def weighted_sum(self, weights: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        """``sum of weights_i phi_i``; its shape is the objective's own."""

    @abc.abstractmethod
    def products(self, direction: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        """``phi_i . direction`` for all i, ``(n,)``."""

    @abc.abstractmethod
    def own(self) -> Tensor:
        """``||phi_i||^2``, ``(n,)``."""

    @abc.abstractmethod
    def kernel(self, rows: Tensor, others: Tensor) -> Tensor:
        """``phi_i . phi_j``, ``(rows, others)``."""

    def _total(self, weights: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        """sum(p) at inclusion weights ``(n,)``."""
        spent = weights.to(dtype) * self.u.to(dtype)
        return self.weighted_sum(spent, dtype, poll) + (1.0 - spent.sum()) * self.mean.to(dtype)

    def _value(self, total: Tensor, weights: Tensor) -> float:
        own_pairs = self.omega + float(weights.to(torch.float64) @ self.own_pairs)
        return -(float((total * total).sum()) - own_pairs) * self.scale

    def _gradient(self, total: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        """``-(2 z_i . sum - o_i) / (1 - omega)``, ``(n,)``."""
        separation = self.products(total, dtype, poll) - (total * self.mean.to(dtype)).sum()
        return -(2.0 * self.u.to(dtype) * separation - self.own_pairs.to(dtype)) * self.scale

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        values = [self._value(self._total(mask, torch.float32, poll), mask) for mask in masks]
        return torch.tensor(values, dtype=torch.float32, device=self.device)

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        # affine in the mask, so the mean over masks is the marginal at the mean mask
        mean_mask = masks.float().mean(0)
        gradient = self._gradient(self._total(mean_mask, torch.float32, poll), torch.float32, poll)
        return gradient - (self.squares * self.scale).float() * (1.0 - 2.0 * mean_mask)

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self._value(self._total(mask, torch.float64, poll), mask)

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        gradient = self._gradient(self._total(mask, torch.float64, poll), torch.float64, poll)
        return gradient - self.squares * self.scale * torch.where(mask, -1.0, 1.0)

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.gains(mask, poll)

    def concave(self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True) -> tuple[float, Tensor]:
        dtype = torch.float64 if wide else torch.float32
        total = self._total(weights, dtype, poll)
        return self._value(total, weights), self._gradient(total, dtype, poll)

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        centred = (
            self.kernel(outside, inside)
            - self.near_mean[outside][:, None]
            - self.near_mean[inside][None, :]
            + self.mean_square
        )
        return centred * self.u[outside][:, None] * self.u[inside][None, :] * (2.0 * self.scale)

    def batch(self, rows: Tensor, size: int) -> SetFunction:
        raise ValueError("a budget holds for the whole selection, not for a batch of it")

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        raise ValueError("random selections that fill a budget are drawn by `datamask.evaluation.anchors`")


class BudgetedPairwise(Budgeted):
    """Minus the mean cosine between tokens of different samples: phi is the feature itself, ``(d,)``."""

    def __init__(self, features: Tensor, lengths: Tensor, budget: float) -> None:
        self.features = features
        super().__init__(len(features), features.device, lengths, budget, paired=True)

    def weighted_sum(self, weights: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        total = torch.zeros(self.features.shape[1], dtype=dtype, device=self.device)
        for part in chunks(self.n, ROWS_AT_ONCE):
            poll()
            total += weights[part].to(dtype) @ self.features[part].to(dtype)
        return total

    def products(self, direction: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        out = torch.empty(self.n, dtype=dtype, device=self.device)
        for part in chunks(self.n, ROWS_AT_ONCE):
            poll()
            out[part] = self.features[part].to(dtype) @ direction
        return out

    def own(self) -> Tensor:
        out = torch.empty(self.n, dtype=torch.float64, device=self.device)
        for part in chunks(self.n, ROWS_AT_ONCE):
            out[part] = self.features[part].to(torch.float64).square().sum(1)
        return out

    def kernel(self, rows: Tensor, others: Tensor) -> Tensor:
        return self.features[rows].to(torch.float64) @ self.features[others].to(torch.float64).T

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        # one product for all masks: 128 of them cost little more than one
        poll()
        spent = masks.float() * self.u.float()
        totals = spent @ self.features + (1.0 - spent.sum(1, keepdim=True)) * self.mean.float()
        own_pairs = self.omega + masks.float() @ self.own_pairs.float()
        return -(totals.square().sum(1) - own_pairs) * self.scale


class BudgetedDiSFFixed(Budgeted):
    """Minus the mean squared second moment over tokens: phi is the off-diagonal of y y', ``(d, d)``.

    Scaled by ``1 / (d (d - 1))`` through y, so that the module's formula holds as it stands.
    """

    def __init__(self, standardised: Tensor | Standardised, pairs: int, lengths: Tensor, budget: float) -> None:
        """Args: standardised: y ``(n, d)``; pairs: d (d - 1)."""
        self.y = standardised
        self.root: float = pairs**-0.5
        super().__init__(standardised.shape[0], standardised.device, lengths, budget, paired=False)

    def _parts(self) -> list[slice]:
        return chunks(self.n, ELEMENTS_AT_ONCE // (4 * self.y.shape[1]))

    def weighted_sum(self, weights: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        total = torch.zeros(self.y.shape[1], self.y.shape[1], dtype=dtype, device=self.device)
        rows = weights.nonzero().squeeze(1)
        for part in chunks(len(rows), ELEMENTS_AT_ONCE // (4 * self.y.shape[1])):
            poll()
            y = self.y[rows[part]].to(dtype)
            total += y.T @ (y * weights[rows[part]].to(dtype)[:, None])
        return total.fill_diagonal_(0.0) * self.root

    def products(self, direction: Tensor, dtype: torch.dtype, poll: Poll) -> Tensor:
        out = torch.empty(self.n, dtype=dtype, device=self.device)
        for part in self._parts():
            poll()
            y = self.y[part].to(dtype)
            out[part] = ((y @ direction) * y).sum(1) * self.root
        return out

    def own(self) -> Tensor:
        out = torch.empty(self.n, dtype=torch.float64, device=self.device)
        for part in self._parts():
            squares = self.y[part].to(torch.float64).square()
            out[part] = (squares.sum(1).square() - squares.square().sum(1)) * self.root**2
        return out

    def kernel(self, rows: Tensor, others: Tensor) -> Tensor:
        a, b = self.y[rows].to(torch.float64), self.y[others].to(torch.float64)
        return ((a @ b.T).square() - a.square() @ b.square().T) * self.root**2
