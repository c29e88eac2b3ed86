"""The estimate of what approximate lists leave out: its interval holds the exact value as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from datamask.objectives import estimate
from datamask.objectives.estimate import estimated
from datamask.objectives.facility import Facility, exact_lists
from tests.reference import truth

N, SAMPLE, TRIES = 20_000, 2_000, 300


def population(rng, share):
    """Shortfalls of N rows, of which about a share has one: many small ones and a few large."""
    return np.where(rng.random(N) < share, rng.gamma(0.5, 0.1, N), 0.0)


@pytest.mark.parametrize("share", [0.0005, 0.005, 0.05, 0.5])
def test_the_interval_holds_the_mean_in_more_than_nine_of_ten_samples(rng, share):
    shortfalls = population(rng, share)
    held, lengths = 0, []
    for _ in range(TRIES):
        drawn = estimated(0.7, rng.choice(shortfalls, SAMPLE, replace=False), most=1.0)
        held += drawn.low <= 0.7 + shortfalls.mean() <= drawn.high
        lengths.append(drawn.high - drawn.low)
    assert held >= 0.93 * TRIES
    # and is not long for nothing: four standard errors, where there are enough rows to tell
    if share >= 0.05:
        assert np.median(lengths) < 1.3 * 4 * shortfalls.std() / SAMPLE**0.5


def test_a_sample_without_a_shortfall_still_leaves_room_for_those_not_met():
    """Three rows in m, the most that a sample of m can miss with 95 % confidence, and each by all it can."""
    drawn = estimated(0.7, np.zeros(1000), most=0.5)
    assert (drawn.value, drawn.low) == (0.7, 0.7)
    assert drawn.high == pytest.approx(0.7 + 0.5 * 3.689 / 1000, rel=1e-3)


def test_the_estimate_is_unbiased_and_never_below_the_listed_value(rng):
    shortfalls = population(rng, 0.02)
    drawn = [estimated(0.0, rng.choice(shortfalls, SAMPLE), most=1.0) for _ in range(TRIES)]
    values = np.array([each.value for each in drawn])
    assert abs(values.mean() - shortfalls.mean()) < 4 * values.std() / TRIES**0.5
    assert all(0 <= each.low <= each.value <= each.high and each.rows == SAMPLE for each in drawn)


@pytest.fixture
def rough(rng):
    """Facility location on lists that lack every second true neighbour; its features, members and mask."""
    x = truth.unit_rows(rng, 600, 6)
    features = torch.from_numpy(x).float()
    indices, similarities = exact_lists(features, 40)
    listed = [0, *range(2, 40, 2)]
    members = np.sort(rng.choice(600, 120, replace=False))
    mask = torch.zeros(600, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    return x, Facility(features, indices[:, listed], similarities[:, listed], exact_lists=False), members, mask


def test_all_rows_drawn_are_the_exact_value(rough):
    x, function, members, mask = rough
    whole = function.estimate(mask)
    exact = truth.facility(x, members)
    assert function.value(mask) < exact - 1e-4
    assert whole.value == pytest.approx(exact, abs=2e-6) and whole.rows == 600


def test_few_rows_drawn_hold_the_exact_value_between_their_ends(rough, monkeypatch):
    x, function, members, mask = rough
    monkeypatch.setattr(estimate, "ESTIMATE_ROWS", 100)
    monkeypatch.setattr("datamask.objectives.facility.ESTIMATE_ROWS", 100)
    exact = truth.facility(x, members)
    drawn = [function.estimate(mask, seed) for seed in range(100)]
    assert sum(each.low <= exact <= each.high for each in drawn) >= 90
    assert len({each.value for each in drawn}) > 50, "another seed draws other rows"
    assert drawn[3] == function.estimate(mask, 3)


@pytest.fixture
def clumped(rough):
    """The same, with the members side by side, so that many rows list none."""
    x, function, _, _ = rough
    members = np.sort((x @ x[0]).argsort()[-120:])
    mask = torch.zeros(600, dtype=torch.bool)
    mask[torch.from_numpy(members)] = True
    assert float((function.coverage(mask).member_count == 0).float().mean()) > 0.2
    return x, function, members, mask


def test_a_sampled_value_of_all_rows_is_the_exact_value(clumped):
    x, function, members, mask = clumped
    assert function.sampled_value(mask) == pytest.approx(truth.facility(x, members), abs=2e-6)


def test_a_sampled_value_is_right_on_average_and_varies_less_than_a_mean_of_rows(clumped, monkeypatch):
    x, function, members, mask = clumped
    monkeypatch.setattr("datamask.objectives.facility.ESTIMATE_ROWS", 100)
    drawn = np.array([function.sampled_value(mask, seed) for seed in range(200)])
    assert abs(drawn.mean() - truth.facility(x, members)) < 4 * drawn.std() / 200**0.5
    nearest = np.maximum((x @ x[members].T).max(axis=1), 0.0)
    assert drawn.std() < nearest.std() / 100**0.5


def test_exact_lists_need_no_estimate(rng):
    features = torch.from_numpy(truth.unit_rows(rng, 50, 4)).float()
    function = Facility(features, *exact_lists(features, 10))
    mask = torch.arange(50) % 3 == 0
    assert not function.lower_bound and function.estimate(mask) is None
    assert function.sampled_value(mask) == function.value(mask)


def test_scaling_moves_value_and_ends_alike():
    interval = estimated(0.2, np.array([0.0, 0.1, 0.3]), most=1.0)
    twice = interval.scaled(2.0, -0.1)
    assert twice.value == pytest.approx(2 * interval.value - 0.1)
    assert (twice.low, twice.high) == pytest.approx((2 * interval.low - 0.1, 2 * interval.high - 0.1))
