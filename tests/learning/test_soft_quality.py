"""Soft quality sampling: how often each subset comes, against all of them enumerated; its two ends; its limits."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.limits import Limits
from datamask.learning.problem import Problem
from datamask.learning.soft_quality import SoftQuality, standardised
from datamask.objectives.joint import Joint, Term
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.reference import truth

DRAWS = 1_500


def problem_of(quality, size, eligible=None, limits=None):
    x = torch.from_numpy(truth.unit_rows(np.random.default_rng(3), len(quality), 4)).float()
    joint = Joint(
        Quality(torch.from_numpy(np.asarray(quality, np.float64))), (Term("pairwise", 1.0, Pairwise(x)),), 0.5
    )
    rows = torch.arange(len(quality)) if eligible is None else torch.tensor(eligible)
    ties = torch.randperm(len(quality), generator=torch.Generator().manual_seed(1))
    return Problem(joint, size, rows, ties, limits=limits)


def drawn(problem, temperature, seed=0):
    config = SelectionConfig.from_options(estimator="soft-quality", temperature=temperature, seed=seed)
    learner = SoftQuality(problem, config)
    state = learner.init()
    learner.check(state)
    assert learner.finished(state)
    return tuple(learner.result(state).nonzero().squeeze(1).tolist())


def subset_chances(quality, size, temperature, rows):
    """The chance of each subset, by every order in which it can be drawn (Plackett-Luce)."""
    z = (quality - quality.mean()) / quality.std()
    weight = dict(zip(rows, np.exp(z[rows] / temperature)))
    chances = {}
    for subset in itertools.combinations(rows, size):
        chances[subset] = 0.0
        for order in itertools.permutations(subset):
            chance, left = 1.0, sum(weight.values())
            for row in order:
                chance *= weight[row] / left
                left -= weight[row]
            chances[subset] += chance
    assert sum(chances.values()) == pytest.approx(1)
    return chances


def counted(problem, temperature):
    """How often each subset comes in so many seeds."""
    config = SelectionConfig.from_options(estimator="soft-quality", temperature=temperature)
    counts = Counter()
    for seed in range(DRAWS):
        mask = SoftQuality(problem, replace(config, seed=seed)).result(None)
        counts[tuple(mask.nonzero().squeeze(1).tolist())] += 1
    return counts


def misfit(counts, chances):
    """Chi-square of the subsets that came against these chances."""
    assert set(counts) <= set(chances)
    return float(sum((counts[s] - DRAWS * chance) ** 2 / (DRAWS * chance) for s, chance in chances.items()))


@pytest.mark.parametrize("temperature, rows", [(0.7, range(6)), (2.0, range(6)), (0.7, (0, 1, 3, 5))])
def test_every_subset_comes_as_often_as_by_enumeration(temperature, rows):
    quality = np.random.default_rng(2).normal(5, 3, size=6)
    problem = problem_of(quality, 2, list(rows))
    chances = subset_chances(quality, 2, temperature, list(rows))
    limit = stats.chi2(len(chances) - 1).isf(1e-4)
    counts = counted(problem, temperature)
    assert misfit(counts, chances) < limit
    # what these draws would not be mistaken for
    for other in (temperature / 2, temperature * 3):
        assert misfit(counts, subset_chances(quality, 2, other, list(rows))) > limit


def test_without_heat_it_is_top_quality_and_with_much_of_it_random():
    quality = np.random.default_rng(4).normal(size=200)
    problem = problem_of(quality, 50)
    best = tuple(sorted(np.argsort(-quality)[:50].tolist()))
    assert all(drawn(problem, cold, seed) == best for cold in (0.0, 1e-12, 1e-300) for seed in range(3))
    # in random subsets a row's quality says nothing: their means spread as those of 50 of 200 rows do
    means = np.array([quality[list(drawn(problem, 1e300, seed))].mean() for seed in range(300)])
    spread = quality.std(ddof=1) * np.sqrt((1 - 50 / 200) / 50)
    assert abs(means.mean() - quality.mean()) < 4 * spread / np.sqrt(300)
    assert means.std() == pytest.approx(spread, rel=0.15)
    mean_at = [np.mean([quality[list(drawn(problem, t, seed))].mean() for seed in range(50)]) for t in (0, 0.5, 2, 8)]
    assert (np.diff(mean_at) < 0).all()


def test_equal_scores_are_cut_by_the_hash_without_heat_and_drawn_evenly_with_it():
    problem = problem_of(np.full(8, 3.0), 2)
    assert set(drawn(problem, 0.0)) == set(problem.ties.argsort()[:2].tolist())
    even = dict.fromkeys(itertools.combinations(range(8), 2), 1 / 28)
    assert misfit(counted(problem, 2.0), even) < stats.chi2(27).isf(1e-4)


def test_the_unit_of_quality_changes_nothing_however_large():
    quality = np.random.default_rng(6).normal(size=40)
    subsets = {drawn(problem_of(scale * quality, 10), 2.0, 5) for scale in (1.0, 1e-300, 1e3, 1e290)}
    assert len(subsets) == 1
    z = standardised(torch.tensor([1e307, -1e307, 0.0, 5e306], dtype=torch.float64)).numpy()
    assert z.mean() == pytest.approx(0, abs=1e-12) and z.std() == pytest.approx(1)
    assert not standardised(torch.zeros(3)).any() and not standardised(torch.full((3,), 0.1)).any()


def test_the_seed_decides():
    problem = problem_of(np.random.default_rng(6).normal(size=60), 20)
    assert drawn(problem, 2.0, 3) == drawn(problem, 2.0, 3) != drawn(problem, 2.0, 4)


def test_a_budget_is_filled_in_the_order_of_drawing():
    rng = np.random.default_rng(7)
    lengths = rng.integers(1, 30, 40).astype(float)
    problem = problem_of(rng.normal(size=40), 10, limits=Limits(200.0, np.arange(40) == 11, lengths))
    for seed in range(5):
        members = drawn(problem, 1.0, seed)
        keys = SoftQuality(
            problem, SelectionConfig.from_options(estimator="soft-quality", temperature=1.0, seed=seed)
        ).scores()
        taken, left = {11}, 200 - lengths[11]
        for row in np.argsort(-keys.numpy()).tolist():
            if row != 11 and lengths[row] <= left:
                taken.add(row)
                left -= lengths[row]
        assert set(members) == taken


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf"), "2", True])
def test_other_temperatures_are_refused(temperature):
    with pytest.raises(OptionError, match="--temperature must be a number of at least 0"):
        SelectionConfig.from_options(estimator="soft-quality", temperature=temperature)


def test_only_soft_quality_has_a_temperature():
    assert SelectionConfig.from_options(estimator="soft-quality").temperature == 2.0
    for estimator in ("top-quality", None):
        with pytest.raises(OptionError, match="estimators that have it: soft-quality"):
            SelectionConfig.from_options(estimator=estimator, temperature=1.0)
