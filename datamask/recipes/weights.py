"""The weights of a recipe's terms in the joint value, on the scale that the run was made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.recipes.recipe import Recipe, ScoreRule


def slope(anchors: dict[str, Any], scale: str, term: str) -> float:
    """What one unit of a term is on the run's scale; 0 where the term is the same for all selections.

    Args:
        term: ``quality`` or an objective.
    """
    if scale == "raw":
        return 1.0
    ends = anchors["quality"] if term == "quality" else anchors["diversity"][term]
    return slope_between(float(ends["random"]), float(ends["best"]))


def slope_between(random: float, best: float) -> float:
    """What one unit of a term is on a scale from 0 at `random` to 1 at `best`; 0 where these are the same."""
    reach = best - random
    # as `datamask.measured.Anchor.constant`
    return 1.0 / reach if reach > 1e-9 * max(abs(best), abs(random)) else 0.0


def slopes(recipe: Recipe) -> tuple[float, Sequence[tuple[str, float]]]:
    """The weights of quality and of every diversity term in the joint value, in raw units."""
    quality = recipe.lamb * slope(recipe.anchors, recipe.scale, "quality")
    return quality, [
        (name, (1.0 - recipe.lamb) * weight * slope(recipe.anchors, recipe.scale, name))
        for name, weight in recipe.terms
        if recipe.lamb < 1
    ]


@dataclass(frozen=True)
class Weights:
    """Of the joint value on the recipe's scale.

    Attributes:
        quality, pairs, moments: A, B and C, slopes included. zero: what all terms together have at their zeros.
    """

    quality: float
    pairs: float
    moments: float
    zero: float

    @classmethod
    def of(cls, recipe: Recipe) -> Weights:
        """The weights of a recipe's objective."""
        quality, terms = slopes(recipe)
        by_name = dict(terms)
        zero = 0.0
        if recipe.scale == "calibrated":
            zero = quality * float(recipe.anchors["quality"]["random"])
            zero += sum(weight * float(recipe.anchors["diversity"][name]["random"]) for name, weight in terms if weight)
        return cls(quality, by_name.get("pairwise", 0.0), by_name.get("disf_fixed", 0.0), zero)

    def value(
        self, count: int, mean_quality: float, mean: np.ndarray | None, moment: np.ndarray | None = None
    ) -> float:
        """The joint value of `count` rows, at least two: exact, from means over them.

        Args:
            mean: float64 ``(d,)``, of unit features; moment: float64 ``(d, d)``, of y y', its diagonal 0.
                None: there is no such part.
        """
        value = self.quality * mean_quality - self.zero
        if mean is not None and self.pairs > 0:
            value -= self.pairs * (count * float(mean @ mean) - 1.0) / (count - 1)
        if moment is not None and self.moments > 0:
            value -= self.moments * float((moment * moment).sum()) / moment_pairs(moment)
        return value

    def beside_scores(self, rule: ScoreRule, size: int) -> float:
        """What a bound by scores adds to them: no `size` rows are worth more than their mean score and this.

        See `datamask.out_of_core.streamed_dual`.
        """
        beside = -self.zero
        if rule.direction is not None and self.pairs > 0:
            # the score's weight may be that of another size: the tangent is then taken at another multiple of m
            factor = rule.crowding_weight / (2.0 * self.pairs * size / (size - 1))
            beside += self.pairs * (size * factor**2 * float(rule.direction @ rule.direction) + 1.0) / (size - 1)
        if rule.moment is not None and self.moments > 0:
            beside += self.moments * float((rule.moment * rule.moment).sum()) / moment_pairs(rule.moment)
        return beside

    def crowding(self, size: int) -> float:
        """What one unit of crowding, ``x . mean``, takes from the score of a row beside `size` members."""
        return 2.0 * self.pairs * size / max(size - 1, 1)

    def moment_weight(self, dim: int) -> float:
        """What one unit of ``y' moment y`` takes from the score of a row of so many dimensions."""
        return 2.0 * self.moments / max(dim * (dim - 1), 1)


def moment_pairs(moment: np.ndarray) -> int:
    """Entries of a moment beside its diagonal."""
    return max(len(moment) * (len(moment) - 1), 1)
