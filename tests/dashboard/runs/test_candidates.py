"""Which runs are offered for a comparison, what is said of the others, and which two come first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from datamask.config import RunConfig
from datamask.corpus import open_corpus
from datamask.dashboard.runs import candidates
from datamask.runs.store import RunStore
from tests.making.runs import finish_run, write_shard


@pytest.fixture
def world(tmp_path):
    config = write_shard(tmp_path / "shard.parquet")
    return RunStore(tmp_path / "runs"), open_corpus(config), config


def test_archived_runs_stay_out_unless_asked_for(world):
    store, corpus, config = world
    scores = np.arange(len(corpus))
    away, here = (finish_run(store, corpus, config, scores, name=name) for name in ("away", "here"))
    away.relabel(archived=True)
    fit, refused = candidates.candidates(store.list(), corpus.fingerprint)
    assert [run.id for run in fit] == [here.id] and not refused
    assert {run.id for run in candidates.candidates(store.list(), corpus.fingerprint, archived=True)[0]} == {
        away.id,
        here.id,
    }


def test_candidates_say_in_plain_words_why_others_are_not(world):
    store, corpus, config = world
    scores = np.arange(len(corpus))
    good, other, changed, damaged = (finish_run(store, corpus, config, scores) for _ in range(4))
    elsewhere = store.create(RunConfig(replace(config, inputs=("/data/poems",)), good.config.selection))
    for run, n in ((other, 960), (changed, len(corpus)), (elsewhere, 7_000)):
        with run.writer() as writer:
            writer.update_facts(fingerprint="f" * 64, n=n)
    queued = store.create(good.config)
    (damaged.path / "config.json").write_text('{"config": {}}')
    fit, refused = candidates.candidates([good, changed, elsewhere, queued, damaged], corpus.fingerprint, config=config)
    assert [run.id for run in fit] == [good.id]
    reasons = {entry.run.id: entry.reason for entry in refused}
    assert "have changed since" in reasons[changed.id]
    assert reasons[elsewhere.id] == "it is of another corpus: poems, 7,000 rows"
    assert reasons[queued.id] == "it has not started"
    assert "config.json" in reasons[damaged.id]
    assert not any("fingerprint" in reason or "ffff" in reason for reason in reasons.values())
    (_, unasked) = candidates.candidates([other], corpus.fingerprint)
    assert unasked[0].reason == "it is of another corpus: shard.parquet, 960 rows"


def test_the_first_pair_is_what_was_opened_else_the_newest_of_one_kind(world):
    store, corpus, config = world
    noise = np.random.default_rng(0).normal(size=(4, len(corpus)))
    kinds = ({}, {}, {"objective": "pairwise"}, {"select_ratio": 0.1})
    first, second, pairs, small = (
        finish_run(store, corpus, config, scores, **kind) for scores, kind in zip(noise, kinds, strict=True)
    )
    newest_first = [small, pairs, second, first]

    def chosen(*opened):
        found = candidates.first_pair(newest_first, [run.id for run in opened])
        return found.first.id, found.second.id, found.why

    assert chosen() == (second.id, small.id, "the newest run (B) with the next newest of the same objective (A)")
    assert chosen(first) == (
        second.id,
        first.id,
        "the run that you opened last (B) with the next newest of the same objective and size (A)",
    )
    assert chosen(pairs) == (
        second.id,
        pairs.id,
        "the run that you opened last (B) with the next newest of the same size (A)",
    )
    assert chosen(first, small, second) == (small.id, first.id, "your last two runs")
    gone = candidates.first_pair(newest_first, ["removed-meanwhile", first.id])
    assert (gone.first.id, gone.second.id) == (second.id, first.id)


def test_points_of_sweeps_do_not_come_first_where_two_runs_were_made_alone(world):
    store, corpus, config = world
    noise = np.random.default_rng(0).normal(size=(4, len(corpus)))
    alone, other, point, last = (finish_run(store, corpus, config, scores) for scores in noise)
    for run in (point, last):
        with run.writer() as writer:
            writer.update_facts(sweep="sweep-a")
    newest_first = [store.get(run.id) for run in (last, point, other, alone)]
    assert [run.id for run in candidates.made_alone(newest_first)] == [other.id, alone.id]
    pair = candidates.first_pair(newest_first)
    assert (pair.first.id, pair.second.id) == (alone.id, other.id)
    # one of them was opened, or there is only one besides: all count
    assert candidates.first_pair(newest_first, [last.id]).second.id == last.id
    few = candidates.first_pair(newest_first[:3])
    assert (few.first.id, few.second.id) == (point.id, last.id)


def test_pages_open_on_a_run_made_alone_else_on_the_middle_of_the_newest_sweep(world):
    store, corpus, config = world
    noise = np.random.default_rng(0).normal(size=(6, len(corpus)))
    assert candidates.first_shown([]) is None
    made = []
    for sweep, lamb, scores in zip("aaabbb", (0.5, 0.6, 1.0, 0.0, 0.4, 1.0), noise, strict=True):
        made.insert(0, finish_run(store, corpus, config, scores, lamb=lamb))
        with made[0].writer() as writer:
            writer.update_facts(sweep=sweep)
    newest_first = [store.get(run.id) for run in made]
    shown = candidates.first_shown(newest_first)
    assert (shown.config.selection.lamb, shown.facts()["sweep"]) == (0.4, "b")
    alone = finish_run(store, corpus, config, noise[0], lamb=1.0)
    assert candidates.first_shown([*newest_first, alone]).id == alone.id
    # where no corpus is open, runs on any are candidates
    fit, _ = candidates.candidates([alone, store.create(alone.config)], None)
    assert [run.id for run in fit] == [alone.id]
