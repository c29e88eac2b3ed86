"""What a rule is made of: a selection of an open corpus, the means of its members, and scores of all its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus.components import Components
from datamask.corpus.corpus import Corpus
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.recipes.quality import FrozenQuality
from datamask.recipes.recipe import Recipe
from datamask.recipes.scoring import Scorer

ROWS_AT_ONCE = 8192

DEAD_SHARE = 1e-4
"""As in `datamask.objectives.disf`: a dimension whose sd is below this share of the median one counts as dead."""


@dataclass(frozen=True)
class LearningSelection:
    """A selection with what is needed for its rule.

    Attributes:
        corpus: as it was opened. space: the same or its centered twin, in whose features the objective was measured;
            center: what was subtracted, float64 ``(d,)``, None for nothing. components: on which the second moments
            of that space are defined; None: on all its dimensions.
        config: the settings. anchors: the ends of the scales, as runs keep them.
        quality: the quality columns as they stand in the shards, float64 ``(Q, N)``, and how they add up.
        selected, eligible, given, pinned, banned: bool ``(N,)``, as in the run.
    """

    corpus: Corpus
    space: Corpus
    center: np.ndarray | None
    components: Components | None
    config: SelectionConfig
    anchors: dict[str, Any]
    quality: tuple[FrozenQuality, ...]
    quality_values: np.ndarray
    selected: np.ndarray
    eligible: np.ndarray
    given: np.ndarray
    pinned: np.ndarray
    banned: np.ndarray


def lengths_of(learned: LearningSelection) -> np.ndarray:
    """Tokens of every row, float64 ``(N,)``.

    Raises:
        InputError: the corpus has no lengths.
    """
    if learned.corpus.lengths is None:
        raise InputError("the run fills a budget of tokens, and the corpus has no lengths any more")
    return learned.corpus.lengths


def shares_of(learned: LearningSelection, mask: np.ndarray) -> np.ndarray:
    """With what weights rows enter the members' mean, float64 ``(N,)``, adding up to 1.

    Under a budget by their tokens, and tokens not spent are average ones (`datamask.objectives.budgeted`).
    """
    if learned.config.budget is None:
        equal: np.ndarray = mask / mask.sum()
        return equal
    lengths = lengths_of(learned)
    most = float(learned.config.budget) + float(lengths[learned.given].sum())
    counted = np.where(lengths <= most, lengths, 0.0)
    spent = np.where(mask, lengths / most, 0.0)
    shares: np.ndarray = spent + (1.0 - spent.sum()) * counted / counted.sum()
    return shares


def weighted_mean(features: np.ndarray, shares: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """``sum of shares_i x_i``, float64 ``(d,)``; rows of weight 0 are skipped."""
    mean, rows = np.zeros(features.shape[1]), np.flatnonzero(shares)
    for part in parts_of(rows):
        poll()
        mean += shares[part] @ features[part].astype(np.float64)
    return mean


def weighted_moment(
    features: np.ndarray, shares: np.ndarray, mean: np.ndarray, inverse_sd: np.ndarray, poll: Poll = no_poll
) -> np.ndarray:
    """``sum of shares_i y_i y_i'`` without its diagonal, float64 ``(d, d)``."""
    d = features.shape[1]
    moment, rows = np.zeros((d, d)), np.flatnonzero(shares)
    for part in parts_of(rows):
        poll()
        y = (features[part].astype(np.float64) - mean) * inverse_sd
        moment += y.T @ (y * shares[part, None])
    np.fill_diagonal(moment, 0.0)
    return (moment + moment.T) / 2


def standardisation(features: np.ndarray, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of every dimension, float64 ``(d,)`` each; 0 for dead dimensions.

    The inverse is rounded to float32, as the objective's is.
    """
    n, d = features.shape
    parts = parts_of(np.arange(n))
    mean, variance = np.zeros(d), np.zeros(d)
    for part in parts:
        poll()
        mean += features[part].astype(np.float64).sum(axis=0)
    mean /= n
    for part in parts:
        poll()
        variance += np.square(features[part].astype(np.float64) - mean).sum(axis=0)
    inverse_sd = inverse_sd_of(np.sqrt(variance / n))
    return mean, inverse_sd.astype(np.float32).astype(np.float64)


def inverse_sd_of(sd: np.ndarray) -> np.ndarray:
    """Inverse standard deviations, float64 ``(d,)``; 0 for dead dimensions."""
    alive = sd > DEAD_SHARE * np.sort(sd)[(len(sd) - 1) // 2]
    inverse: np.ndarray = np.where(alive, 1.0 / np.maximum(sd, np.finfo(np.float64).tiny), 0.0)
    return inverse


def parts_of(rows: np.ndarray) -> list[np.ndarray]:
    """The rows, so many at a time as are widened to float64 at once."""
    return [rows[low : low + ROWS_AT_ONCE] for low in range(0, len(rows), ROWS_AT_ONCE)]


def corpus_scores(
    recipe: Recipe, space: Corpus, quality: np.ndarray, lengths: np.ndarray | None, poll: Poll = no_poll
) -> np.ndarray:
    """The scores of all rows of an open corpus, float64 ``(N,)``. space: its features, centered if need be."""
    scorer = Scorer(recipe.rule)
    if not recipe.rule.needs_features:
        return scorer(quality, None, lengths)
    scores = np.empty(len(quality))
    for part in parts_of(np.arange(len(quality))):
        poll()
        units = space.features[part].astype(np.float64)
        scores[part] = scorer(quality[part], units, None if lengths is None else lengths[part])
    return scores
