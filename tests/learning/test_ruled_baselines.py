"""Baselines under pins, bans and quotas: greedy against trying every completion, cuts against every allowed subset."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import learning
from datamask.config import SelectionConfig
from datamask.learning import greedy as module
from datamask.learning import medoids
from datamask.learning.greedy import Greedy, picks_of
from datamask.learning.limits import Limits
from datamask.learning.problem import Problem
from datamask.learning.state import State
from tests.learning.test_greedy import Case
from tests.learning.test_limits import allowed_subsets, random_rules
from tests.reference import truth

N, BANNED = 11, 2


class Ruled(Case):
    """A small problem whose last rows are banned, with pins and quotas that at least one subset obeys."""

    def __init__(self, objective, lamb, seed):
        rng = np.random.default_rng([seed, 3])
        size = int(rng.integers(3, 6))
        super().__init__(objective, lamb, seed, eligible=torch.arange(N - BANNED), n=N, size=size)
        limits = random_rules(rng, N - BANNED, size)
        limits.check()
        self.problem = Problem(self.joint, size, self.eligible, self.ties, torch.from_numpy(self.x).float(), limits)
        self.allowed = [set(s) for s in allowed_subsets(limits)]

    def open_to(self, picks):
        """Candidates whose taking leaves some allowed subset in reach; pins before all others."""
        reached = [s for s in self.allowed if set(picks) <= s]
        found = set().union(*reached) - set(picks)
        pins = set(np.flatnonzero(self.problem.limits.pinned).tolist()) - set(picks)
        return pins or found


@pytest.mark.parametrize("lamb", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("objective", ["facility", "pairwise", "disf"])
@pytest.mark.parametrize("seed", range(6))
def test_every_pick_is_the_best_that_leaves_the_rules_in_reach(objective, lamb, seed, monkeypatch):
    case = Ruled(objective, lamb, seed)
    learner = Greedy(case.problem, case.config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    picks = picks_of(state.logits).tolist()
    assert set(picks) in case.allowed and case.problem.allowed(learner.result(state))
    for done, pick in enumerate(picks):
        values = {i: case.value([*picks[:done], i]) for i in case.open_to(picks[:done])}
        assert pick in values and values[pick] >= max(values.values()) - 2e-5
    if lamb == 1:
        best = max(case.q[list(s)].mean() for s in case.allowed)
        assert case.q[picks].mean() == pytest.approx(best)
    # one pick at a time, and resumed after each, it makes the same picks
    monkeypatch.setattr(module, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(medoids, "PAIRS_AT_ONCE", 1)
    monkeypatch.setattr(medoids, "PAIRS_PER_ROW", 0)
    again = Greedy(case.problem, case.config)
    state = again.init()
    while again.finished(state) is None:
        state, _ = Greedy(case.problem, case.config).step(State.from_arrays(*state.arrays(), torch.device("cpu")))
    assert picks_of(state.logits).tolist() == picks


@pytest.mark.parametrize("estimator", ["semdedup", "cluster-balanced", "top-quality", "soft-quality", "random"])
@pytest.mark.parametrize("seed", range(8))
def test_a_cut_is_the_best_allowed_subset_of_its_scores(estimator, seed):
    case = Ruled("pairwise", 0.4, seed)
    config = SelectionConfig.from_options(estimator=estimator, lamb=0.4, scale="raw", select_ratio=0.3, seed=seed)
    learner = learning.load(estimator)(case.problem, config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    kept = set(learner.result(state).nonzero().squeeze(1).tolist())
    scores = (state.logits if len(state.logits) else learner.scores()).double().numpy()
    assert kept in case.allowed
    assert scores[list(kept)].sum() == pytest.approx(max(scores[list(s)].sum() for s in case.allowed))
    assert learner.finished(state)


def test_semdedup_drops_what_is_near_a_pinned_row():
    """Two families of copies; in the first the worst row is pinned, so every better one of it goes."""
    x = np.repeat(truth.unit_rows(np.random.default_rng(2), 2, 8), 4, axis=0)
    case = Case("pairwise", 0.5, n=8, x=x, q=np.array([0.1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]), size=2)
    limits = Limits(2, np.arange(8) == 0)
    problem = Problem(case.joint, 2, case.eligible, case.ties, torch.from_numpy(x).float(), limits)
    learner = learning.load("semdedup")(problem, SelectionConfig.from_options(estimator="semdedup"))
    state, _ = learner.step(learner.init())
    assert learner.result(state).nonzero().squeeze(1).tolist() == [0, 4]
