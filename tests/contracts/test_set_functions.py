"""Every objective of the catalogue keeps the contract of `SetFunction`, measured against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import catalogue, objectives
from datamask.errors import Stopped
from datamask.objectives.facility import exact_lists
from tests.reference import truth

NAMES = [entry.name for entry in catalogue.OBJECTIVES]
N, D, S, G = 60, 5, 21, 4


def bind(name: str, x: np.ndarray, device="cpu", k: int | None = None):
    features = torch.from_numpy(x).float().to(device)
    lists = exact_lists(features, k or len(x)) if catalogue.objective(name).needs_neighbors else None
    return objectives.load(name).bind(features, lists)


def mask_of(members, n: int, device="cpu") -> torch.Tensor:
    mask = torch.zeros(n, dtype=torch.bool, device=device)
    mask[list(members)] = True
    return mask


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def pool(rng):
    return truth.unit_rows(rng, N, D)


@pytest.fixture
def subsets(rng):
    return [rng.choice(N, size=S, replace=False) for _ in range(G)]


def test_reference_covers_the_catalogue():
    assert set(truth.OBJECTIVES) == set(NAMES)


def test_value_is_the_definition(name, pool, subsets, device):
    function = bind(name, pool, device)
    for members in subsets:
        assert function.value(mask_of(members, N, device)) == pytest.approx(truth.OBJECTIVES[name](pool, members),
                                                                            rel=1e-5)


def test_step_values_agree_with_exact_values(name, pool, subsets, device):
    function = bind(name, pool, device)
    masks = torch.stack([mask_of(members, N, device) for members in subsets])
    exact = [function.value(mask) for mask in masks]
    assert function.values(masks).cpu().numpy() == pytest.approx(exact, rel=1e-4)


def test_gains_are_exact_differences(name, pool, subsets, device):
    function, f = bind(name, pool, device), truth.OBJECTIVES[name]
    members = list(subsets[0])
    gains = function.gains(mask_of(members, N, device)).cpu().numpy()
    here = f(pool, members)
    expected = [here - f(pool, [m for m in members if m != i]) if i in members else f(pool, [*members, i]) - here
                for i in range(N)]
    assert gains == pytest.approx(expected, rel=2e-4, abs=2e-7)


def test_marginals_average_over_masks(name, pool, subsets):
    function = bind(name, pool)
    masks = torch.stack([mask_of(members, N) for members in subsets])
    alone = torch.stack([function.marginals(mask[None]) for mask in masks])
    assert torch.allclose(function.marginals(masks), alone.mean(0), rtol=1e-4, atol=1e-7)


def test_final_marginals_are_the_steps_marginals_when_lists_are_whole(name, pool, subsets):
    function = bind(name, pool)
    mask = mask_of(subsets[0], N)
    assert torch.allclose(function.final_marginals(mask).float(), function.marginals(mask[None]), rtol=1e-3, atol=1e-7)


def test_marginals_rank_swaps(name, pool, rng):
    """What the marginals promise of a swap is what the swap does, up to first order."""
    n, size = 400, 200
    pool = truth.unit_rows(rng, n, 4)
    function, f = bind(name, pool), truth.OBJECTIVES[name]
    members = list(rng.choice(n, size=size, replace=False))
    m = function.marginals(mask_of(members, n)[None]).numpy()
    outside = [i for i in range(n) if i not in set(members)]
    here = f(pool, members)
    promised, done = [], []
    for _ in range(60):
        j, i = rng.choice(members), rng.choice(outside)
        promised.append(m[i] - m[j])
        done.append(f(pool, [*(k for k in members if k != j), i]) - here)
    assert np.corrcoef(promised, done)[0, 1] > 0.98


def test_a_batch_is_the_objective_on_its_rows_alone(name, pool, rng):
    rows = np.sort(rng.choice(N, size=30, replace=False))
    members = rng.choice(30, size=12, replace=False)
    part = bind(name, pool).batch(torch.from_numpy(rows), 12)
    if name == "disf_fixed":  # its mean and scale are the corpus's, in a batch too
        expected = truth.disf_fixed(pool, rows[members])
    else:
        expected = truth.OBJECTIVES[name](pool[rows], members)
    assert part.n == 30
    # batches of disf keep the pool's standardisation, which changes no correlation
    assert float(part.values(mask_of(members, 30)[None])[0]) == pytest.approx(expected, rel=1e-4)


def test_random_value_is_the_mean_over_subsets(name, rng):
    pool = truth.unit_rows(rng, 40, 4)
    function = bind(name, pool)
    draws = [truth.OBJECTIVES[name](pool, rng.choice(40, size=15, replace=False)) for _ in range(3000)]
    value = function.random_value(15, torch.Generator().manual_seed(0))
    # 32 draws where there is no closed form: within four standard errors of their mean
    assert abs(value - np.mean(draws)) < 4 * np.std(draws) * (1 / 32 + 1 / 3000) ** 0.5


def test_concave_extension_equals_the_value_on_masks_and_bounds_it(name, pool, subsets, rng):
    """Value and gradient at a mask; and the gradient is that of a concave function: it over-promises every other
    mask."""
    function = bind(name, pool)
    here = mask_of(subsets[0], N)
    given = function.concave(here.double(), S)
    if given is None:
        assert catalogue.objective(name).proof != "relaxation"
        return
    value, gradient = given
    assert value == pytest.approx(function.value(here), rel=1e-6)
    for members in subsets[1:]:
        there = mask_of(members, N).double()
        assert function.value(there.bool()) <= value + float(gradient @ (there - here.double())) + 1e-7
    step = 1e-4 * torch.from_numpy(rng.normal(size=N))
    ahead, behind = (function.concave(here.double() + sign * step, S)[0] for sign in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx(float(gradient @ step), rel=1e-3)


def test_work_stops_when_polled(name, pool, subsets):
    def stop():
        raise Stopped("now")
    function = bind(name, pool)
    masks = torch.stack([mask_of(members, N) for members in subsets])
    for call in (lambda: function.values(masks, stop), lambda: function.marginals(masks, stop),
                 lambda: function.value(masks[0], stop), lambda: function.gains(masks[0], stop)):
        with pytest.raises(Stopped):
            call()
