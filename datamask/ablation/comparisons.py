"""Differences between methods over seeds, with intervals that hold for everything compared at once.

| symbol | meaning |
|---|---|
| J, M, S, T | seeds, methods, simple baselines among them (random is one), targets |
| l_jmt | loss of method m on target t in seed j; smaller is better |
| d_jc | a difference in seed j: of a method to a simple baseline on a target, ``l_jmt - l_jst`` |
| v_c | half the variance of d_c over seeds, and half the median of such variances on its target |
| u_c | variance of the mean of d_c by which texts of the target were held out |
| t_c | mean of d_c over ``sqrt(v_c / J)`` |
| q | what max_c |t_c| reaches or passes by chance in 5 % of the patterns of signs |

The seeds select from disjoint rows (`datamask.analyses.ablation.compute.parts`), so the d_j of a comparison are
independent, while those of one seed depend on each other in any way. If two methods are alike, d and -d are equally
likely, so every pattern of signs is as likely as the one that came: the signs of whole seeds are flipped, and q is read
off (max-T, Westfall and Young 1993; sign flips, Winkler et al. 2014). No correlation has to be estimated, for which ten
seeds are too few, and the mixed variances cost nothing in validity: each pattern has its own. That is exact where
nothing differs. Where methods do differ, flips of the differences themselves no longer look like their noise, so flips
of ``d - mean d`` are done too, and q is the larger of the two.

All seeds are asked the same held-out texts, whose chance is not in the seeds, so an interval is
``mean +- q sqrt(v_c / J + u_c)``. The intervals hold all together; `tests/ablation/test_comparisons.py` counts how
often.

The difference to the best simple baseline is the largest of those to each of them, whichever is the best, so its
interval runs from the largest lower end to the largest upper end (multiple comparisons with the best, Hsu 1984):
better than the best one is better than every one. Its middle is cross-fitted: in each seed against the baseline that is
best on the other seeds, so that the choice brings no luck. Intervals around the cross-fitted differences alone do not
do: the choice ties the seeds together, and in simulations of equal methods 16 % of the ablations led to a claim instead
of 5 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ALL_SIGNS = 12
"""Up to so many seeds every pattern of signs is looked at; beyond, so many random ones as twelve seeds have."""

PATTERNS_AT_ONCE = 64
CONFIDENCE = 0.95
BETTER, WORSE, LEVEL = "better", "worse", "level"


@dataclass(frozen=True)
class Difference:
    """A difference of losses with its simultaneous interval; below 0 is better."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``level``: which cannot be told apart."""
        return BETTER if self.high < 0 else WORSE if self.low > 0 else LEVEL


@dataclass(frozen=True)
class Comparisons:
    """All comparisons of an ablation.

    Attributes:
        to_random, to_simple: ``[t][m]``, differences of method m on target t to random and to the best simple baseline.
        best_simple: ``[t]``, the simple method with the smallest mean loss over all seeds.
        reach: q.
    """

    to_random: tuple[tuple[Difference, ...], ...]
    to_simple: tuple[tuple[Difference, ...], ...]
    best_simple: tuple[int, ...]
    reach: float


def compare(
    losses: np.ndarray, simple: Sequence[bool], of_texts: np.ndarray | None = None, random: int = 0
) -> Comparisons:
    """Compare every method with random and with the best simple baseline on every target.

    Args:
        losses: float64 ``(J, M, T)``, J at least 2; smaller is better. simple: M flags.
        of_texts: float64 ``(M, S, T)``, u; None: 0. random: the place of random selection, which is simple.
    """
    places = np.flatnonzero(simple)
    everything = losses[:, :, None, :] - losses[:, None, places, :]
    reach = largest_by_chance(everything)
    means, errors = everything.mean(axis=0), standard_errors(everything)
    total = np.sqrt(errors**2 + (0.0 if of_texts is None else of_texts))
    # 0 times an infinite reach: a method next to itself
    arm = np.where(total > 0, reach, 0.0) * np.where(total > 0, total, 1.0)
    low, high = means - arm, means + arm
    to_best = (losses - cross_fitted(losses, places)[:, None, :]).mean(axis=0)
    at = int(np.flatnonzero(places == random)[0])
    return Comparisons(
        _table(means[:, at], low[:, at], high[:, at]),
        _table(to_best, np.minimum(low.max(axis=1), to_best), np.maximum(high.max(axis=1), to_best)),
        tuple(int(place) for place in places[losses.mean(axis=0)[places].argmin(axis=0)]),
        reach,
    )


def _table(middle: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[tuple[Difference, ...], ...]:
    """``[t][m]`` of arrays ``(M, T)``."""
    return tuple(
        tuple(Difference(*map(float, ends)) for ends in zip(*of_target)) for of_target in zip(middle.T, low.T, high.T)
    )


def cross_fitted(losses: np.ndarray, simple: np.ndarray) -> np.ndarray:
    """The loss of the best simple baseline in each seed, chosen on the other seeds: float64 ``(J, T)``."""
    of_simple = losses[:, simple, :]
    others = of_simple.sum(axis=0) - of_simple
    chosen = others.argmin(axis=1)
    fitted: np.ndarray = np.take_along_axis(of_simple, chosen[:, None, :], 1)[:, 0, :]
    return fitted


def standard_errors(differences: np.ndarray) -> np.ndarray:
    """``sqrt(v / J)`` of differences, float64 ``(J, ..., T)``: float64 ``(..., T)``; 0 where a method is next to itself
    or selects the same.

    Example:
        >>> standard_errors(np.array([[[1.0]], [[3.0]]])).tolist()
        [[1.0]]
    """
    flat = differences.reshape(len(differences), -1, differences.shape[-1])
    moving = _moving(flat)
    variance = _mixed(flat.var(axis=0, ddof=1)[None], moving)[0]
    errors: np.ndarray = np.where(moving, np.sqrt(variance / len(flat)), 0.0).reshape(differences.shape[1:])
    return errors


def _moving(flat: np.ndarray) -> np.ndarray:
    """bool ``(C, T)``: differences that are more than rounding."""
    moving: np.ndarray = np.ptp(flat, axis=0) > 1e-12 * (1 + np.abs(flat).max(axis=0))
    return moving


def _mixed(variance: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """v of variances over seeds, ``(F, C, T)``: half of each is the median of the moving ones of its target.

    A mean would let one method that fails in one seed hide all others.
    """
    common = np.zeros((len(variance), 1, variance.shape[2]))
    for target, moves in enumerate(moving.T):
        if moves.any():
            common[:, 0, target] = np.median(variance[:, moves, target], axis=1)
    mixed: np.ndarray = (variance + common) / 2
    return mixed


def largest_by_chance(differences: np.ndarray, confidence: float = CONFIDENCE) -> float:
    """q: what the largest ``|t|`` stays within by chance.

    Args:
        differences: float64 ``(J, ..., T)``, of independent seeds.

    Returns:
        Infinity where no pattern of signs could show a difference, or nothing differs.

    Example:
        >>> largest_by_chance(np.zeros((8, 3, 2)))
        inf
    """
    flat = differences.reshape(len(differences), -1, differences.shape[-1])
    moving = _moving(flat)
    signs = sign_patterns(len(flat))
    allowed = int(np.floor((1 - confidence) * len(signs)))
    # the pattern that came is one of them: where it alone would have to be the largest, nothing can be shown
    if not allowed or not moving.any():
        return float("inf")
    reach = [np.sort(_largest(each, moving, signs))[::-1][allowed] for each in (flat, flat - flat.mean(axis=0))]
    return float(max(reach))


def sign_patterns(seeds: int) -> np.ndarray:
    """Patterns of signs, that of all + first: float64 ``(F, J)``. A pattern and its opposite are one, so the first seed
    keeps its sign."""
    if seeds <= ALL_SIGNS:
        others = np.array(list(itertools.product((1.0, -1.0), repeat=seeds - 1)))
    else:
        others = np.random.default_rng([1993, seeds]).choice((1.0, -1.0), (2 ** (ALL_SIGNS - 1), seeds - 1))
        others[0] = 1.0
    return np.column_stack([np.ones(len(others)), others])


def _largest(flat: np.ndarray, moving: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The largest ``|t|`` under each pattern of signs: float64 ``(F,)``."""
    seeds, largest = len(flat), np.empty(len(signs))
    # squares do not feel the signs
    squares = (flat**2).sum(axis=0)
    for low in range(0, len(signs), PATTERNS_AT_ONCE):
        part = slice(low, low + PATTERNS_AT_ONCE)
        means = np.tensordot(signs[part], flat, 1) / seeds
        variance = _mixed((squares - seeds * means**2) / (seeds - 1), moving)
        errors = np.sqrt(np.maximum(variance, np.finfo(float).tiny) / seeds)
        largest[part] = np.where(moving, np.abs(means) / errors, 0.0).max(axis=(1, 2))
    return largest


def regrets(losses: np.ndarray) -> np.ndarray:
    """How far each method's mean loss is above that of the best method of each target: float64 ``(M, T)``.

    Example:
        >>> regrets(np.array([[[1.0, 2.0], [1.5, 1.0]]])).tolist()
        [[0.0, 1.0], [0.5, 0.0]]
    """
    means = losses.mean(axis=0)
    above: np.ndarray = means - means.min(axis=0)
    return above


def rank_agreement(first: np.ndarray, second: np.ndarray) -> float:
    """How alike two proxy models rank the methods by their mean over targets: Spearman's correlation over methods.

    Args:
        first, second: float64 ``(M, T)``, mean losses of the same methods and targets.

    Returns:
        NaN where there are fewer than three methods, or a model gives all the same.

    Example:
        >>> rank_agreement(np.array([[1.0], [2.0], [3.0]]), np.array([[0.1], [0.2], [0.4]]))
        1.0
    """
    if first.shape != second.shape or len(first) < 3:
        return float("nan")
    overall = first.mean(axis=1), second.mean(axis=1)
    if any(np.ptp(means) == 0 for means in overall):
        return float("nan")
    # scipy has it too, and takes a second to load, for which the first map would wait
    agreement = np.corrcoef(_ranks(overall[0]), _ranks(overall[1]))[0, 1]
    # rounding puts a perfect agreement beyond 1
    return float(np.clip(agreement, -1.0, 1.0))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1, equal values sharing the mean of theirs: float64 ``(M,)``."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
