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
    # as `datamask.objectives.joint.Anchor.constant`
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
