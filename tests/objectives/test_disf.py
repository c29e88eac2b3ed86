"""DiSF: dead and flat dimensions, and how good the first-order marginals are."""

from __future__ import annotations

import weakref
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from datamask import objectives
from datamask.errors import Stopped
from datamask.objectives import disf
from datamask.objectives.disf import DiSF
from datamask.objectives.disf_fixed import Crowding
from datamask.objectives.forms import add_products, form
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


def test_small_subsets_use_exact_differences(rng):
    """Below 20 members per dimension first order is far off, so the steps get the exact differences instead."""
    n, d, size = 200, 12, 30
    function = DiSF.bind(torch.from_numpy(unit(rng.normal(size=(n, d)))).float())
    mask = torch.zeros(n, dtype=torch.bool)
    mask[torch.from_numpy(rng.choice(n, size=size, replace=False))] = True
    assert torch.allclose(function.marginals(mask[None]).double(), function.gains(mask), rtol=1e-3, atol=1e-7)


def test_few_members_rows_tell_what_their_correlations_do(rng):
    n, d, size = 120, 600, 60
    features = rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.6
    features[:, 7] = 0.1  # dead
    function = DiSF.bind(torch.from_numpy(unit(features @ np.linalg.qr(rng.normal(size=(d, d)))[0])).float())
    mask = torch.from_numpy(rng.permutation(n) < size)
    rows, e = function.y[mask].double(), torch.from_numpy(rng.normal(size=(3, d)))
    exact, few = disf.Correlations(rows.sum(0), rows.T @ rows, size), disf.FewCorrelations(rows)
    sums = exact.sums()
    assert torch.allclose(few.own, exact.own) and torch.allclose(few.sums(), sums) and function.few(size)
    assert torch.allclose(few.times(e), exact.times(e)) and torch.allclose(few.scale, exact.scale)
    assert torch.allclose(few.squared(e + 2.0, sums), exact.squared(e + 2.0, sums), rtol=0.02)
    # what steps take for exact differences ranks rows as those do
    steps, gains = function.marginals(mask[None]).double(), function.gains(mask)
    for part in (mask, ~mask):
        assert np.corrcoef(steps[part], gains[part])[0, 1] > 0.9999
    assert function.values(mask[None])[0] == pytest.approx(function.value(mask), rel=1e-5)


def test_one_and_two_members_are_finite():
    function = DiSF.bind(torch.randn(12, 3, generator=torch.Generator().manual_seed(0)))
    for size in (1, 2):
        mask = torch.arange(12) < size
        assert bool(torch.isfinite(function.values(mask[None])).all())
        assert bool(torch.isfinite(function.gains(mask)).all())


class Peak(TorchDispatchMode):
    """Counts the bytes of the tensors that are alive at once, of those made inside."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.now, self.most = Counter(), 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                self._taken(storage.data_ptr(), storage.nbytes())
                weakref.finalize(tensor, self._left, storage.data_ptr(), storage.nbytes())
        return out

    def _taken(self, place: int, size: int) -> None:
        self.now += size if not self.users[place] else 0
        self.users[place] += 1
        self.most = max(self.most, self.now)

    def _left(self, place: int, size: int) -> None:
        self.users[place] -= 1
        self.now -= size if not self.users[place] else 0


@pytest.mark.parametrize(("name", "n"), [("disf", 30), ("disf_fixed", 30), ("disf_fixed", 200)])
def test_the_memory_it_speaks_of_is_what_gains_and_values_take(name, n, rng):
    d = 160
    objective = objectives.load(name)
    features = torch.from_numpy(truth.unit_rows(rng, n, d)).float()
    with Peak() as peak:
        function = objective.bind(features)
        # few members' values need no second moments
        (function.gains if n < d else function.value)(torch.arange(n) < 9)
    needed = objective.working_bytes(n, d)
    assert needed <= 1.05 * peak.most and peak.most < 1.5 * needed
    assert objective.working_bytes(100_000, 100_000) > 100 * 2**30


@pytest.mark.parametrize("name", ["disf", "disf_fixed"])
def test_binding_stops_when_polled_and_gives_what_bind_gives(name, rng):
    objective = objectives.load(name)
    features = torch.from_numpy(truth.unit_rows(rng, 40, 5)).float()
    asked = []
    polled = objective.bind_polled(features, None, True, lambda: asked.append(1))
    assert len(asked) == 3 and torch.equal(polled.y, objective.bind(features).y)

    def stop():
        raise Stopped("now")

    with pytest.raises(Stopped):
        objective.bind_polled(features, None, True, stop)


@pytest.mark.parametrize("d", [12, 24, 25, 60])
def test_fewer_rows_than_dimensions_have_the_values_of_their_moments(d, rng):
    n, size = 24, 11
    features = torch.from_numpy(rng.normal(size=(n, d))).float()
    weights = torch.from_numpy(rng.uniform(size=n))
    mask = torch.from_numpy(rng.permutation(n) < size)
    fixed, own = objectives.load("disf_fixed").bind(features), objectives.load("disf").bind(features)
    y = fixed.y.double().numpy()

    def off_diagonal(moment):
        return moment - np.diag(np.diag(moment))

    moment = off_diagonal((y.T * weights.numpy()) @ y)
    value, gradient = fixed.concave(weights, size)
    assert value * size * size * fixed.pairs == pytest.approx(-np.square(moment).sum(), rel=1e-9)
    assert gradient.numpy() * size * size * fixed.pairs == pytest.approx(-2 * ((y @ moment) * y).sum(1), rel=1e-9)
    correlation = off_diagonal(np.corrcoef(y[mask.numpy()].T))
    assert own.value(mask) == pytest.approx(-np.square(correlation).sum() / own.pairs, rel=1e-9)
    # swaps follow as well as sums anew
    members, swapped = Crowding(fixed, mask, torch.float64), mask.clone()
    leaving, coming = mask.nonzero().squeeze(1)[:3], (~mask).nonzero().squeeze(1)[:3]
    swapped[leaving], swapped[coming] = False, True
    members.swap(leaving, coming)
    after = Crowding(fixed, swapped, torch.float64).of()
    assert members.of().numpy() == pytest.approx(after.numpy(), rel=1e-4)


@pytest.mark.parametrize("name", ["disf", "disf_fixed"])
def test_rows_that_are_standardised_as_they_are_asked_for_change_no_value(name, rng, monkeypatch):
    objective, mask = objectives.load(name), torch.arange(200) % 5 == 0
    features = torch.from_numpy(truth.unit_rows(rng, 200, 9)).float()
    held = objective.bind(features)
    monkeypatch.setattr(disf, "HELD_BYTES", 0)
    made = objective.bind(features)
    assert isinstance(made.y, disf.Standardised)
    for of in (lambda f: f.values(mask[None]), lambda f: f.marginals(mask[None]), lambda f: f.final_marginals(mask)):
        assert torch.equal(of(made), of(held))
    assert made.value(mask) == held.value(mask) and torch.equal(made.gains(mask), held.gains(mask))


@pytest.mark.parametrize("d", [30, 300])
def test_few_changed_weights_bend_the_gradient_as_computing_it_anew_does(d, rng):
    n, size = 700, 200
    fixed = objectives.load("disf_fixed").bind(torch.from_numpy(rng.normal(size=(n, d))).float())
    before = torch.from_numpy(rng.uniform(size=n))
    rows = torch.from_numpy(rng.choice(n, d // 2, replace=False))
    after = before.clone()
    after[rows] = torch.from_numpy(rng.uniform(size=len(rows)))
    bent = fixed.bend(rows, (after - before)[rows], size)
    gradients = [fixed.concave(weights, size)[1] for weights in (before, after)]
    expected = (gradients[1] - gradients[0]).numpy()
    assert bent.numpy() == pytest.approx(expected, abs=1e-5 * np.abs(expected).max())
    assert fixed.bend(torch.arange(d // 2 + 1), torch.ones(d // 2 + 1), size) is None


def test_forms_and_sums_of_wide_rows_are_those_of_numpy(rng):
    rows, matrix = rng.normal(size=(900, 700)), rng.normal(size=(700, 700))
    matrix += matrix.T
    wide = torch.from_numpy(rows)
    assert form(wide, torch.from_numpy(matrix)).numpy() == pytest.approx(((rows @ matrix) * rows).sum(1))
    for weights in (None, rng.uniform(size=900)):
        second, given = torch.zeros(700, 700, dtype=torch.float64), None if weights is None else torch.tensor(weights)
        total = add_products(second, wide.float() + 5.0, given)
        whole, weighted = rows + 5.0, np.ones(900) if weights is None else weights
        assert total.numpy() == pytest.approx(weighted @ whole, rel=1e-6)
        expected = (whole.T * weighted) @ whole
        assert second.numpy() == pytest.approx(expected, abs=1e-6 * expected.max())


def test_values_of_many_members_are_those_of_numpy(rng):
    features = torch.from_numpy(rng.normal(size=(5000, 20)) @ rng.normal(size=(20, 20))).float()
    fixed, mask = objectives.load("disf_fixed").bind(features), torch.from_numpy(rng.permutation(5000) < 2500)
    y = fixed.y[mask].double().numpy()
    moment = y.T @ y
    expected = -(np.square(moment).sum() - np.square(np.diag(moment)).sum()) / 2500**2 / fixed.pairs
    assert fixed.value(mask) == pytest.approx(expected, rel=1e-6)
    weights = mask.double() * 0.9
    value, gradient = fixed.concave(weights, 2500)
    assert value == pytest.approx(0.81 * expected, rel=1e-9)
    assert float(gradient @ weights) == pytest.approx(2 * value, rel=1e-6)
