"""Vendi: the members should point in many directions, and evenly so (Friedman and Dieng 2023, arXiv 2210.02410).

The Vendi score is the effective number of different samples, ``exp(H)``. Its logarithm H, in nats, is maximised here,
because H is concave in inclusion weights.

    u_i   share of sample i in the selection, 1 / S       M     sum over U of u_i x_i x_i', ``(d, d)``, trace 1
    F     -tr(M log M) + tr M - 1, which is H at trace 1   v_j, l_j   eigenvectors and eigenvalues of M

**Bound.** For every positive definite W, ``F(M) <= -tr(M log W) + tr W - 1`` (Klein's inequality), which is linear in
the members. At W = M it is the tangent of F, so the bound is the Frank-Wolfe bound of any concave function.

**Exact changes.** A sample that comes in adds ``u x x'``. By the integral of the resolvent

    F(M + u x x') - F(M) = integral over s > 0 of [log(1 + u phi(s)) - u / (1 + s)] ds
    phi(s)               = sum over j of (v_j . x)^2 / (l_j + s)

and with -u for one that leaves. In log s the integrand is analytic in a strip of half-width pi, so the trapezoid rule
converges exponentially; one product of ``(n, d)`` with ``(d, nodes)`` serves all samples.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.objectives.budgeted import shares_of
from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll, sampled_random_value
from datamask.objectives.disf import ELEMENTS_AT_ONCE
from datamask.objectives.pairwise import row_lengths

NEGLIGIBLE = 1e-14
"""An eigenvalue below this is rounding: a direction that no member has."""

FLOOR = 1e-15
"""Eigenvalues of W, so that it is positive definite where members span fewer than d directions."""

SMALL = 512
"""Rows up to which eigenvectors are found by one thread: of 180, two took 33 ms for 13; of 512, 19 ms for 31."""

FEW = 2
"""With d so many times the rows that have a share, M is found among these: quicker than among d dimensions."""


@dataclass(frozen=True)
class Quadrature:
    """Nodes of the trapezoid rule in log s, and the least value of ``1 + u phi`` that is no rounding."""

    step: float
    low: float
    high: float
    least: float

    def nodes(self, device: torch.device) -> Tensor:
        """s, float64 ``(K,)``."""
        count = math.ceil((self.high - self.low) / self.step)
        return torch.exp(self.low + self.step * torch.arange(count, dtype=torch.float64, device=device))


QUADRATURES = {
    torch.float64: Quadrature(0.6, -33.0, 28.0, 1e-16),
    torch.float32: Quadrature(1.0, -20.0, 18.0, 1e-7),
}
"""By the type of the products: the rule errs by ``exp(-2 pi^2 / step)``, and what the ends leave out by as much."""

OF_PAIRS = Quadrature(0.8, -33.0, 28.0, 1e-16)
"""For all pairs of some hundred rows each, of which the best alone is then valued exactly."""


class Vendi(SetFunction):
    """``f(U) = -tr(M log M)``, ``M`` the mean of ``x x'`` over U: the entropy of its eigenvalues, in nats.

    It sees second moments around zero: ``exp(f)`` is at most the smaller of S and d. A copy of a member changes it by
    about 1/S, so at large S it is blind to near-copies. One member alone, or members along one line, have 0.
    """

    quadratic = False
    price = 0.0
    """What one whole selection of shares that no member takes is worth: nothing is left over where rows count."""

    def __init__(self, features: Tensor) -> None:
        self.features = features
        self.n, self.d = features.shape
        self.device = features.device

    @classmethod
    def working_bytes(cls, n: int, d: int) -> int:
        # the lengths, and in float64 a moment with one batch's share in it, its eigenvectors and their workspace
        return 8 * n + 5 * 8 * d * d

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> Vendi:
        return cls(features)

    @functools.cached_property
    def exact_lengths(self) -> Tensor:
        """The exact length of every row as it is in float32, float64 ``(n,)``: with it, traces are 1 to the digit."""
        return row_lengths(self.features)

    def shares(self, size: int) -> Tensor:
        """u of every sample in a selection of `size`, float64 ``(n,)``."""
        return torch.full((self.n,), 1.0 / size, dtype=torch.float64, device=self.device)

    def moment(self, shares: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> Tensor:
        """``sum_i shares_i x_i x_i'``, float64 ``(d, d)``, from products in `dtype`; rows of share 0 are skipped."""
        rows = shares.nonzero().squeeze(1)
        scaled = shares[rows] / self.exact_lengths[rows].square()
        total = torch.zeros(self.d, self.d, dtype=torch.float64, device=self.device)
        for part in chunks(len(rows), ELEMENTS_AT_ONCE // (4 * self.d)):
            poll()
            x = self.features[rows[part]].to(dtype)
            total += x.T @ (x * scaled[part].to(dtype)[:, None])
        return total

    def value_of(self, values: Tensor) -> float:
        """f from eigenvalues of M: their entropy, and what the shares that no member takes count."""
        return entropy(values) + self.price * (1.0 - float(values.sum()))

    def _roots(self, shares: Tensor) -> Tensor | None:
        """``(d, r)`` whose product with itself is M, float64, where r, the rows with a share, are few: M has no more
        eigenvalues above 0."""
        rows = shares.nonzero().squeeze(1)
        if FEW * len(rows) > self.d:
            return None
        return (self.features[rows].double() * (shares[rows].sqrt() / self.exact_lengths[rows])[:, None]).T

    def eigenvalues(self, shares: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> Tensor:
        """Those of M, ``(d,)``, or fewer where the others are 0."""
        roots = self._roots(shares)
        matrix = self.moment(shares, dtype, poll) if roots is None else roots.T @ roots
        with _few_threads(matrix):
            values: Tensor = torch.linalg.eigvalsh(matrix)
        return values

    def _eigen(self, shares: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        """Eigenvalues of M ``(r,)`` and eigenvectors ``(d, r)``; where r < d the others' eigenvalue is 0."""
        roots = self._roots(shares)
        if roots is None:
            matrix = self.moment(shares, dtype, poll)
            with _few_threads(matrix):
                values, axes = torch.linalg.eigh(matrix)
            return values, axes
        with _few_threads(roots.T):
            basis, triangle = torch.linalg.qr(roots)
            values, axes = torch.linalg.eigh(triangle @ triangle.T)
        return values, basis @ axes

    def _spectral(
        self, axes: Tensor, columns: Tensor, dtype: torch.dtype, poll: Poll, apply: Callable[[Tensor, slice], Tensor]
    ) -> Tensor:
        """``apply`` to ``sum_j (v_j . x_i)^2 columns_jk``, chunk by chunk: float64 ``(n,)``.

        Args:
            columns: one row more than there are axes where these are fewer than d: for what a sample has beside them.
        """
        out = torch.empty(self.n, dtype=torch.float64, device=self.device)
        axes, columns = axes.to(dtype), columns.to(dtype)
        for part in chunks(self.n, ELEMENTS_AT_ONCE // (4 * max(self.d, columns.shape[1]))):
            poll()
            squares = _squares(self.features[part].to(dtype), axes)
            squares /= self.exact_lengths[part].square().to(dtype)[:, None]
            out[part] = apply(squares @ columns, part).to(torch.float64)
        return out

    def _value_and_changes(self, mask: Tensor, dtype: torch.dtype, poll: Poll) -> tuple[float, Tensor]:
        """f of one mask, and of every sample ``f(M + u x x') - f(M)`` outside, ``f(M) - f(M - u x x')`` inside."""
        share = self.shares(int(mask.sum()))
        values, axes = self._eigen(share * mask, dtype, poll)
        quadrature = QUADRATURES[dtype]
        nodes = quadrature.nodes(self.device)
        weights, baseline = (quadrature.step * nodes).to(dtype), (1.0 / (1.0 + nodes)).to(dtype)
        change = torch.where(mask, -share, share).to(dtype)[:, None]

        def integral(phi: Tensor, part: slice) -> Tensor:
            grown = (change[part] * phi).clamp_min_(quadrature.least - 1.0).log1p_()
            return (grown - change[part] * baseline) @ weights

        resolvents = 1.0 / (self._with_rest(values)[:, None].clamp_min(0.0) + nodes)
        grown = self._spectral(axes, resolvents, dtype, poll, integral)
        return self.value_of(values), torch.where(mask, -grown, grown) - share * self.price

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        spectra = (self.eigenvalues(self.shares(int(mask.sum())) * mask, torch.float32, poll) for mask in masks)
        return torch.tensor([self.value_of(values) for values in spectra], dtype=torch.float32, device=self.device)

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.values_and_marginals(masks, poll)[1]

    def values_and_marginals(self, masks: Tensor, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        values, total = [], torch.zeros(self.n, dtype=torch.float64, device=self.device)
        for mask in masks:
            value, changes = self._value_and_changes(mask, torch.float32, poll)
            values.append(value)
            total += changes
        return torch.tensor(values, dtype=torch.float32, device=self.device), (total / len(masks)).float()

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self.value_of(self.eigenvalues(self.shares(int(mask.sum())) * mask, torch.float64, poll))

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """``F(M + x x' / S) - F(M)`` outside, ``F(M) - F(M - x x' / S)`` inside; at large S ``-x' log(M) x / S``."""
        return self._value_and_changes(mask, torch.float64, poll)[1]

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = int(mask.sum())
        if size == 0:  # one member alone has no entropy, and nor has none
            return torch.zeros(self.n, dtype=torch.float64, device=self.device)
        value, change = self._value_and_changes(mask, torch.float64, poll)
        # H of c B, B = M +- x x' / S of trace 1 / c, is c (F(B) + 1) - 1 - log c
        more, less = size / (size + 1), size / max(size - 1, 1)
        added = more * (value + change + 1.0) - 1.0 - math.log(more) - value
        removed = value - (less * (value - change + 1.0) - 1.0 - math.log(less))
        return torch.where(mask, removed if size > 1 else torch.zeros_like(added), added)

    def concave(self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True) -> tuple[float, Tensor]:
        """Klein's bound at W = M with its eigenvalues floored: ``-tr(M log W) + tr W - 1``, never below F.

        In float64 the rounding of the products is added, so that no bound from here falls short of it.
        """
        dtype = torch.float64 if wide else torch.float32
        share = self.shares(size)
        values, axes = self._eigen(share * weights, dtype, poll)
        rest = self.d - len(values)
        logs = self._with_rest(values).clamp_min(FLOOR).log()
        value = float(values.clamp_min(FLOOR).sum() - values @ logs[: len(values)]) + rest * FLOOR - 1.0
        value += self.price * (1.0 - float(values.sum()))
        if wide:
            value += self.d * torch.finfo(dtype).eps * float(logs.norm() + rest**0.5 * abs(math.log(FLOOR)))
        slope = self._spectral(axes, -logs[:, None], dtype, poll, lambda product, part: product[:, 0])
        return value, (slope - self.price) * share

    def _with_rest(self, values: Tensor) -> Tensor:
        """Eigenvalues ``(r,)``, and a 0 for the rest of the space where there is one."""
        return values if len(values) == self.d else torch.cat([values, values.new_zeros(1)])

    def interaction_at(self, mask: Tensor, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        """``integral of log(1 + u_i u_j phi_ij^2 / ((1 + u_i phi_ii) (1 - u_j phi_jj))) ds``."""
        quadrature, share = OF_PAIRS, self.shares(int(mask.sum()))
        values, axes = self._eigen(share * mask, torch.float64)
        leaving, coming = (
            (self.features[rows].double() / self.exact_lengths[rows, None]) * share[rows, None].sqrt()
            for rows in (inside, outside)
        )
        square, leaving, coming = _squares(coming, axes), leaving @ axes, coming @ axes
        total = torch.zeros(len(outside), len(inside), dtype=torch.float64, device=self.device)
        for node in quadrature.nodes(self.device):
            resolvent = 1.0 / (values.clamp_min(0.0) + node)
            grown = 1.0 + square @ (1.0 / (self._with_rest(values).clamp_min(0.0) + node))
            left = (1.0 - leaving.square() @ resolvent).clamp_min_(quadrature.least)
            between = ((coming * resolvent) @ leaving.T).square_()
            total += (between / (grown[:, None] * left)).log1p_() * (quadrature.step * node)
        return total

    def batch(self, rows: Tensor, size: int) -> Vendi:
        return Vendi(self.features[rows])

    def budgeted(self, lengths: Tensor, budget: float) -> BudgetedVendi:
        """The entropy over tokens."""
        return BudgetedVendi(self.features, lengths, budget)

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        return sampled_random_value(self, size, generator, poll)


@contextlib.contextmanager
def _few_threads(matrix: Tensor) -> Iterator[None]:
    """For eigenvectors of as many rows: where they are few, threads wait for each other longer than they compute."""
    before = torch.get_num_threads()
    if len(matrix) <= SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _squares(rows: Tensor, axes: Tensor) -> Tensor:
    """``(v_j . x_i)^2`` of rows ``(b, d)``; and, where axes ``(d, r)`` are fewer than d, of all others together."""
    inside = rows @ axes
    if axes.shape[1] == len(axes):
        return inside.square_()
    beside = (rows - inside @ axes.T).square_().sum(1, keepdim=True)
    return torch.cat([inside.square_(), beside], 1)


def entropy(values: Tensor) -> float:
    """``-sum l log l + sum l - 1`` of eigenvalues ``(d,)``: their entropy where they add up to 1."""
    values = values[values > NEGLIGIBLE]
    total = float((values - values * values.log()).sum()) - 1.0
    return total if abs(total) > NEGLIGIBLE else 0.0  # members along one line differ by rounding alone


class BudgetedVendi(Vendi):
    """``f(U) = F(M) + (1 - tr M) H(m)`` with ``u_i = w_i / W``, m the mean of ``x x'`` over the tokens of the pool.

    Tokens that are not spent count as those of the average sample do where M is m. It is the entropy itself where the
    budget is met exactly. Nothing in it depends on the number of members, so one marginal serves adding and removing.
    """

    def __init__(self, features: Tensor, lengths: Tensor, budget: float) -> None:
        """Args: features: ``(n, d)``; lengths: float64 ``(n,)``, tokens per row; budget: W."""
        super().__init__(features)
        self._share, average = (part.to(torch.float64) for part in shares_of(lengths.to(self.device), budget))
        self.price = entropy(self.eigenvalues(average, torch.float64))

    def shares(self, size: int) -> Tensor:
        return self._share

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.final_marginals(mask, poll)

    def batch(self, rows: Tensor, size: int) -> Vendi:
        raise ValueError("a budget holds for the whole selection, not for a batch of it")

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        raise ValueError("random selections that fill a budget are drawn by `datamask.evaluation.anchors`")
