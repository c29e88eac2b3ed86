"""Intervals: do 95 % of them hold the truth? And what pairing takes out of a difference."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.evaluation.measures.reading import RESAMPLES, Reading, difference
from tests.making.pools import corpus_of, ground_of


@pytest.fixture
def ground(tmp_path, rng):
    return ground_of(corpus_of(rng.normal(size=(4_000, 3))), tmp_path)


def test_weights_are_poisson_and_always_the_same(ground, tmp_path):
    weights = ground.weights()
    assert weights.shape == (4_000, RESAMPLES) and weights.dtype == np.uint8
    assert weights.mean() == pytest.approx(1, abs=0.01) and weights.var() == pytest.approx(1, abs=0.01)
    assert (weights == 0).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert np.array_equal(weights, ground_of(ground.corpus, tmp_path).weights())


def test_draws_are_weighted_means(ground, rng):
    rows = rng.choice(4_000, 300, replace=False)
    values = 1e6 + rng.normal(size=300)
    weights = ground.weights()[rows].astype(float)
    assert ground.mean_draws(values, rows) == pytest.approx(weights.T @ values / weights.sum(0), abs=1e-8)
    labels = rng.integers(0, 7, 300)
    counted = np.array([[w[labels == k].sum() for k in range(7)] for w in weights.T])
    assert np.array_equal(ground.count_draws(labels, 7, rows), counted)


@pytest.mark.parametrize(
    "draw, mean",
    [
        (lambda rng, n: rng.normal(3, 1, n), 3.0),
        (lambda rng, n: rng.exponential(1, n), 1.0),
        (lambda rng, n: rng.random(n) < 0.1, 0.1),
    ],
)
def test_nineteen_of_twenty_intervals_hold_the_mean(ground, draw, mean):
    rng, hits = np.random.default_rng(5), 0
    for _ in range(400):
        rows = rng.choice(4_000, 200, replace=False)
        values = draw(rng, 200)
        low, high = Reading(float(values.mean()), ground.mean_draws(values, rows), "bootstrap").interval
        hits += low <= mean <= high
    # 0.95 +- 3 sd of 400 tries, and a little less for skewed values in samples of 200
    assert 0.90 <= hits / 400 <= 0.985


def test_nineteen_of_twenty_paired_differences_hold_the_truth(ground):
    """Two selections that share half of their rows: the same rows count the same in both."""
    rng, hits, wider = np.random.default_rng(6), 0, 0
    for _ in range(400):
        values = rng.normal(0, 1, 4_000)
        rows = rng.permutation(4_000)[:300]
        first, second = rows[:200], rows[100:]
        a, b = (
            Reading(float(values[part].mean()), ground.mean_draws(values[part], part), "bootstrap")
            for part in (first, second)
        )
        _, low, high = difference(a, b)
        hits += low <= 0 <= high
        wider += np.hypot(a.interval[1] - a.interval[0], b.interval[1] - b.interval[0]) > high - low
    assert 0.92 <= hits / 400 <= 0.98
    assert wider == 400  # unpaired intervals would tell fewer selections apart


def test_nineteen_of_twenty_splits_hold_the_mean():
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(1_000):
        draws = rng.normal(2, 1, 5)
        low, high = Reading(float(draws.mean()), draws, "splits").interval
        hits += low <= 2 <= high
    assert 0.93 <= hits / 1_000 <= 0.97


def test_a_constant_shift_between_splits_is_certain_however_far_the_splits_are_apart():
    draws = np.array([1.0, 5.0, 3.0, 9.0, 2.0])
    first, second = Reading(4.0, draws, "splits"), Reading(4.1, draws + 0.1, "splits")
    assert difference(first, second) == pytest.approx((-0.1, -0.1, -0.1))
    assert first.interval[0] < second.value < first.interval[1]


def test_no_draws_no_interval():
    assert Reading(1.0).interval is None and Reading(None, note="why").interval is None
    assert difference(Reading(1.0), Reading(2.0, np.ones(5), "splits")) is None


def test_intervals_end_where_values_do():
    low, high = Reading(0.01, np.linspace(-0.1, 0.1, 200), "bootstrap", bounds=(0.0, 1.0)).interval
    assert low == 0.0 and 0.1 < high < 0.2


def test_one_row_has_no_interval(ground):
    assert ground.mean_draws(np.ones(1), np.array([7])) is None
