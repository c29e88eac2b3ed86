"""Differences and intervals against plain loops and against simulations whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from datamask.evaluation.lambdas.statistics import RESAMPLES, Losses, Sample, judge, quantile, runs_of, verdict


def losses(rng, texts=60, columns=3, shift=0.0, training=0.0) -> Losses:
    """Texts of uneven length; every column has a training chance of its own in the split, `shift` moves the first."""
    words = rng.integers(5, 40, texts).astype(float)
    each = rng.normal(6, 1, (texts, 1)) + 0.3 * rng.normal(size=(texts, columns)) + training * rng.normal(size=columns)
    each[:, 0] += shift
    return Losses(each * words[:, None], words, np.arange(texts))


def test_values_are_losses_per_word_and_draws_resample_whole_units(rng):
    one = losses(rng, texts=7)
    units = np.array([4, 4, 9, 1, 1, 1, 2])
    sample = Sample([Losses(one.sums, one.weights, units)], seed=3)
    assert sample.values[0] == pytest.approx(one.sums.sum(0) / one.weights.sum())
    counts = np.random.default_rng([20251224, 3, 0]).multinomial(4, np.full(4, 0.25), RESAMPLES)
    for draw in (0, 17, 999):
        members = [
            i
            for unit, times in zip((1, 2, 4, 9), counts[draw])
            for _ in range(times)
            for i in np.flatnonzero(units == unit)
        ]
        assert sample.draws[0, draw] == pytest.approx(one.sums[members].sum(0) / one.weights[members].sum())


def test_an_interval_is_the_documents_one_widened_by_what_splits_add(rng):
    splits = [losses(rng, training=0.2) for _ in range(5)]
    sample = Sample(splits)
    apart = [(one.sums[:, 0] - one.sums[:, 1]).sum() / one.weights.sum() for one in splits]
    within = np.mean([np.var(sample.draws[j, :, 0] - sample.draws[j, :, 1], ddof=1) for j in range(5)])
    rho = max(1.0, np.var(apart, ddof=1) / within)
    assert sample.excess([(0, 1)]) == pytest.approx(rho)
    middle, low, high = sample.difference(0, 1, rho)
    assert middle == pytest.approx(np.mean(apart))
    assert high - middle == pytest.approx(middle - low)
    assert high - middle == pytest.approx(quantile(rho, 5) * np.sqrt(rho * within / 5))


def test_the_documents_spread_is_the_delta_methods(rng):
    one = losses(rng, texts=4000)
    value = one.sums.sum(0) / one.weights.sum()
    residual = (one.sums[:, 0] - one.sums[:, 1]) - (value[0] - value[1]) * one.weights
    expected = (residual**2).sum() / one.weights.sum() ** 2
    assert Sample([one]).spread(0, 1)[0] == pytest.approx(expected, rel=0.15)


def test_the_quantile_goes_from_normal_to_student():
    assert quantile(1.0, 5) == pytest.approx(stats.norm.ppf(0.975))
    assert quantile(2.0, 5) == pytest.approx(stats.t.ppf(0.975, 16))
    assert quantile(1e9, 5) == pytest.approx(stats.t.ppf(0.975, 4))
    assert quantile(1.0, 5, 0.975) == pytest.approx(stats.norm.ppf(0.9875))


@pytest.mark.parametrize("training", [0.0, 0.05])
def test_intervals_hold_the_truth_about_as_often_as_they_say(training):
    """Nine columns against a tenth, no true difference, whether or not training adds chance of its own."""
    held = 0
    for seed in range(300):
        rng = np.random.default_rng([7, seed])
        # straight from normal laws: the bootstrap itself is tested above
        within = 0.3**2 * 2 / 200
        values = rng.normal(0, np.sqrt(within / 2), (5, 10)) + training * rng.normal(size=(5, 10))
        sample = Sample.__new__(Sample)
        sample.values = values
        sample.draws = rng.normal(0, np.sqrt(within / 2), (5, 200, 10))
        excess = sample.excess([(i, 9) for i in range(9)])
        _, low, high = sample.difference(0, 9, excess)
        held += low <= 0 <= high
    assert 0.92 * 300 <= held <= 0.995 * 300


def test_the_best_is_chosen_on_one_half_and_reported_on_the_other(rng):
    def half(values):
        return Sample(
            [
                Losses(np.tile(values, (50, 1)) + 0.01 * rng.normal(size=(50, 4)), np.ones(50), np.arange(50))
                for _ in range(5)
            ]
        )

    # the choosing half likes the second; the reporting half has it worst of all, and says so
    curve = judge(half([1.0, 0.2, 1.0, 1.0]), half([1.0, 1.5, 0.5, 1.0]), [0, 1, 2], 3)
    assert curve.best == 1 and curve.verdict == "hurts"
    assert curve.against_random[0] == pytest.approx(0.5, abs=0.02)
    assert curve.level == (True, True, True)  # nothing is worse than the chosen one
    curve = judge(half([1.0, 1.5, 0.5, 1.0]), half([1.0, 1.5, 0.5, 1.0]), [0, 1, 2], 3)
    assert (curve.best, curve.verdict, curve.level) == (2, "helps", (False, False, True))


def test_more_curves_ask_for_more(rng):
    sample = Sample([losses(rng) for _ in range(5)])
    one, four = (judge(sample, sample, [0, 1], 2, curves).against_random for curves in (1, 4))
    assert one[0] == four[0] and four[2] > one[2]


def test_verdicts_and_runs():
    assert [verdict(ends) for ends in ((-1, -2, -0.1), (0, -1, 1), (1, 0.1, 2))] == ["helps", "level", "hurts"]
    assert runs_of([True, True, False, True]) == [(0, 1), (3, 3)] and runs_of([False]) == []
