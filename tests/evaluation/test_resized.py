"""Selections with other amounts, at once: they obey the rules, and share most rows with what is then solved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from datamask import open_corpus
from datamask.analyses.lambda_slider.preview import Preview
from datamask.config import Quota, SelectionConfig
from datamask.dashboard.data import demo
from datamask.dashboard.drawing import words
from datamask.dashboard.map.marks import EVERYTHING
from datamask.dashboard.map.places import place
from datamask.dashboard.tradeoff import kept_points, lambda_points, live
from datamask.evaluation.live import open_live
from tests.making.parcels import opened_parcel
from tests.making.runs import write_shard

LONG = 240.0


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """600 rows with sources and lengths, as a corpus and a table."""
    path = tmp_path_factory.mktemp("resized") / "shard.parquet"
    config = write_shard(path, 600)
    return open_corpus(config), pd.read_parquet(path), path.parent


def ids_in(folder, name: str, table, rows) -> str:
    table.iloc[rows][["chunk_id"]].to_parquet(folder / f"{name}.parquet")
    return str(folder / f"{name}.parquet")


def order_of(solver, mask, lamb) -> np.ndarray:
    """Rows by membership, then by what they add."""
    scores = solver.row_scores(mask, lamb)
    return pd.DataFrame({"out": ~mask, "score": -scores}).sort_values(["out", "score"]).index.to_numpy()


@pytest.mark.parametrize("objective", ["facility", "pairwise"])
def test_without_rules_it_is_the_head_of_one_order(shard, tmp_path, objective):
    corpus, _, _ = shard
    config = SelectionConfig.from_options(objective=objective, select_ratio=0.3)
    solver = open_live(corpus, config, tmp_path)
    mask = solver.solve(0.5).mask
    order = order_of(solver, mask, 0.5)
    others = [replace(config, select_ratio=ratio) for ratio in (0.2, 0.3, 0.4, 0.9999)]
    *found, none = solver.resized(mask, 0.5, others)
    assert none is None, "all rows were to be selected"
    for other, resized in zip(others, found, strict=False):
        assert set(np.flatnonzero(resized)) == set(order[: other.size(len(corpus))])
    assert np.array_equal(found[1], mask)


def test_pins_bans_and_quotas_hold_at_every_amount(shard, tmp_path):
    corpus, table, folder = shard
    pins, bans, value = np.arange(5, 45), np.arange(100, 160), str(table.source.mode()[0])
    config = SelectionConfig.from_options(
        select_ratio=0.3,
        pin=ids_in(folder, "pin", table, pins),
        ban=ids_in(folder, "ban", table, bans),
        quotas=(Quota("source", value, 0.1, 0.25),),
    )
    solver = open_live(corpus, config, tmp_path)
    mask = solver.solve(0.5).mask
    for ratio in (0.2, 0.25, 0.37):
        (resized,) = solver.resized(mask, 0.5, [replace(config, select_ratio=ratio)])
        share = (table.source[resized].astype(str) == value).mean()
        assert resized.sum() == round(ratio * len(table)) and 0.1 <= share <= 0.25
        assert resized[pins].all() and not resized[bans].any()
    few = replace(config, select_ratio=0.05)  # fewer than the pins
    assert solver.resized(mask, 0.5, [few]) == [None]


@pytest.mark.parametrize("shared", [False, True])
def test_a_budget_is_filled_at_every_amount(shard, tmp_path, shared):
    corpus, table, _ = shard
    total, lengths, value = corpus.lengths.sum(), corpus.lengths, str(table.source.mode()[0])
    quotas = (Quota("source", value, 0.1, 0.15),) if shared else ()
    config = SelectionConfig.from_options(budget=float(round(0.3 * total)), quotas=quotas)
    solver = open_live(corpus, config, tmp_path)
    mask = solver.solve(0.5).mask
    for share in (0.2, 0.25, 0.4):
        (resized,) = solver.resized(mask, 0.5, [replace(config, budget=share * total)])
        most, held = share * total, lengths[resized & (table.source.astype(str) == value)].sum()
        assert most - (1 + shared) * lengths.max() <= lengths[resized].sum() <= most
        assert not shared or 0.1 * most - lengths.max() <= held <= 0.15 * most
    # what is too long for a smaller share is in no preview of it
    (few,) = solver.resized(mask, 0.5, [replace(config, budget=10 * lengths.max())])
    assert not shared or lengths[few & (table.source.astype(str) == value)].sum() <= 1.5 * lengths.max()


def test_on_the_demo_it_shares_most_rows_with_what_is_then_solved(tmp_path):
    corpus, settings = open_corpus(demo.config()), lambda_points.settings_of(None)
    points = kept_points.of_problem(corpus, settings, demo.results() / "cache")
    solved = {point.lamb: point.mask for point in points}
    solver = open_live(corpus, settings, tmp_path)
    others = [replace(settings, select_ratio=ratio) for ratio in (0.2, 0.4)]
    then = [open_live(corpus, other, tmp_path) for other in others]
    for lamb in (0.2, 0.5, 0.8):
        for other, resized, there in zip(others, solver.resized(solved[lamb], lamb, others), then, strict=True):
            answer = there.solve(lamb)
            assert resized.sum() == answer.mask.sum() == other.size(len(corpus))
            assert answer.mask[resized].mean() >= 0.85, (lamb, other.select_ratio)


def test_the_preview_that_is_sent_has_the_rows_and_tokens_of_its_masks(shard, tmp_path, live_of_its_own):
    corpus, table, _ = shard
    settings = SelectionConfig.from_options(select_ratio=0.3)
    behind = live.session(corpus, settings, tmp_path)
    behind.wait(LONG)
    mask = behind.answer(0.5, LONG).mask
    places = place(np.random.default_rng(0).normal(size=(len(corpus), 2)), hexagons=False)
    key = kept_points.key_of(corpus, settings)
    preview = Preview(key, replace(settings, lamb=0.5), mask, corpus.lengths, len(corpus), places, False, EVERYTHING)
    sent = opened_parcel(preview.parcel())
    codes = sent["codes"].reshape(len(sent["amounts"]), -1)
    assert [amount["share"] for amount in sent["amounts"]] == list(range(20, 41))
    for amount, drawn in zip(sent["amounts"], codes, strict=True):
        rows = table.iloc[places.drawn[drawn == 1]]
        assert (amount["rows"], amount["tokens"]) == (len(rows), words.short(rows.n_tokens.sum()))
        assert len(rows) == round(amount["share"] / 100 * len(table))
    assert replace(preview, problem="another").parcel() is None
