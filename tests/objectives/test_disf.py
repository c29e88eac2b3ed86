"""DiSF: dead and flat dimensions, and how good the first-order marginals are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.objectives.disf import DiSF
from tests.reference import truth


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_dead_dimensions_correlate_with_nothing(rng):
    x = rng.normal(size=(300, 6))
    x[:, 2] = 0.3  # constant before normalising: nearly so after
    x[:, 4] = 0.0  # dead
    function = DiSF.bind(torch.from_numpy(x).float())
    members = rng.choice(300, size=120, replace=False)
    mask = torch.zeros(300, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    assert function.value(mask) == pytest.approx(truth.disf(x, members), rel=1e-5)
    assert bool(torch.isfinite(function.marginals(mask[None])).all())
    assert bool(torch.isfinite(function.gains(mask)).all())


def test_a_dimension_flat_on_the_subset_counts_as_uncorrelated(rng):
    x = rng.normal(size=(80, 4))
    x[:40, 1] = 0.7
    function = DiSF.bind(torch.from_numpy(x).float())
    mask = torch.arange(80) < 40
    assert function.value(mask) == pytest.approx(truth.disf(x, range(40)), rel=1e-4)


def test_dead_features_everywhere_give_zero():
    function = DiSF.bind(torch.ones(10, 3))
    mask = torch.arange(10) < 4
    assert function.value(mask) == 0.0
    assert function.marginals(mask[None]).abs().max() == 0.0


def test_first_order_marginals_follow_exact_swaps_for_large_subsets(rng):
    n, d, size = 900, 6, 400
    x = unit(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)))
    function = DiSF.bind(torch.from_numpy(x).float())
    members = rng.choice(n, size=size, replace=False)
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    m = function.marginals(mask[None]).numpy()
    gains = function.gains(mask).numpy()
    outside = ~mask.numpy()
    # frozen-size marginals and exact gains differ by a constant to first order, so they rank alike
    assert np.corrcoef(m[outside], gains[outside])[0, 1] > 0.999
