"""The score of rows under a recipe's rule: float64 numpy, some thousand rows at a time."""

from __future__ import annotations

import numpy as np

from datamask.recipes.recipe import ScoreRule

ROWS_AT_ONCE = 1024
"""Rows that are widened to float64 at a time: 128 dimensions of them lie in the cache."""

SQUARABLE = (1e-280, 1e280)
"""Sums of squares in this range lost nothing to under- or overflow."""

INVERTIBLE = (1e-300, 1e300)
"""Lengths in this range have an inverse."""

NOWHERE = 1e-6
"""A row nearer to the center than this share of its length has no direction left but rounding."""


class Scorer:
    """Scores by one rule. Safe to use from several threads."""

    def __init__(self, rule: ScoreRule, center: np.ndarray | None = None) -> None:
        """Args: center: float64 ``(d,)``, subtracted from features as they stand in the shards; None: nothing is."""
        self._rule, self._center = rule, center

    def __call__(
        self, quality: np.ndarray, units: np.ndarray | None = None, lengths: np.ndarray | None = None
    ) -> np.ndarray:
        """Scores, float64 ``(n,)``.

        Args:
            quality: float64 ``(n,)``, all columns together.
            units: float64 ``(n, d)``, features of unit length (`unit_rows`); None where the rule needs none.
            lengths: float64 ``(n,)``, tokens; None where the rule needs none.
        """
        rule = self._rule
        score = rule.quality_weight * quality
        if rule.length_weight > 0 and lengths is not None:
            score = score + rule.length_weight * lengths
        if units is None:
            return score
        if rule.direction is not None:
            score = score - rule.crowding_weight * (units @ rule.direction)
        if rule.moment is not None:
            y = rule.standardised(units)
            score = score - rule.moment_weight * ((y @ rule.moment) * y).sum(axis=1)
        return score

    def of_rows(
        self,
        quality: np.ndarray,
        features: np.ndarray | None,
        lengths: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores from features as they stand in the shards.

        Args:
            features: ``(n, d)``, any float type; None where the rule needs none. Others as above.

        Returns:
            Scores, float64 ``(n,)``; and the lengths of the features, float64 ``(n,)``: NaN where a value is NaN or
            infinite, 0 where all are zero, and -1 where the row equals the center, so that it has no direction from it.
        """
        if features is None or not self._rule.needs_features:
            return self(quality, None, lengths), np.ones(len(quality))
        scores, norms = np.empty(len(quality)), np.empty(len(quality))
        for low in range(0, len(quality), ROWS_AT_ONCE):
            part = slice(low, low + ROWS_AT_ONCE)
            of_part, norms[part] = unit_rows(features[part], self._center)
            scores[part] = self(quality[part], of_part, None if lengths is None else lengths[part])
        return scores, norms


def unit_rows(features: np.ndarray, center: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Features of unit length, and their lengths as `Scorer.of_rows` gives them.

    Args:
        features: ``(n, d)``, any float type. center: float64 ``(d,)``, subtracted first; None: nothing is.

    Returns:
        float64 ``(n, d)``, rows without a direction NaN; float64 ``(n,)``.
    """
    rows = features.astype(np.float64)
    norms = _norms(rows)
    if center is not None:
        rows -= center
        around = _norms(rows)
        norms = np.where((around <= NOWHERE * norms) & (norms > 0), -1.0, np.where(norms > 0, around, norms))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        rows *= np.where(norms > 0, 1.0 / np.abs(norms), np.nan)[:, None]
    odd = np.flatnonzero((norms > 0) & ~((norms > INVERTIBLE[0]) & (norms < INVERTIBLE[1])))
    if len(odd):
        source = features[odd].astype(np.float64) - (0.0 if center is None else center)
        source /= np.abs(source).max(axis=1, keepdims=True)
        rows[odd] = source / np.sqrt(np.square(source).sum(axis=1))[:, None]
    return rows, norms


def _norms(rows: np.ndarray) -> np.ndarray:
    """L2 norms of float64 rows, ``(n,)``; NaN where a value is not finite."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        norms: np.ndarray = np.sqrt(squares)
        odd = np.flatnonzero(~((squares > SQUARABLE[0]) & (squares < SQUARABLE[1])))
        if len(odd):
            largest = np.abs(rows[odd]).max(axis=1, initial=0.0)
            scaled = rows[odd] / np.where(largest > 0, largest, 1.0)[:, None]
            lengths = np.minimum(largest * np.sqrt(np.square(scaled).sum(axis=1)), np.finfo(np.float64).max)
            norms[odd] = np.where(np.isfinite(largest), lengths, np.nan)
    return norms
