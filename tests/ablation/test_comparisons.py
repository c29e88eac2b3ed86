"""Intervals over seeds against simulations whose truth is known, plain loops, and scipy where it has the thing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from datamask.ablation.comparisons import (
    Difference,
    compare,
    cross_fitted,
    largest_by_chance,
    rank_agreement,
    regrets,
    sign_patterns,
    standard_errors,
)


def correlated(rng, seeds: int, columns: int, correlation: float) -> np.ndarray:
    """Normals of variance 1 whose columns have that correlation."""
    common = rng.normal(size=(seeds, 1))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=(seeds, columns))


@pytest.mark.parametrize("seeds", [6, 10])
@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("truth", [0.0, 20.0])
def test_intervals_hold_all_truths_together_about_as_often_as_they_say(seeds, correlation, truth):
    rng, held, rounds, columns = np.random.default_rng([seeds, int(10 * correlation)]), 0, 200, 60
    true = truth * (np.arange(columns) % 3)
    for _ in range(rounds):
        # half of them on each of two targets, one with twice the noise of the other
        drawn = correlated(rng, seeds, columns, correlation).reshape(seeds, -1, 2) * [1, 2] + true.reshape(-1, 2)
        far = np.abs(drawn.mean(axis=0) - true.reshape(-1, 2)) / standard_errors(drawn)
        held += far.max() <= largest_by_chance(drawn)
    # 95 % of 200 less three standard deviations
    assert held >= 190 - 9


def test_one_comparison_has_about_the_interval_of_student():
    rng = np.random.default_rng(5)
    reaches = [largest_by_chance(rng.normal(size=(10, 1))) for _ in range(200)]
    assert np.median(reaches) == pytest.approx(stats.t.ppf(0.975, 9), rel=0.1)


def test_the_largest_by_chance_is_that_of_a_plain_loop(rng):
    drawn = rng.normal(size=(7, 4, 2)) + 0.5

    def largest(values):
        variances = values.var(axis=0, ddof=1)
        mixed = [[(variances[c, t] + np.median(variances[:, t])) / 2 for t in range(2)] for c in range(4)]
        return np.abs(values.mean(axis=0) / np.sqrt(np.array(mixed) / 7)).max()

    both = (drawn, drawn - drawn.mean(axis=0))
    flipped = [[largest(each * signs[:, None, None]) for signs in sign_patterns(7)] for each in both]
    # three of 64 patterns are 4.7 %
    assert largest_by_chance(drawn) == pytest.approx(max(np.sort(each)[-4] for each in flipped))
    assert standard_errors(drawn[:, :1]) == pytest.approx(stats.sem(drawn[:, :1]))


def test_too_few_seeds_show_nothing_and_every_pattern_is_there_once(rng):
    assert largest_by_chance(rng.normal(size=(5, 3)) + 100) == np.inf
    patterns = sign_patterns(6)
    assert patterns.shape == (32, 6) and len(np.unique(patterns, axis=0)) == 32
    assert set(np.unique(patterns)) == {-1.0, 1.0} and (patterns[:, 0] == 1).all()
    assert sign_patterns(20).shape == (2048, 20)


def test_the_best_simple_baseline_is_chosen_on_the_other_seeds():
    rng = np.random.default_rng(3)
    losses = rng.normal(size=(8, 5, 3))
    simple = np.array([0, 2, 4])
    fitted = cross_fitted(losses, simple)
    for seed in range(8):
        for target in range(3):
            others = [np.mean([losses[j, m, target] for j in range(8) if j != seed]) for m in simple]
            assert fitted[seed, target] == losses[seed, simple[int(np.argmin(others))], target]
    # chosen on the same seed it would seem better than each baseline is
    assert fitted.mean() > losses[:, simple].min(axis=1).mean() + 0.3


def test_verdicts_follow_planted_differences():
    rng = np.random.default_rng(4)
    truth = np.array([[5.0, 5.0], [4.8, 5.0], [5.0, 5.3], [4.6, 5.0]])  # random, a simple one, and two joint ones
    seed_of = rng.normal(size=(10, 1, 2))
    losses = truth + seed_of + 0.02 * rng.normal(size=(10, 4, 2))
    compared = compare(losses, [True, True, False, False])
    words = [[difference.verdict for difference in row] for row in compared.to_random]
    assert words == [["level", "better", "level", "better"], ["level", "level", "worse", "level"]]
    assert compared.best_simple[0] == 1
    assert [row[3].verdict for row in compared.to_simple] == ["better", "level"]
    assert compared.to_simple[0][2].verdict == "worse"
    gain = compared.to_random[0][3]
    assert gain.mean == pytest.approx((losses[:, 3, 0] - losses[:, 0, 0]).mean()) and gain.low < -0.4 < gain.high


def test_null_seeds_lead_to_claims_in_about_one_of_twenty():
    """Methods that are all alike, with what they share in a seed: the best baseline is chosen among them too."""
    rng, claims = np.random.default_rng(6), 0
    for _ in range(100):
        losses = rng.normal(size=(10, 1, 4)) + 0.3 * rng.normal(size=(10, 12, 4)) + 0.1 * rng.normal(size=(10, 12, 1))
        compared = compare(losses, [True] * 5 + [False] * 7)
        found = [each.verdict for table in (compared.to_random, compared.to_simple) for row in table for each in row]
        claims += set(found) != {"level"}
    assert claims <= 11  # 5 are expected; Bin(100, 0.05) is beyond 11 in 1 of 230


def test_better_than_the_best_simple_baseline_is_better_than_every_one(rng):
    losses = rng.normal(size=(9, 1, 2)) + rng.normal(size=(9, 5, 2)) + np.array([0, 0, 0, -4, 1])[:, None]
    compared = compare(losses, [True, True, True, False, False])
    errors = standard_errors(losses[:, :, None] - losses[:, None, :3])
    for target in range(2):
        for method in (3, 4):
            middle = losses[:, method, target].mean() - losses[:, :3, target].mean(axis=0)
            arm = compared.reach * errors[method, :, target]
            found = compared.to_simple[target][method]
            assert (found.low, found.high) == pytest.approx((max(middle - arm), max(middle + arm)))
            own = losses[:, method, target] - cross_fitted(losses, np.arange(3))[:, target]
            assert found.mean == pytest.approx(own.mean())


def test_equal_selections_differ_by_nothing():
    losses = np.random.default_rng(1).normal(size=(8, 1, 2)).repeat(3, axis=1)
    compared = compare(losses, [True, True, False])
    assert compared.reach == np.inf
    assert all(each == Difference(0.0, 0.0, 0.0) and each.verdict == "level" for each in compared.to_random[0])


def test_regrets_are_to_the_best_method_of_each_target(rng):
    losses = rng.normal(size=(6, 4, 3))
    means = losses.mean(axis=0)
    assert regrets(losses) == pytest.approx(
        np.array([[m - means[:, t].min() for t, m in enumerate(row)] for row in means])
    )


def test_rank_agreement_is_spearmans_over_methods_with_ties_too(rng):
    for _ in range(50):
        first, second = (rng.integers(0, 6, (12, 3)).astype(float) for _ in range(2))
        expected = stats.spearmanr(first.mean(axis=1), second.mean(axis=1)).statistic
        assert rank_agreement(first, second) == pytest.approx(expected, abs=1e-12)
    assert rank_agreement(first, 3 * first + 1) == pytest.approx(1)
    assert np.isnan(rank_agreement(first, np.zeros_like(first))) and np.isnan(rank_agreement(first[:2], second[:2]))
