"""Token budgets: the cut, the inner maximiser, the solvers and the bounds against exhaustive search."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from datamask import learning, objectives
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.budget import Budget
from datamask.learning.certificates import certify
from datamask.learning.facility_solver import medoids
from datamask.learning.masks import gumbel_top_k, inclusion
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.objectives.budgeted import BudgetedQuality
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from tests.reference import budgets


def random_budget(rng, m):
    """A budget that holds some two fifths of the tokens, and at times a pin, and quotas of two of three groups."""
    lengths = rng.integers(4, 48, size=m) / 4
    pinned = np.zeros(m, dtype=bool)
    pinned[: int(rng.integers(0, 2))] = True
    least = lengths[pinned].sum() + lengths[~pinned].max()  # every row fits beside the pins
    most = float(max(np.floor(lengths.sum() * rng.uniform(0.3, 0.5)), least))
    if rng.integers(2):
        group, low, high = rng.integers(0, 3, size=m), rng.uniform(0, 0.4, size=3), rng.uniform(0.5, 1, size=3)
        low[0], high[0] = 0.0, 1.0
        groups = group, low * most, high * most, ("rest", "a", "b")
        with contextlib.suppress(OptionError):
            rows, budget = Budget.within(most, lengths, np.arange(m), pinned, np.zeros(m, bool), groups)
            if len(rows) == m:
                return budget
    budget = Budget(lengths, most, pinned)
    budget.check()
    return budget


def test_half_of_the_random_budgets_have_quotas_that_bind():
    drawn = [random_budget(np.random.default_rng(seed), 8) for seed in range(100)]
    grouped = [budget for budget in drawn if budget.quotas is not None]
    free = [replace(budget, quotas=None) for budget in grouped]
    scores, ties = torch.arange(8.0, 0.0, -1.0), torch.arange(8)
    cuts = [(one.fill(scores, ties), other.fill(scores, ties)) for one, other in zip(grouped, free, strict=True)]
    assert len(grouped) > 25 and sum(not torch.equal(*cut) for cut in cuts) > 10


def filling(budget):
    """All filling selections, straight from the definition."""
    m = len(budget.lengths)
    group, low, high = (np.zeros(m, int), [0], [np.inf]) if budget.quotas is None else budget.quotas[:3]
    free = np.where(budget.pinned, 0.0, budget.lengths)
    longest = [free[group == g].max(initial=0.0) for g in range(len(low))]
    for size in range(1, m + 1):
        for subset in itertools.combinations(range(m), size):
            rows = np.array(subset, int)
            parts = [budget.lengths[rows[group[rows] == g]].sum() for g in range(len(low))]
            shared = all(low[g] - longest[g] - 1e-9 <= part <= high[g] + 1e-9 for g, part in enumerate(parts))
            spent = budget.most - sum(longest) <= sum(parts) <= budget.most
            if spent and shared and set(np.flatnonzero(budget.pinned)) <= set(subset):
                yield subset


def mask_of(members, n):
    mask = torch.zeros(n, dtype=torch.bool)
    mask[list(members)] = True
    return mask


def make(rng, objective, n, lamb):
    """A small problem under a budget, its value function in float64 numpy, and the budget."""
    x, q = budgets.unit_rows(rng, n, 3), rng.normal(size=n)
    features = torch.from_numpy(x).float()
    budget = random_budget(rng, n)
    lengths = torch.from_numpy(budget.lengths)
    lists = exact_lists(features, int(rng.integers(n // 2, n + 1)))
    names = objective.split("+")
    terms = tuple(
        Term(
            name,
            1 / len(names),
            objectives.load(name).bind(features, lists).budgeted(lengths, budget.most),
            Scale(-0.1, 1.5),
        )
        for name in names
    )
    joint = Joint(BudgetedQuality(torch.from_numpy(q), lengths, budget.most), terms, lamb, Scale(0.2, 0.7))
    problem = Problem(joint, 3, torch.arange(n), torch.from_numpy(rng.permutation(n)), features, budget=budget)

    def f(members):
        diversity = (
            np.mean([budgets.OBJECTIVES[name](x, budget.lengths, budget.most, members) + 0.1 for name in names]) * 1.5
        )
        return lamb * (budgets.quality(q, budget.lengths, budget.most, members) - 0.2) * 0.7 + (1 - lamb) * diversity

    return problem, f, budget


@pytest.mark.parametrize("seed", range(100))
def test_the_cut_fills_and_the_vertex_is_the_best_of_the_linear_programme(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(5, 9))
    budget = random_budget(rng, m)
    scores = torch.from_numpy(rng.normal(size=m))
    mask = budget.fill(scores, torch.arange(m))
    allowed = {tuple(s) for s in filling(budget)}
    assert tuple(mask.nonzero().squeeze(1).tolist()) in allowed and budget.filled(mask)
    spent, others, room = budget.lengths[mask.numpy()].sum(), ~mask.numpy(), np.inf
    if budget.quotas is not None:
        group, low, high, _ = budget.quotas
        held = np.bincount(group[mask], budget.lengths[mask], 3)
        lacking = np.maximum(low - held, 0)
        room = np.minimum(high - held, budget.most - spent - lacking.sum() + lacking)[group[others]]
    # nothing more fits, beside what groups lack
    assert (budget.lengths[others] > np.minimum(budget.most - spent, room) - 1e-9).all()
    for gains in (rng.normal(size=m), -rng.uniform(size=m), rng.uniform(size=m)):
        best = budget.vertex(torch.from_numpy(gains)).numpy()
        low = np.where(budget.pinned, 1.0, 0.0)
        rows, limits = [budget.lengths, -budget.lengths], [budget.most, -budget.least]
        if budget.quotas is not None:
            for g, (floor, high) in enumerate(zip(budget.floors, budget.quotas[2], strict=True)):
                part = np.where(budget.quotas[0] == g, budget.lengths, 0.0)
                rows, limits = [*rows, part, -part], [*limits, high, -floor]
        exact = linprog(-gains, A_ub=np.stack(rows), b_ub=limits, bounds=list(zip(low, np.ones(m))))
        assert (np.stack(rows) @ best <= np.array(limits) + 1e-9).all() and (best >= low).all()
        assert gains @ best == pytest.approx(-exact.fun, abs=1e-9)
        assert gains @ best >= max(gains[list(s)].sum() for s in allowed) - 1e-12
    even = budget.even()
    assert even @ budget.lengths == pytest.approx(budget.most) and (even[budget.pinned] == 1).all()
    assert ((even >= 0) & (even <= 1)).all() and all(row @ even <= limit + 1e-9 for row, limit in zip(rows, limits))

    def changed(*rows):
        other = mask.clone()
        other[list(rows)] ^= True
        assert budget.filled(other) == (tuple(other.nonzero().squeeze(1).tolist()) in allowed)
        return budget.filled(other)

    inside, outside = np.flatnonzero(mask), np.flatnonzero(~mask)
    for one, other in itertools.product(inside, outside):
        may = budget.swappable(torch.tensor([one]), torch.tensor([other]), mask)
        assert bool(may) == changed(one, other)
    assert budget.addable(torch.from_numpy(outside), mask).tolist() == [changed(row) for row in outside]
    assert budget.removable(torch.from_numpy(inside), mask).tolist() == [changed(row) for row in inside]


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility", "pairwise+facility", "disf"])
@pytest.mark.parametrize("seed", range(6))
def test_solvers_fill_the_budget_and_bounds_hold(objective, seed):
    rng = np.random.default_rng([seed, 11])
    n = int(rng.integers(7, 10))
    problem, f, budget = make(rng, objective, n, rng.choice([0.0, 0.4]))
    values = {s: f(s) for s in filling(budget)}
    best = max(values.values())
    start = problem.subset(torch.from_numpy(rng.normal(size=n)))
    proved = objective != "disf"
    found = [start, polish(problem, start)]
    if objective == "facility":
        found.append(medoids(problem))
    names = ["counterfactual", "reinforce"] + ["relaxed"] * (proved and "+" not in objective)
    for name in names:
        options = {} if name == "relaxed" else {"partial": 1.0, "n_rollout": 4}
        learner = learning.load(name)(problem, SelectionConfig.from_options(estimator=name, n_epochs=5, **options))
        state = learner.init()
        while learner.finished(state) is None:
            state, _ = learner.step(state)
        found.append(learner.result(state))
    for mask in found:
        members = tuple(mask.nonzero().squeeze(1).tolist())
        assert members in values
        assert problem.joint.evaluate(mask).joint == pytest.approx(values[members], abs=1e-5)
    assert problem.joint.evaluate(found[1]).joint >= problem.joint.evaluate(start).joint - 1e-12
    proof = certify(problem, found[1], problem.joint.evaluate(found[1]).joint)
    if proved:
        assert proof.holds_for == "exact" and proof.upper_bound >= best - 1e-6
    else:
        assert proof is None


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_at_some_size_the_bound_is_close(objective, rng):
    """One fractional row is all that a budget adds to the slack, and it fades as rows get short against the budget."""
    problem, _, budget = make(rng, objective, 400, 0.3)
    learner = learning.load("relaxed")(problem, SelectionConfig.from_options(estimator="relaxed", objective=objective))
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    mask = learner.result(state)
    value = problem.joint.evaluate(mask).joint
    drawn = gumbel_top_k(torch.zeros(400), 1, 20, torch.Generator().manual_seed(0), cut=problem.cut)
    random = np.mean([problem.joint.evaluate(one).joint for one in drawn])
    assert all(budget.filled(one) for one in drawn)
    assert 0 <= certify(problem, mask, value).upper_bound - value < 0.02 * (value - random)


def test_inclusion_adds_up_to_the_budget(rng):
    lengths = torch.from_numpy(rng.integers(1, 50, size=300).astype(float))
    chance = inclusion(torch.from_numpy(rng.normal(size=300)), 2000.0, lengths)
    assert float(chance.double() @ lengths) == pytest.approx(2000.0, rel=1e-5)


@pytest.mark.parametrize(
    ("most", "pins", "says"), [(9.0, 3, "--pin names rows of 12 tokens"), (50.0, 0, "holds all 40 that")]
)
def test_impossible_budgets_are_refused(most, pins, says):
    with pytest.raises(OptionError, match=says):
        Budget(np.full(10, 4.0), most, np.arange(10) < pins).check()
