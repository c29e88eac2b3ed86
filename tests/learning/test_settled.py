"""What is settled by proof, against all subsets: rows of every selection as good as the one at hand, and of none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask import select
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.learning.newton import QuadraticDual
from datamask.learning.settled import settled_by_pairwise
from tests.learning.test_newton import make


def masked(n: int, members) -> torch.Tensor:
    mask = torch.zeros(n, dtype=torch.bool)
    mask[list(members)] = True
    return mask


@pytest.mark.parametrize("seed", range(25))
def test_of_few_rows_nothing_is_settled_that_some_subset_as_good_contradicts(seed):
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(6, 11)), int(rng.integers(2, 5))
    eligible = np.sort(rng.choice(n, size=n - int(rng.integers(0, 2)), replace=False))
    problem, f = make(rng, n, 3, size, rng.choice([0.0, 0.3, 0.8, 1.0]), eligible)
    subsets = sorted(itertools.combinations(eligible.tolist(), size), key=f, reverse=True)
    for place in (0, 1, len(subsets) // 4):  # the best, and selections that others surpass
        value = problem.joint.evaluate(masked(n, subsets[place])).joint
        assert value == pytest.approx(f(subsets[place]), abs=1e-6)  # features were rounded to float32
        settled = settled_by_pairwise(problem, masked(n, subsets[place]), value)
        as_good = [set(other) for other in subsets[: place + 1]]
        assert set(np.flatnonzero(settled.inside)) <= set.intersection(*as_good)
        assert not set(np.flatnonzero(settled.outside)) & set.union(*as_good)
        assert not settled.outside[np.setdiff1d(np.arange(n), eligible)].any()
        assert settled.inside.sum() + settled.outside.sum() + settled.open == len(eligible)
        assert settled.upper_bound >= f(subsets[0]) - 1e-6


@pytest.mark.parametrize("lamb", [0.1, 0.5, 0.9])
def test_of_many_rows_most_are_settled_and_the_bound_is_tighter_than_newtons(lamb):
    problem, _ = make(np.random.default_rng(3), 3000, 8, 600, lamb)
    solution = QuadraticDual(problem).solve()
    value = problem.joint.evaluate(solution.mask).joint
    settled = settled_by_pairwise(problem, solution.mask, value)
    assert value <= settled.upper_bound <= solution.upper_bound + 1e-12
    assert settled.open < 0.05 * 3000
    assert not settled.inside[~solution.mask.numpy()].any() and not settled.outside[solution.mask.numpy()].any()


def test_quality_alone_settles_all_but_the_rows_that_tie_for_the_last_place():
    rng = np.random.default_rng(0)
    problem, _ = make(rng, 8, 3, 3, 1.0)
    problem.joint.quality.scores[:] = torch.tensor([9.0, 8.0, 5.0, 5.0, 5.0, 3.0, 2.0, 1.0])
    mask = masked(8, (0, 1, 3))
    settled = settled_by_pairwise(problem, mask, problem.joint.evaluate(mask).joint)
    assert np.flatnonzero(settled.inside).tolist() == [0, 1]
    assert np.flatnonzero(settled.outside).tolist() == [5, 6, 7] and settled.open == 3


def test_of_copies_none_is_settled_beside_the_other():
    rng = np.random.default_rng(1)
    problem, _ = make(rng, 12, 4, 5, 0.0)
    function = problem.joint.terms[0].function
    function.features[6:] = function.features[:6]
    mask = QuadraticDual(problem).solve().mask
    settled = settled_by_pairwise(problem, mask, problem.joint.evaluate(mask).joint)
    lonely = mask.numpy()[:6] != mask.numpy()[6:]  # of two copies one is selected: the other would do as well
    assert lonely.any()
    assert not (settled.inside | settled.outside).reshape(2, 6)[:, lonely].any()


def test_a_summary_counts_them_and_what_cannot_tell_says_nothing(here):
    corpus = open_corpus(CorpusConfig(("in.parquet",)))
    options = {"select_ratio": 0.3, "device": "cpu"}
    by_pairs = select(corpus, objective="pairwise", **options)
    counts = by_pairs.summary["settled"]
    assert sum(counts.values()) == len(corpus) and 0 < counts["inside"] <= len(by_pairs.ids)
    column = by_pairs.rows_table()["settled"].to_pylist()
    assert column.count(True) == counts["inside"] and column.count(False) == counts["outside"]
    assert all(selected for selected, settled in zip(by_pairs.mask, column) if settled)
    by_chance = select(corpus, objective="pairwise", estimator="random", **options)
    assert by_chance.summary["settled"] is None  # so far below the bound that nothing can be
    by_facility = select(corpus, objective="facility", **options)
    assert by_facility.summary["settled"] is None
    assert set(by_facility.rows_table()["settled"].to_pylist()) == {None}
