"""Differences between selections over held-out texts, how sure they are, and which lambda comes out best.

| symbol | meaning |
|---|---|
| J | splits; each has texts, training cuts and random selections of its own |
| l_jdc, w_jd | loss of text d of split j under selection c, summed over its words; its weight (words) |
| v_jc = sum_d l_jdc / sum_d w_jd | a selection's value in a split; its value is the mean over splits |
| V | variance of a difference of two values within a split, by a paired bootstrap over texts |
| s^2 | variance of that difference between splits |
| rho = max(1, sum s^2 / sum V) | how much more splits spread than their texts explain, over all lambdas of a curve |

The interval of a difference is ``mean over splits +- t sqrt(rho V / J)``: V is the chance of which texts were held out,
rho adds that of which texts were drawn to train on. rho - 1 has J - 1 degrees of freedom at least, which gives t by
Satterthwaite's formula, ``(J - 1) (rho / (rho - 1))^2``.

A lambda is chosen on one half of every split and reported on the other, whose texts and training cuts are its own, so
the reported difference of the chosen one needs no correction for having been chosen. A lambda is level with the best
unless it is worse by more than its interval: since the best one was fixed beforehand, the truly best lambda is level
with at least the stated confidence, however many lambdas were tried.
"""

from __future__ import annotations

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
    """

    sums: np.ndarray
    weights: np.ndarray
    unit_of: np.ndarray


class Sample:
    """The same half of all splits: values and their paired bootstrap draws.

    Attributes:
        values: float64 ``(J, C)``. draws: float64 ``(J, R, C)``.
    """

    def __init__(self, splits: Sequence[Losses], seed: int = 0) -> None:
        self.values = np.stack([split.sums.sum(0) / split.weights.sum() for split in splits])
        self.draws = np.stack(
            [_draws(split, np.random.default_rng([20251224, seed, j])) for j, split in enumerate(splits)]
        )

    def means(self) -> np.ndarray:
        """float64 ``(C,)``: the value of each selection."""
        means: np.ndarray = self.values.mean(0)
        return means

    def spread(self, first: int, second: int) -> tuple[float, float]:
        """V and s^2 of the difference of two selections, each the mean over splits."""
        between = self.values[:, first] - self.values[:, second]
        within = (self.draws[:, :, first] - self.draws[:, :, second]).var(axis=1, ddof=1)
        return float(within.mean()), float(between.var(ddof=1)) if len(between) > 1 else 0.0

    def excess(self, pairs: Sequence[tuple[int, int]]) -> float:
        """rho over these differences."""
        within, between = np.sum([self.spread(*pair) for pair in pairs] or [(0.0, 0.0)], axis=0)
        return max(1.0, float(between / within)) if within > 0 else 1.0

    def difference(
        self, first: int, second: int, excess: float, confidence: float = CONFIDENCE
    ) -> tuple[float, float, float]:
        """``first - second`` and the ends of its interval."""
        difference = float((self.values[:, first] - self.values[:, second]).mean())
        reach = (
            quantile(excess, len(self.values), confidence)
            * (excess * self.spread(first, second)[0] / len(self.values)) ** 0.5
        )
        return difference, difference - reach, difference + reach


def quantile(excess: float, splits: int, confidence: float = CONFIDENCE) -> float:
    """t of the module's text."""
    from scipy.stats import norm, t

    upper = 0.5 + confidence / 2
    if excess <= 1 or splits < 2:
        return float(norm.ppf(upper))
    return float(t.ppf(upper, (splits - 1) * (excess / (excess - 1)) ** 2))


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


def judge(choose: Sample, report: Sample, places: Sequence[int], random: int, curves: int = 1) -> Curve:
    """Choose a lambda on one half, and report on the other.

    Args:
        places: columns of the curve's selections, by rising lambda. random: the column of random.
        curves: verdicts given side by side; each is held to a confidence of ``1 - 0.05 / curves``.
    """
    best = int(np.argmin(choose.means()[list(places)]))
    to_random = report.excess([(place, random) for place in places])
    chosen = places[best]
    to_best = report.excess([(place, chosen) for place in places if place != chosen])
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


def _draws(losses: Losses, rng: np.random.Generator) -> np.ndarray:
    """Values in each resample of the texts: float64 ``(R, C)``."""
    units, unit = np.unique(losses.unit_of, return_inverse=True)
    sums = np.zeros((len(units), losses.sums.shape[1]))
    np.add.at(sums, unit, losses.sums)
    weights = np.bincount(unit, losses.weights, len(units))
    counts = rng.multinomial(len(units), np.full(len(units), 1 / len(units)), RESAMPLES).astype(float)
    return (counts @ sums) / np.maximum(counts @ weights, 1e-12)[:, None]
