"""What the dual of `datamask.learning.newton` adds up over the members: phi of every row, which is never kept.

FirstMoments    pair-wise similarity: phi(x) is the row itself
SecondMoments   DiSF with fixed scale: phi(y) is y y' without its diagonal, ``(d, d)``, as one vector of d^2 numbers
SeveralMoments  a sum of both: one behind the other, each times its factor

The value of an objective on S members with the sum s of their phi is ``-per_square ||s||^2``, and a constant.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from datamask.learning.rounding import Part
from datamask.objectives import disf
from datamask.objectives.contract import SetFunction, chunks
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.pairwise import ELEMENTS_AT_ONCE, Pairwise, products, weighted_sum
from datamask.polling import Poll, no_poll

FEW_ROWS = 512
"""Rows of which phi may be formed, to solve the equations of a step in as many unknowns."""

BAND_ROWS = 20_000
"""Rows near the threshold that tell the curvature of second moments; where there are more, evenly spaced ones."""

UNIT_ROUNDING = 1.001 * 2.0**-23
"""How far a row of unit length may lie from the one it was made from: once rounded when it was read, once when it was
scaled, each number by at most ``2^-24`` of itself. The 1.001 covers lengths that are 1 to rounding only."""


class Block(abc.ABC):
    """Some rows ``(k, d)`` in memory, in the type that the arithmetic is done in."""

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.dtype = rows, rows.dtype

    @abc.abstractmethod
    def times(self, y: Tensor) -> Tensor:
        """``phi_i . y``, ``(k,)``."""

    @abc.abstractmethod
    def sum(self, weights: Tensor) -> Tensor:
        """``sum of weights_i phi_i``, of the length of y."""

    def formed(self) -> Tensor | None:
        """phi of the rows, float64; None: they are too many."""
        return None


class Moments(abc.ABC):
    """phi of m rows.

    Attributes:
        length: of y, and of phi.
        pilot_rows, many_rows: of a sample, with which the search of so many rows begins.
        band_rows: near the threshold, that tell the curvature there.
        rounding: how far phi may lie from that of the row as it was read.
        closes: gap, as a share of the scale, to which steps lead where diversity is all that counts.
    """

    length: int
    pilot_rows: int
    many_rows: int
    band_rows: float
    rounding: float
    closes: float

    @abc.abstractmethod
    def times(self, y: Tensor, poll: Poll = no_poll, wide: bool = False) -> Tensor:
        """``phi_i . y``, float64 ``(m,)``. wide: from products in float64 in any case, as a proof needs them."""

    @abc.abstractmethod
    def sum(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        """``sum of weights_i phi_i``, float64 of the length of y; weights ``(m,)`` or a mask."""

    @abc.abstractmethod
    def some(self, rows: Tensor) -> Moments:
        """Of some of the rows, copied."""

    @abc.abstractmethod
    def block(self, rows: Tensor | None) -> Block:
        """Some rows, or all of them."""

    @abc.abstractmethod
    def parts(self, weight: float, rows: Tensor, total: Tensor) -> list[Part]:
        """Some rows for swaps among them. total: the sum over the members that are not among them."""


class OneMoment(Moments, abc.ABC):
    """phi of one objective."""

    @abc.abstractmethod
    def per_square(self, size: int) -> float:
        """What a unit of ``||s||^2`` costs S members."""

    @abc.abstractmethod
    def most(self, size: int) -> float:
        """The value where s is 0: no selection of S has more."""


class _FirstBlock(Block):
    def times(self, y: Tensor) -> Tensor:
        return self.rows @ y

    def sum(self, weights: Tensor) -> Tensor:
        return weights @ self.rows

    def formed(self) -> Tensor | None:
        return self.rows.double() if len(self.rows) <= FEW_ROWS else None


class FirstMoments(OneMoment):
    """Rows ``(m, d)`` as they are in float32, each divided by its exact length, float64 ``(m,)``."""

    pilot_rows, many_rows, band_rows = 50_000, 200_000, math.inf
    rounding, closes = UNIT_ROUNDING, 1e-7

    def __init__(self, rows: Tensor, lengths: Tensor) -> None:
        self.rows, self.lengths, self.length = rows, lengths, rows.shape[1]

    @classmethod
    def of(cls, function: Pairwise, rows: Tensor | None = None) -> FirstMoments:
        """Of some rows, copied, or of all."""
        every = cls(function.features, function.exact_lengths)
        return every if rows is None else every.some(rows)

    def per_square(self, size: int) -> float:
        return 1.0 / (size * (size - 1))

    def most(self, size: int) -> float:
        return 1.0 / (size - 1)  # ||s||^2 counts every row with itself

    def times(self, y: Tensor, poll: Poll = no_poll, wide: bool = False) -> Tensor:
        return products(self.rows, self.lengths, y, poll)

    def sum(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        return weighted_sum(self.rows, self.lengths, weights, poll)

    def some(self, rows: Tensor) -> FirstMoments:
        return FirstMoments(self.rows[rows], self.lengths[rows])

    def block(self, rows: Tensor | None) -> Block:
        return _FirstBlock(_widened(self.rows if rows is None else self.rows[rows]))

    def parts(self, weight: float, rows: Tensor, total: Tensor) -> list[Part]:
        x = self.rows[rows].double() / self.lengths[rows][:, None]
        return [Part(weight, x.cpu().numpy(), total.cpu().numpy())]


class _SecondBlock(Block):
    def times(self, y: Tensor) -> Tensor:
        d = self.rows.shape[1]
        return ((self.rows @ y.view(d, d)) * self.rows).sum(1)

    def sum(self, weights: Tensor) -> Tensor:
        return (self.rows.T @ (self.rows * weights[:, None])).fill_diagonal_(0.0).view(-1)


class SecondMoments(OneMoment):
    """Standardised rows of the function, those of the given numbers ``(m,)`` or all.

    Products are in float32, so bounds on the way, without `wide`, are right to some 1e-7 of the scale.
    """

    pilot_rows, many_rows, band_rows = 20_000, 40_000, BAND_ROWS
    rounding, closes = 0.0, 1e-5

    def __init__(self, function: DiSFFixed, rows: Tensor | None = None) -> None:
        self._function, self._rows, self.length = function, rows, function.d**2

    def per_square(self, size: int) -> float:
        return 1.0 / (size * size * self._function.pairs)

    def most(self, size: int) -> float:
        return 0.0

    def times(self, y: Tensor, poll: Poll = no_poll, wide: bool = False) -> Tensor:
        dtype, d = torch.float64 if wide else torch.float32, self._function.d
        m = self._function.n if self._rows is None else len(self._rows)
        out = torch.empty(m, dtype=torch.float64, device=self._function.device)
        y = y.view(d, d).to(dtype, copy=True).fill_diagonal_(0.0)  # as phi's, whatever y holds there
        for part in self._parts(m, poll):
            out[part] = _SecondBlock(self._of(part).to(dtype)).times(y)
        return out

    def sum(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        total = torch.zeros(self.length, dtype=torch.float64, device=self._function.device)
        counting = weights.nonzero().squeeze(1)
        for part in self._parts(len(counting), poll):
            rows = counting[part]
            total += _SecondBlock(self._of(rows)).sum(weights[rows].float())
        return total

    def some(self, rows: Tensor) -> SecondMoments:
        return SecondMoments(DiSFFixed(self._of(rows)))

    def block(self, rows: Tensor | None) -> Block:
        return _SecondBlock(_widened(self._of(slice(None) if rows is None else rows)))

    def parts(self, weight: float, rows: Tensor, total: Tensor) -> list[Part]:
        d = self._function.d
        return [Part(weight, self._of(rows).double().cpu().numpy(), total.view(d, d).cpu().numpy())]

    def _of(self, rows: Tensor | slice) -> Tensor:
        return self._function.y[rows if self._rows is None else self._rows[rows]]

    def _parts(self, m: int, poll: Poll) -> Iterator[slice]:
        for part in chunks(m, disf.ELEMENTS_AT_ONCE // (4 * self._function.d)):
            poll()
            yield part


class _SeveralBlock(Block):
    def __init__(self, blocks: Sequence[Block], of: SeveralMoments) -> None:
        super().__init__(blocks[0].rows)
        self._blocks, self._of = blocks, of
        # of fewer components rows may be wide where the others are not
        if any(block.dtype == torch.float32 for block in blocks):
            self.dtype = torch.float32
            self._blocks = [type(block)(block.rows.float()) for block in blocks]

    def times(self, y: Tensor) -> Tensor:
        return self._of.added([block.times(part) for block, part in zip(self._blocks, self._of.split(y))])

    def sum(self, weights: Tensor) -> Tensor:
        return self._of.joined([block.sum(weights) for block in self._blocks])


class SeveralMoments(Moments):
    """Of the same rows, one behind the other. factors: of each, float."""

    pilot_rows, many_rows, band_rows = SecondMoments.pilot_rows, SecondMoments.many_rows, BAND_ROWS
    rounding, closes = 0.0, 1e-5

    def __init__(self, moments: Sequence[Moments], factors: Sequence[float]) -> None:
        self._moments, self._factors = moments, factors
        self.length = sum(each.length for each in moments)

    def split(self, y: Tensor) -> list[Tensor]:
        """The part of each."""
        return list(torch.split(y, [each.length for each in self._moments]))

    def added(self, products: Sequence[Tensor]) -> Tensor:
        """Products of each, times its factor."""
        return sum((factor * each for factor, each in zip(self._factors, products)), torch.zeros_like(products[0]))

    def joined(self, sums: Sequence[Tensor]) -> Tensor:
        """Sums of each, times its factor."""
        return torch.cat([factor * each for factor, each in zip(self._factors, sums)])

    def times(self, y: Tensor, poll: Poll = no_poll, wide: bool = False) -> Tensor:
        return self.added([each.times(part, poll, wide) for each, part in zip(self._moments, self.split(y))])

    def sum(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.joined([each.sum(weights, poll) for each in self._moments])

    def some(self, rows: Tensor) -> SeveralMoments:
        return SeveralMoments([each.some(rows) for each in self._moments], self._factors)

    def block(self, rows: Tensor | None) -> Block:
        return _SeveralBlock([each.block(rows) for each in self._moments], self)

    def parts(self, weight: float, rows: Tensor, total: Tensor) -> list[Part]:
        found = []
        for each, factor, part in zip(self._moments, self._factors, self.split(total)):
            found += each.parts(weight * factor**2, rows, part / factor)
        return found


KINDS: dict[type[SetFunction], Callable[..., OneMoment]] = {Pairwise: FirstMoments.of, DiSFFixed: SecondMoments}
"""Objective -> its moments, from the function and the numbers of rows ``(m,)``, or None for all."""


def moments_of(function: SetFunction, rows: Tensor | None = None) -> OneMoment:
    """phi of the rows of these numbers ``(m,)``, or of all; the objective is one of `KINDS`."""
    return KINDS[type(function)](function, rows)


def _widened(rows: Tensor) -> Tensor:
    """In float64; of many rows most are far from the threshold still, and a step need not be exact."""
    return rows.double() if rows.numel() <= ELEMENTS_AT_ONCE else rows
