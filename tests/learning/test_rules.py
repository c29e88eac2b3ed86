"""Pins and quotas: the cut, the solvers and the bounds against exhaustive search over all allowed subsets."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.certificates import certify
from datamask.learning.masks import gumbel_top_k
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.rules import Rules
from datamask.quotas import quota_bounds
from tests.learning.test_certificates import PROVED, make, mask_of


def random_rules(rng, m, size, groups=3):
    """Rules that at least one subset obeys: those of a random subset, loosened at random."""
    group = rng.integers(0, groups, size=m)
    inside = rng.choice(m, size=size, replace=False)
    count = np.bincount(group[inside], minlength=groups)
    pinned = np.zeros(m, dtype=bool)
    pinned[inside[: int(rng.integers(0, 2))]] = True
    return Rules(
        pinned,
        group,
        np.maximum(count - rng.integers(0, 2, groups), 0),
        count + rng.integers(0, 2, groups),
        tuple("abc"[:groups]),
    )


def allowed(rules, m, size):
    for subset in itertools.combinations(range(m), size):
        mask = mask_of(subset, m)
        if rules.obeyed(mask):
            yield subset


@pytest.mark.parametrize("seed", range(150))
def test_top_is_the_best_allowed_subset(seed):
    rng = np.random.default_rng(seed)
    m, size = int(rng.integers(5, 10)), int(rng.integers(2, 5))
    rules = random_rules(rng, m, size)
    rules.check(size)
    scores = torch.from_numpy(rng.integers(0, 5, size=m).astype(float))
    mask = rules.top(scores, size, torch.from_numpy(rng.permutation(m)))
    best = max(float(scores[list(s)].sum()) for s in allowed(rules, m, size))
    assert rules.obeyed(mask) and int(mask.sum()) == size
    assert float(scores[mask].sum()) == best


@pytest.mark.parametrize("objective", PROVED)
@pytest.mark.parametrize("seed", range(12))
def test_bounds_and_solvers_under_rules(objective, seed):
    rng = np.random.default_rng([seed, 7])
    n, size = int(rng.integers(6, 10)), int(rng.integers(2, 5))
    problem, f = make(rng, objective, n, size, rng.choice([0.0, 0.4]))
    rules = random_rules(rng, n, size)
    problem = Problem(problem.joint, size, problem.eligible, problem.ties, rules=rules)
    values = {s: f(s) for s in allowed(rules, n, size)}
    best = max(values.values())
    start = problem.subset(torch.from_numpy(rng.normal(size=n)))
    better = polish(problem, start)
    assert rules.obeyed(better)
    assert problem.joint.evaluate(better).joint >= problem.joint.evaluate(start).joint - 1e-9
    proof = certify(problem, better, problem.joint.evaluate(better).joint)
    assert proof.upper_bound >= best - 1e-6
    config = SelectionConfig.from_options(estimator="relaxed", objective=objective)
    learner = learning.load("relaxed")(problem, config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    result = learner.result(state)
    assert rules.obeyed(result)
    assert f(result.nonzero().squeeze(1).tolist()) <= best + 1e-6


def test_samples_and_learners_obey(rng):
    problem, _ = make(rng, "facility", 60, 20, 0.5)
    rules = random_rules(rng, 60, 20)
    problem = Problem(problem.joint, 20, problem.eligible, problem.ties, rules=rules)
    masks = gumbel_top_k(torch.zeros(60), 20, 50, torch.Generator().manual_seed(0), cut=problem.cut)
    assert all(rules.obeyed(mask) for mask in masks)
    config = SelectionConfig.from_options(estimator="counterfactual", n_epochs=5)
    learner = learning.load("counterfactual")(problem, config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    assert rules.obeyed(learner.result(state))
    with pytest.raises(OptionError, match="partial"):
        learning.load("reinforce")(problem, SelectionConfig.from_options(estimator="reinforce"))


@pytest.mark.parametrize(
    ("low", "high", "pins", "says"),
    [
        ([3, 0], [9, 9], 0, "at least 3"),
        ([0, 0], [1, 9], 2, "pinned"),
        ([0, 0], [9, 9], 6, "--pin names 6"),
        ([0, 0], [1, 2], 0, "allow from 0 to 3"),
        ([2, 4], [9, 9], 0, "allow from 6"),
    ],
)
def test_impossible_rules_are_refused_with_the_reason(low, high, pins, says):
    group = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    pinned = np.arange(8) < pins
    with pytest.raises(OptionError, match=says):
        Rules(pinned, group, np.array(low), np.array(high), ("a", "b")).check(5)


def test_quota_shares_round_inwards():
    assert quota_bounds(0.1, 0.25, 30) == (3, 7)
    assert quota_bounds(0.3, 0.3, 10) == (3, 3)
    assert quota_bounds(0.0, 1.0, 7) == (0, 7)
