"""ODiS: components against another library's, the taking in turn against its definition, what columns may look like."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from datamask.config import SelectionConfig
from datamask.learning.budget import Budget
from datamask.learning.odis import Odis, components, in_turn
from datamask.learning.problem import Problem
from datamask.objectives.joint import Joint, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.learning.test_ruled_baselines import Ruled
from tests.reference import truth


def standardised(values):
    return (values - values.mean(0)) / values.std(0)


def correlated(rng, n, count):
    """Standardised columns that have something in common."""
    return standardised(rng.normal(size=(n, 1)) + rng.normal(size=(n, count)) * rng.uniform(0.3, 2, count))


def turn_by_turn(values, ties):
    """The definition: component after component takes the best row that is left."""
    left, order = set(range(len(values))), []
    for column in itertools.cycle(values.T):
        if not left:
            return order
        order.append(min(left, key=lambda row: (-column[row], ties[row])))
        left.remove(order[-1])


def problem_of(columns, quality, size, **limits):
    x = torch.from_numpy(truth.unit_rows(np.random.default_rng(3), len(columns), 4)).float()
    joint = Joint(Quality(torch.from_numpy(quality)), (Term("pairwise", 1.0, Pairwise(x)),), 0.5)
    ties = torch.randperm(len(columns), generator=torch.Generator().manual_seed(1))
    return Problem(joint, size, torch.arange(len(columns)), ties, columns=torch.from_numpy(columns), **limits)


def chosen(problem):
    learner = Odis(problem, SelectionConfig.from_options(estimator="odis"))
    state = learner.init()
    learner.check(state)
    assert learner.finished(state) == "the best by each component in turn"
    return learner.result(state).nonzero().squeeze(1).tolist()


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_another_library_and_rise_with_quality(count, seed):
    rng = np.random.default_rng([count, seed])
    columns = correlated(rng, 300, count)
    quality = columns @ rng.uniform(0.2, 1, count)
    values = components(columns, quality)
    other = PCA(svd_solver="full").fit(columns).transform(columns)
    assert np.abs(values) == pytest.approx(np.abs(other), abs=1e-8)
    covariance = values.T @ values / 300
    assert covariance == pytest.approx(np.diag(np.diag(covariance)), abs=1e-9)
    assert (np.diff(np.diag(covariance)) <= 1e-9).all() and np.trace(covariance) == pytest.approx(count)
    assert (quality @ values > 0).all()


def test_a_part_of_the_rows_has_components_of_its_own():
    columns = correlated(np.random.default_rng(3), 200, 3)[:70] + np.array([0.5, 0.0, -2.0])
    other = PCA(svd_solver="full").fit(columns).transform(columns)
    assert np.abs(components(columns, columns.sum(1))) == pytest.approx(np.abs(other), abs=1e-8)


def test_two_columns_are_their_sum_and_then_the_first_rather_than_the_second():
    columns = correlated(np.random.default_rng(2), 200, 2)
    for quality, rather in ((columns.sum(1), [1, -1]), (columns @ [1.0, 3.0], [-1, 1])):
        values = components(columns, quality)
        assert values[:, 0] == pytest.approx(columns.sum(1) / np.sqrt(2))
        assert values[:, 1] == pytest.approx(columns @ rather / np.sqrt(2))


def test_columns_that_say_the_same_or_nothing_are_no_components():
    columns = correlated(np.random.default_rng(5), 150, 2)
    first, second = columns.T
    for dependent, count in (
        (np.stack([first, first], 1), 1),
        (np.stack([first, -first], 1), 1),
        (np.stack([first, second, standardised(first + second)], 1), 2),
        (np.stack([first, np.zeros(150)], 1), 1),
        (np.zeros((150, 2)), 1),
    ):
        assert components(dependent, dependent.sum(1)).shape == (150, count)
    # where only one component is left, it is the best by it
    best = np.argsort(-first)[:40]
    assert chosen(problem_of(np.stack([first, first], 1), 2 * first, 40)) == sorted(best.tolist())


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_taken_in_turn_and_none_twice(seed):
    rng = np.random.default_rng(seed)
    m, count = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    values, ties = rng.integers(0, 6, (m, count)).astype(float), rng.permutation(m)
    assert in_turn(values, ties).tolist() == turn_by_turn(values, ties)


def test_a_selection_is_the_beginning_of_that_order():
    rng = np.random.default_rng(8)
    columns = correlated(rng, 80, 3)
    quality = columns.sum(1)
    problem = problem_of(columns, quality, 25)
    values, ties = components(columns, quality), problem.ties.numpy()
    assert chosen(problem) == sorted(turn_by_turn(values, ties)[:25])
    eligible = torch.arange(0, 80, 2)
    left = [2 * place for place in turn_by_turn(values[::2], ties[::2])[:25]]
    assert chosen(replace(problem, eligible=eligible)) == sorted(left)


def test_rows_of_equal_scores_are_cut_by_the_hash():
    columns = np.tile(correlated(np.random.default_rng(1), 3, 2), (40, 1))
    problem = problem_of(columns, columns.sum(1), 10)
    ties = problem.ties.numpy()
    values = components(columns, columns.sum(1))
    # the best of the first component and the best of the second, five copies of each
    best = [np.flatnonzero(values[:, c] == values[:, c].max()) for c in range(2)]
    expected = [row for rows in best for row in rows[np.argsort(ties[rows])][:5].tolist()]
    assert len(set(expected)) == 10 and chosen(problem) == sorted(expected)


def test_a_budget_is_filled_in_turn():
    rng = np.random.default_rng(9)
    columns, lengths = correlated(rng, 50, 2), rng.integers(1, 30, 50).astype(float)
    problem = problem_of(columns, columns.sum(1), 12, budget=Budget(lengths, 180.0, np.arange(50) == 7))
    taken, left = {7}, 180 - lengths[7]
    for row in turn_by_turn(components(columns, columns.sum(1)), problem.ties.numpy()):
        if row != 7 and lengths[row] <= left:
            taken.add(row)
            left -= lengths[row]
    assert set(chosen(problem)) == taken


@pytest.mark.parametrize("seed", range(4))
def test_rules_are_obeyed_by_the_rows_that_come_first(seed):
    case = Ruled("pairwise", 0.4, seed)
    columns = correlated(np.random.default_rng(seed), len(case.q), 2)
    problem = replace(case.problem, columns=torch.from_numpy(columns))
    learner = Odis(problem, SelectionConfig.from_options(estimator="odis"))
    kept = set(learner.result(learner.init()).nonzero().squeeze(1).tolist())
    scores = learner.scores().numpy()
    assert kept in case.allowed
    assert scores[list(kept)].sum() == max(scores[list(members)].sum() for members in case.allowed)


def test_columns_are_asked_for():
    columns = correlated(np.random.default_rng(0), 20, 2)
    bare = replace(problem_of(columns, columns.sum(1), 5), columns=None)
    with pytest.raises(ValueError, match="Odis goes by single quality columns"):
        Odis(bare, SelectionConfig.from_options(estimator="odis"))
