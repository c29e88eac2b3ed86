"""Rules of other weights, and rules that nobody solved for with their values by the definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask.recipes.recipe import FeatureColumn, Recipe, ScoreRule
from datamask.recipes.scoring import Scorer
from datamask.recipes.stepping import at_weights, rule_of
from datamask.recipes.weights import Weights
from tests.recipes.test_apply import made
from tests.reference import truth

ENDS = {
    "quality": {"random": 0.1, "best": 1.7, "best_kind": "proved"},
    "diversity": {
        "pairwise": {"random": -0.4, "best": -0.1, "best_kind": "proved"},
        "disf_fixed": {"random": -0.3, "best": -0.05, "best_kind": "proved"},
    },
}
KINDS = {
    "pairwise": {"objective": "pairwise"},
    "pairwise alone": {"objective": "pairwise", "lamb": 0.0},
    "raw": {"objective": "pairwise", "scale": "raw"},
    "disf_fixed": {"objective": "disf_fixed", "lamb": 0.3},
    "sum": {"objective": "pairwise:1,disf_fixed:3"},
    "quality": {"lamb": 1.0},
}


def _any_recipe(rng, d, objective="pairwise", lamb=0.5, scale="calibrated") -> Recipe:
    """A recipe with a rule that nobody solved for."""
    moment = rng.normal(size=(d, d))
    np.fill_diagonal(moment, 0.0)
    recipe = made(objective=objective, lamb=lamb, scale=scale, anchors=ENDS, features=FeatureColumn("feature_arr", d))
    weights = Weights.of(recipe)
    rule = ScoreRule(
        weights.quality,
        2.3 * weights.pairs,
        rng.normal(size=d) if weights.pairs else None,
        2 * weights.moments / (d * (d - 1)),
        (moment + moment.T) / 4 if weights.moments else None,
        np.full(d, 0.1) if weights.moments else None,
        np.full(d, 1.5) if weights.moments else None,
    )
    return replace(recipe, rule=rule)


def _value(recipe: Recipe, x: np.ndarray, q: np.ndarray, members: np.ndarray) -> float:
    """The joint value of some rows, by the definitions; moments are over the recipe's own mean and scale."""
    members = np.flatnonzero(members)
    value = recipe.lamb * _on_scale(recipe, "quality", q[members].mean())
    for name, weight in recipe.terms if recipe.lamb < 1 else ():
        if name == "pairwise":
            raw = truth.pairwise(x, members)
        else:
            y = (x[members] - recipe.rule.mean) * recipe.rule.inverse_sd
            moment = y.T @ y / len(members)
            np.fill_diagonal(moment, 0.0)
            raw = -(moment**2).sum() / (x.shape[1] * (x.shape[1] - 1))
        value += (1 - recipe.lamb) * weight * _on_scale(recipe, name, raw)
    return value


def _on_scale(recipe: Recipe, name: str, raw: float) -> float:
    ends = ENDS["quality"] if name == "quality" else ENDS["diversity"][name]
    return raw if recipe.scale == "raw" else (raw - ends["random"]) / (ends["best"] - ends["random"])


def _written(tmp_path, tables) -> str:
    folder = tmp_path / "whole"
    folder.mkdir()
    for place, table in enumerate(tables):
        pq.write_table(table, folder / f"{place}.parquet")
    return str(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_a_rule_carried_over_to_other_weights_scores_in_the_same_order(kind):
    rng = np.random.default_rng(9)
    x, q = rng.normal(size=(50, 4)), rng.normal(size=50)
    for _ in range(5):
        recipe = _any_recipe(rng, 4, **KINDS[kind])
        before = Weights.of(recipe)
        after = replace(before, quality=before.quality * 1.3, pairs=before.pairs * 0.6, moments=before.moments * 1.7)
        rule = rule_of(recipe, before, 12)
        other, factor = at_weights(rule, before, after, 12)
        assert np.allclose(Scorer(other)(q, x), factor * Scorer(rule)(q, x), rtol=1e-12, atol=1e-12)
        assert (other.quality_weight, other.crowding_weight) == (after.quality, after.crowding(12))
        assert other.moment_weight == pytest.approx(after.moment_weight(4))
