"""Numbers that are not finite: every loop ends, hears its stop, and what comes is a selection or a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import learning, objectives
from datamask.config import SelectionConfig
from datamask.errors import InputError, Stopped
from datamask.learning import cost_benefit, masks, medoids
from datamask.learning.eager_swaps import EagerSwaps
from datamask.learning.lists import Lists
from datamask.learning.newton import QuadraticDual
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.learning.test_medoids import unlimited
from tests.reference import truth

N, SIZE = 30, 9
ESTIMATORS = (
    "counterfactual",
    "relaxed",
    "greedy",
    "reinforce",
    "semdedup",
    "top-quality",
    "soft-quality",
    "cluster-balanced",
    "random",
)
STEPS_ENOUGH = 500


class Broken(Pairwise):
    """An objective of somebody's own that divides by nothing."""

    def values(self, masks, poll=lambda: None):
        return super().values(masks, poll) * torch.nan

    def value(self, mask, poll=lambda: None):
        return float("nan")

    def gains(self, mask, poll=lambda: None):
        return super().gains(mask, poll) * torch.nan


class BrokenMarginals(Pairwise):
    """One whose values are right and whose marginals are not."""

    def marginals(self, masks, poll=lambda: None):
        return super().marginals(masks, poll) / 0.0


def problem_of(objective, quality, lamb=0.5, slope=1.0):
    rng = np.random.default_rng(5)
    features = torch.from_numpy(truth.unit_rows(rng, N, 4)).float()
    kind = objective if isinstance(objective, type) else objectives.load(objective)
    function = kind.bind(features, exact_lists(features, N))
    name = "pairwise" if isinstance(objective, type) else objective
    joint = Joint(
        Quality(torch.from_numpy(np.asarray(quality, np.float64))),
        (Term(name, 1.0, function),),
        lamb,
        Scale(0.0, slope),
    )
    ties = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    return Problem(joint, SIZE, torch.arange(N), ties, features)


def ended(problem, estimator, objective="facility"):
    steps = {"n_epochs": 30} if estimator in ("counterfactual", "reinforce") else {}
    config = SelectionConfig.from_options(
        estimator=estimator, objective=objective, select_ratio=SIZE / N, scale="raw", **steps
    )
    learner = learning.load(estimator)(problem, config)
    state = learner.init()
    for _ in range(STEPS_ENOUGH):
        if (sentence := learner.finished(state)) is not None:
            return learner.result(state), sentence
        state, _ = learner.step(state)
    raise AssertionError(f"{estimator} did not end after {STEPS_ENOUGH} steps")


def overflowing():
    return 1e308 * np.sign(np.random.default_rng(0).normal(size=N))


@pytest.mark.parametrize("objective", ["facility", "pairwise", "disf"])
@pytest.mark.parametrize(
    "quality", [overflowing(), np.full(N, np.nan), np.r_[np.inf, np.zeros(N - 1)]], ids=["1e308", "nan", "inf"]
)
def test_greedy_ends_where_gains_are_no_numbers(objective, quality):
    problem = problem_of(objective, quality)
    learner = learning.load("greedy")(
        problem, SelectionConfig.from_options(estimator="greedy", objective=objective, select_ratio=SIZE / N)
    )
    state = learner.init()
    for _ in range(STEPS_ENOUGH):
        if learner.finished(state) is not None:
            break
        try:
            state, _ = learner.step(state)
        except InputError as error:
            assert "finite" in str(error)
            return
    mask = learner.result(state)
    assert int(mask.sum()) == SIZE
    assert "no finite number" in learner.finished(state) or "picks made" in learner.finished(state)


def test_a_greedy_that_is_stuck_says_after_how_many_picks_and_fills_up():
    bonus = np.zeros(N)
    problem = problem_of("facility", bonus)
    learner = learning.load("greedy")(problem, SelectionConfig.from_options(estimator="greedy", select_ratio=SIZE / N))
    state = learner._state(np.array([4, 2]), stuck=True)
    assert "ended after 2 of 9 picks" in learner.finished(state)
    mask = learner.result(state)
    assert int(mask.sum()) == SIZE and mask[4] and mask[2]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("scale", [1e30, 1e300, 1e-30, 1e-300])
def test_large_and_small_qualities_that_can_be_added_up_are_learned_from_or_refused(estimator, scale):
    quality = scale * np.random.default_rng(1).normal(size=N)
    # on a calibrated scale all is well whatever the unit
    problem = problem_of("pairwise", quality, lamb=0.95, slope=1.0 / scale)
    mask, _ = ended(problem, estimator, "pairwise")
    values = problem.joint.evaluate(mask)
    assert int(mask.sum()) == SIZE and np.isfinite(values.joint)
    if estimator in ("counterfactual", "relaxed", "greedy", "top-quality"):
        assert values.raw_quality > 0.7 * np.sort(quality)[-SIZE:].mean()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_qualities_that_cannot_be_added_up_end_in_a_sentence(estimator):
    problem = problem_of("facility", np.r_[1e308, 1e308, np.zeros(N - 2)], lamb=0.5)
    try:
        mask, sentence = ended(problem, estimator)
    except InputError as error:
        assert "quality" in str(error) and "finite" in str(error) and "\n" not in str(error)
        return
    assert int(mask.sum()) == SIZE and sentence


@pytest.mark.parametrize("kind", [Broken, BrokenMarginals])
@pytest.mark.parametrize("estimator", ["counterfactual", "reinforce", "greedy"])
def test_an_objective_that_gives_nan_is_named(kind, estimator):
    problem = problem_of(kind, np.linspace(0, 1, N))
    if kind is BrokenMarginals and estimator != "counterfactual":
        return  # the others do not ask for marginals
    with pytest.raises(InputError, match=r"objective pairwise: its (value|values|marginals) must be finite.*(nan|inf)"):
        ended(problem, estimator, "pairwise")


def test_polish_ends_on_nan():
    problem = problem_of(Broken, np.linspace(0, 1, N))
    mask = problem.subset(torch.arange(N).double())
    with pytest.raises(InputError, match="finite"):
        polish(problem, mask)


def swapped(indices, similarities, bonus, member):
    """The members ``(n,)`` that swaps end with, from `member`, where no rules and no budget hold."""
    n, order = len(bonus), np.arange(len(bonus))
    member = member.copy()
    lists = Lists(indices.astype(np.int32), similarities)
    search = EagerSwaps(lists, bonus, member, order, unlimited(n))
    for _ in range(STEPS_ENOUGH):
        if search.finished:
            return member
        search.advance()
    raise AssertionError(f"swaps did not end after {STEPS_ENOUGH} calls")


def lists():
    rng = np.random.default_rng(2)
    features = torch.from_numpy(truth.unit_rows(rng, N, 4)).float()
    return tuple(part.numpy() for part in exact_lists(features, 8))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_compiled_loops_end_on_bonuses_that_are_no_numbers(bad):
    indices, similarities = lists()
    reverse = medoids.reverse_lists(indices, similarities)
    order, bonus = np.arange(N), np.zeros(N)
    bonus[::2] = bad
    picks = medoids.greedy(*reverse, bonus, 20, order)
    assert len(set(picks.tolist())) == len(picks) == (20 if bad == np.inf else 15)
    picks = medoids.greedy(*reverse, np.full(N, np.nan), 20, order)
    assert len(picks) == 0
    shares = cost_benefit.Shares(np.ones(N), 11.0, np.zeros(N, np.int32), np.zeros(1), np.full(1, np.inf))
    member = np.zeros(N, bool)
    member[cost_benefit.cost_benefit_greedy(*reverse, bonus, shares, order, np.array([0]))] = True
    assert member.sum() <= 11 and (not np.isnan(bad) or not member[2::2].any())
    assert swapped(indices, similarities, bonus, member).any()


def test_swaps_let_go_of_a_member_whose_loss_is_a_number():
    """Nobody is near anybody, so a row is worth 1 and its bonus: row 2 is worth more than 1, and nobody knows what 0 is
    worth."""
    bonus = np.array([np.nan, 0.0, 1.0, 0.0])
    member = np.array([True, True, False, False])
    after = swapped(np.arange(4)[:, None], np.ones((4, 1), np.float32), bonus, member)
    assert np.flatnonzero(after).tolist() == [0, 2]


def test_the_cut_takes_numbers_first():
    scores = torch.tensor([np.nan, 1.0, np.nan, 2.0, -np.inf])
    assert masks.top(scores, 3, torch.arange(5)).tolist() == [True, True, False, True, False]
    assert int(masks.top(torch.full((5,), torch.nan), 3, torch.arange(5)).sum()) == 3


def test_newton_on_rows_that_are_all_alike_and_its_swaps_hear_a_stop():
    features = torch.nn.functional.normalize(torch.ones(N, 4), dim=1)
    joint = Joint(Quality(torch.zeros(N)), (Term("pairwise", 1.0, Pairwise(features)),), 0.0)
    dual = QuadraticDual(Problem(joint, SIZE, torch.arange(N), torch.arange(N)))
    solution = dual.solve()
    assert int(solution.mask.sum()) == SIZE and solution.upper_bound == pytest.approx(-1.0, abs=1e-6)

    problem = problem_of("pairwise", np.linspace(0, 1, N))
    dual, asked = QuadraticDual(problem), []

    def stop_at_last():
        asked.append(1)
        if len(asked) > 2:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        dual.rounded(torch.full((N,), SIZE / N, dtype=torch.float64), stop_at_last)
