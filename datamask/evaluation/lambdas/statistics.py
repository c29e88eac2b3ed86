"""Differences between selections over held-out texts, how sure they are, and which lambda comes out best.

| symbol | meaning |
|---|---|
| J | splits; each has texts, training cuts and random selections of its own |
| l_jdc, w_jd | loss of text d of split j under selection c, summed over its words; its weight (words) |
| v_jc = sum_d l_jdc / sum_d w_jd | a selection's value in a split; its value is the mean over splits |
| V | variance of a difference of two values within a split, by a paired bootstrap over texts |
| s^2 | variance of that difference between splits |
| rho = max(1, sum s^2 / sum V) | how much more splits spread than their texts explain, over all lambdas of a curve |
| r_jk, u_j | value of the k-th random selection of split j; what resampled texts say is the variance between these |
| h | share of a sum over trained rows' variance that is the set's, not that of what was cut out of it to train on |
| L = max(0, mean h (var_k r_jk - u_j)) | how much random sets differ in what they are worth on any texts |

The interval of a difference to random is ``mean over splits +- t sqrt(rho V / J + L)``: V is the chance of which texts
were held out, rho adds that of which texts were drawn to train on. L is not divided by J: what is selected at a lambda
is nearly the same in all splits, so a set that teaches more than its kind by luck does so in every one. With L a
selection is told apart from random ones only if it lies outside of what they are worth by luck; how they fare on the
texts at hand is in V already. Two lambdas are compared as the sets that they are, without L.

rho - 1 has J - 1 degrees of freedom at least, so ``rho V / J`` has ``(J - 1) (rho / (rho - 1))^2``; L has those of its
estimate; t follows from both by Satterthwaite's formula, with V averaged over the curve.

A lambda is chosen on one half of every split and reported on the other, whose texts and training cuts are its own, so
the reported difference of the chosen one needs no correction for having been chosen. A lambda is level with the best
unless it is worse by more than its interval: since the best one was fixed beforehand, the truly best lambda is level
with at least the stated confidence, however many lambdas were tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 1_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Losses:
    """One half of one split.

    Attributes:
        sums: float64 ``(D, C)``, l; weights: float64 ``(D,)``, w.
        unit_of: int64 ``(D,)``, texts of one number are near-copies of each other and are resampled together.
        drawn: float64 ``(D, K)``, l under each random selection. of_sets: h (`share_of_sets`).
    """

    sums: np.ndarray
    weights: np.ndarray
    unit_of: np.ndarray
    drawn: np.ndarray
    of_sets: float = 1.0


@dataclass(frozen=True)
class Luck:
    """How much random selections differ from each other in what they are worth on any texts.

    Attributes:
        variance: L. freedom: degrees of freedom of its estimate.
    """

    variance: float
    freedom: float


NO_LUCK = Luck(0.0, math.inf)
"""Of two selections that are compared as they are."""


@dataclass(frozen=True)
class Widening:
    """What makes the intervals of a curve wider than its texts alone.

    Attributes:
        excess: rho. luck: L. freedom: degrees of freedom of t.
    """

    excess: float
    luck: float
    freedom: float


class Sample:
    """The same half of all splits: values and their paired bootstrap draws.

    Attributes:
        values: float64 ``(J, C)``. draws: float64 ``(J, R, C)``.
        random_values: float64 ``(J, K)``, r.
        lucks: per split ``h (var_k r - u)``.
    """

    def __init__(self, splits: Sequence[Losses], seed: int = 0) -> None:
        selections = splits[0].sums.shape[1]
        # random selections one by one stand behind the others
        all_sums = [np.column_stack([split.sums, split.drawn]) for split in splits]
        values = np.stack([sums.sum(0) / split.weights.sum() for sums, split in zip(all_sums, splits)])
        draws = np.stack(
            [
                _draws(sums, split, np.random.default_rng([20251224, seed, j]))
                for j, (sums, split) in enumerate(zip(all_sums, splits))
            ]
        )
        self.values, self.random_values = values[:, :selections], values[:, selections:]
        self.draws = draws[:, :, :selections]
        self.lucks = [
            split.of_sets * _beyond_texts(values, resampled)
            for split, values, resampled in zip(splits, self.random_values, draws[:, :, selections:])
        ]

    def means(self) -> np.ndarray:
        """float64 ``(C,)``: the value of each selection."""
        means: np.ndarray = self.values.mean(0)
        return means

    def spread(self, first: int, second: int) -> tuple[float, float]:
        """V and s^2 of the difference of two selections, each the mean over splits."""
        between = self.values[:, first] - self.values[:, second]
        within = (self.draws[:, :, first] - self.draws[:, :, second]).var(axis=1, ddof=1)
        return float(within.mean()), float(between.var(ddof=1)) if len(between) > 1 else 0.0

    def widening(self, pairs: Sequence[tuple[int, int]], luck: Luck = NO_LUCK) -> Widening:
        """What the intervals of these differences have in common; `luck`: of what they are held against."""
        within, between = np.mean([self.spread(*pair) for pair in pairs] or [(0.0, 0.0)], axis=0)
        excess = max(1.0, float(between / within)) if within > 0 else 1.0
        splits = len(self.values)
        of_texts = excess * float(within) / splits
        inverse = ((excess - 1) / excess) ** 2 / (splits - 1) if splits > 1 else 0.0
        inverse = of_texts**2 * inverse + (luck.variance**2 / luck.freedom if luck.variance > 0 else 0.0)
        freedom = (of_texts + luck.variance) ** 2 / inverse if inverse > 0 else math.inf
        return Widening(excess, luck.variance, freedom)

    def difference(
        self, first: int, second: int, widening: Widening, confidence: float = CONFIDENCE
    ) -> tuple[float, float, float]:
        """``first - second`` and the ends of its interval."""
        difference = float((self.values[:, first] - self.values[:, second]).mean())
        variance = widening.excess * self.spread(first, second)[0] / len(self.values) + widening.luck
        reach = quantile(widening.freedom, confidence) * variance**0.5
        return difference, difference - reach, difference + reach


def luck_of(samples: Sequence[Sample]) -> Luck:
    """From the random selections of all splits of these samples; none where a split has fewer than two."""
    freedom = sum(sample.random_values.size - len(sample.random_values) for sample in samples)
    if freedom <= 0:
        return NO_LUCK
    return Luck(max(0.0, float(np.mean([luck for sample in samples for luck in sample.lucks]))), freedom)


def share_of_sets(selected: float, trained: float) -> float:
    """h, by the variance of a mean over rows drawn without replacement from a set that was drawn so itself.

    Args:
        selected: share of the rows that a random selection has. trained: share of it that is trained on, at most 1.
    """
    return (1 - selected) / (1 / trained - selected) if selected < 1 else 0.0


def quantile(freedom: float, confidence: float = CONFIDENCE) -> float:
    """t of the module's text; of the normal law where there are endless degrees of freedom."""
    from scipy.stats import norm, t

    upper = 0.5 + confidence / 2
    return float(norm.ppf(upper) if math.isinf(freedom) else t.ppf(upper, freedom))


@dataclass(frozen=True)
class Curve:
    """What the report half says about one objective at one ratio. Smaller values are better here.

    Attributes:
        best: place of the best lambda, chosen on the other half.
        differences: to random, with intervals, per lambda, each at the plain confidence.
        level: per lambda, whether it is level with the best.
        against_random: the best lambda's difference to random, at the confidence of a verdict.
        verdict: ``helps``, ``hurts`` (even the best lambda is worse than random) or ``level``.
    """

    best: int
    differences: tuple[tuple[float, float, float], ...]
    level: tuple[bool, ...]
    against_random: tuple[float, float, float]
    verdict: str


def judge(
    choose: Sample, report: Sample, places: Sequence[int], random: int, curves: int = 1, luck: Luck = NO_LUCK
) -> Curve:
    """Choose a lambda on one half, and report on the other.

    Args:
        places: columns of the curve's selections, by rising lambda. random: the column of random.
        curves: verdicts given side by side; each is held to a confidence of ``1 - 0.05 / curves``.
        luck: of random selections, in the differences to them.
    """
    best = int(np.argmin(choose.means()[list(places)]))
    to_random = report.widening([(place, random) for place in places], luck)
    chosen = places[best]
    to_best = report.widening([(place, chosen) for place in places if place != chosen])
    level = tuple(report.difference(place, chosen, to_best)[1] <= 0 for place in places)
    against = report.difference(chosen, random, to_random, 1 - (1 - CONFIDENCE) / curves)
    return Curve(
        best, tuple(report.difference(place, random, to_random) for place in places), level, against, verdict(against)
    )


def verdict(difference: tuple[float, float, float]) -> str:
    """``helps`` where the interval lies below 0, ``hurts`` above, ``level`` around it."""
    _, low, high = difference
    return "helps" if high < 0 else "hurts" if low > 0 else "level"


def runs_of(chosen: Sequence[bool]) -> list[tuple[int, int]]:
    """First and last place of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.asarray(chosen, bool), [False]]).astype(int)))
    return [(int(low), int(high) - 1) for low, high in zip(edges[::2], edges[1::2])]


def _beyond_texts(values: np.ndarray, resampled: np.ndarray) -> float:
    """Variance between random selections, float64 ``(K,)``, less what it would be by texts alone, from ``(R, K)``."""
    if len(values) < 2:
        return 0.0
    of_texts = (resampled - resampled.mean(axis=1, keepdims=True)).var(axis=0, ddof=1).sum() / (len(values) - 1)
    return float(values.var(ddof=1) - of_texts)


def _draws(sums: np.ndarray, losses: Losses, rng: np.random.Generator) -> np.ndarray:
    """Values in each resample of the texts, from sums of losses, float64 ``(D, C)``: float64 ``(R, C)``."""
    units, unit = np.unique(losses.unit_of, return_inverse=True)
    of_units = np.zeros((len(units), sums.shape[1]))
    np.add.at(of_units, unit, sums)
    weights = np.bincount(unit, losses.weights, len(units))
    counts = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), RESAMPLES).astype(float)
    return (counts @ of_units) / np.maximum(counts @ weights, 1e-12)[:, None]
