"""Steps against enumeration: every mask of a small problem, its exact probability, finite differences of E f."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.learning.estimators import advantage, counterfactual_step, reinforce_step
from datamask.learning.masks import gumbel_top_k
from datamask.objectives.facility import Facility, exact_lists
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.quality import Quality
from tests.reference import truth

N, SIZE = 8, 3


def problem(name: str, seed: int, size: int = SIZE):
    """Features, the value of every mask, and the bound function (or quality) of a small problem."""
    rng = np.random.default_rng(seed)
    x = truth.unit_rows(rng, N, 4)
    features = torch.from_numpy(x).float()
    law = truth.plackett_luce(np.zeros(N), size)
    if name == "quality":
        q = rng.normal(size=N)
        return {m: float(q[list(m)].mean()) for m in law}, Quality(torch.from_numpy(q))
    function = Pairwise(features) if name == "pairwise" else Facility(features, *exact_lists(features, N))
    return {m: truth.OBJECTIVES[name](x, m) for m in law}, function


def indicator(mask) -> np.ndarray:
    out = np.zeros(N)
    out[list(mask)] = 1.0
    return out


def mean_marginal(function, law) -> np.ndarray:
    return sum(
        p * function.marginals(torch.from_numpy(indicator(m) > 0)[None]).double().numpy() for m, p in law.items()
    )


def test_step_is_the_papers_formula():
    masks = torch.tensor([[1, 1, 0], [0, 1, 1], [1, 0, 1]]).bool()
    values = torch.tensor([1.0, 2.0, 6.0])
    a = (values - 3.0) / values.std()
    expected = torch.stack([a[0] + a[2], a[0] + a[1], a[1] + a[2]]) / 3
    assert torch.allclose(reinforce_step(masks, values), expected)


def test_equal_values_give_no_step():
    masks = gumbel_top_k(torch.zeros(9), 4, 16, torch.Generator().manual_seed(0))
    # 0.1 in float32 sixteen times: the computed spread is rounding, not signal
    assert reinforce_step(masks, torch.full((16,), 0.1)).abs().max() == 0.0
    assert advantage(torch.full((4,), 1e8)).abs().max() == 0.0


def test_mean_step_is_the_covariance():
    """The unnormalised step's mean over many groups is (G - 1)/G Cov(f, M), and its cosine is that of the gradient."""
    f, _ = problem("facility", 0)
    logits = np.linspace(-1, 1, N)
    law = truth.plackett_luce(logits, SIZE)
    mean_f = sum(p * f[m] for m, p in law.items())
    covariance = sum(p * (f[m] - mean_f) * indicator(m) for m, p in law.items())
    groups, g = 4000, 8
    masks = gumbel_top_k(torch.from_numpy(logits).float(), SIZE, groups * g, torch.Generator().manual_seed(5))
    values = torch.tensor([f[tuple(row.nonzero().squeeze(1).tolist())] for row in masks])
    total = torch.zeros(N)
    for k in range(groups):
        part = slice(k * g, (k + 1) * g)
        total += reinforce_step(masks[part], values[part]) * values[part].std()
    expected = covariance * (g - 1) / g
    # advantage divides by the group's own spread, taken out again above
    error = np.abs(total.numpy() / groups - expected).max()
    assert error < 0.03 * np.abs(expected).max() + 4 * np.std(list(f.values())) / np.sqrt(groups * g)


@pytest.mark.parametrize("name", ["quality", "pairwise", "facility"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_mean_reinforce_step_points_along_the_gradient(name, spread):
    f, _ = problem(name, 1)
    logits = np.random.default_rng(7).normal(size=N) * spread
    law = truth.plackett_luce(logits, SIZE)
    mean_f = sum(p * f[m] for m, p in law.items())
    step = sum(p * (f[m] - mean_f) * indicator(m) for m, p in law.items())
    assert truth.cosine(step, truth.gradient(logits, SIZE, f)) >= 0.97


@pytest.mark.parametrize("name", ["quality", "pairwise", "facility"])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_counterfactual_credit_weighted_by_its_variance_follows_the_gradient(name, spread):
    """In the median over problems: a single one of 8 samples, where S is fixed and small, can go down to 0.75."""
    cosines = []
    for seed in range(9):
        f, function = problem(name, seed, size=4)
        logits = np.random.default_rng(seed + 50).normal(size=N) * spread
        law = truth.plackett_luce(logits, 4)
        pi = sum(p * indicator(m) for m, p in law.items())
        credit = mean_marginal(function, law)
        credit -= (pi * (1 - pi)) @ credit / (pi * (1 - pi)).sum()  # only differences matter: S is fixed
        cosines.append(truth.cosine(pi * (1 - pi) * credit, truth.gradient(logits, 4, f)))
    assert np.median(cosines) >= 0.95


@pytest.mark.parametrize("name", ["quality", "pairwise", "facility"])
def test_counterfactual_credit_at_equal_logits_is_the_gradient_direction(name):
    f, function = problem(name, 3)
    law = truth.plackett_luce(np.zeros(N), SIZE)
    cosine = truth.cosine(mean_marginal(function, law), truth.gradient(np.zeros(N), SIZE, f))
    # frozen-size marginals of facility are add / remove differences: exact up to the sizes S and S + 1 differing
    assert cosine >= (0.999 if name != "facility" else 0.99)


def test_counterfactual_step_has_unit_spread():
    step = counterfactual_step(torch.tensor([1.0, 2.0, 3.0, 10.0]))
    assert float(step.mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(step.std()) == pytest.approx(1.0)
    assert counterfactual_step(torch.ones(5)).abs().max() == 0.0


def test_one_steps_cosine_shrinks_with_the_number_of_samples():
    """method fact: at equal logits one REINFORCE step's cosine with the gradient is about sqrt(G / (N + G))."""
    generator = torch.Generator().manual_seed(0)
    for n, g in ((500, 128), (4000, 128)):
        q = torch.randn(n, generator=generator)
        cosines = []
        for _ in range(30):
            masks = gumbel_top_k(torch.zeros(n), n // 5, g, generator)
            step = reinforce_step(masks, masks.float() @ q)
            cosines.append(truth.cosine(step.numpy(), q.numpy()))
        assert np.mean(cosines) == pytest.approx((g / (n + g)) ** 0.5, rel=0.15)
