"""Whole counts from weights: sums, the mean over seeds, tokens, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask import catalogue
from datamask import repeat_counts as module
from datamask.api import select
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.options.quotas import Quota
from datamask.repeat_counts import refusal, repeats
from tests.making.pools import corpus_of


def case(seed, n=30, size=9):
    """Weights that add to `size`, hashes, and lengths."""
    rng = np.random.default_rng(seed)
    weights = np.clip(rng.random(n) ** 3, 0, 1)
    weights[:4] = (1.0, 1.0, 0.0, 1e-9)
    weights *= size / weights.sum()
    weights = np.minimum(weights, 1.0)
    return weights, rng.integers(0, 2**63, n).astype(np.uint64), rng.integers(1, 500, n).astype(float)


@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("samples", [1, 9, 10, 45, 1000, 10**12])
@pytest.mark.parametrize("seed", range(3))
def test_they_add_to_what_was_asked_and_stay_within_one_of_their_mean(seed, samples, lengths):
    weights, order, tokens = case(seed)
    expected = weights * samples / weights.sum()
    for draw in range(50):
        counts = repeats(weights, order, draw, samples=samples, lengths=tokens if lengths else None)
        assert counts.dtype == np.int64 and counts.sum() == samples
        assert (np.abs(counts - expected) < 1 + 1e-3).all() and not counts[weights == 0].any()


@pytest.mark.parametrize("asked", [{"samples": 9}, {"samples": 37}, {"tokens": 5000.0}, {}])
@pytest.mark.parametrize("seed", range(3))
def test_over_all_starts_of_the_grid_each_count_has_its_weight_for_mean(seed, asked, monkeypatch):
    """The start is the one thing drawn: all of them, not a sample of seeds."""
    weights, order, lengths = case(seed)

    class Start:
        def __init__(self, number):
            self.number = number

        def integers(self, most):
            return self.number

    monkeypatch.setattr(module, "STARTS", 4096)
    monkeypatch.setattr(np.random, "default_rng", Start)
    mean = np.mean([repeats(weights, order, start, lengths=lengths, **asked) for start in range(4096)], axis=0)
    factor = {"samples": lambda a: a / weights.sum(), "tokens": lambda a: a / (weights @ lengths)}
    expected = weights * next((factor[name](amount) for name, amount in asked.items()), 1.0)
    assert np.abs(mean - expected).max() <= 1.01 / 4096


def test_over_seeds_they_are_without_bias():
    weights, order, lengths = case(1)
    counts = np.array([repeats(weights, order, seed, samples=33, lengths=lengths) for seed in range(4000)])
    expected = weights * 33 / weights.sum()
    fraction = expected - np.floor(expected)
    noise = np.sqrt(fraction * (1 - fraction) / 4000)
    assert (np.abs(counts.mean(0) - expected) <= 5 * noise + 1e-3).all()


@pytest.mark.parametrize("seed", range(20))
def test_tokens_are_met_to_the_longest_row(seed):
    weights, order, lengths = case(seed)
    for draw, asked in itertools.product(range(20), (700.0, 12345.6, 1e6)):
        held = repeats(weights, order, draw, tokens=asked, lengths=lengths) @ lengths
        assert abs(held - asked) <= lengths.max() + 1e-6


def test_whole_multiples_are_certain_where_weights_are_whole():
    weights = np.array([1.0, 0.0, 1.0, 1.0])
    counts = repeats(weights, np.arange(4, dtype=np.uint64), 3, samples=12)
    assert counts.tolist() == [4, 0, 4, 4]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"samples": 5, "tokens": 5.0}, "give either --repeats or --repeat_tokens"),
        ({"samples": 0}, "from 1 to"),
        ({"samples": -3}, "from 1 to"),
        ({"samples": 10**13}, "from 1 to"),
        ({"tokens": 0.0}, "above 0"),
        ({"tokens": float("nan")}, "above 0"),
        ({"tokens": float("inf")}, "above 0"),
        ({"tokens": 5.0}, "--length_column"),
    ],
)
def test_amounts_that_cannot_be_had_are_refused(asked, reason):
    weights, order, _ = case(0)
    with pytest.raises(OptionError, match=reason):
        repeats(weights, order, 0, **asked)
    with pytest.raises(OptionError, match="at most 1,000,000,000,000 rows"):
        repeats(weights, order, 0, tokens=1e300, lengths=weights)
    with pytest.raises(OptionError, match="all are 0"):
        repeats(weights * 0, order, 0)
    with pytest.raises(OptionError, match="have no tokens"):
        repeats(weights, order, 0, tokens=5.0, lengths=weights * 0)


def test_settings_without_weights_are_refused_by_the_names_of_those_that_have():
    for entry in catalogue.ESTIMATORS:
        reason = refusal(SelectionConfig.from_options(objective="pairwise", estimator=entry.name))
        assert bool(reason) is not entry.weighs
        if reason:
            assert reason.startswith(f"estimator {entry.name} has no repeat weights")
            assert reason.endswith("counterfactual, reinforce, soft-quality or random")
    assert "facility has no repeat weights" in refusal(SelectionConfig.from_options(objective="facility"))
    quotas = {"quotas": (Quota("domain", "d0", 0.1, 0.5),)}
    by_draws = SelectionConfig.from_options(objective="pairwise", estimator="counterfactual", **quotas)
    assert "--quota" in refusal(by_draws) and "relaxed has them under quotas" in refusal(by_draws)
    assert not refusal(SelectionConfig.from_options(objective="pairwise", estimator="relaxed", **quotas))


def test_a_selection_in_python_has_them():
    rng = np.random.default_rng(0)
    corpus = corpus_of(rng.normal(size=(120, 6)), rng.normal(size=120), lengths=rng.integers(1, 90, 120).astype(float))
    selection = select(corpus, objective="pairwise", select_ratio=0.25, device="cpu")
    assert selection.weights.sum() == pytest.approx(30, rel=1e-13)
    assert selection.summary["weights"] == {
        "sum": selection.weights.sum(),
        "samples": int((selection.weights > 0).sum()),
    }
    assert selection.repeats().sum() == 30 and selection.repeats(samples=100, seed=4).sum() == 100
    held = selection.repeats(tokens=9000.0) @ corpus.lengths
    assert abs(held - 9000) <= corpus.lengths.max()
    table = selection.rows_table()
    assert table["weight"].to_numpy() == pytest.approx(selection.weights, abs=0)
    assert table["tokens"].to_numpy() == pytest.approx(corpus.lengths, abs=0)
    greedy = select(corpus, objective="pairwise", estimator="greedy", select_ratio=0.25, device="cpu")
    assert greedy.weights is None and greedy.summary["weights"] is None
    with pytest.raises(OptionError, match="estimator greedy has no repeat weights"):
        greedy.repeats()
