"""Of the rows near the threshold, which are in: swaps among them alone, on exact values.

Weights, or a rule, say of all but about d rows whether they belong to the best selection. Which of the few that are
left do is a question of whole rows: a member and a row outside are swapped while that raises

    sum of w_i over the members - sum over the parts of c |sum of phi(z_i) over the members|^2

the best swap first. phi(z) is z itself (pair-wise similarity), or z z' without its diagonal (DiSF with fixed scale).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from datamask.polling import Poll, no_poll

TRIED = 128
"""Members, and rows outside, of which all pairs are tried at a time: those whose swaps cost least and gain most."""

MOST_SWAPS = 600

POLLED = 16
"""Swaps between two looks at whether to stop."""

FRESH = 256
"""After so many swaps what rows are worth is computed anew: until then every swap is added, and rounded."""

ROUNDING = 1e-13
"""Of what a row is worth: a swap that gains no more than this share gains nothing."""


Rows = slice | np.ndarray
"""Which rows, by their places."""


@dataclass(frozen=True)
class Part:
    """A part of the objective.

    Attributes:
        weight: c. rows: z of the rows near the threshold, float64 ``(r, d)``.
        total: sum of phi over the members that are not among these, float64 ``(d,)``, or ``(d, d)``: phi(z) is z z'.
    """

    weight: float
    rows: np.ndarray
    total: np.ndarray

    @functools.cached_property
    def squares(self) -> np.ndarray:
        """Of all numbers, where phi(z) is z z': its diagonal is left out."""
        squares: np.ndarray = np.square(self.rows)
        return squares

    @property
    def own(self) -> np.ndarray:
        """The squared length of phi of every row, float64 ``(r,)``."""
        lengths: np.ndarray = self.squares.sum(axis=1)
        return lengths if self.total.ndim == 1 else lengths**2 - np.square(self.squares).sum(axis=1)

    def along(self, inside: np.ndarray) -> np.ndarray:
        """phi of every row times the sum of phi over all members, float64 ``(r,)``. inside: bool ``(r,)``."""
        total, members = self.total, self.rows[inside]
        if total.ndim == 1:
            return np.asarray(self.rows @ (total + members.sum(axis=0)))
        moment = members.T @ members
        np.fill_diagonal(moment, 0.0)
        return np.asarray(((self.rows @ (total + moment)) * self.rows).sum(axis=1))

    def products(self, some: Rows, others: Rows) -> np.ndarray:
        """phi of some rows times phi of others, float64 ``(k, l)``."""
        products: np.ndarray = self.rows[some] @ self.rows[others].T
        return products if self.total.ndim == 1 else products**2 - self.squares[some] @ self.squares[others].T


def swap_near(inside: np.ndarray, worth: np.ndarray, parts: Sequence[Part], poll: Poll = no_poll) -> int:
    """Swap members for others as long as that raises the objective, at most `MOST_SWAPS` times; how many it were.

    Args:
        inside: bool ``(r,)``, the members among the rows near the threshold; changed in place.
        worth: float64 ``(r,)``, w.

    Raises:
        Stopped: from `poll`.
    """
    own = sum((part.weight * part.own for part in parts), np.zeros(len(worth)))
    alone = own
    for swaps in range(MOST_SWAPS):
        if swaps % POLLED == 0:
            poll()
        if swaps % FRESH == 0:
            alone = worth - sum(2.0 * part.weight * part.along(inside) for part in parts)
        members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
        # among few members the second order decides: long rows stand well alone and gain nothing
        leaving = members[_least_of(alone[members] + own[members])]
        coming = others[_least_of(own[others] - alone[others])]
        gains = (alone[coming] - own[coming])[None, :] - (alone[leaving] + own[leaving])[:, None]
        for part in parts:
            gains += 2.0 * part.weight * part.products(leaving, coming)
        if not gains.size or not gains.max() > ROUNDING * np.abs(alone).max():
            return swaps
        row, column = np.unravel_index(int(gains.argmax()), gains.shape)
        pair = np.array([leaving[row], coming[column]])
        inside[pair] = False, True
        for part in parts:
            alone = alone - 2.0 * part.weight * (part.products(slice(None), pair) @ [-1.0, 1.0])
    return MOST_SWAPS


def _least_of(values: np.ndarray) -> np.ndarray:
    """The places of the `TRIED` least, in their order; of equal ones the first."""
    if len(values) > TRIED:
        places = np.flatnonzero(values <= np.partition(values, TRIED - 1)[TRIED - 1])
    else:
        places = np.arange(len(values))
    least: np.ndarray = places[np.argsort(values[places], kind="stable")[:TRIED]]
    return least
