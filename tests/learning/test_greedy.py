"""Greedy against trying every candidate at every pick, in float64 numpy from the definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import catalogue, objectives
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning import greedy as module
from datamask.learning import medoids
from datamask.learning.greedy import Greedy, picks_of
from datamask.learning.problem import Problem
from datamask.learning.state import State
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth

N, D, SIZE = 48, 4, 14
SLOPES = {"facility": 15.0, "pairwise": 8.0, "disf": 3.0}
NAMES = catalogue.estimator("greedy").objectives


class Case:
    """A small problem, and its joint value from the definitions."""

    def __init__(self, objective, lamb, seed=0, eligible=None, n=N, x=None, q=None, size=SIZE):
        rng = np.random.default_rng(seed)
        self.x = truth.unit_rows(rng, n, D) if x is None else x
        self.q = rng.normal(size=n) if q is None else q
        features = torch.from_numpy(self.x).float()
        self.config = SelectionConfig.from_options(
            estimator="greedy", objective=objective, lamb=lamb, select_ratio=size / n
        )
        lists = exact_lists(features, n)
        self.terms = self.config.terms
        terms = tuple(
            Term(name, weight, objectives.load(name).bind(features, lists), Scale(0.1, SLOPES[name]))
            for name, weight in self.terms
        )
        self.joint = Joint(Quality(torch.from_numpy(self.q)), terms, lamb, Scale(0.2, 2.0))
        self.ties = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        self.eligible = torch.arange(n) if eligible is None else eligible
        self.problem = Problem(self.joint, size, self.eligible, self.ties)

    def learner(self):
        return Greedy(self.problem, self.config)

    def value(self, members):
        diversity = sum(w * SLOPES[name] * truth.OBJECTIVES[name](self.x, members) for name, w in self.terms)
        return self.config.lamb * 2.0 * self.q[members].mean() + (1 - self.config.lamb) * diversity


def picked(learner, state=None):
    state = learner.init() if state is None else state
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    return learner.problem.eligible[torch.from_numpy(picks_of(state.logits))].tolist(), state


@pytest.mark.parametrize("lamb", [0.0, 0.4])
@pytest.mark.parametrize("objective", NAMES)
def test_every_pick_is_the_best_there_was(objective, lamb):
    case = Case(objective, lamb, seed=len(objective), eligible=torch.arange(0, N, 2) if lamb else None)
    picks, _ = picked(case.learner())
    assert len(set(picks)) == SIZE and set(picks) <= set(case.eligible.tolist())
    margins = []
    for done, pick in enumerate(picks):
        values = {i: case.value([*picks[:done], i]) for i in case.eligible.tolist() if i not in picks[:done]}
        first, second = sorted(values.values())[:-3:-1]
        margins.append(first - second)
        # float32 features: among candidates within rounding of the best, either is the greedy pick
        assert values[pick] >= first - 2e-5
    assert np.median(margins) > 1e-3  # the tolerance above decides next to nothing


@pytest.mark.parametrize("objective", NAMES)
def test_stopped_and_resumed_equals_unbroken(objective, monkeypatch):
    case = Case(objective, 0.3)
    expected, end = picked(case.learner())
    monkeypatch.setattr(module, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(medoids, "PAIRS_AT_ONCE", 1)
    monkeypatch.setattr(medoids, "PAIRS_PER_ROW", 0)
    learner, steps = case.learner(), []
    state = learner.init()
    while learner.finished(state) is None:
        state, record = learner.step(state)
        steps.append(record.step)
        if record.step in (1, 5, 9):
            again = State.from_arrays(*state.arrays(), torch.device("cpu"))
            assert picked(case.learner(), again)[0] == expected
    assert steps == list(range(1, SIZE + 1)) and torch.equal(state.logits, end.logits)


def test_a_stopped_step_leaves_the_state_and_the_picks_as_they_were(monkeypatch):
    monkeypatch.setattr(module, "STEP_SECONDS", 0.0)
    case = Case("pairwise", 0.3)
    expected, _ = picked(case.learner())
    monkeypatch.setattr(module, "STEP_SECONDS", 1e9)
    monkeypatch.setattr(module, "MARKS", 1)
    learner = case.learner()
    state, calls = learner.init(), []

    def stop():
        calls.append(1)
        if len(calls) > 9:
            raise Stopped("now")

    with pytest.raises(Stopped):
        learner.step(state, stop)
    assert state.step == 0 and not torch.isfinite(state.logits).any()
    assert picked(learner, state)[0] == expected


def test_the_last_step_tells_the_value_and_the_ranks_are_the_order_of_picking():
    case = Case("facility", 0.3, eligible=torch.arange(1, N, 2))
    learner = case.learner()
    state = learner.init()
    while learner.finished(state) is None:
        state, record = learner.step(state)
    picks = picked(case.learner())[0]
    assert record.step == learner.total_steps == SIZE and "14 picks" in learner.finished(state)
    assert record.values.joint == pytest.approx(case.value(picks) - 0.3 * 2.0 * 0.2 - 0.7 * 15.0 * 0.1, abs=1e-5)
    logits = learner.logits(state)
    assert logits[picks].tolist() == [-k for k in range(SIZE)]
    assert int(logits.isfinite().sum()) == SIZE and not logits[0::2].isfinite().any()
    assert learner.result(state).nonzero().squeeze(1).tolist() == sorted(picks)


@pytest.mark.parametrize("objective", NAMES)
def test_equal_candidates_go_by_the_hash(objective):
    """Four families of copies, each with two members of the best quality in it."""
    rng = np.random.default_rng(3)
    x = np.repeat(truth.unit_rows(rng, 4, D), 12, axis=0)
    case = Case(objective, 0.5, x=x, q=np.tile([1.0, 1.0, *[0.5] * 10], 4))
    picks, _ = picked(case.learner())
    ties = case.ties.numpy()
    for family in range(4):
        first = [p for p in picks if p // 12 == family and p % 12 < 2]
        assert first == sorted(first, key=lambda p: ties[p])


def test_without_diversity_it_is_a_sort():
    case = Case("facility", 1.0, q=np.round(np.random.default_rng(0).normal(size=N), 1))
    order = sorted(range(N), key=lambda i: (-case.q[i], int(case.ties[i])))
    assert picked(case.learner())[0] == order[:SIZE]


def test_averaged_bonuses_below_zero_are_refused():
    lists = medoids.reverse_lists(np.zeros((2, 1), dtype=np.int32), np.ones((2, 1)))
    with pytest.raises(ValueError, match="at least 0, got -1"):
        medoids.LazyGreedy(*lists, np.array([-1.0, 2.0]), 1, np.arange(2), averaged=True)


@pytest.mark.parametrize("lamb", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("objective", NAMES)
def test_a_stop_is_heard_before_anything_is_picked(objective, lamb):
    def stop():
        raise Stopped("enough")

    learner = Case(objective, lamb).learner()
    with pytest.raises(Stopped):
        learner.step(learner.init(), stop)
    assert learner._picker.pick_count == 0
