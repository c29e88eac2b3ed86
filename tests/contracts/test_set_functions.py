"""Every objective of the catalogue keeps the contract of `SetFunction`, measured against float64 numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask import catalogue, objectives, testing
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
    function, given = bind(name, pool, device), pool.astype(np.float32).astype(np.float64)
    for members in subsets:
        assert function.value(mask_of(members, N, device)) == pytest.approx(
            truth.OBJECTIVES[name](given, members), rel=1e-6
        )


def test_value_is_the_definition_where_rows_nearly_coincide(name, rng, subsets, device):
    """A mean as float32 holds it is off by a thousandth of the spread here."""
    for spread in (1e-2, 1e-3, 1e-4):
        pool = rng.normal(size=D) + spread * rng.normal(size=(N, D))
        given = (pool / np.linalg.norm(pool, axis=1, keepdims=True)).astype(np.float32)
        function = bind(name, given, device)
        for members in subsets:
            assert function.value(mask_of(members, N, device)) == pytest.approx(
                truth.OBJECTIVES[name](given.astype(np.float64), members), abs=1e-6
            )


def test_value_is_the_definition_where_members_lie_close_together(name, rng, pool, device):
    """They differ in digits that float32 products of whole rows lack."""
    for spread in (1e-1, 1e-2, 1e-3):
        given = pool + 0.0
        given[:S] = given[0] + spread * rng.normal(size=(S, D))
        given = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype(np.float32)
        value = bind(name, given, device).value(mask_of(range(S), N, device))
        assert value == pytest.approx(truth.OBJECTIVES[name](given.astype(np.float64), np.arange(S)), abs=1e-6)


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
    expected = [
        here - f(pool, [m for m in members if m != i]) if i in members else f(pool, [*members, i]) - here
        for i in range(N)
    ]
    assert gains == pytest.approx(expected, rel=2e-4, abs=2e-7)


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


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
def test_every_check_for_ones_own_objective_holds(name, check):
    assert check(testing.Bench(objectives.load(name))) == ""


def test_the_catalogue_says_what_the_class_says(name):
    entry = catalogue.objective(name)
    assert objectives.load(name).needs_neighbors == entry.needs_neighbors
    function = bind(name, truth.unit_rows(np.random.default_rng(0), N, D))
    given = function.concave(torch.full((N,), S / N, dtype=torch.float64), S)
    assert (given is not None) == (entry.proof == "relaxation")
