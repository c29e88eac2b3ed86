"""The weights of a recipe's terms in the joint value, on the scale that the run was made on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datamask.recipes.recipe import Recipe


def slope(anchors: dict[str, Any], scale: str, term: str) -> float:
    """What one unit of a term is on the run's scale; 0 where the term is the same for all selections.

    Args:
        term: ``quality`` or an objective.
    """
    if scale == "raw":
        return 1.0
    ends = anchors["quality"] if term == "quality" else anchors["diversity"][term]
    reach = float(ends["best"]) - float(ends["random"])
    # as `datamask.measured.Anchor.constant`
    return 1.0 / reach if reach > 1e-9 * max(abs(float(ends["best"])), abs(float(ends["random"]))) else 0.0


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
        quality, pairs, moments: A, B and C, slopes included.
    """

    quality: float
    pairs: float
    moments: float

    @classmethod
    def of(cls, recipe: Recipe) -> Weights:
        """The weights of a recipe's objective."""
        quality, terms = slopes(recipe)
        by_name = dict(terms)
        return cls(quality, by_name.get("pairwise", 0.0), by_name.get("disf_fixed", 0.0))

    def crowding(self, size: int) -> float:
        """What one unit of crowding, ``x . mean``, takes from the score of a row beside `size` members."""
        return 2.0 * self.pairs * size / max(size - 1, 1)

    def moment_weight(self, dim: int) -> float:
        """What one unit of ``y' moment y`` takes from the score of a row of so many dimensions."""
        return 2.0 * self.moments / max(dim * (dim - 1), 1)
