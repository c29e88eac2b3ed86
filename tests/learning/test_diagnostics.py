"""Diagnostics of a step against numpy, and of real learners on a small problem."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.learning import diagnostics
from datamask.learning.masks import gumbel_top_k
from tests.learning.test_learner import make


def test_shares_of_the_variance_are_covariances_with_the_sum():
    rng = np.random.default_rng(0)
    parts = {name: rng.normal(scale=scale, size=64) for name, scale in (("quality", 1.0), ("a", 2.0), ("b", 0.5))}
    parts["b"] -= 0.4 * parts["a"]
    total = sum(parts.values())
    found = diagnostics.variance_shares({name: torch.from_numpy(part).float() + 7 for name, part in parts.items()})
    covariance = np.cov(np.stack([*parts.values(), total]))
    expected = covariance[:3, 3] / covariance[3, 3]
    assert list(found) == ["share_quality", "share_a", "share_b"]
    assert list(found.values()) == pytest.approx(expected.tolist(), abs=1e-5)
    assert sum(found.values()) == pytest.approx(1)
    # own variance, and half of twice each covariance
    split = [covariance[k, k] + sum(covariance[k, j] for j in range(3) if j != k) for k in range(3)]
    assert list(found.values()) == pytest.approx((np.array(split) / np.array(split).sum()).tolist(), abs=1e-5)


def test_what_does_not_vary_has_no_shares():
    assert diagnostics.variance_shares({"quality": torch.full((8,), 0.1), "b": torch.full((8,), 3.0)}) == {}
    assert diagnostics.variance_shares({}) == {}
    assert diagnostics.variance_shares({"quality": torch.arange(4.0)}) == {"share_quality": 1.0}


def test_flat_groups():
    assert diagnostics.flat(torch.full((16,), 0.1)) == 1.0 and diagnostics.flat(torch.tensor([0.1, 0.2])) == 0.0


def test_signal_to_noise_tells_signal_from_noise():
    generator = torch.Generator().manual_seed(2)
    masks = gumbel_top_k(torch.zeros(20), 6, 4096, generator)
    q = torch.randn(20, generator=generator)
    assert diagnostics.signal_to_noise(diagnostics.halves(masks, masks.float() @ q))["snr"] > 3
    assert diagnostics.signal_to_noise(diagnostics.halves(masks, torch.randn(4096, generator=generator)))["snr"] < 1
    assert diagnostics.signal_to_noise(diagnostics.halves(masks[:3], q[:3])) == {}


@pytest.mark.parametrize("true", [0.0, 0.5, 3.0])
def test_agreement_is_the_squared_ratio_in_the_mean(true):
    """A known signal under known noise: over many pairs the signed square comes out right, below the noise too."""
    generator = torch.Generator().manual_seed(0)
    n = 400
    signal = torch.full((n,), true)
    found = [
        diagnostics.agreement(*(signal + torch.randn(n, generator=generator) for _ in range(2))) for _ in range(200)
    ]
    assert np.mean(found) == pytest.approx(true**2, abs=0.05 * max(true**2, 0.3))


def test_overlap_is_jaccard():
    a, b = torch.tensor([1, 1, 0, 0]).bool(), torch.tensor([1, 0, 1, 0]).bool()
    assert diagnostics.overlap(a, b) == pytest.approx(1 / 3) and diagnostics.overlap(a, a) == 1.0


@pytest.mark.parametrize("estimator", ["reinforce", "counterfactual"])
def test_learners_record_their_diagnostics(estimator):
    learner = make(estimator, n_epochs=6, partial=1.0)
    state, told = learner.init(), []
    while learner.finished(state) is None:
        state, record = learner.step(state)
        told.append(record.metrics)
    for metrics in told[1:]:
        assert metrics["share_quality"] + metrics["share_facility"] == pytest.approx(1.0)
        assert metrics["batch_joint_std"] > 0 and 0 <= metrics["decided"] <= 1 and "changed" in metrics
        assert metrics["snr"] == pytest.approx(max(metrics["signal"], 0.0) ** 0.5)
    if estimator == "reinforce":
        assert all(metrics["flat"] == 0.0 for metrics in told)
    else:
        assert "snr" not in told[0], "one step has no other to agree with"
        assert np.median([metrics["snr"] for metrics in told[1:]]) > 1


def test_the_reward_of_the_paper_is_the_masks_value():
    """Shares over the G masks, from values recomputed mask by mask."""
    learner = make("reinforce", n_epochs=1, n_rollout=32, partial=1.0, lamb=0.3)
    masks = gumbel_top_k(torch.zeros(300), 60, 32, torch.Generator().manual_seed(1))
    _, metrics = learner.direction(learner.problem.joint, masks, slice(None), lambda: None)
    values = [learner.problem.joint.evaluate(mask) for mask in masks]
    quality, diversity = (
        w * np.array([getattr(v, name) for v in values]) for w, name in ((0.3, "quality"), (0.7, "diversity"))
    )
    expected = np.cov(quality, quality + diversity)[0, 1] / (quality + diversity).var(ddof=1)
    assert metrics["share_quality"] == pytest.approx(expected, abs=1e-3)
