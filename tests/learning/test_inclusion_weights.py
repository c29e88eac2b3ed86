"""Inclusion weights against the truth: scipy's optimum of the relaxation, enumerated draws, sums to the last digit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from datamask import catalogue, learning, objectives
from datamask.config import SelectionConfig
from datamask.learning.inclusion_weights import adding_to, of_logits
from datamask.learning.limits import Limits
from datamask.learning.loop import learn
from datamask.learning.masks import gumbel_top_k
from datamask.learning.problem import Problem
from datamask.learning.relaxation import even_weights
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.quotas import Groups
from tests.reference import truth

WEIGHING = [entry.name for entry in catalogue.ESTIMATORS if entry.weighs]


def posed(rng, n, d, size, lamb=0.5, objective="pairwise", eligible=None, limits=None):
    """A problem, its features and its qualities."""
    x, q = truth.unit_rows(rng, n, d), rng.normal(size=n)
    function = objectives.load(objective).bind(torch.from_numpy(x).float())
    joint = Joint(Quality(torch.from_numpy(q)), (Term(objective, 1.0, function, Scale(-0.1, 1.5)),), lamb, Scale(0, 1))
    rows = torch.arange(n) if eligible is None else torch.as_tensor(eligible)
    ties = torch.from_numpy(rng.permutation(n))
    features = torch.from_numpy(x).float()
    return Problem(joint, size, rows, ties, features, limits), x, q


def weights_of(problem, estimator, **options):
    config = SelectionConfig.from_options(objective="pairwise", estimator=estimator, device="cpu", **options)
    made = learning.load(estimator)(problem, config)
    return made.inclusion(learn(made).state)


@pytest.mark.parametrize("lamb", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("seed", range(5))
def test_of_relaxed_they_are_the_optimum_of_the_relaxation(seed, lamb):
    """Rows fewer than dimensions, so that the relaxed optimum is one point: scipy finds the same."""
    rng = np.random.default_rng(seed)
    n, size = 10, 4
    problem, x, q = posed(rng, n, 16, size, lamb)

    def worse(p):
        s = x.T @ p
        return -lamb * (q @ p) / size + (1 - lamb) * 1.5 * (s @ s) / (size * (size - 1))

    def slope(p):
        return -lamb * q / size + (1 - lamb) * 3.0 * (x @ (x.T @ p)) / (size * (size - 1))

    best = minimize(
        worse,
        np.full(n, size / n),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda p: p.sum() - size, "jac": lambda p: np.ones(n)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    weights = weights_of(problem, "relaxed", lamb=lamb).numpy()
    assert worse(weights) <= best.fun + 2e-5  # the gap at which the steps end
    assert np.abs(weights - best.x).max() < 0.02
    assert weights.sum() == pytest.approx(size, rel=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_of_learners_and_draws_they_are_how_often_a_row_is_in_a_mask(seed):
    """All draws of 3 from 7 in order, by their Plackett-Luce probabilities; the races' end at one time costs little."""
    rng = np.random.default_rng(seed)
    n, size = 7, 3
    problem, _, _ = posed(rng, n, 3, size)
    logits = rng.normal(size=n)
    mass = np.exp(logits)
    true = np.zeros(n)
    for order in itertools.permutations(range(n), size):
        left, chance = mass.sum(), 1.0
        for row in order:
            chance *= mass[row] / left
            left -= mass[row]
        true[list(order)] += chance
    assert true.sum() == pytest.approx(size)
    weights = of_logits(problem, torch.from_numpy(logits)).numpy()
    assert weights.sum() == pytest.approx(size, rel=1e-13)
    assert np.abs(weights - true).max() < 0.03 and (np.argsort(weights) == np.argsort(true)).all()


def test_many_rows_are_in_masks_as_often_as_their_weights_say():
    rng = np.random.default_rng(2)
    problem, _, _ = posed(rng, 2000, 3, 500)
    logits = torch.from_numpy(2 * rng.normal(size=2000))
    drawn = gumbel_top_k(logits.float(), 500, 4000, torch.Generator().manual_seed(0)).double().mean(0)
    weights = of_logits(problem, logits)
    noise = (weights * (1 - weights) / 4000).sqrt().clamp_min(1e-3)
    assert float(((drawn - weights) / noise).abs().max()) < 5.5


@pytest.mark.parametrize("estimator", WEIGHING)
def test_they_add_to_what_is_selected_and_only_eligible_rows_have_one(estimator):
    rng = np.random.default_rng(1)
    eligible = np.arange(5, 60)
    problem, _, _ = posed(rng, 60, 4, 20, eligible=eligible)
    options = {"n_epochs": 30} if estimator in ("counterfactual", "reinforce") else {}
    weights = weights_of(problem, estimator, **options)
    assert weights.dtype == torch.float64 and weights.shape == (60,)
    assert float(weights.sum()) == pytest.approx(20, rel=1e-13)
    assert not weights[:5].any() and bool(((weights >= 0) & (weights <= 1)).all())
    if estimator == "random":
        assert weights[5:].numpy() == pytest.approx(np.full(55, 20 / 55), rel=1e-12)


def test_disf_fixed_and_lambda_one_have_them_too():
    rng = np.random.default_rng(4)
    problem, _, _ = posed(rng, 80, 3, 30, objective="disf_fixed")
    weights = weights_of(problem, "relaxed")
    assert float(weights.sum()) == pytest.approx(30, rel=1e-13) and float(weights.max()) <= 1
    problem, _, q = posed(rng, 80, 3, 30, lamb=1.0)
    weights = weights_of(problem, "relaxed", lamb=1.0).numpy()
    assert set(weights) == {0.0, 1.0} and q[weights == 1].min() > q[weights == 0].max()


def limits_of(size, pinned, group, low, high):
    names = tuple(f"g{k}" for k in range(len(low)))
    return Limits(size, pinned, quotas=Groups(group, np.asarray(low), np.asarray(high), names))


@pytest.mark.parametrize("estimator", ["counterfactual", "relaxed", "random"])
def test_pinned_rows_weigh_one(estimator):
    rng = np.random.default_rng(3)
    pinned = np.zeros(40, bool)
    pinned[[3, 30]] = True
    problem, _, _ = posed(rng, 40, 3, 12, limits=Limits(12, pinned))
    options = {"n_epochs": 20} if estimator == "counterfactual" else {}
    weights = weights_of(problem, estimator, **options)
    assert weights[[3, 30]].tolist() == [1.0, 1.0] and float(weights.sum()) == pytest.approx(12, rel=1e-13)


def test_quotas_are_kept_by_the_relaxation_and_leave_draws_without_weights():
    rng = np.random.default_rng(5)
    group = np.arange(40) % 2
    limits = limits_of(12, np.zeros(40, bool), group, [0, 10], [2, 12])
    problem, _, _ = posed(rng, 40, 3, 12, limits=limits)
    weights = weights_of(problem, "relaxed").numpy()
    assert weights.sum() == pytest.approx(12) and weights[group == 0].sum() <= 2 + 1e-9
    assert weights_of(problem, "random") is None and weights_of(problem, "soft-quality") is None


def tight_limits(kind, rng):
    """Limits that leave little to choose, over 400 rows."""
    pinned, group = np.zeros(400, bool), rng.integers(0, 3, 400)
    if kind == "pins":
        pinned[rng.choice(400, 36, replace=False)] = True
        return Limits(40, pinned)
    if kind == "given":
        pinned[rng.choice(400, 200, replace=False)] = True
        return Limits(204, pinned)
    if kind == "quotas":
        return limits_of(40, pinned, group, [0, 30, 0], [2, 36, 40])
    pinned[rng.choice(np.flatnonzero(group == 0), 7, replace=False)] = True
    return limits_of(40, pinned, group, [0, 25, 1], [8, 30, 2])


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed"])
@pytest.mark.parametrize("kind", ["pins", "given", "quotas", "pins and quotas"])
@pytest.mark.parametrize("steps", [1, 3, 60])
def test_after_any_number_of_steps_they_obey_every_rule(kind, steps, objective):
    rng = np.random.default_rng(7)
    limits = tight_limits(kind, rng)
    problem, _, _ = posed(rng, 400, 8, limits.most, objective=objective, limits=limits)
    weights = weights_of(problem, "relaxed", n_epochs=steps).numpy()
    assert weights.min() >= 0 and weights.max() <= 1
    assert (weights[limits.pinned] == 1).all() and weights.sum() == pytest.approx(limits.most, rel=1e-12)
    for group, (low, high) in enumerate(zip(limits.groups.low, limits.groups.high, strict=True)):
        assert low - 1e-9 <= weights[limits.groups.group == group].sum() <= high + 1e-9


@pytest.mark.parametrize("steps", [1, 60])
def test_under_a_budget_pinned_rows_weigh_one(steps):
    rng = np.random.default_rng(8)
    lengths, pinned = rng.integers(1, 40, 200).astype(float), np.zeros(200, bool)
    pinned[rng.choice(200, 30, replace=False)] = True
    limits = Limits(float(lengths[pinned].sum()) + 60.0, pinned, lengths)
    problem, _, _ = posed(rng, 200, 5, 33, limits=limits)
    weights = weights_of(problem, "relaxed", n_epochs=steps).numpy()
    assert (weights[pinned] == 1).all()
    assert limits.least - 1e-9 <= weights @ lengths <= limits.most * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_the_even_start_is_the_point_under_the_rules_nearest_to_equal_weights(seed):
    """Scipy's projection of equal weights of the free rows onto what the rules allow; and plain S / m without any."""
    rng = np.random.default_rng(seed)
    m, size = 12, int(rng.integers(2, 10))
    group, pinned = rng.integers(0, 3, m), np.zeros(m, bool)
    mask = np.zeros(m, bool)
    mask[rng.choice(m, size, replace=False)] = True
    pinned[rng.choice(np.flatnonzero(mask), rng.integers(0, size), replace=False)] = True
    held, rows = np.bincount(group[mask], minlength=3), np.bincount(group, minlength=3)
    low, high = rng.integers(0, held + 1), rng.integers(held, rows + 2)
    start = limits_of(size, pinned, group, low, high).even()
    assert (start[pinned] == 1).all() and start.sum() == pytest.approx(size)
    inside = [start @ (group == k) for k in range(3)]
    assert (low - 1e-9 <= inside).all() and (inside <= high + 1e-9).all()
    free = ~pinned
    limits = [{"type": "eq", "fun": lambda w: w.sum() - size}]
    for k in range(3):
        limits.append({"type": "ineq", "fun": lambda w, k=k: w[group == k].sum() - low[k]})
        limits.append({"type": "ineq", "fun": lambda w, k=k: high[k] - w[group == k].sum()})
    box = [(1.0, 1.0) if pin else (0.0, 1.0) for pin in pinned]
    # with their sum settled, the nearest to any equal weights is the shortest
    nearest = minimize(lambda w: w[free] @ w[free], mask.astype(float), bounds=box, constraints=limits, tol=1e-14)
    assert start[free] @ start[free] <= nearest.fun + 1e-6
    unruled, _, _ = posed(rng, m, 3, size)
    assert even_weights(unruled).tolist() == [size / m] * m


@pytest.mark.parametrize("estimator", ["soft-quality", "relaxed"])
def test_under_a_budget_their_tokens_fill_it(estimator):
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 40, 50).astype(float)
    problem, _, _ = posed(rng, 50, 3, 14, limits=Limits(300.0, np.zeros(50, bool), lengths))
    weights = weights_of(problem, estimator).numpy()
    assert 300 - lengths.max() <= weights @ lengths <= 300 * (1 + 1e-13)
    if estimator == "soft-quality":
        assert weights @ lengths == pytest.approx(300, rel=1e-13)


@pytest.mark.parametrize("estimator", [entry.name for entry in catalogue.ESTIMATORS if not entry.weighs])
def test_whoever_knows_in_and_out_alone_has_none(estimator):
    assert learning.load(estimator).inclusion(None, None) is None


def test_soft_quality_without_heat_is_top_quality():
    problem, _, q = posed(np.random.default_rng(7), 30, 3, 10)
    for temperature in (0.0, 1e-320):
        weights = weights_of(problem, "soft-quality", temperature=temperature).numpy()
        assert (weights == (q >= np.sort(q)[-10])).all()


@pytest.mark.parametrize("total", [0.0, 3.7, 9.999])
def test_sums_are_reached_from_anywhere(total):
    rng = np.random.default_rng(0)
    for start in (np.zeros(10), np.ones(10), rng.random(10), np.array([0.5, *[0.0] * 9]), np.array([-1.0, *[2.0] * 9])):
        weights = adding_to(torch.from_numpy(start), total)
        assert float(weights.sum()) == pytest.approx(total, abs=1e-12)
        assert bool(((weights >= 0) & (weights <= 1)).all())
