"""Of the rows near the threshold, which are in: swaps among them alone, on exact values.

A rule says of all but about d rows whether they belong to the best selection. Which of the few near its threshold do is
a question of whole rows: a member and a row outside are swapped while that raises the value, the best swap first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.out_of_core.scratch import Scratch
from datamask.polling import Poll, no_poll
from datamask.recipes.recipe import ScoreRule
from datamask.recipes.weights import Weights, moment_pairs

TRIED = 48
"""Members, and rows outside, of which all pairs are tried at a time: those whose swaps cost least and gain most."""

MOST_SWAPS = 600
"""In one pass; later ones need fewer."""

POLLED = 16
"""Swaps between two looks at whether to stop."""

FRESH = 256
"""After so many swaps what rows are worth is computed anew: until then every swap is added, and rounded."""


@dataclass
class Members:
    """Sums over `size` members, changed as rows come and go.

    Attributes:
        quality: sum of qualities. total: float64 ``(d,)``, sum of unit features; moments: ``(d, d)``, of y y' without
            its diagonal; None: the objective has no such part. rule: standardises. swaps: how many were made.
    """

    size: int
    quality: float
    total: np.ndarray | None
    moments: np.ndarray | None
    rule: ScoreRule
    swaps: int = 0

    @property
    def mean(self) -> np.ndarray | None:
        return None if self.total is None else self.total / self.size

    @property
    def moment(self) -> np.ndarray | None:
        return None if self.moments is None else self.moments / self.size

    def value(self, weights: Weights) -> float:
        """The joint value."""
        return weights.value(self.size, self.quality / self.size, self.mean, self.moment)

    def raw(self) -> dict[str, float]:
        """Each term as its objective defines it: ``quality``, ``pairwise``, ``disf_fixed``; those that there are."""
        raw, size = {"quality": self.quality / self.size}, self.size
        if (mean := self.mean) is not None:
            raw["pairwise"] = -(size * float(mean @ mean) - 1.0) / (size - 1)
        if (moment := self.moment) is not None:
            raw["disf_fixed"] = -float((moment * moment).sum()) / moment_pairs(moment)
        return raw

    def add(self, units: np.ndarray | None, quality: np.ndarray, signs: np.ndarray) -> None:
        """Take in (1) or out (-1) rows.

        Args:
            units: float64 ``(n, d)``, None where nothing looks at them. quality, signs: float64 ``(n,)``.
        """
        self.quality += float(quality @ signs)
        if units is not None and self.total is not None:
            self.total = self.total + signs @ units
        if units is not None and self.moments is not None:
            y = self.rule.standardised(units)
            moment = y.T @ (y * signs[:, None])
            np.fill_diagonal(moment, 0.0)
            self.moments = self.moments + moment

    def join(self, other: Members) -> None:
        """Take in the sums over other members."""
        self.quality += other.quality
        if self.total is not None and other.total is not None:
            self.total = self.total + other.total
        if self.moments is not None and other.moments is not None:
            self.moments = self.moments + other.moments


def rounded(
    scratch: Scratch,
    members: Members,
    selected: np.ndarray,
    near: np.ndarray,
    weights: Weights,
    size: int,
    rule: ScoreRule,
    poll: Poll = no_poll,
) -> Members:
    """The members after swaps among the rows near the threshold; `selected`, bool ``(N,)``, is changed with them.

    Args:
        near: int64, rising, the rows that may change sides. members: the sums before, which stay as they are.

    Raises:
        Stopped: from `poll`; `selected` is as it was.
    """
    after = Members(size, members.quality, members.total, members.moments, rule)
    if not rule.needs_features or len(near) < 2:
        return after
    band = _Band(scratch.rows_at(near).astype(np.float64), scratch.quality[near], after, weights)
    inside = selected[near]
    for swap in range(MOST_SWAPS):
        if swap % POLLED == 0:
            poll()
        if swap % FRESH == 0:
            band.measure()
        best = band.best_swap(inside)
        if best is None:
            break
        leaving, coming = best
        rows = np.array([leaving, coming])
        after.add(band.units[rows], band.quality[rows], np.array([-1.0, 1.0]))
        band.swapped(leaving, coming)
        inside[leaving], inside[coming] = False, True
        after.swaps += 1
    selected[near] = inside
    return after


class _Band:
    """The rows near the threshold, and what a swap of two of them is worth."""

    def __init__(self, units: np.ndarray, quality: np.ndarray, members: Members, weights: Weights) -> None:
        self.units, self.quality, self._members = units, quality, members
        self._y = None if members.moments is None else members.rule.standardised(units)
        size = members.size
        self._quality_weight = weights.quality / size
        self._pairs = weights.pairs / (size * (size - 1)) if members.total is not None else 0.0
        self._moments = 0.0
        if members.moments is not None:
            self._moments = weights.moments / (size * size * moment_pairs(members.moments))
        self._least = 1e-13 * max(1.0, abs(members.value(weights)))
        self._squares = None if self._y is None else np.square(self._y)
        self._own = self._squared_lengths()
        """What every swap of a row costs in second order, float64 ``(r,)``, for any partner."""
        self._alone = np.zeros(len(quality))
        """What each row is worth at the members as they are, first order."""

    def measure(self) -> None:
        """Compute from the members what each row is worth."""
        worth = self._quality_weight * self.quality
        if self._members.total is not None:
            worth = worth - 2.0 * self._pairs * (self.units @ self._members.total)
        if self._y is not None and self._members.moments is not None:
            worth = worth - 2.0 * self._moments * ((self._y @ self._members.moments) * self._y).sum(axis=1)
        self._alone = worth

    def swapped(self, leaving: int, coming: int) -> None:
        """Take note that one row has left the members and another come."""
        change = np.zeros(len(self.quality))
        if self._members.total is not None:
            change += self._pairs * (self.units @ (self.units[coming] - self.units[leaving]))
        if self._y is not None and self._squares is not None:
            pair = np.array([leaving, coming])
            products = np.square(self._y @ self._y[pair].T) - self._squares @ self._squares[pair].T
            change += self._moments * (products[:, 1] - products[:, 0])
        self._alone = self._alone - 2.0 * change

    def best_swap(self, inside: np.ndarray) -> tuple[int, int] | None:
        """The swap that raises the value most, of those tried: who leaves and who comes; None: none does."""
        alone, members, others = self._alone, np.flatnonzero(inside), np.flatnonzero(~inside)
        if not len(members) or not len(others):
            return None
        # among few members the second order decides: long rows stand well alone and gain nothing
        leaving = members[_least_of(alone[members] + self._own[members])]
        coming = others[_least_of(self._own[others] - alone[others])]
        gains = alone[coming][None, :] - alone[leaving][:, None] - self._apart(leaving, coming)
        best = int(gains.argmax())
        if gains.flat[best] <= self._least:
            return None
        row, column = divmod(best, len(coming))
        return int(leaving[row]), int(coming[column])

    def _apart(self, leaving: np.ndarray, coming: np.ndarray) -> np.ndarray:
        """What a swap costs in second order: how far apart the two rows are."""
        cost: np.ndarray = self._own[leaving][:, None] + self._own[coming][None, :]
        if self._members.total is not None:
            cost -= 2.0 * self._pairs * (self.units[leaving] @ self.units[coming].T)
        if self._y is not None and self._squares is not None:
            products = np.square(self._y[leaving] @ self._y[coming].T)
            cost -= 2.0 * self._moments * (products - self._squares[leaving] @ self._squares[coming].T)
        return cost

    def _squared_lengths(self) -> np.ndarray:
        """The square of each row's part of the sums, weighted as in the joint value."""
        lengths = np.zeros(len(self.quality))
        if self._members.total is not None:
            lengths += self._pairs * np.einsum("ij,ij->i", self.units, self.units)
        if self._squares is not None:
            fourths = np.einsum("ij,ij->i", self._squares, self._squares)
            lengths += self._moments * (np.square(self._squares.sum(axis=1)) - fourths)
        return lengths


def _least_of(values: np.ndarray) -> np.ndarray:
    """The places of the `TRIED` least, in their order; of equal ones the first."""
    if len(values) > TRIED:
        places = np.flatnonzero(values <= np.partition(values, TRIED - 1)[TRIED - 1])
    else:
        places = np.arange(len(values))
    least: np.ndarray = places[np.argsort(values[places], kind="stable")[:TRIED]]
    return least
