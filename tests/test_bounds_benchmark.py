"""The benchmark of bounds: its values are the definitions', its searches agree, and no bound is below the best."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.bounds import KINDS, case_of, exhaustive, integer_programme, solved, subsets, table
from tests.reference import budgets, truth

SEEDS = [seed for seed in range(80) if case_of(seed)[1].x.shape[0] <= 14]


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_values_are_those_of_the_definitions(seed):
    _, case = case_of(seed)
    chosen = case.problem.subset(torch.from_numpy(np.random.default_rng(seed).random(len(case.x))))
    members, lamb = chosen.nonzero().squeeze(1).tolist(), case.problem.joint.lamb
    if case.lengths is None:
        value = lamb * case.q[members].mean() + (1 - lamb) * truth.OBJECTIVES[case.name](case.x, members)
    else:
        most = case.problem.limits.most
        value = lamb * budgets.quality(case.q, case.lengths, most, members) + (1 - lamb) * budgets.OBJECTIVES[
            case.name
        ](case.x, case.lengths, most, members)
    assert case.values(chosen.numpy()[None].astype(float))[0] == pytest.approx(value, abs=1e-6)


def test_the_integer_programme_finds_the_best_subset_under_a_budget():
    found = [case for kind, case in map(case_of, SEEDS) if kind == "budget" and case.name == "facility"]
    assert found
    for case in found:
        assert integer_programme(case)[0] == pytest.approx(exhaustive(case)[0], abs=1e-6)


def test_no_bound_is_below_the_best():
    rows = [solved(seed) for seed in SEEDS]
    assert not any(row["below"] for row in rows)
    assert {row["kind"] for row in rows} == set(KINDS) - {"integer programme"}
    assert sum(row["problems"] for row in table(rows) if row["rows_per_dimension"] == "all") == len(SEEDS)


def test_all_subsets_once():
    assert subsets(5, None).shape == (32, 5) and subsets(5, 2).sum(1).tolist() == [2.0] * 10
