"""A direction nearer to the optimum over weights than the mean of whole members is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from datamask.polling import Poll, no_poll
from datamask.recipes.learned import LearningSelection, corpus_scores, shares_of, weighted_mean
from datamask.recipes.recipe import Recipe, ScoreRule, Thresholds
from datamask.recipes.thresholds import thresholds_of

SHARPENINGS, GOOD = 6, 1e-4
"""Newton steps that are tried, until at most this share of the selection is on the wrong side."""

BAND_SHARE, BAND_ROWS = 0.01, 20_000
"""Rows nearest to the threshold that give the curvature there: this share, 200 at least, and so many at most."""


class Fit(NamedTuple):
    """A rule, the scores by it, its thresholds, and that of every row, as `thresholds_of` gives them."""

    rule: ScoreRule
    scores: np.ndarray
    thresholds: Thresholds
    needed: np.ndarray


def fitted(
    learned: LearningSelection, recipe: Recipe, quality: np.ndarray, amounts: np.ndarray, poll: Poll = no_poll
) -> Fit:
    """The rule of a recipe with what follows from it; arguments as of `sharpened`."""
    lengths = amounts if recipe.of == "tokens" else None
    scores = corpus_scores(recipe, learned.space, quality, lengths, poll)
    return Fit(recipe.rule, scores, *thresholds_of(learned, scores, quality, amounts))


def sharpened(
    learned: LearningSelection, recipe: Recipe, quality: np.ndarray, amounts: np.ndarray, poll: Poll = no_poll
) -> Fit:
    """Of the rule and those that Newton steps lead to, the one that leaves the fewest rows on the wrong side.

    The steps lead towards the direction that is the mean of its own members.

    Args:
        recipe: with the rule to begin with; one without a direction, or with a moment, is as sharp as it gets.
        quality, amounts: float64 ``(N,)``; amounts are tokens under a budget, else ones.
    """
    best = fit = fitted(learned, recipe, quality, amounts, poll)
    if fit.rule.direction is None or fit.rule.moment is not None:
        return fit
    free = np.flatnonzero(learned.eligible & ~learned.pinned)
    fewest = len(free) + 1
    for step in range(SHARPENINGS + 1):
        inside = fit.scores[free] >= fit.needed[free]
        wrong = int((inside != learned.selected[free]).sum())
        if wrong < fewest:
            fewest, best = wrong, fit
        if wrong <= GOOD * learned.selected.sum():
            break
        off = np.abs(fit.scores - fit.needed)[free]
        count = min(len(free), max(200, int(BAND_SHARE * len(free))))
        width = float(np.partition(off, count - 1)[count - 1])
        if step == SHARPENINGS or fit.rule.direction is None or not 0 < width < np.inf:
            break
        mask = learned.pinned | learned.given
        mask[free[inside]] = True
        mean = weighted_mean(learned.space.features, shares_of(learned, mask), poll)
        near = free[off <= width]
        density = float(amounts[near].sum() / amounts[mask].sum()) / (2.0 * width)
        band = learned.space.features[near[:: max(1, -(-len(near) // BAND_ROWS))]].astype(np.float64)
        direction = newton_step(fit.rule.direction, mean, fit.rule.crowding_weight * density, band)
        recipe = replace(recipe, rule=replace(fit.rule, direction=direction))
        fit = fitted(learned, recipe, quality, amounts, poll)
    return best


def newton_step(direction: np.ndarray, mean: np.ndarray, density: float, band: np.ndarray) -> np.ndarray:
    """The next direction, float64 ``(d,)``: ``(I + K) (m' - m) = v - m``.

    Args:
        direction: m. mean: v, of the members under m. density: b times the share of rows per score at the threshold.
        band: float64 ``(r, d)``, unit features of rows near it, whose covariance times the density is K.
    """
    d = len(direction)
    curvature = density * np.cov(band.T, bias=True).reshape(d, d)
    moved: np.ndarray = direction + np.linalg.solve(np.eye(d) + curvature, mean - direction)
    return moved
