"""Differences and intervals against plain loops and against simulations whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from datamask.evaluation.lambdas.statistics import (
    NO_LUCK,
    RESAMPLES,
    Losses,
    Luck,
    Sample,
    judge,
    luck_of,
    quantile,
    runs_of,
    share_of_sets,
    verdict,
)


def losses(rng, texts=60, columns=3, shift=0.0, training=0.0) -> Losses:
    """Texts of uneven length; every column has a training chance of its own in the split, `shift` moves the first."""
    words = rng.integers(5, 40, texts).astype(float)
    each = rng.normal(6, 1, (texts, 1)) + 0.3 * rng.normal(size=(texts, columns)) + training * rng.normal(size=columns)
    each[:, 0] += shift
    return Losses(each * words[:, None], words, np.arange(texts), np.zeros((texts, 0)))


def test_values_are_losses_per_word_and_draws_resample_whole_units(rng):
    one = losses(rng, texts=7)
    units = np.array([4, 4, 9, 1, 1, 1, 2])
    sample = Sample([Losses(one.sums, one.weights, units, one.drawn)], seed=3)
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
    widening = sample.widening([(0, 1)])
    assert widening.excess == pytest.approx(rho) and widening.freedom == pytest.approx(4 * (rho / (rho - 1)) ** 2)
    middle, low, high = sample.difference(0, 1, widening)
    assert middle == pytest.approx(np.mean(apart))
    assert high - middle == pytest.approx(middle - low)
    assert high - middle == pytest.approx(quantile(widening.freedom) * np.sqrt(rho * within / 5))


def random_losses(rng, texts=200, kinds=4, main=0.0, interplay=0.3) -> Losses:
    """Random selections that differ by `main` on every text, and by chance on each; the first is their mean."""
    each = rng.normal(6, 1, (texts, 1)) + main * rng.normal(size=kinds) + interplay * rng.normal(size=(texts, kinds))
    return Losses(each.mean(axis=1, keepdims=True), np.ones(texts), np.arange(texts), each)


def test_luck_is_what_random_selections_differ_by_beyond_the_texts_at_hand(rng):
    split = random_losses(rng, 50, main=0.1)
    (luck,) = Sample([split]).lucks
    of_texts = np.var(split.drawn.mean(axis=0), ddof=1) - luck
    # by the text-book: between means over texts of what is left when texts and selections are taken out
    left = split.drawn - split.drawn.mean(axis=1, keepdims=True) - split.drawn.mean(axis=0) + split.drawn.mean()
    assert of_texts == pytest.approx((left**2).sum() / (49 * 3) / 50, rel=0.1)
    for main in (0.0, 0.1):
        samples = [Sample([random_losses(rng, main=main) for _ in range(60)]) for _ in range(2)]
        luck = luck_of(samples)
        assert luck.freedom == 2 * 60 * 3
        assert luck.variance == pytest.approx(main**2, abs=0.25 * 0.1**2)
    assert luck_of([Sample([random_losses(rng, kinds=1)])]) == NO_LUCK


def test_the_share_of_sets_is_that_of_means_over_drawn_rows(rng):
    worth = rng.normal(size=2000)
    sets = [rng.choice(worth, 400, replace=False) for _ in range(4000)]
    of_sets = np.var([each.mean() for each in sets])
    trained = np.var([rng.choice(each, 100, replace=False).mean() for each in sets])
    assert share_of_sets(0.2, 0.25) == pytest.approx(of_sets / trained, rel=0.1)
    assert share_of_sets(0.3, 1.0) == 1.0 and share_of_sets(1.0, 0.5) == 0.0


def test_luck_is_the_same_in_all_splits_and_not_divided_by_their_number(rng):
    sample = Sample([losses(rng) for _ in range(5)])
    alone, luck = sample.widening([(0, 1)]), Luck(0.01, 15)
    within = alone.excess * sample.spread(0, 1)[0] / 5
    widening = sample.widening([(0, 1)], luck)
    middle, _, high = sample.difference(0, 1, widening)
    assert (high - middle) ** 2 == pytest.approx(quantile(widening.freedom) ** 2 * (within + 0.01))
    # of luck alone there are as many degrees of freedom as draws give, without it as many as before
    assert sample.widening([(0, 1)], Luck(1e6, 15)).freedom == pytest.approx(15, rel=1e-3)
    assert sample.widening([(0, 1)], Luck(0.0, 15)) == alone


def test_a_set_that_is_lucky_in_every_split_is_not_told_apart_from_random():
    """The selection is one more random one: its luck is drawn once, and stands in all splits and on both halves."""
    apart = {True: 0, False: 0}
    for seed in range(120):
        rng = np.random.default_rng([9, seed])
        own = 0.02 * rng.normal()
        halves: tuple[list[Losses], list[Losses]] = ([], [])
        for split in range(10):
            random = random_losses(rng, 60, main=0.02, interplay=0.05)
            mean = random.drawn.mean(axis=1)
            # against the mean of many: what four draws have in common is taken out
            selected = mean - random.drawn.mean() + 6 + own + 0.05 * rng.normal(size=len(mean))
            sums = np.column_stack([selected, mean - random.drawn.mean() + 6])
            halves[split % 2].append(Losses(sums, random.weights, random.unit_of, random.drawn))
        choose, report = (Sample(half, place) for place, half in enumerate(halves))
        for with_luck in apart:
            luck = luck_of([choose, report]) if with_luck else NO_LUCK
            apart[with_luck] += judge(choose, report, [0], 1, luck=luck).verdict != "level"
    assert apart[False] > 60
    assert apart[True] <= 12  # 5 % of 120 is expected


def test_the_documents_spread_is_the_delta_methods(rng):
    one = losses(rng, texts=4000)
    value = one.sums.sum(0) / one.weights.sum()
    residual = (one.sums[:, 0] - one.sums[:, 1]) - (value[0] - value[1]) * one.weights
    expected = (residual**2).sum() / one.weights.sum() ** 2
    assert Sample([one]).spread(0, 1)[0] == pytest.approx(expected, rel=0.15)


def test_the_quantile_goes_from_normal_to_student():
    assert quantile(np.inf) == pytest.approx(stats.norm.ppf(0.975))
    assert quantile(16) == pytest.approx(stats.t.ppf(0.975, 16))
    assert quantile(1e9) == pytest.approx(stats.norm.ppf(0.975))
    assert quantile(np.inf, 0.975) == pytest.approx(stats.norm.ppf(0.9875))


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
        _, low, high = sample.difference(0, 9, sample.widening([(i, 9) for i in range(9)]))
        held += low <= 0 <= high
    assert 0.92 * 300 <= held <= 0.995 * 300


def test_the_best_is_chosen_on_one_half_and_reported_on_the_other(rng):
    def half(values):
        return Sample(
            [
                Losses(
                    np.tile(values, (50, 1)) + 0.01 * rng.normal(size=(50, 4)),
                    np.ones(50),
                    np.arange(50),
                    np.zeros((50, 0)),
                )
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
