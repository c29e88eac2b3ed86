"""Marginal gains: what every candidate would add to a subset that grows one sample at a time.

Each class follows one objective through the picks of a greedy solver. `values` gives ``f(U + i)`` for all candidates i,
up to a number that is the same for all of them, whatever the size of U. What an objective keeps between picks makes the
next pick cheap:

    pairwise      s = sum of x over U                       one product with the features, O(n d)
    disf_fixed    sum over U of the kernel with each i      two products, O(n d)
    facility      each row's best member, each gain         the lists of the rows that the pick serves better
    any other     nothing: asks `SetFunction.gains`         for DiSF and Vendi O(n d^2)

Symbols: n pool, m candidates, d dimensions, U members so far, S their number.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.learning.medoids import reverse_lists
from datamask.objectives.contract import SetFunction, chunks
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.facility import Facility
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.vendi import Vendi
from datamask.polling import Poll

ROWS_AT_ONCE = 250_000
"""Rows of a feature product between two polls: 0.05 s at 384 dimensions."""

ROWS_IN_CACHE = 2_048
"""Rows whose squares are taken and used before they leave the processor's cache: 3 MB at 384 dimensions."""

FRESH_EVERY = 512
"""Picks after which sums of float32 products are taken anew in float64, from the members alone."""


class MarginalGains(abc.ABC):
    """One objective, followed from pick to pick over the candidates ``rows``, int64 ``(m,)``.

    `values` depends on the picks and their order alone, to the last digit, so that a resumed run goes on as if it had
    never stopped.
    """

    @abc.abstractmethod
    def values(self, poll: Poll) -> Tensor:
        """``f(U + i)`` up to a constant for every candidate, ``(m,)``; of members it says nothing."""

    @abc.abstractmethod
    def add(self, place: int) -> None:
        """Take the candidate ``rows[place]``."""


class PairwiseGains(MarginalGains):
    """``f(U + i) = -(|s|^2 - S + 2 x_i . s) / ((S + 1) S)``."""

    def __init__(self, function: Pairwise, rows: Tensor) -> None:
        self.x = _candidate_rows(function.features, rows)
        self.sum = torch.zeros(function.d, dtype=torch.float64, device=function.device)
        self.size = 0

    def values(self, poll: Poll) -> Tensor:
        near = torch.empty(len(self.x), dtype=self.sum.dtype, device=self.x.device)
        for part in chunks(len(self.x), ROWS_AT_ONCE):
            poll()
            near[part] = (self.x[part] @ self.sum.float()).to(near.dtype)
        return near * (-2.0 / max(self.size * (self.size + 1), 1))

    def add(self, place: int) -> None:
        self.sum += self.x[place].to(self.sum.dtype)
        self.size += 1


class DiSFFixedGains(MarginalGains):
    """``f(U + i) = -(sum of k over U x U + 2 c_i + k_ii) / (d (d - 1) (S + 1)^2)``, ``c_i`` the sum of k_ij over U.

    ``k_ij = (y_i . y_j)^2 - sum_a y_ia^2 y_ja^2``. A pick's column of k is two float32 products; every `FRESH_EVERY`
    picks ``c`` is taken anew in float64, so that rounding does not add up, and a resumed run replays fewer than that.
    """

    def __init__(self, function: DiSFFixed, rows: Tensor) -> None:
        self.function, self.rows = function, rows
        self.y = _candidate_rows(function.y, rows)
        self.picks: list[int] = []
        self.counted = 0
        self.crowding = torch.zeros(len(rows), dtype=torch.float64, device=function.device)
        self.own = torch.empty_like(self.crowding)
        for part in chunks(len(rows), ROWS_IN_CACHE):
            squares = self.y[part].square()
            self.own[part] = (squares.sum(1).square() - squares.square().sum(1)).to(self.own.dtype)

    def values(self, poll: Poll) -> Tensor:
        base = len(self.picks) // FRESH_EVERY * FRESH_EVERY
        if self.counted < base:
            member = torch.zeros(self.function.n, dtype=self.crowding.dtype, device=self.crowding.device)
            member[self.rows[self.picks[:base]]] = 1.0
            _, gradient = self.function.concave(member, 1, poll)
            self.crowding = gradient[self.rows] * (-self.function.pairs / 2.0)
            self.counted = base
        while self.counted < len(self.picks):
            poll()
            self.crowding = self.crowding + self._column(self.picks[self.counted])
            self.counted += 1
        return (2.0 * self.crowding + self.own) / (-self.function.pairs * (len(self.picks) + 1.0) ** 2)

    def _column(self, place: int) -> Tensor:
        picked = self.y[place]
        squares = picked.square()
        column = torch.empty_like(self.crowding)
        for part in chunks(len(self.y), ROWS_IN_CACHE):
            y = self.y[part]
            column[part] = ((y @ picked).square_() - y.square() @ squares).to(column.dtype)
        return column

    def add(self, place: int) -> None:
        self.picks.append(place)


class FacilityGains(MarginalGains):
    """Gains over the listed pairs, kept up to date: a pick changes those of candidates near the rows it serves."""

    def __init__(self, function: Facility, rows: Tensor) -> None:
        self.rows, self.device = rows.cpu().numpy(), function.device
        self.lists = (function.indices.cpu().numpy().astype(np.int32, copy=False), function.similarities.cpu().numpy())
        self.reverse = reverse_lists(*self.lists)
        self.best = np.zeros(function.n)
        self.gain = np.zeros(function.n)
        offsets, _, near = self.reverse
        filled = np.flatnonzero(np.diff(offsets))
        self.gain[filled] = np.add.reduceat(near.astype(np.float64), offsets[filled])

    def values(self, poll: Poll) -> Tensor:
        return torch.from_numpy(self.gain[self.rows] / len(self.best)).to(self.device, torch.float64)

    def add(self, place: int) -> None:
        _serve(*self.lists, *self.reverse, self.best, self.gain, self.rows[place])


class ObjectiveGains(MarginalGains):
    """Any objective by its own `gains`: exact, and as dear at every pick.

    Correlations of one sample or of two say nothing (all are flat, or all plus or minus one), so the first two picks
    are left to the other terms, or to the hash that breaks ties.
    """

    told_from = 2
    """Members from which on the objective tells candidates apart."""

    def __init__(self, function: SetFunction, rows: Tensor) -> None:
        self.function, self.rows = function, rows
        self.mask = torch.zeros(function.n, dtype=torch.bool, device=function.device)
        self.size = 0

    def values(self, poll: Poll) -> Tensor:
        if self.size < self.told_from:
            return torch.zeros(len(self.rows), dtype=torch.float64, device=self.mask.device)
        return self.function.gains(self.mask, poll)[self.rows]

    def add(self, place: int) -> None:
        self.mask[self.rows[place]] = True
        self.size += 1


class VendiGains(ObjectiveGains):
    """The entropy of one sample is 0 whichever it is; that of two depends on their cosine."""

    told_from = 1


def _candidate_rows(features: Tensor, rows: Tensor) -> Tensor:
    """The candidates' features; those of the pool themselves, not a copy, where all rows are candidates."""
    return features if len(rows) == len(features) else features[rows]


@compiled
def _serve(
    indices: np.ndarray,
    similarities: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    best: np.ndarray,
    gain: np.ndarray,
    i: int,
) -> None:
    """Take i: each row it serves better stops promising that much to whoever it lists."""
    for e in range(offsets[i], offsets[i + 1]):
        v = rows[e]
        before, now = best[v], near[e]
        if now <= before:
            continue
        for c in range(indices.shape[1]):
            promised = similarities[v, c] - before
            if promised <= 0.0:
                break
            gain[indices[v, c]] -= promised - max(0.0, similarities[v, c] - now)
        best[v] = now


INCREMENTAL: dict[type[SetFunction], Callable[..., MarginalGains]] = {
    Pairwise: PairwiseGains,
    DiSFFixed: DiSFFixedGains,
    Facility: FacilityGains,
    Vendi: VendiGains,
}
"""Objective -> its marginal gains, kept up to date from pick to pick; any other is asked for them anew."""


def marginal_gains(function: SetFunction, rows: Tensor) -> MarginalGains:
    """The marginal gains of `function` over the candidates ``rows``, int64 ``(m,)``."""
    return INCREMENTAL.get(type(function), ObjectiveGains)(function, rows)
