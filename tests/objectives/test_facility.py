"""Facility location on lists: short lists, copies, missed rows, approximate lists."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.corpus.list_length import list_length
from datamask.objectives import facility
from datamask.objectives.facility import Facility, exact_lists, nearby_members
from tests.reference import truth

N, S = 120, 9


@pytest.fixture
def case(rng):
    x = truth.unit_rows(rng, N, 5)
    x[40:60] = x[20:40]  # copies
    features = torch.from_numpy(x).float()
    members = rng.choice(N, size=S, replace=False)
    mask = torch.zeros(N, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    return x, features, members, mask


@pytest.mark.parametrize("k", [1, 2, 5, 30, N])
def test_reported_value_is_exact_whatever_the_length_of_the_lists(case, k):
    x, features, members, mask = case
    function = Facility(features, *exact_lists(features, k))
    assert function.value(mask) == pytest.approx(truth.facility(x, members), rel=1e-6)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_gains_are_exact_whatever_the_length_of_the_lists(case, k):
    _, features, _, mask = case
    short = Facility(features, *exact_lists(features, k)).gains(mask)
    whole = Facility(features, *exact_lists(features, N)).gains(mask)
    assert torch.allclose(short, whole, atol=1e-7)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_listed_value_never_exceeds_the_exact_one(case, k):
    _, features, _, mask = case
    function = Facility(features, *exact_lists(features, k))
    assert float(function.values(mask[None])[0]) <= function.value(mask) + 1e-6
    assert (function.missed(mask) > 0) == bool((function.coverage(mask).member_count == 0).any())


@pytest.fixture
def approximate(case):
    """Lists that lack every second true neighbour, by falling similarity."""
    _, features, _, _ = case
    indices, similarities = exact_lists(features, 20)
    kept = [0, *range(2, 20, 2)]
    return Facility(features, indices[:, kept], similarities[:, kept], exact_lists=False)


def test_on_approximate_lists_the_exact_value_is_measured_against_all_members(case, approximate):
    x, _, members, mask = case
    exact = truth.facility(x, members)
    assert approximate.exact_value(mask) == pytest.approx(exact, rel=1e-6)
    assert approximate.value(mask) < exact - 1e-4, "listed pairs alone miss the nearest member of some rows"
    assert approximate.value(mask) >= float(approximate.values(mask[None])[0]) - 1e-6
    coverage = approximate.exact_coverage(mask)
    near = torch.from_numpy(x[members] @ x.T).clamp_min(0).sort(dim=0, descending=True).values
    assert torch.allclose(coverage.best.double(), near[0], atol=1e-6)
    assert torch.allclose(coverage.second.double(), near[1], atol=1e-6)


def test_on_approximate_lists_marginals_are_those_of_listed_pairs(approximate):
    """The add / remove differences of the listed value, by taking every row in or out."""
    mask = torch.ones(N, dtype=torch.bool)
    mask[::3] = False
    assert int(approximate.coverage(mask).member_count.min()) == 2, "no row has to be measured against all members"
    gains = approximate.gains(mask)
    before = approximate.value(mask)
    for row in range(N):
        other = mask.clone()
        other[row] = ~other[row]
        change = approximate.value(other) - before
        assert float(gains[row]) == pytest.approx(-change if mask[row] else change, abs=1e-6)


def test_lists_hold_the_sample_itself_first_even_among_copies(case):
    _, features, _, _ = case
    indices, similarities = exact_lists(features, 4)
    assert indices[:, 0].tolist() == list(range(N))
    assert bool((similarities.diff(dim=1) <= 1e-6).all())


def test_opposite_directions_cover_nothing():
    features = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    function = Facility(features, *exact_lists(features, 3))
    assert function.value(torch.tensor([True, False, False])) == pytest.approx(1 / 3)


def test_list_length_bounds():
    assert list_length(0.3, 10_000) == 64
    assert list_length(0.05, 10_000) == 160
    assert list_length(0.0001, 10_000) == 512
    assert list_length(0.5, 20) == 20


def test_lists_are_required():
    with pytest.raises(ValueError, match="neighbor lists"):
        Facility.bind(torch.eye(3))


def test_coverage_finds_owner_and_second(case):
    x, features, members, mask = case
    function = Facility(features, *exact_lists(features, N))
    coverage = function.coverage(mask)
    near = np.sort(np.maximum(0, x @ x[members].T), axis=1)[:, ::-1]
    assert coverage.best.numpy() == pytest.approx(near[:, 0], abs=1e-6)
    assert coverage.second.numpy() == pytest.approx(near[:, 1], abs=1e-6)
    assert bool(mask[coverage.owner].all())


@pytest.mark.parametrize("k", [1, 3, 12, N])
def test_compiled_and_torch_paths_agree(case, k):
    _, features, _, mask = case
    compiled = Facility(features, *exact_lists(features, k))
    plain = Facility(features, *exact_lists(features, k))
    plain._lists = None
    masks = torch.stack([mask, ~mask])
    for name in ("best", "second", "owner", "member_count"):
        assert torch.equal(getattr(compiled.coverage(mask), name), getattr(plain.coverage(mask), name)), name
    assert torch.allclose(compiled.values(masks), plain.values(masks), rtol=1e-6)
    assert torch.allclose(compiled.marginals(masks), plain.marginals(masks), atol=1e-7)
    assert torch.allclose(compiled.gains(mask), plain.gains(mask), atol=1e-7)


def test_values_and_marginals_together_are_each_alone(case):
    _, features, _, mask = case
    function = Facility(features, *exact_lists(features, 20))
    masks = torch.stack([mask, ~mask])
    values, marginals = function.values_and_marginals(masks)
    assert torch.allclose(values, function.values(masks), rtol=1e-6)
    assert torch.equal(marginals, function.marginals(masks))


@pytest.fixture
def clustered(rng):
    """2,000 rows around 20 centres, float64 and float32; 300 of them are members, most in few clusters."""
    centres, cluster = truth.unit_rows(rng, 20, 16), rng.integers(0, 20, 2000)
    x = centres[cluster] + 0.15 * rng.normal(size=(2000, 16))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    members = np.sort(rng.choice(np.flatnonzero(cluster < 8), 300, replace=False))
    return x, torch.from_numpy(x).float(), members


def test_nearby_members_are_never_nearer_than_the_nearest_and_mostly_are_the_nearest(clustered):
    x, features, members = clustered
    rows = np.setdiff1d(np.arange(2000), members)
    best, second, owner = nearby_members(features.__getitem__, torch.from_numpy(rows), torch.from_numpy(members))
    near = np.sort(np.maximum(0.0, x[rows] @ x[members].T), axis=1)
    assert (best.numpy() <= near[:, -1] + 1e-6).all() and (second.numpy() <= near[:, -2] + 1e-6).all()
    assert np.allclose(best.numpy(), np.maximum(0.0, (x[rows] * x[owner.numpy()]).sum(axis=1)), atol=1e-6)
    assert set(owner.tolist()) <= set(members.tolist())
    assert np.mean(near[:, -1] - best.numpy() < 1e-6) > 0.9
    assert np.mean(near[:, -2] - second.numpy() < 1e-6) > 0.8


def test_where_all_cells_are_looked_into_nearby_members_are_the_nearest(clustered, monkeypatch):
    x, features, members = clustered
    monkeypatch.setattr(facility, "PROBES", 1000)
    best, second, _ = nearby_members(features.__getitem__, torch.arange(2000), torch.from_numpy(members))
    near = np.sort(np.maximum(0.0, x @ x[members].T), axis=1)
    assert np.allclose(best.numpy(), near[:, -1], atol=1e-6) and np.allclose(second.numpy(), near[:, -2], atol=1e-6)


def test_rows_without_a_listed_member_find_one_nearby_on_approximate_lists(clustered, monkeypatch):
    x, features, members = clustered
    indices, similarities = exact_lists(features, 9)
    rough = Facility(features, indices[:, ::2], similarities[:, ::2], exact_lists=False)
    mask = torch.zeros(2000, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    listed, found = rough.listed_value(mask), rough.coverage(mask).member_count
    assert int((found == 0).sum()) > 500 and int((found == 1).sum()) > 50
    among_all = rough.value(mask)
    monkeypatch.setattr(facility, "FEW_SIMILARITIES", 0)
    exact = truth.facility(x, members)
    assert listed < rough.value(mask) <= among_all + 1e-9 <= exact + 1e-6
    coverage = rough.close_coverage(mask)
    near = np.sort(np.maximum(0.0, x @ x[members].T), axis=1)
    assert (coverage.best.numpy() <= near[:, -1] + 1e-6).all() and (coverage.second.numpy() <= near[:, -2] + 1e-6).all()
    assert (coverage.second <= coverage.best).all()
    owned = np.maximum(0.0, (x * x[coverage.owner.numpy()]).sum(axis=1))
    assert np.allclose(coverage.best.numpy(), owned, atol=1e-6)
    drawn = rough.estimate(mask)
    assert drawn.value == pytest.approx(exact, abs=2e-6), "all rows are drawn"
