"""How the near-copy rate grows with the corpus: in subsamples, in a larger corpus, and which cosine to collapse at.

A row with m near-copies among the other N - 1 has none of them in a uniform subsample of n rows that holds the row
with probability ``C(N - 1 - m, n - 1) / C(N - 1, n - 1)``, about ``(1 - n/N)^m``: the neighbour graph gives the mean
rate of all subsamples without another search, exactly.

Beyond N it has to be a law. Were the corpus a uniform sample of a larger one, the near-copies of a row would come by a
rate of its own, and the share of rows without any among t N rows be the mean of ``exp(-rate t)`` over the rows. With
gamma distributed rates (so that counts are negative binomial) this is

    unique(t) = unique(1) (1 - x + x t)^-a

whose two numbers follow from the shares ``h_0, h_1, h_2`` of rows with no, one and two near-copies, as the curve, its
slope and its bend at t = 1 are ``h_0``, ``-h_1`` and ``2 h_2`` (as the estimators of unseen species do; Good and
Toulmin 1956, Chao 1984): ``x = 2 h_2 / h_1 - h_1 / h_0`` and ``a = h_1 / (h_0 x)``. Only rows that are alone now can
lose that, so rows with crowds of copies have no say. x is cut to 0 to 1: at 0 the rows that are left have one rate and
the law is exponential, at 1 it is a power of t.

The interval draws families of near-copies anew (rows of one family are no independent draws), and holds if the law
does. It is that of any corpus drawn as this one was, so it has a width at t = 1 too; with what is known of this one
taken off (the finite population correction) it held the truth in 73 to 85 % of 40 made corpora of one kind, and
without it in 85 to 95 %. Whether it does is tried where it can be: the half of the corpus foretells the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from datamask.corpus.copies import ROUNDING, near_families
from datamask.corpus.neighbors import NeighborGraph
from datamask.errors import OptionError

NEIGHBORS = 32
"""Neighbours per row looked at by pages and commands alike, so that they keep one graph; one this wide also serves
facility location at ratio 0.3."""

COSINES = tuple(round(0.8 + 0.01 * step, 2) for step in range(20))
"""From 0.80 to 0.99: where a collapse cosine is looked for."""

DRAWS = 400
"""Of the families, for an interval."""

FLAT = 1e-9
"""An x below this is 0."""

INTERVAL = (5.0, 95.0)
"""Percentiles of the draws: 90 %."""

FARTHEST = 4.0
"""Times as large: beyond this the law is a guess, and is said to be."""

SHORTEST = 4
"""Entries of a neighbour list, so that no, one, two and more near-copies are told apart."""

FEW = 20
"""Rows with one near-copy, and with two, below which the law stands on nothing."""

APART = 0.1
"""The whole corpus's rate, as foretold by its half, may be wrong by this share of it."""


@dataclass(frozen=True)
class Law:
    """``unique(t) = start * (1 - x + x t)^-a``; with x = 0, ``start * exp(-slope (t - 1))``.

    Attributes:
        start: share of rows without a near-copy at t = 1. slope: h_1 / h_0, how fast these rows find one as t grows
            from 1. x: from 0 (one rate for all) to 1 (a power of t).
    """

    start: float
    slope: float
    x: float

    @classmethod
    def of(cls, alone: float, single: float, double: float) -> Law:
        """From the numbers, or shares, of rows with no, one and two near-copies, as shares of `alone` + all others.

        Args:
            alone, single, double: shares of all rows.
        """
        if alone <= 0:
            return cls(0.0, 0.0, 0.0)
        slope = single / alone
        x = 2.0 * double / single - slope if single > 0 else 0.0
        return cls(alone, slope, min(max(x, 0.0), 1.0))

    def rate(self, times: float | np.ndarray) -> np.ndarray:
        """The near-copy rate of a corpus `times` as large, at least 1 times."""
        return _rate(np.asarray(self.start), np.asarray(self.slope), np.asarray(self.x), np.asarray(times, float))


def _rate(start: np.ndarray, slope: np.ndarray, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """`Law.rate` of laws as arrays that broadcast."""
    # log1p(x u) / x goes to u where x goes to 0
    steps = np.where(x < FLAT, times - 1.0, np.log1p(x * (times - 1.0)) / np.maximum(x, FLAT))
    rates: np.ndarray = 1.0 - start * np.exp(-slope * steps)
    return rates


@dataclass(frozen=True)
class CopyGrowth:
    """Near-copies of a corpus against its size.

    Attributes:
        n: rows of the corpus. cosine: from which two rows are near-copies.
        held: int64 ``(K,)``, rows with 0, 1, ... K - 1 near-copies; the last has more, where lists are full.
        law: fitted.
        drawn: float64 ``(DRAWS, 3)``, start, slope and x of the laws of the draws of families, for intervals.
        rates: the near-copy rate now and the law, at each of `COSINES`.
        recall: of the graph.
        foretold: the rate of all rows that the law of half of them gives.
    """

    n: int
    cosine: float
    held: np.ndarray
    law: Law
    drawn: np.ndarray
    rates: tuple[Law, ...]
    recall: float
    foretold: float

    @property
    def now(self) -> float:
        """The rate of the corpus as it is."""
        return 1.0 - float(self.held[0]) / self.n

    def within(self, rows: int) -> float:
        """The mean rate of all uniform subsamples of so many rows, 1 to n."""
        return rate_within(self.held, rows)

    def beyond(self, times: float) -> tuple[float, float, float]:
        """The rate of a corpus `times` as large, and the ends of its 90 % interval."""
        start, slope, x = self.drawn.T
        low, high = np.percentile(_rate(start, slope, x, np.asarray(times, float)), INTERVAL)
        value = float(self.law.rate(times))
        return value, min(float(low), value), max(float(high), value)

    def suggested(self, times: float) -> float | None:
        """The cosine at which a corpus `times` as large has the rate that this one has at its `cosine`.

        Linear between the cosines tried; None: above all of them.
        """
        tried = dict(zip(COSINES, self.rates, strict=True))
        above = [place for place in COSINES if place > self.cosine + 1e-9]
        # the corpus's own cosine may lie below those tried, or between two
        places = np.array([self.cosine, *above])
        larger = np.array([float(law.rate(times)) for law in (self.law, *(tried[place] for place in above))])
        # the rate falls as the cosine rises; laws of few rows may waver
        larger = np.maximum.accumulate(larger[::-1])[::-1]
        if larger[-1] > self.now:
            return None
        if larger[0] <= self.now:
            return self.cosine
        return float(np.interp(-self.now, -larger, places))

    def doubts(self, times: float) -> list[str]:
        """Why the law is not to be trusted for a corpus `times` as large; empty: nothing speaks against it."""
        single, double = int(self.held[1]), int(self.held[2])
        reasons = []
        if single < FEW or double < FEW:
            reasons.append(
                f"only {single:,} rows have one semantic duplicate and {double:,} have two, too few for a projection"
            )
        elif abs(self.foretold - self.now) > APART * self.now:
            reasons.append(
                f"half of the corpus projects {self.foretold:.1%} for all of it, which has {self.now:.1%}: the "
                "projection does not hold here"
            )
        if times > FARTHEST:
            reasons.append(f"more than {FARTHEST:g} times as large is far beyond what was seen")
        if self.recall < 1:
            reasons.append(f"the neighbors are approximate (recall {self.recall:.1%}), so some copies are missing")
        return reasons


def rate_within(held: np.ndarray, rows: int) -> float:
    """The mean near-copy rate of all uniform subsamples of `rows` rows.

    Args:
        held: ``(K,)``, rows of the corpus with 0, 1, ... near-copies.

    Raises:
        OptionError: there are not so many rows.
    """
    n = int(held.sum())
    if not 1 <= rows <= n:
        raise OptionError(f"rows must be from 1 to the {n:,} of the corpus, got {rows:,}")
    return 1.0 - float(held @ _none_left(len(held), n, rows)) / n


def _none_left(most: int, n: int, rows: int) -> np.ndarray:
    """The chance that of 0, 1, ... most - 1 others none is among the `rows` - 1 that are drawn from n - 1."""
    chances = np.ones(most)
    for m in range(1, most):
        chances[m] = chances[m - 1] * max(n - rows - (m - 1), 0) / max(n - 1 - (m - 1), 1)
    return chances


def copy_counts(graph: NeighborGraph, cosine: float) -> np.ndarray:
    """How many near-copies each row's list holds, int64 ``(N,)``: at most K - 1."""
    count: np.ndarray = (graph.similarities[:, 1:] >= cosine - ROUNDING).sum(axis=1, dtype=np.int64)
    return count


def copy_growth(graph: NeighborGraph, cosine: float = 0.95, *, seed: int = 0) -> CopyGrowth:
    """How the near-copy rate grows with the corpus.

    Args:
        graph: of the corpus, K of at least `SHORTEST`.
        cosine: above 0, at most 1. seed: of the draws of families.

    Raises:
        OptionError: the cosine is out of range, or the lists are too short.
    """
    if not 0 < cosine <= 1:
        raise OptionError(f"--cosine must be above 0 and at most 1, got {cosine}")
    if graph.k < SHORTEST:
        raise OptionError(
            f"the neighbor lists must have at least {SHORTEST} entries, got {graph.k}; the corpus is too small"
        )
    counts = copy_counts(graph, cosine)
    n = len(counts)
    held = np.bincount(counts, minlength=graph.k)
    rates = []
    for other in COSINES:
        at = np.bincount(copy_counts(graph, other), minlength=3)
        rates.append(Law.of(*(at[:3] / n)))
    return CopyGrowth(
        n,
        cosine,
        held,
        Law.of(*(held[:3] / n)),
        _drawn(graph, cosine, counts, seed),
        tuple(rates),
        graph.recall,
        float(Law.of(*_half(held)).rate(2.0)),
    )


def _drawn(graph: NeighborGraph, cosine: float, counts: np.ndarray, seed: int) -> np.ndarray:
    """Laws of the corpus with its families of near-copies drawn anew, as many as there are: ``(DRAWS, 3)``."""
    families = np.unique(near_families(graph, cosine), return_inverse=True)[1]
    members = np.bincount(families)
    holding = [np.bincount(families[counts == m], minlength=len(members)) for m in range(3)]
    # most families are one row: draw how often each kind comes, not each family
    kinds, often = np.unique(np.stack([*holding, members], axis=1), axis=0, return_counts=True)
    random = np.random.default_rng(seed)
    drawn = random.multinomial(len(members), often / often.sum(), size=DRAWS) @ kinds
    laws = [Law.of(*(row[:3] / row[3])) for row in drawn]
    return np.array([(law.start, law.slope, law.x) for law in laws])


def _half(held: np.ndarray) -> np.ndarray:
    """Expected shares of rows with 0, 1 and 2 near-copies in a uniform half of the corpus, float64 ``(3,)``."""
    n = int(held.sum())
    rows = max(n // 2, 1)
    shares = np.zeros(3)
    for m in range(len(held)):
        for kept in range(min(m, 2) + 1):
            shares[kept] += held[m] * _hypergeometric(n - 1, m, rows - 1, kept)
    return shares / n


def _hypergeometric(total: int, marked: int, drawn: int, kept: int) -> float:
    """The chance that `drawn` of `total` hold exactly `kept` of the `marked`."""
    if kept > drawn or drawn - kept > total - marked:
        return 0.0
    return math.exp(_log_choose(marked, kept) + _log_choose(total - marked, drawn - kept) - _log_choose(total, drawn))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
