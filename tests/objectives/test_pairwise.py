"""Pair-wise similarity: the swap identity, and the edges of S."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.objectives.pairwise import Pairwise
from tests.reference import truth


def test_swap_identity(rng):
    """f(U - j + i) - f(U) = D_i - D_j + 2 x_i.x_j / (S (S - 1)), to float64 rounding of float32 features."""
    n, size = 50, 17
    x = torch.from_numpy(truth.unit_rows(rng, n, 6)).float()
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.from_numpy(rng.choice(n, size=size, replace=False))] = True
    function = Pairwise(x)
    d = function.final_marginals(mask)
    for j in mask.nonzero().squeeze(1).tolist()[:5]:
        for i in (~mask).nonzero().squeeze(1).tolist()[:5]:
            swapped = mask.clone()
            swapped[j], swapped[i] = False, True
            promised = float(d[i] - d[j]) + 2 * float(x[i].double() @ x[j].double()) / (size * (size - 1))
            # unit rows are unit to float32, and the identity uses |x|^2 = 1
            assert function.value(swapped) - function.value(mask) == pytest.approx(promised, abs=5e-9)


def test_one_member_has_no_pair():
    function = Pairwise(torch.eye(3))
    mask = torch.tensor([True, False, False])
    assert function.value(mask) == 0.0
    assert function.values(mask[None]).tolist() == [0.0]
    assert function.gains(mask).tolist() == [0.0, 0.0, 0.0]


def test_blind_to_copies_at_large_size(rng):
    """The objective hardly tells a copy of a member from a fresh sample: said in its docstring, held here."""
    x = rng.normal(size=(2000, 32))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x[1] = x[0]
    function = Pairwise(torch.from_numpy(x).float())
    with_copy = torch.zeros(2000, dtype=torch.bool)
    with_copy[:1000] = True
    without = with_copy.clone()
    without[1], without[1500] = False, True
    assert abs(function.value(with_copy) - function.value(without)) < 1e-4
