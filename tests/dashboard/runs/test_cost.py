"""What a run will cost, from runs that were made."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from datamask import select
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.runs import cost
from datamask.errors import OptionError
from datamask.runs.store import RunStore
from tests.making.pools import corpus_of


def made(tmp_path, seconds=10.0, fingerprint="f", n=1000, dim=16, steps=50, around=2.0, tokens=None, **options):
    store = RunStore(tmp_path)
    run = store.create(RunConfig(CorpusConfig(("a.parquet",)), SelectionConfig.from_options(**options)))
    with run.writer() as writer:
        writer.update_facts(fingerprint=fingerprint, n=n, dim=dim)
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish(
            "done",
            None,
            "converged",
            summary={
                "n": n,
                "selected": 300,
                "steps": steps,
                "seconds": seconds,
                "tokens": tokens,
                "seconds_total": seconds + around,
            },
        )
    return store


def estimate(store, n=1000, dim=16, fingerprint="f", tokens=None, **options):
    return cost.estimate(SelectionConfig.from_options(**options), n, dim, fingerprint, store.list(), tokens)


def test_twice_the_steps_take_twice_as_long_and_twice_the_masks_between_once_and_twice(tmp_path):
    store = made(tmp_path, n_epochs=50, n_rollout=4)
    assert estimate(store, n_epochs=50, n_rollout=4).seconds == pytest.approx(12.0)
    assert estimate(store, n_epochs=50, n_rollout=8).seconds == pytest.approx(10 * 2**0.5 + 2)
    assert estimate(store, n_epochs=100, n_rollout=4).seconds == pytest.approx(22.0)


def test_a_run_that_was_done_early_will_be_done_early_again(tmp_path):
    store = made(tmp_path, n_epochs=100, steps=50)
    assert estimate(store, n_epochs=100).seconds == estimate(store, n_epochs=400).seconds == pytest.approx(12.0)
    # fewer steps than it took are fewer steps
    assert estimate(store, n_epochs=25).seconds == pytest.approx(7.0)
    assert estimate(store, n_epochs=100, n=2000, fingerprint="other").seconds == pytest.approx(10 * 2**0.5 + 4)


def test_another_corpus_is_scaled_and_said_so(tmp_path):
    store = made(tmp_path, n_epochs=50, fingerprint="other")
    price = estimate(store, n=2000, n_epochs=50)
    assert price.seconds == pytest.approx(10 * 2**0.5 + 4) and "another corpus" in price.basis
    assert estimate(store, n=5000, n_epochs=50).seconds is None, "a corpus of another order of size"


def test_without_a_measurement_there_is_no_number(tmp_path):
    store = made(tmp_path, objective="pairwise")
    price = estimate(store)
    assert price.seconds is None and "about" not in cost.sentence_of_two(price, None, 1000)


def test_a_run_under_way_is_a_measurement_too(tmp_path):
    store = RunStore(tmp_path)
    run = store.create(RunConfig(CorpusConfig(("a.parquet",)), SelectionConfig.from_options(n_epochs=100)))
    with run.writer() as writer:
        writer.update_facts(fingerprint="f", n=1000, dim=16)
        writer.append_metrics({"step": 1, "seconds": 1.5})
    assert estimate(store, n_epochs=100).seconds is None, "a first step says nothing about the rest"
    with run.writer() as writer:
        for step in range(2, 11):
            writer.append_metrics({"step": step, "seconds": 0.3 * step})
    assert estimate(store, n_epochs=100).seconds == pytest.approx(30.0)


def test_rows_and_tokens(tmp_path):
    price = estimate(RunStore(tmp_path), tokens=200_000.0, select_ratio=0.25)
    assert price.selected == 250 and price.tokens == (50_000.0, 50_000.0)
    assert "250" in cost.sentence_of_two(price, None, 1000) and "tokens" in cost.sentence_of_two(price, None, 1000)


def test_tokens_are_those_of_selections_on_both_sides_and_else_a_range(tmp_path):
    def priced(store, solved=None, **options):
        return cost.estimate(
            SelectionConfig.from_options(**options),
            1000,
            16,
            "f",
            store.list(),
            100_000.0,
            lambda count, lamb: (90.0 * count, 170.0 * count),
            solved or {},
        )

    store = made(tmp_path, lamb=0.2, tokens=36_000)
    price = priced(store, lamb=0.5)
    assert price.tokens == (27_000.0, 51_000.0) and not price.measured
    said = cost.sentence_of_two(price, None, 1000)
    assert "about 27 k to 51 k tokens".replace(" k", "\u00a0k") in said
    made(tmp_path, lamb=0.8, tokens=37_000)
    assert priced(store, lamb=0.2).tokens == (36_000, 36_000) and priced(store, lamb=0.8).measured
    price = priced(store, lamb=0.5)
    assert price.tokens == (pytest.approx(36_500),) * 2
    assert "about 36.5\u00a0k tokens" in cost.sentence_of_two(price, None, 1000)
    assert "of selections of this problem" in cost.details_of_two(price, None)
    # what the slider solved counts as a run does, and two that differ are a range
    assert priced(store, {0.6: 43_000.0, 0.7: 41_000.0}, lamb=0.65).tokens == (41_000, 43_000)
    assert priced(store, {0.65: 43_000.0}, lamb=0.65).tokens == (43_000, 43_000)
    assert not priced(store, {0.65: 43_000.0}, lamb=0.65, estimator="random").measured
    # beyond them, or with another objective, size or corpus, they say nothing
    for options in ({"lamb": 0.9}, {"lamb": 0.5, "objective": "pairwise"}, {"lamb": 0.5, "select_ratio": 0.5}):
        assert not priced(store, **options).measured
    # a budget is filled, whatever the lengths are
    price = priced(store, budget=20_000.0)
    assert price.tokens == (20_000, 20_000) and "about 20\u00a0k tokens" in cost.sentence_of_two(price, None, 1000)


@pytest.mark.parametrize("slope", [0.0, 0.6, -0.6])
@pytest.mark.parametrize("objective", ["facility", "pairwise", "disf_fixed"])
def test_the_range_contains_what_is_selected(tmp_path, objective, slope):
    """Whether long texts are the better ones, the worse ones or neither; the range of the demo had missed by 4 %."""
    rng = np.random.default_rng(0)
    n, clump = 400, rng.choice(12, 400, p=rng.dirichlet(np.ones(12)))
    features = rng.normal(size=(12, 16))[clump] + rng.normal(size=(n, 16)) * rng.uniform(0.2, 1, 12)[clump][:, None]
    quality = rng.normal(size=n) + rng.normal(size=12)[clump]
    noise = rng.normal(size=n) * (1 - abs(slope)) + rng.normal(size=12)[clump] / 3
    corpus = corpus_of(features, quality, lengths=np.exp(4 + 0.8 * (slope * quality + noise)))
    typical = corpus.features @ corpus.features.mean(axis=0)
    for ratio, lamb in itertools.product((0.1, 0.3), (0.0, 0.37, 0.8, 1.0)):
        config = SelectionConfig.from_options(objective=objective, lamb=lamb, select_ratio=ratio, device="cpu")
        rows = np.asarray(select(corpus, config, cache_dir=tmp_path).rows)
        least, most = cost.token_range(corpus, typical, len(rows), lamb)
        assert least <= corpus.lengths[rows].sum() <= most


def test_epochs_are_those_of_all_rows_where_a_sample_is_open(tmp_path):
    config = SelectionConfig.from_options(select_ratio=0.3)
    price = cost.estimate(config, 1000, 16, "f", [], 100_000.0, lambda count, lamb: (100.0 * count, 170.0 * count))
    said = [cost.epochs_of_two(price, None, 3e6, times).replace("\u00a0", " ") for times in (1.0, 50.0)]
    assert said[0] == "30 k to 51 k tokens: 59 to 100 epochs of 3 M."
    assert said[1] == "On all rows, 1.5 M to 2.55 M tokens: 1.2 to 2 epochs of 3 M."
    assert cost.epochs_of_two(estimate(RunStore(tmp_path)), None, 3e6) == ""


def test_a_ratio_that_selects_nothing_is_refused(tmp_path):
    with pytest.raises(OptionError, match="select_ratio"):
        estimate(RunStore(tmp_path), n=100, select_ratio=0.001)


def test_either_way_has_its_time_and_the_rows_are_said_once(tmp_path):
    store = made(tmp_path, n_epochs=50, estimator="counterfactual", n_rollout=4)
    learn = estimate(store, n_epochs=50, n_rollout=4, estimator="counterfactual")
    solve = estimate(store, estimator="relaxed")
    said = cost.sentence_of_two(solve, learn, 1000).replace("\u00a0", " ").replace("\\", "")
    assert said == "Selects **300** of 1,000 rows. Learn masks: about **10 s**."
    assert cost.sentence_of_two(solve, learn, 1000, shown=300).startswith("Learn masks: ")
    assert cost.sentence_of_two(None, learn, 1000).endswith("rows. Learn masks: about **10\u00a0s**.")
    assert cost.sentence_of_two(solve, None, 1000, shown=300) == ""
    assert cost.details_of_two(solve, None).startswith("Time: no estimate until a run")
    # both select by the same settings: one stored run says how many tokens either selects
    stored = made(tmp_path / "with-tokens", estimator="counterfactual", tokens=31_234)
    ways = [estimate(stored, tokens=100_000.0, estimator=name) for name in ("relaxed", "counterfactual")]
    assert "(about 31.2\u00a0k tokens)" in cost.sentence_of_two(*ways, 1000)
    assert cost.details_of_two(*ways).count("Tokens: ") == 1
    assert "Tokens: of selections of this problem" in cost.details_of_two(*ways)
    with pytest.raises(ValueError, match="solve and learn are both None"):
        cost.sentence_of_two(None, None, 1000)
