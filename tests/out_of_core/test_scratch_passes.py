"""Passes over a scratch: their sums, by definition."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.out_of_core.scratch_passes import Passes
from datamask.recipes.scoring import Scorer
from tests.making.shards import clustered, scratch_of
from tests.recipes.test_stepping import KINDS, _any_recipe

ROWS, DIM, BLOCK = 12_000, 8, 4_096


@pytest.mark.parametrize("kind", ["pairwise", "sum"])
def test_the_sums_are_those_of_the_definition(kind, tmp_path):
    """All rows at once, in float64, under a threshold for each cut."""
    scratch = scratch_of(tmp_path, *clustered(ROWS, DIM, seed=5))
    rule = _any_recipe(np.random.default_rng(2), DIM, **KINDS[kind]).rule
    x, q = scratch.features(0, ROWS).astype(float), scratch.quality
    scores = Scorer(rule)(q, x)
    expected, sd = float(np.quantile(scores, 0.9)), float(scores.std())
    passes = Passes(scratch, BLOCK)
    one_pass = passes(rule, expected, sd, "x")
    assert np.allclose(passes.scores, scores, atol=1e-12)
    assert one_pass.rows == ROWS == one_pass.counts.sum()
    for cut in range(0, len(one_pass.cuts), max(1, len(one_pass.cuts) // 9)):
        members = passes.scores >= one_pass.edges[one_pass.cuts[cut]]
        mean, moment = one_pass.members(cut)
        assert one_pass.kept(cut) == members.sum()
        assert one_pass.mean_quality(cut) == pytest.approx(q[members].mean(), abs=1e-12)
        assert np.allclose(mean, x[members].mean(axis=0), atol=1e-12)
        if kind == "sum":
            y = rule.standardised(x[members])
            whole = y.T @ y / len(y)
            np.fill_diagonal(whole, 0.0)
            assert np.allclose(moment, whole, atol=1e-9)
