"""DiSF: the members' feature dimensions should be uncorrelated (arXiv 2504.20644, as used by arXiv 2512.24265)."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll, sampled_random_value
from datamask.objectives.forms import SUMMED_ROWS, add_products, form

DEAD_SHARE = 1e-4
"""A dimension whose pool sd is below this share of the median sd is dead: it correlates with nothing."""

FLAT_VARIANCE = 1e-10
"""Variance on U, in units of the pool's, under which a live dimension is flat there and counts as uncorrelated."""

FIRST_ORDER_FROM = 40
"""First-order marginals are good for S from so many d on (correlation with exact swaps 0.9999 at S = 50 d); below, the
exact add / remove differences stand in at twice the cost."""

FEW, WIDE = 4, 512
"""With d so many times the members and above that, steps and swaps know correlations by the members' rows: ``(d, d)``
takes longer there, and is not worth what exact differences bring."""

ELEMENTS_AT_ONCE = 24_000_000
"""Features gathered per chunk, some 100 MB: the bound on memory whatever G and S."""

LONG_STEP = 1e10
"""Rows times squared dimensions from which on a learned step takes seconds."""

HELD_BYTES = 256 * 2**20
"""Standardised rows up to so many bytes are held, beside the rows: to make them anew each time they are asked for takes
a tenth of the time that they are asked for."""


def held_bytes(n: int, d: int) -> int:
    """What standardised rows take beside the rows."""
    return size if (size := 4 * n * d) <= HELD_BYTES else 0


class Correlations:
    """Correlations C of the dimensions over S members, with 1 on the diagonal and 0 where a dimension is flat.

    Attributes:
        size: S. mean, scale: of the members, ``(d,)``; scale is the inverse sd, 0 where flat. own: C's diagonal.
    """

    def __init__(self, first: Tensor, second: Tensor, size: int) -> None:
        """Args: first: the sum of the members' rows, ``(d,)``; second: of their products, ``(d, d)``."""
        self.size, self.mean = size, first / size
        covariance = torch.addr(second / size, self.mean, self.mean, alpha=-1.0)
        self.scale = _inverse_sd(covariance.diagonal())
        self.matrix = (covariance * self.scale[:, None]).mul_(self.scale)
        self.own = self.matrix.diagonal()

    def sums(self) -> Tensor:
        """``sum over b of C_ab^2``, ``(d,)``."""
        return self.matrix.square().sum(1)

    def times(self, z: Tensor) -> Tensor:
        """``C z`` of rows ``(b, d)``."""
        return z @ self.matrix

    def form(self, z: Tensor) -> Tensor:
        """``z' C z`` of rows ``(b, d)``."""
        return form(z, self.matrix)

    def squared(self, e: Tensor, sums: Tensor) -> Tensor:
        """``e' (C o C) e`` of rows ``(b, d)``. Args: sums: of `sums`."""
        return form(e, self.matrix.square())


class FewCorrelations(Correlations):
    """The same where members are fewer than dimensions, by their standardised rows Z: ``C = Z'Z / S``.

    ``e' (C o C) e`` is of second order in a change. Off the diagonal it is taken for that of the matrix of rank one
    with the same sums: changes of value are then right to 5e-4 of their spread at S = 180 of 4,096 dimensions, to 1e-2
    at S = 20.
    """

    def __init__(self, members: Tensor) -> None:
        """Args: members: ``(S, d)``."""
        self.size, self.mean = len(members), members.mean(0)
        self.z = members - self.mean
        self.scale = _inverse_sd(self.z.square().mean(0))
        self.z *= self.scale
        self.own = self.z.square().mean(0)

    def sums(self) -> Tensor:
        return ((self.z @ self.z.T) @ self.z).mul_(self.z).sum(0) / self.size**2

    def times(self, z: Tensor) -> Tensor:
        return (z @ self.z.T) @ self.z / self.size

    def form(self, z: Tensor) -> Tensor:
        return (self.times(z) * z).sum(1)

    def squared(self, e: Tensor, sums: Tensor) -> Tensor:
        squares, off = e.square(), sums - self.own.square()
        total = off.sum().clamp_min(torch.finfo(off.dtype).tiny)
        return squares @ self.own.square() + ((e @ off).square() - squares @ off.square()) / total


def _inverse_sd(variance: Tensor) -> Tensor:
    return torch.where(variance > FLAT_VARIANCE, variance.clamp_min(FLAT_VARIANCE).rsqrt(), 0.0)


class DiSF(SetFunction):
    """``f(U) = - mean over ordered pairs of dimensions a != b of corr_ab(U)^2``, dimensions standardised on U.

    It sees second moments, is blind to copies, and wants S well above d: with fewer members than dimensions the sample
    correlations are mostly noise. The divisor stays ``d (d - 1)`` with dead dimensions in it.

    The pool is standardised once, which changes no correlation and keeps the float32 sums well conditioned.

    Swaps of second order go other ways where a sum is rounded otherwise, so rows are added up in an order of their ids.
    """

    ordered = drawn = True

    def __init__(self, standardised: Tensor | Standardised) -> None:
        """Args: standardised: ``(n, d)``, pool mean 0 and sd 1 (0 for dead dimensions)."""
        self.y = standardised
        self._order: Tensor | None = None
        self.n, self.d = standardised.shape
        self.device = standardised.device
        self.pairs = max(self.d * (self.d - 1), 1)
        self.long_steps = self.n * self.d**2 >= LONG_STEP

    @classmethod
    def working_bytes(cls, n: int, d: int) -> int:
        # the standardised rows, and in float64 the second moments beside the correlations made of them
        return held_bytes(n, d) + 3 * 8 * d * d

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> DiSF:
        return cls(standardise(features))

    @classmethod
    def bind_polled(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None, exact_lists: bool, poll: Poll) -> DiSF:
        return cls(standardise(features, poll))

    def order_by(self, order: Tensor) -> None:
        self._order = order

    def members(self, masks: Tensor) -> Tensor:
        """The members of masks, bool ``(..., n)``, one mask after another, each in the order: int64."""
        if self._order is None:
            return masks.nonzero()[:, -1]
        return self._order[masks[..., self._order].nonzero()[:, -1]]

    def _parts(self, count: int) -> list[slice] | list[Tensor]:
        """All rows in their order, so many at a time."""
        parts = chunks(self.n, count)
        return parts if self._order is None else [self._order[part] for part in parts]

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        size = int(masks[0].sum())
        if self.few(size):
            return torch.tensor([self._few_value(mask, torch.float32, poll) for mask in masks], device=self.device)
        members = self.members(masks).view(len(masks), size)
        out = torch.empty(len(masks), device=self.device)
        for part in chunks(len(masks), ELEMENTS_AT_ONCE // (4 * self.d * max(size, self.d))):
            poll()
            y = self.y[members[part]]  # (g, S, d)
            mean = y.mean(1)
            covariance = torch.baddbmm(mean[:, :, None] * mean[:, None, :], y.mT, y, beta=-1.0, alpha=1.0 / size)
            variance = covariance.diagonal(dim1=1, dim2=2)
            precision = torch.where(variance > FLAT_VARIANCE, 1.0 / variance.clamp_min(FLAT_VARIANCE), 0.0)
            # sum over a, b of cov_ab^2 / (var_a var_b), less the diagonal's own ones
            squares = (covariance.square_() @ precision[:, :, None]).squeeze(2)
            out[part] = -((squares * precision).sum(1) - (precision > 0).sum(1)) / self.pairs
        return out

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        total = torch.zeros(self.n, device=self.device)
        for mask in masks:
            size = int(mask.sum())
            if self.few(size):
                total += self._differences(mask, FewCorrelations(self.y[self.members(mask)]), poll)
                continue
            correlations = self._correlations(mask, torch.float32, poll)
            if size < FIRST_ORDER_FROM * self.d:
                total += self._differences(mask, correlations, poll)
                continue
            off = correlations.matrix - torch.diag(correlations.own)
            w = (correlations.matrix * off).sum(1)
            factor = -2.0 / ((size - 1) * self.pairs)
            for part in self._parts(ELEMENTS_AT_ONCE // (4 * self.d)):
                poll()
                z = (self.y[part] - correlations.mean) * correlations.scale
                total[part] += factor * (form(z, off) - z.square_() @ w)
        return total / len(masks)

    def few(self, size: int) -> bool:
        """Whether so many members' correlations are known by their rows to steps and swaps."""
        return self.d > WIDE and FEW * size <= self.d

    def sums(self, members: Tensor, dtype: torch.dtype, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        """Of the members' rows ``(d,)`` and of their products ``(d, d)``."""
        first = torch.zeros(self.d, dtype=dtype, device=self.device)
        second = torch.zeros(self.d, self.d, dtype=dtype, device=self.device)
        for part in chunks(len(members), SUMMED_ROWS):
            poll()
            first += add_products(second, self.y[members[part]])
        return first, second

    def _correlations(self, mask: Tensor, dtype: torch.dtype, poll: Poll) -> Correlations:
        members = self.members(mask)
        return Correlations(*self.sums(members, dtype, poll), len(members))

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        if int(mask.sum()) < self.d:
            return self._few_value(mask, torch.float64, poll)
        correlations = self._correlations(mask, torch.float64, poll)
        return -float((correlations.matrix.square().sum() - correlations.own.square().sum()) / self.pairs)

    def _few_value(self, mask: Tensor, dtype: torch.dtype, poll: Poll) -> float:
        """The squared products of few members' rows have the same sum as those of many dimensions."""
        poll()
        few = FewCorrelations(self.y[self.members(mask)].to(dtype))
        return -float(((few.z @ few.z.T / few.size).square().sum() - few.own.square().sum()) / self.pairs)

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self._differences(mask, self._correlations(mask, torch.float64, poll), poll)

    def _differences(self, mask: Tensor, correlations: Correlations, poll: Poll) -> Tensor:
        """Add / remove differences: one sample in or out is a rank-one change of the scatter matrix.

        With ``kappa = S / ((S + 1)(S - 1))`` to add and ``-S / (S - 1)^2`` to remove, and ``u_a = 1 / (1 + kappa
        z_a^2)``, the new squared correlations sum to ``u'(C o C)u + 2 kappa (z o u)'C(z o u) + kappa^2 (z^2 . u)^2``
        over all a, b. Written in ``e = u - 1``, so that what does not change never enters and float32 keeps its digits.
        """
        size, dtype = correlations.size, correlations.mean.dtype
        scale = correlations.scale * ((size - 1) / size) ** 0.5  # z with the sample sd, as in the identity above
        sums = correlations.sums()
        alive = (scale > 0).to(dtype)
        out = torch.empty(self.n, dtype=dtype, device=self.device)
        for part in self._parts(ELEMENTS_AT_ONCE // (8 * self.d)):
            poll()
            z = (self.y[part].to(dtype) - correlations.mean) * scale
            inside = mask[part]
            kappa = torch.where(inside, -size / max(size - 1, 1) ** 2, size / ((size + 1) * max(size - 1, 1)))
            kappa = kappa.to(dtype)[:, None]
            change = kappa * z * z
            # a dimension that only this member kept from being flat correlates with nothing once it is gone
            flattened = (1.0 + change <= FLAT_VARIANCE) & (alive > 0)
            e = torch.where(flattened, -1.0, -change / (1.0 + change).clamp_min(FLAT_VARIANCE)) * alive
            zu = z * (alive + e)
            grown = 2.0 * (e @ sums) + correlations.squared(e, sums)
            grown += 2.0 * kappa.squeeze(1) * correlations.form(zu)
            grown += (kappa.squeeze(1) * torch.linalg.vecdot(z, zu)).square()
            grown += flattened.sum(1)  # its one on the diagonal is gone too, and was never counted in f
            out[part] = torch.where(inside, grown, -grown) / self.pairs
        return out

    def by_dimension(self, mask: Tensor, row: int, poll: Poll = no_poll) -> Tensor:
        """A row's first-order marginal ``-2 (z'Dz - z^2 . w) / ((S - 1) d (d - 1))``, dimension by dimension.

        Returns:
            float64 ``(d,)``: ``-2 (z_a (D z)_a - z_a^2 w_a)`` over the same divisor; 0 where flat or dead.
        """
        correlations = self._correlations(mask, torch.float64, poll)
        off = correlations.matrix - torch.diag(correlations.own)
        z = (self.y[row].to(torch.float64) - correlations.mean) * correlations.scale
        change = z * (off @ z) - z.square() * (correlations.matrix * off).sum(1)
        return change * (-2.0 / ((mask.sum() - 1) * self.pairs))

    def batch(self, rows: Tensor, size: int) -> DiSF:
        return DiSF(self.y[rows])

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        return sampled_random_value(self, size, generator, poll)


class Standardised:
    """Rows ``(n, d)`` with pool mean 0 and sd 1 per dimension, made as they are asked for.

    Where features nearly coincide, the mean as float32 holds it is off by a share of the sd that counts. So what it
    lacks is subtracted too.

    Attributes:
        shape: n and d. device: of the rows.
    """

    def __init__(self, features: Tensor, mean: Tensor, inverse: Tensor) -> None:
        """Args: mean, inverse: of the sd, float64 ``(d,)``."""
        self._features, self._mean, self._inverse = features, mean.float(), inverse.float()
        self._rest = (mean - self._mean).float()
        self.shape, self.device = features.shape, features.device

    def __getitem__(self, rows: Tensor | slice | int) -> Tensor:
        """Some rows, float32 ``(r, d)``, or one."""
        if isinstance(rows, Tensor):  # a copy already
            return self._features[rows].sub_(self._mean).sub_(self._rest).mul_(self._inverse)
        return (self._features[rows] - self._mean).sub_(self._rest).mul_(self._inverse)


def standardise(features: Tensor, poll: Poll = no_poll) -> Tensor | Standardised:
    """Pool mean 0 and sd 1 per dimension; dead dimensions become 0."""
    n, d = features.shape
    mean = torch.zeros(d, dtype=torch.float64, device=features.device)
    parts = chunks(n, ELEMENTS_AT_ONCE // (4 * d))
    for part in parts:
        poll()
        mean += features[part].double().sum(0)
    mean /= n
    variance = torch.zeros_like(mean)
    for part in parts:
        poll()
        variance += (features[part].double() - mean).square().sum(0)
    sd = (variance / n).sqrt()
    alive = sd > DEAD_SHARE * sd.median()
    inverse = torch.where(alive, 1.0 / sd.clamp_min(torch.finfo(torch.float64).tiny), 0.0)
    rows = Standardised(features, mean, inverse)
    if not held_bytes(n, d):
        return rows
    out = torch.empty_like(features, memory_format=torch.contiguous_format)
    for part in parts:
        poll()
        out[part] = rows[part]
    return out
