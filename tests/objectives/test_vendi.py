"""Vendi: entropy of the members' spectrum, its exact changes, and bounds that are never below the best subset."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask.learning.certificates import certify
from datamask.learning.problem import Problem
from datamask.learning.relaxation import upper_bound
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.objectives.vendi import Vendi
from tests.reference import truth


def small_features(rng: np.random.Generator) -> torch.Tensor:
    """At most twelve rows, many of them copies of others, some to rounding."""
    n, d = int(rng.integers(3, 13)), int(rng.integers(1, 9))
    x = rng.normal(size=(n, d)) + rng.choice([0.0, 0.5, 30.0])
    if rng.random() < 0.6:
        x = x[rng.integers(0, max(1, n // 2), n)]
    if rng.random() < 0.5:
        x = x + rng.normal(size=x.shape) * 10.0 ** rng.integers(-7, -1)
    return torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True)).float()


def exact_rows(features: torch.Tensor) -> np.ndarray:
    x = features.double().numpy()
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(5))
def test_no_bound_is_below_the_best_subset(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        features = small_features(rng)
        n = len(features)
        size, lamb = int(rng.integers(1, n)), float(rng.choice([0.0, 0.1, 0.5, 0.9]))
        quality = rng.normal(size=n)
        subsets = [list(members) for members in itertools.combinations(range(n), size)]
        values = np.array([truth.vendi(exact_rows(features), members) for members in subsets])
        spread = values.max() - values.mean()
        scale = Scale(values.mean(), 1 / spread if spread > max(1e-9 * values.max(), 1e-13) else 1.0)
        joint = Joint(Quality(torch.from_numpy(quality)), (Term("vendi", 1.0, Vendi.bind(features), scale),), lamb)
        problem = Problem(joint, size, torch.arange(n), torch.arange(n) / n)
        best = max(lamb * quality[m].mean() + (1 - lamb) * scale(v) for m, v in zip(subsets, values))
        mask = torch.zeros(n, dtype=torch.bool)
        mask[subsets[int(rng.integers(len(subsets)))]] = True
        any_weights = torch.from_numpy(rng.dirichlet(np.ones(n)) * size)
        bounds = [upper_bound(problem, weights) for weights in (mask.double(), any_weights)]
        proof = certify(problem, mask, joint.evaluate(mask).joint)
        assert proof is not None and proof.holds_for == "exact"
        assert min(*bounds, proof.upper_bound) >= best - 1e-9 * max(1.0, abs(best))


def test_it_is_the_logarithm_of_the_score_and_of_both_spectra(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 300, 40)).float()
    mask = torch.zeros(300, dtype=torch.bool)
    mask[:90] = True
    x = exact_rows(features)[:90]
    for matrix in (x.T @ x / 90, x @ x.T / 90):
        shares = np.linalg.eigvalsh(matrix)
        shares = shares[shares > 1e-14]
        assert Vendi.bind(features).value(mask) == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12)


@pytest.mark.parametrize("size", [1, 3, 40])
def test_changes_are_exact_whatever_the_members_span(rng, size):
    """Fewer members than dimensions too, where the slope at an eigenvalue of 0 is infinite."""
    features = torch.from_numpy(truth.unit_rows(rng, 60, 8)).float()
    x, mask = exact_rows(features), torch.arange(60) < size

    def extended(moment: np.ndarray) -> float:
        shares = np.linalg.eigvalsh(moment)
        shares = shares[shares > 1e-14]
        return float((shares - shares * np.log(shares)).sum()) - 1.0

    moment = x[:size].T @ x[:size] / size
    expected = [
        (1 if i >= size else -1)
        * (extended(moment + (1 if i >= size else -1) * np.outer(x[i], x[i]) / size) - extended(moment))
        for i in range(60)
    ]
    assert Vendi.bind(features).final_marginals(mask).numpy() == pytest.approx(expected, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("size", [2, 5, 30])
def test_single_swaps_are_exact_whatever_the_members_span(rng, size):
    function = Vendi.bind(torch.from_numpy(truth.unit_rows(rng, 40, 8)).float())
    x, mask = exact_rows(function.features), torch.arange(40) < size
    marginals = function.final_marginals(mask)
    inside, outside = torch.arange(size), torch.arange(size, 40)
    promised = marginals[outside, None] - marginals[inside] + function.interaction_at(mask, inside, outside, size)
    here = truth.vendi(x, range(size))
    expected = [[truth.vendi(x, [*(set(range(size)) - {j}), i]) - here for j in range(size)] for i in range(size, 40)]
    assert promised.numpy() == pytest.approx(np.array(expected), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kind", ["one member", "copies", "opposite"])
def test_it_is_exactly_zero_along_one_line(rng, kind):
    x = truth.unit_rows(rng, 9, 5)
    if kind != "one member":
        x = x[:1] * (np.ones(9) if kind == "copies" else np.array([1, -1, 1, 1, -1, 1, -1, -1, 1]))[:, None]
    features = torch.from_numpy(x).float()
    for member in range(5):
        mask = torch.arange(9) == member
        if kind != "one member":
            mask[:4] = True
        assert Vendi.bind(features).value(mask) == 0.0


def test_a_budget_met_exactly_leaves_the_entropy_of_the_tokens(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 30, 4)).float()
    lengths = rng.integers(1, 9, 30).astype(float)
    function = Vendi.bind(features).budgeted(torch.from_numpy(lengths), float(lengths[:10].sum()))
    x = exact_rows(features)[:10]
    shares = np.linalg.eigvalsh((x * (lengths[:10] / lengths[:10].sum())[:, None]).T @ x)
    assert function.value(torch.arange(30) < 10) == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-12)
