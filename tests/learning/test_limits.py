"""Pins, quotas and budgets: the cut, the inner maximiser, the solvers and the bounds against exhaustive search."""

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
from datamask.learning.certificates import certify
from datamask.learning.facility_solver import medoids
from datamask.learning.limits import Limits
from datamask.learning.masks import gumbel_top_k, inclusion
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.objectives.budgeted import BudgetedQuality
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.quotas import Groups, quota_bounds
from tests.learning.test_certificates import PROVED, make
from tests.reference import budgets


def random_rules(rng, m, size, groups=3):
    """Rules that at least one subset obeys: those of a random subset, loosened at random."""
    group = rng.integers(0, groups, size=m)
    inside = rng.choice(m, size=size, replace=False)
    count = np.bincount(group[inside], minlength=groups)
    pinned = np.zeros(m, dtype=bool)
    pinned[inside[: int(rng.integers(0, 2))]] = True
    low, high = np.maximum(count - rng.integers(0, 2, groups), 0), count + rng.integers(0, 2, groups)
    return Limits(size, pinned, quotas=Groups(group, low, high, tuple("abc"[:groups])))


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
        groups = Groups(group, low * most, high * most, ("rest", "a", "b"))
        with contextlib.suppress(OptionError):
            rows, limits = Limits.within(most, np.arange(m), pinned, np.zeros(m, bool), lengths, groups)
            if len(rows) == m:
                return limits
    limits = Limits(most, pinned, lengths)
    limits.check()
    return limits


def test_half_of_the_random_budgets_have_quotas_that_bind():
    drawn = [random_budget(np.random.default_rng(seed), 8) for seed in range(100)]
    grouped = [limits for limits in drawn if limits.grouped]
    free = [replace(limits, quotas=None) for limits in grouped]
    scores, ties = torch.arange(8.0, 0.0, -1.0), torch.arange(8)
    cuts = [(one.top(scores, ties), other.top(scores, ties)) for one, other in zip(grouped, free, strict=True)]
    assert len(grouped) > 25 and sum(not torch.equal(*cut) for cut in cuts) > 10


def allowed_subsets(limits):
    """All allowed selections, straight from the definition."""
    m = len(limits.pinned)
    lengths = np.ones(m) if limits.lengths is None else limits.lengths
    group, low, high = (np.zeros(m, int), [0], [np.inf]) if limits.quotas is None else limits.quotas[:3]
    free = np.where(limits.pinned, 0.0, lengths) * limits.by_tokens
    longest = [free[group == g].max(initial=0.0) for g in range(len(low))]
    for size in range(1, m + 1):
        for subset in itertools.combinations(range(m), size):
            rows = np.array(subset, int)
            parts = [lengths[rows[group[rows] == g]].sum() for g in range(len(low))]
            shared = all(low[g] - longest[g] - 1e-9 <= part <= high[g] + 1e-9 for g, part in enumerate(parts))
            spent = limits.most - sum(longest) <= sum(parts) <= limits.most
            if spent and shared and set(np.flatnonzero(limits.pinned)) <= set(subset):
                yield subset


def members_of(mask):
    return tuple(mask.nonzero().squeeze(1).tolist())


@pytest.mark.parametrize("by_tokens", [False, True], ids=["rows", "tokens"])
@pytest.mark.parametrize("seed", range(120))
def test_the_cut_is_allowed_and_the_vertex_is_the_best_of_the_linear_programme(seed, by_tokens):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(5, 10))
    limits = random_budget(rng, m) if by_tokens else random_rules(rng, m, int(rng.integers(2, 5)))
    limits.check()
    lengths, (group, low, high, _) = limits.amounts, limits.groups
    allowed = set(allowed_subsets(limits))
    scores = torch.from_numpy(rng.integers(0, 5, size=m).astype(float))
    mask = limits.top(scores, torch.from_numpy(rng.permutation(m)))
    assert members_of(mask) in allowed and limits.allowed(mask)
    if not by_tokens:
        assert float(scores[mask].sum()) == max(float(scores[list(s)].sum()) for s in allowed)
    spent, others = lengths[mask.numpy()].sum(), ~mask.numpy()
    held = np.bincount(group[mask], lengths[mask], len(low))
    lacking = np.maximum(low - held, 0)
    room = np.minimum(high - held, limits.most - spent - lacking.sum() + lacking)[group[others]]
    # nothing more fits, beside what groups lack
    assert (lengths[others] > np.minimum(limits.most - spent, room) - 1e-9).all()
    rows, ends = [lengths, -lengths], [limits.most, -limits.least]
    for g, floor in enumerate(limits.floors):
        part = np.where(group == g, lengths, 0.0)
        rows, ends = [*rows, part, -part], [*ends, min(high[g], lengths.sum()), -floor]
    for gains in (rng.normal(size=m), -rng.uniform(size=m), rng.uniform(size=m)):
        best = limits.vertex(torch.from_numpy(gains)).numpy()
        box = list(zip(np.where(limits.pinned, 1.0, 0.0), np.ones(m)))
        exact = linprog(-gains, A_ub=np.stack(rows), b_ub=ends, bounds=box)
        assert (np.stack(rows) @ best <= np.array(ends) + 1e-9).all() and (best >= limits.pinned).all()
        assert gains @ best == pytest.approx(-exact.fun, abs=1e-9)
        assert gains @ best >= max(gains[list(s)].sum() for s in allowed) - 1e-12
    even = limits.even()
    assert even @ lengths == pytest.approx(limits.most) and (even[limits.pinned] == 1).all()
    assert ((even >= 0) & (even <= 1)).all() and all(row @ even <= end + 1e-9 for row, end in zip(rows, ends))

    def changed(*rows):
        other = mask.clone()
        other[list(rows)] ^= True
        assert limits.allowed(other) == (members_of(other) in allowed)
        return limits.allowed(other)

    inside, outside = mask.nonzero().squeeze(1), (~mask).nonzero().squeeze(1)
    swaps = [[changed(one, other) for one in inside.tolist()] for other in outside.tolist()]
    assert limits.swappable(inside, outside, mask).tolist() == swaps
    assert limits.addable(outside, mask).tolist() == [changed(row) for row in outside.tolist()]
    assert limits.removable(inside, mask).tolist() == [changed(row) for row in inside.tolist()]


@pytest.mark.parametrize("objective", PROVED)
@pytest.mark.parametrize("seed", range(12))
def test_bounds_and_solvers_under_rules(objective, seed):
    rng = np.random.default_rng([seed, 7])
    n, size = int(rng.integers(6, 10)), int(rng.integers(2, 5))
    problem, f = make(rng, objective, n, size, rng.choice([0.0, 0.4]))
    problem = replace(problem, limits=random_rules(rng, n, size))
    values = {s: f(s) for s in allowed_subsets(problem.limits)}
    best = max(values.values())
    start = problem.subset(torch.from_numpy(rng.normal(size=n)))
    better = polish(problem, start)
    assert problem.allowed(better)
    assert problem.joint.evaluate(better).joint >= problem.joint.evaluate(start).joint - 1e-9
    proof = certify(problem, better, problem.joint.evaluate(better).joint)
    assert proof.upper_bound >= best - 1e-6
    result = learned(problem, "relaxed", objective=objective)
    assert problem.allowed(result)
    assert f(members_of(result)) <= best + 1e-6


def learned(problem, name, **options):
    """The selection at which an estimator ends."""
    learner = learning.load(name)(problem, SelectionConfig.from_options(estimator=name, **options))
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    return learner.result(state)


def test_samples_and_learners_obey(rng):
    problem, _ = make(rng, "facility", 60, 20, 0.5)
    problem = replace(problem, limits=random_rules(rng, 60, 20))
    masks = gumbel_top_k(torch.zeros(60), 20, 50, torch.Generator().manual_seed(0), cut=problem.cut)
    assert all(problem.allowed(mask) for mask in masks)
    assert problem.allowed(learned(problem, "counterfactual", n_epochs=5))
    with pytest.raises(OptionError, match="partial"):
        learning.load("reinforce")(problem, SelectionConfig.from_options(estimator="reinforce"))


@pytest.mark.parametrize(
    ("low", "high", "pins", "says"),
    [
        ([3, 0], [9, 9], 0, "at least 3 rows, but 2 may"),
        ([0, 0], [1, 9], 2, "at most 1 rows, but 2 are pinned"),
        ([0, 0], [9, 9], 6, "--pin names 6 rows, but only 5 are to be selected; raise --select_ratio"),
        ([0, 0], [1, 2], 0, "allow from 0 to 3 rows"),
        ([2, 4], [9, 9], 0, "allow from 6 to 8 rows together, but 5 are to be selected; .* --select_ratio"),
    ],
)
def test_impossible_rules_are_refused_with_the_reason(low, high, pins, says):
    group = np.array([0, 0, 1, 1, 1, 1, 1, 1])
    quotas = Groups(group, np.array(low), np.array(high), ("a", "b"))
    with pytest.raises(OptionError, match=says):
        Limits(5, np.arange(8) < pins, quotas=quotas).check()


@pytest.mark.parametrize(
    ("most", "pins", "says"),
    [
        (9.0, 3, "--pin names rows of 12 tokens, but only 9 are to be selected; raise --budget"),
        (50.0, 0, "holds all 40 that"),
        (15.0, 3, "leaves 3 to choose, which no row fits in"),
    ],
)
def test_impossible_budgets_are_refused(most, pins, says):
    with pytest.raises(OptionError, match=says):
        Limits(most, np.arange(10) < pins, np.full(10, 4.0)).check()


def test_quota_shares_round_inwards():
    assert quota_bounds(0.1, 0.25, 30) == (3, 7)
    assert quota_bounds(0.3, 0.3, 10) == (3, 3)
    assert quota_bounds(0.0, 1.0, 7) == (0, 7)


def make_budgeted(rng, objective, n, lamb):
    """A small problem under a budget, and its value function in float64 numpy."""
    x, q = budgets.unit_rows(rng, n, 3), rng.normal(size=n)
    features = torch.from_numpy(x).float()
    limits = random_budget(rng, n)
    lengths, most = torch.from_numpy(limits.lengths), limits.most
    lists = exact_lists(features, int(rng.integers(n // 2, n + 1)))
    names = objective.split("+")
    functions = {name: objectives.load(name).bind(features, lists).budgeted(lengths, most) for name in names}
    terms = tuple(Term(name, 1 / len(names), function, Scale(-0.1, 1.5)) for name, function in functions.items())
    joint = Joint(BudgetedQuality(torch.from_numpy(q), lengths, most), terms, lamb, Scale(0.2, 0.7))
    problem = Problem(joint, 3, torch.arange(n), torch.from_numpy(rng.permutation(n)), features, limits)

    def f(members):
        diversity = np.mean([budgets.OBJECTIVES[name](x, limits.lengths, most, members) + 0.1 for name in names]) * 1.5
        return lamb * (budgets.quality(q, limits.lengths, most, members) - 0.2) * 0.7 + (1 - lamb) * diversity

    return problem, f


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility", "pairwise+facility", "disf"])
@pytest.mark.parametrize("seed", range(6))
def test_solvers_fill_the_budget_and_bounds_hold(objective, seed):
    rng = np.random.default_rng([seed, 11])
    n = int(rng.integers(7, 10))
    problem, f = make_budgeted(rng, objective, n, rng.choice([0.0, 0.4]))
    values = {s: f(s) for s in allowed_subsets(problem.limits)}
    best = max(values.values())
    start = problem.subset(torch.from_numpy(rng.normal(size=n)))
    proved = objective != "disf"
    found = [start, polish(problem, start)]
    if objective == "facility":
        found.append(medoids(problem))
    for name in ("counterfactual", "reinforce"):
        found.append(learned(problem, name, n_epochs=5, partial=1.0, n_rollout=4))
    if proved and "+" not in objective:
        found.append(learned(problem, "relaxed", n_epochs=5))
    for mask in found:
        assert members_of(mask) in values
        assert problem.joint.evaluate(mask).joint == pytest.approx(values[members_of(mask)], abs=1e-5)
    assert problem.joint.evaluate(found[1]).joint >= problem.joint.evaluate(start).joint - 1e-12
    proof = certify(problem, found[1], problem.joint.evaluate(found[1]).joint)
    if proved:
        assert proof.holds_for == "exact" and proof.upper_bound >= best - 1e-6
    else:
        assert proof is None


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_at_some_size_the_bound_is_close(objective, rng):
    """One fractional row is all that a budget adds to the slack, and it fades as rows get short against the budget."""
    problem, _ = make_budgeted(rng, objective, 400, 0.3)
    mask = learned(problem, "relaxed", objective=objective)
    value = problem.joint.evaluate(mask).joint
    drawn = gumbel_top_k(torch.zeros(400), 1, 20, torch.Generator().manual_seed(0), cut=problem.cut)
    random = np.mean([problem.joint.evaluate(one).joint for one in drawn])
    assert all(problem.allowed(one) for one in drawn)
    assert 0 <= certify(problem, mask, value).upper_bound - value < 0.02 * (value - random)


def test_inclusion_adds_up_to_the_budget(rng):
    lengths = torch.from_numpy(rng.integers(1, 50, size=300).astype(float))
    chance = inclusion(torch.from_numpy(rng.normal(size=300)), 2000.0, lengths)
    assert float(chance.double() @ lengths) == pytest.approx(2000.0, rel=1e-5)
