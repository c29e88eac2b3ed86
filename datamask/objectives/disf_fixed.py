"""DiSF with the pool's own mean and scale: second moments instead of correlations, hence concave and with a proof."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.objectives.budgeted import BudgetedDiSFFixed
from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll
from datamask.objectives.disf import ELEMENTS_AT_ONCE, LONG_STEP, Standardised, held_bytes, standardise
from datamask.objectives.forms import SUMMED_ROWS, add_products, form

NEAR = 0.5
"""Share of the dimensions up to which so many rows' changes of weight are followed: by their products with all rows, in
that share of the time that all moments take."""

NEAR_AT_ONCE = 1_024
"""Rows at a time there: what is made of them stays in the processor's cache."""


class Crowding:
    """``c_i = sum_j w_j k_ij`` of some weights: through second moments, or with fewer rows than dimensions by all k.

    Attributes:
        total: ``sum_ij w_i w_j k_ij`` of the first weights.
    """

    def __init__(self, function: DiSFFixed, weights: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> None:
        self._function, self._dtype, self._poll = function, dtype, poll
        self._by_row: Tensor | None = None
        self._moment: Tensor
        if function.n <= function.d:
            weights = weights.to(dtype)
            self._by_row = function.kernel_of_all(dtype) @ weights
            self.total = float(self._by_row @ weights)
        else:
            self._moment = function.moment(weights, dtype, poll)
            self.total = float(self._moment.square().sum())

    def of(self, rows: Tensor | None = None) -> Tensor:
        """``c`` of rows, ``(r,)``; None: of all."""
        if self._by_row is not None:
            return self._by_row if rows is None else self._by_row[rows]
        y = self._function.y
        out = torch.empty(self._function.n if rows is None else len(rows), dtype=self._dtype, device=y.device)
        for part in chunks(len(out), ELEMENTS_AT_ONCE // (4 * self._function.d)):
            self._poll()
            block = y[part if rows is None else rows[part]].to(self._dtype)
            out[part] = form(block, self._moment)
        return out

    def swap(self, leaving: Tensor, coming: Tensor) -> None:
        """Take weight 1 from rows ``(k,)`` and give it to as many others."""
        if self._by_row is not None:
            kernel = self._function.kernel_of_all(self._dtype)
            self._by_row += kernel[:, coming].sum(1) - kernel[:, leaving].sum(1)
            return
        out, into = self._function.y[leaving], self._function.y[coming]
        self._moment += into.T @ into - out.T @ out
        self._moment.fill_diagonal_(0.0)


class DiSFFixed(SetFunction):
    """``f(U) = - mean over ordered pairs a != b of (mean over U of y_a y_b)^2``, y standardised on the pool.

    With the kernel ``k_ij = (y_i . y_j)^2 - sum_a y_ia^2 y_ja^2`` it is ``-(1 / (S^2 d (d - 1))) sum_ij in U k_ij``, i
    = j included: a quadratic form of a positive semidefinite kernel, so minus it is concave in inclusion probabilities.
    It is another objective than DiSF: its bound says nothing about DiSF's value.
    """

    def __init__(self, standardised: Tensor | Standardised) -> None:
        """Args: standardised: ``(n, d)``, pool mean 0 and sd 1 (0 for dead dimensions)."""
        self.y = standardised
        self.n, self.d = standardised.shape
        self.device = standardised.device
        self.pairs = max(self.d * (self.d - 1), 1)
        self.long_steps = self.n * self.d**2 >= LONG_STEP
        self._own: dict[torch.dtype, Tensor] = {}
        self._kernels: dict[torch.dtype, Tensor] = {}

    @classmethod
    def working_bytes(cls, n: int, d: int) -> int:
        # the standardised rows, and in float64 the kernel with the squared features that it is made of,
        # or the moments with one batch's share in them
        return held_bytes(n, d) + 8 * (3 * n * d + 2 * n * n if n <= d else 2 * d * d)

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
        summed = len(rows) > SUMMED_ROWS
        whole = summed and bool((weights[rows] == 1).all())
        for part in chunks(len(rows), SUMMED_ROWS if summed else ELEMENTS_AT_ONCE // (4 * self.d)):
            poll()
            y, shares = self.y[rows[part]], weights[rows[part]]
            if summed:
                add_products(total, y, None if whole else shares)
            else:
                y = y.to(dtype)
                total += y.T @ (y * shares.to(dtype)[:, None])
        return total.fill_diagonal_(0.0)

    def kernel_of_all(self, dtype: torch.dtype) -> Tensor:
        """``k`` between all rows, ``(n, n)``; found once."""
        if dtype not in self._kernels:
            y = self.y[:].to(dtype)
            self._kernels[dtype] = self.kernel(y, y)
        return self._kernels[dtype]

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
            out[j] = -Crowding(self, mask, torch.float32, poll).total / float(mask.sum()) ** 2 / self.pairs
        return out

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        # linear in the mask but for the sample's own term, so the mean over masks needs one pass
        size = float(masks[0].sum())
        mean_mask = masks.float().mean(0)
        crowding = Crowding(self, mean_mask, torch.float32, poll).of()
        own = self.own(torch.float32)
        return -(2.0 * crowding + own * (1.0 - 2.0 * mean_mask)) / (size * size * self.pairs)

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return -Crowding(self, mask, torch.float64, poll).total / float(mask.sum()) ** 2 / self.pairs

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """``-(2 c_i + k_ii) / (S^2 d (d - 1))`` outside, ``-(2 c_i - k_ii)`` inside, ``c_i = sum over U of k``.

        A swap is then exactly ``f(U - j + i) - f(U) = D_i - D_j + 2 k_ij / (S^2 d (d - 1))``.
        """
        size = float(mask.sum())
        crowding = Crowding(self, mask, torch.float64, poll).of()
        own = self.own(torch.float64)
        return -(2.0 * crowding + torch.where(mask, -own, own)) / (size * size * self.pairs)

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = float(mask.sum())
        members = Crowding(self, mask, torch.float64, poll)
        total, crowding = members.total, members.of()
        own = self.own(torch.float64)
        value_at_mask = -total / (size * size)
        added = -(total + 2.0 * crowding + own) / (size + 1) ** 2 - value_at_mask
        others = max(size - 1, 1.0)
        removed = value_at_mask + (total - 2.0 * crowding + own) / others**2
        return torch.where(mask, removed, added) / self.pairs

    def concave(self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True) -> tuple[float, Tensor]:
        dtype = torch.float64 if wide else torch.float32
        crowding = Crowding(self, weights, dtype, poll)
        along, unit = crowding.of(), 1.0 / (size * size * self.pairs)
        # the tangent at these moments, rounded or not, lies above the value: by the square of the rounding
        value = (crowding.total - 2.0 * float(along.double() @ weights.double())) * unit
        return value, along * (-2.0 * unit)

    def bend(self, rows: Tensor, change: Tensor, size: int, poll: Poll = no_poll) -> Tensor | None:
        if self.n <= self.d or len(rows) > NEAR * self.d:
            return None
        moved, change = self.y[rows], change.float()
        squares, out = change @ moved.square(), torch.empty(self.n, device=self.device)
        for part in chunks(self.n, NEAR_AT_ONCE):
            poll()
            y = self.y[part]
            out[part] = (y @ moved.T).square_() @ change - y.square() @ squares
        return out * (-2.0 / (size * size * self.pairs))

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        return self.kernel(self.y[outside], self.y[inside]) * (2.0 / (size * size * self.pairs))

    def batch(self, rows: Tensor, size: int) -> DiSFFixed:
        return DiSFFixed(self.y[rows])

    def budgeted(self, lengths: Tensor, budget: float) -> BudgetedDiSFFixed:
        """The same with second moments over tokens."""
        return BudgetedDiSFFixed(self.y, self.pairs, lengths, budget)

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        """Exact: a row is in with probability S / n, a pair with S (S - 1) / (n (n - 1))."""
        everything = Crowding(self, torch.ones(self.n, dtype=torch.bool, device=self.device), torch.float64, poll)
        own = float(self.own(torch.float64).sum())
        pair = (size - 1) / max(self.n - 1, 1)
        return -(own + pair * (everything.total - own)) / (size * self.n * self.pairs)
