"""Bounds against exhaustive search; relaxations and polish against it and against each other."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from datamask import catalogue, learning, objectives
from datamask.config import SelectionConfig
from datamask.corpus.neighbors import build_neighbors
from datamask.errors import OptionError
from datamask.learning.certificates import certify, provable
from datamask.learning.facility_dual import LAST_STEPS, STEPS_AT_ONCE, descend, product_error, proved
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, concave, upper_bound
from datamask.objectives.facility import exact_lists
from datamask.objectives.facility_kernels import pair_products
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth

PROVED = [entry.name for entry in catalogue.OBJECTIVES if entry.proof]
UNPROVED = [entry.name for entry in catalogue.OBJECTIVES if not entry.proof]


def make(rng, objective, n, size, lamb, k=None, eligible=None):
    """A small problem, and its value function in float64 numpy."""
    x, q = truth.unit_rows(rng, n, 3), rng.normal(size=n)
    features = torch.from_numpy(x).float()
    lists = exact_lists(features, k or n)
    names = objective.split("+")
    terms = tuple(
        Term(name, 1 / len(names), objectives.load(name).bind(features, lists), Scale(-0.1, 1.5)) for name in names
    )
    joint = Joint(Quality(torch.from_numpy(q)), terms, lamb, Scale(0.2, 0.7))
    problem = Problem(
        joint,
        size,
        torch.arange(n) if eligible is None else torch.as_tensor(eligible),
        torch.from_numpy(rng.permutation(n)),
    )

    def f(members):
        diversity = np.mean([(truth.OBJECTIVES[name](x, members) + 0.1) * 1.5 for name in names])
        return lamb * (q[list(members)].mean() - 0.2) * 0.7 + (1 - lamb) * diversity

    return problem, f


def mask_of(members, n):
    mask = torch.zeros(n, dtype=torch.bool)
    mask[list(members)] = True
    return mask


@pytest.mark.parametrize(
    "objective", [*PROVED, "pairwise+facility", "pairwise+disf_fixed", "pairwise+vendi", "vendi+facility"]
)
@pytest.mark.parametrize("seed", range(12))
def test_a_bound_is_never_below_the_best_subset(objective, seed):
    rng = np.random.default_rng([seed, len(objective)])
    n, size = int(rng.integers(6, 11)), int(rng.integers(2, 5))
    eligible = np.sort(rng.choice(n, size=n - int(rng.integers(0, 2)), replace=False))
    problem, f = make(
        rng, objective, n, size, rng.choice([0.0, 0.3, 0.8]), k=int(rng.integers(3, n + 1)), eligible=eligible
    )
    best = max(f(m) for m in itertools.combinations(eligible.tolist(), size))
    members = rng.choice(eligible, size=size, replace=False)
    proof = certify(problem, mask_of(members, n), f(members))
    assert proof.holds_for == "exact"
    assert proof.upper_bound >= best - 1e-6


@pytest.mark.parametrize("objective", ["facility", "pairwise+facility"])
@pytest.mark.parametrize("seed", range(6))
def test_on_approximate_lists_bound_and_value_are_of_listed_neighbours(objective, seed):
    """Every second neighbour is missing: an exhaustive search over what is listed, in numpy."""
    rng = np.random.default_rng([seed, 7])
    n, size, lamb = 9, 3, 0.4
    x, q = truth.unit_rows(rng, n, 3), rng.normal(size=n)
    features = torch.from_numpy(x).float()
    indices, similarities = (part[:, ::2] for part in exact_lists(features, 7))
    terms = tuple(
        Term(
            name,
            1 / len(objective.split("+")),
            objectives.load(name).bind(features, (indices, similarities), exact_lists=False),
            Scale(-0.1, 1.5),
        )
        for name in objective.split("+")
    )
    problem = Problem(
        Joint(Quality(torch.from_numpy(q)), terms, lamb, Scale(0.2, 0.7)), size, torch.arange(n), torch.arange(n)
    )
    near = np.zeros((n, n))
    np.put_along_axis(near, indices.numpy(), similarities.double().numpy().clip(0), 1)

    def joint_of(members, facility):
        raw = {"facility": facility, "pairwise": truth.OBJECTIVES["pairwise"](x, members)}
        diversity = np.mean([(raw[name] + 0.1) * 1.5 for name in objective.split("+")])
        return lamb * (q[list(members)].mean() - 0.2) * 0.7 + (1 - lamb) * diversity

    def listed(members):
        return joint_of(members, near[:, members].max(axis=1).mean())

    best = max(listed(m) for m in itertools.combinations(range(n), size))
    members = tuple(rng.choice(n, size=size, replace=False))
    exact = joint_of(members, truth.facility(x, members))
    proof = certify(problem, mask_of(members, n), problem.joint.evaluate(mask_of(members, n)).joint)
    assert proof.holds_for == "listed"
    assert proof.value == pytest.approx(listed(members), abs=1e-6) and proof.value < exact
    assert proof.upper_bound >= best - 1e-6


@pytest.mark.parametrize("objective", UNPROVED)
def test_no_bound_is_claimed_where_there_is_none(objective, rng):
    problem, f = make(rng, objective, 9, 4, 0.4)
    assert not provable(problem)
    assert certify(problem, mask_of(range(4), 9), f(range(4))) is None
    # with quality alone that counts, the term without a proof does not matter
    problem, f = make(rng, objective, 9, 4, 1.0)
    best = max(f(m) for m in itertools.combinations(range(9), 4))
    assert certify(problem, mask_of(range(4), 9), f(range(4))).upper_bound == pytest.approx(best, abs=1e-6)


def test_a_bound_below_its_value_is_dropped(rng, caplog):
    problem, _ = make(rng, "pairwise", 9, 4, 0.4)
    assert certify(problem, mask_of(range(4), 9), 1e6) is None
    assert "not proved" in caplog.text


def test_relaxation_closes_on_larger_pools(rng):
    problem, _ = make(rng, "pairwise", 3000, 900, 0.3)
    here = begin(problem)
    for _ in range(200):
        here, gap = advance(problem, here)
        if gap < 1e-7:
            break
    value = problem.joint.evaluate(problem.subset(here.gradient)).joint
    bound = upper_bound(problem, here.weights)
    assert -1e-9 <= bound - value < 1e-4


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility", "pairwise+disf_fixed"])
def test_relaxed_comes_close_to_the_best_subset(objective):
    gaps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        problem, f = make(rng, objective, 11, 4, 0.4)
        config = SelectionConfig.from_options(estimator="relaxed", objective="pairwise", lamb=0.4, select_ratio=4 / 11)
        learner = learning.load("relaxed")(problem, config)
        state = learner.init()
        while learner.finished(state) is None:
            state, _ = learner.step(state)
        members = learner.result(state).nonzero().squeeze(1).tolist()
        values = sorted((f(m) for m in itertools.combinations(range(11), 4)), reverse=True)
        assert len(members) == 4
        gaps.append((values[0] - f(members)) / (values[0] - np.mean(values)))
    # swaps end in a local optimum: most of these small problems are solved, all nearly
    assert np.median(gaps) < 1e-5 and max(gaps) < 0.2


def test_relaxed_refuses_what_it_cannot_solve(rng):
    problem, _ = make(rng, "disf", 9, 4, 0.4)
    with pytest.raises(OptionError, match="concave"):
        learning.load("relaxed")(problem, SelectionConfig.from_options(estimator="relaxed", objective="disf"))


@pytest.mark.parametrize("objective", [entry.name for entry in catalogue.OBJECTIVES])
def test_polish_improves_and_keeps_the_rules(objective, rng):
    eligible = np.arange(0, 60, 2)
    problem, _ = make(rng, objective, 60, 12, 0.3, eligible=eligible)
    start = mask_of(rng.choice(eligible, size=12, replace=False), 60)
    better = polish(problem, start)
    assert int(better.sum()) == 12 and not bool(better[1::2].any())
    assert problem.joint.evaluate(better).joint > problem.joint.evaluate(start).joint


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed", "vendi", "facility"])
def test_after_polish_no_single_swap_helps(objective, rng):
    problem, f = make(rng, objective, 26, 6, 0.3)
    members = polish(problem, mask_of(range(6), 26)).nonzero().squeeze(1).tolist()
    here = f(members)
    best = max(f([*(m for m in members if m != j), i]) for j in members for i in set(range(26)) - set(members))
    assert best <= here + 1e-6


@pytest.mark.parametrize("seed", [0, 3, 4, 5])
def test_the_last_swaps_of_vendi_are_exact(seed):
    """By marginals alone they ended where another swap gains 0.06 to 0.11."""
    problem, f = make(np.random.default_rng(seed), "vendi", 12, 3, 0.3)
    members = polish(problem, mask_of(range(3), 12)).nonzero().squeeze(1).tolist()
    best = max(f([*(m for m in members if m != j), i]) for j in members for i in set(range(12)) - set(members))
    assert best <= f(members) + 1e-6


@pytest.mark.parametrize("objective", ["pairwise", "disf_fixed"])
def test_interaction_makes_swaps_exact(objective, rng):
    problem, _ = make(rng, objective, 20, 7, 0.0)
    function = problem.joint.terms[0].function
    mask = mask_of(range(7), 20)
    d = function.final_marginals(mask)
    inside, outside = torch.arange(7), torch.arange(7, 20)
    second = function.interaction(inside, outside, 7)
    for j in range(7):
        for row, i in enumerate(range(7, 20)):
            swapped = mask.clone()
            swapped[j], swapped[i] = False, True
            promised = float(d[i] - d[j] + second[row, j])
            assert function.value(swapped) - function.value(mask) == pytest.approx(promised, abs=2e-6)


@pytest.mark.parametrize("seed", range(40))
def test_a_facility_bound_holds_where_features_nearly_coincide(seed):
    """Cosines differ by 1e-7 here, as float32 lists are rounded: a bound on the lists fell below on one in nine."""
    rng = np.random.default_rng([seed, 31])
    n, d, size = int(rng.integers(5, 10)), int(rng.integers(2, 7)), int(rng.integers(1, 4))
    k = int(rng.integers(3, n + 1))
    x = rng.normal(size=(n, d)) + 1e3
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    function = objectives.load("facility").bind(torch.from_numpy(x), exact_lists(torch.from_numpy(x), k))
    problem = Problem(
        Joint(Quality(torch.zeros(n)), (Term("facility", 1.0, function),), 0.0), size, torch.arange(n), torch.arange(n)
    )
    best = max(truth.facility(x.astype(np.float64), m) for m in itertools.combinations(range(n), size))
    mask = mask_of(range(size), n)
    proof = certify(problem, mask, function.value(mask))
    assert proof.upper_bound >= best - 1e-12
    assert proof.upper_bound <= best + 2e-6, "and the allowance for rounding is no more than that"


@pytest.mark.parametrize("seed", range(30))
def test_a_facility_bound_holds_where_rounding_leaves_out_the_nearest(seed):
    """One row is to be covered by one of eight that are equally near but for 0.0003; rounded rows say which it lists.
    Two bounds of thirty were too low."""
    rng = np.random.default_rng([seed, 17])
    n, d, k = 9, int(rng.integers(2, 5)), int(rng.integers(2, 6))
    x = np.concatenate([truth.unit_rows(rng, 1, d), truth.unit_rows(rng, 1, d) + 3e-4 * rng.normal(size=(n - 1, d))])
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    graph = build_neighbors(x, k)
    lists = map(torch.from_numpy, graph.by_cosine())
    function = objectives.load("facility").bind(torch.from_numpy(x), tuple(lists))
    function.list_by(graph.indices, graph.listed, 2 * graph.move, graph.highest_unlisted())
    term = Term("facility", 1.0, function)
    others = torch.arange(1, n)
    problem = Problem(Joint(Quality(torch.zeros(n)), (term,), 0.0), 1, others, torch.arange(n))
    values = [truth.facility(x.astype(np.float64), [member]) for member in others.tolist()]
    proof = certify(problem, mask_of([1 + int(np.argmin(values))], n), min(values))
    assert max(values) - 1e-12 <= proof.upper_bound <= max(values) + 2 * graph.move


def test_the_allowance_for_float32_products_covers_them():
    rng = np.random.default_rng(4)
    for d in (1, 3, 64, 384):
        x = rng.normal(size=(500, d)) + 0.5
        x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
        exact = x.astype(np.float64) @ x.astype(np.float64).T
        assert np.abs((x @ x.T) - exact).max() <= product_error(d) < 1e-7 * (d + 1)


@pytest.mark.parametrize("listed", [2, 5])
def test_a_facility_bound_allows_for_products_that_were_rounded_down(listed):
    """Five rows that are all the same, so that any member is worth 1 exactly; the lists say a little less."""
    n, d = 5, 64
    features = np.eye(1, d, dtype=np.float32).repeat(n, axis=0)
    error = product_error(d)
    indices = ((np.arange(n)[:, None] + np.arange(listed)) % n).astype(np.int32)
    similarities = np.full((n, listed), 1 - 0.9 * error, np.float32)
    bound = proved(
        partial(pair_products, features),
        indices,
        similarities,
        1,
        np.full(n, 1 - 0.5 * error),
        np.zeros(n),
        error,
        unlisted=similarities[:, -1] + error,
    )
    assert 1 - 1e-12 <= bound <= 1 + error


def test_pairwise_at_one_sample_has_no_values_to_tell_apart(rng):
    problem, _ = make(rng, "pairwise", 8, 1, 0.4)
    function = problem.joint.terms[0].function
    masks = torch.eye(8, dtype=torch.bool)
    assert not function.values(masks).any() and not function.marginals(masks).any()
    assert [function.value(mask) for mask in masks] == [0.0] * 8
    assert function.random_value(1, torch.Generator()) == 0.0
    assert not function.final_marginals(masks[0]).any()
    # so the best is that of quality alone, and the bound says so
    best = max(range(8), key=lambda i: float(problem.joint.quality.scores[i]))
    value = problem.joint.evaluate(masks[best]).joint
    assert certify(problem, masks[best], value).upper_bound == pytest.approx(value, abs=1e-9)


def test_where_nothing_counts_nothing_is_proved(rng):
    problem, _ = make(rng, "pairwise", 8, 3, 0.0)
    term = problem.joint.terms[0]
    flat = Joint(problem.joint.quality, (Term("pairwise", 1.0, term.function, Scale(0.0, 0.0)),), 0.0)
    assert not provable(replace(problem, joint=flat))


def test_what_is_not_concave_is_not_relaxed(rng):
    problem, _ = make(rng, "disf", 9, 4, 0.4)
    weights = torch.zeros(9, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"concave in inclusion weights, got disf"):
        concave(problem, weights)
    assert concave(problem, weights, without=["disf"])[1].dtype == torch.float64


@pytest.mark.parametrize("objective", ["pairwise+disf_fixed", "facility"])
def test_relaxed_has_no_selection_before_its_first_step(objective, rng):
    problem, _ = make(rng, objective, 9, 4, 0.4)
    learner = learning.load("relaxed")(problem, SelectionConfig.from_options(estimator="relaxed"))
    with pytest.raises(ValueError, match="call step first"):
        learner.result(learner.init())


def test_a_descent_that_brings_nothing_more_ends(rng):
    """Its bounds on the way are those of the descent that goes on, so what is left out is what they brought."""
    x, size = torch.from_numpy(truth.unit_rows(rng, 400, 8)).float(), 40
    lists = [part.numpy() for part in exact_lists(x, 400)]
    value, start = truth.facility(x.double().numpy(), range(size)), np.full(400, 0.7)
    lowest: dict[int, float] = {}
    whole = descend(*lists, size, value, start, steps=300, on_bound=lowest.__setitem__)
    least = (lowest[100] - lowest[130]) * 1.01
    early = descend(*lists, size, value, start, steps=300, progress=least)
    assert LAST_STEPS < early.steps <= 130 < whole.steps
    assert early.upper_bound == lowest[early.steps] >= whole.upper_bound
    assert lowest[early.steps - LAST_STEPS] - early.upper_bound < least
    first = descend(*lists, size, value, start, steps=300, progress=np.inf)
    assert first.steps == LAST_STEPS + STEPS_AT_ONCE, "not before there are steps to look back at"
