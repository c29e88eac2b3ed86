"""Scoreboards and agreements in the background: kept where the pages look, stopped without a trace."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from datamask.analyses.agreement import counting
from datamask.analyses.scoreboard import compute as engine
from datamask.analyses.scoreboard import measuring
from datamask.corpus import open_corpus
from datamask.runs import run_queue, stored_measures
from datamask.runs.store import RunStore
from tests.making.runs import finish_run, write_shard


@pytest.fixture
def world(tmp_path):
    config = write_shard(tmp_path / "shard.parquet", n=120)
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    noise = np.random.default_rng(0).normal(size=(2, len(corpus)))
    runs = [
        finish_run(store, corpus, config, scores, objective="pairwise", estimator="relaxed", n_epochs=5)
        for scores in noise
    ]
    yield corpus, store, runs
    run_queue.run_queue(store.root).close()


def test_what_is_measured_lies_where_the_pages_look(world):
    corpus, store, runs = world
    task = counting.start_agreement(runs[0], corpus, store.cache_dir)
    task.wait(300)
    assert task.state == "done", task.error
    appeared, selected = stored_measures.stored_agreement(runs[0], corpus.fingerprint, store.cache_dir).find()
    assert appeared.sum() == 20 * 96 and (selected <= appeared).all()
    assert counting.agreement_key(runs[0], corpus) != counting.agreement_key(runs[1], corpus)


def test_a_board_gets_the_runs_and_can_be_stopped(world, monkeypatch):
    """The engine has its own tests; here it stands for minutes of work."""
    corpus, store, runs = world
    begun = threading.Event()

    def slow(given, on, cache_dir, work):
        assert (given, on) == (runs, corpus)
        work.report(0.5, "measuring Vendi score")
        begun.set()
        while True:
            work.poll()
            time.sleep(0.01)

    monkeypatch.setattr(engine, "write_board", slow)
    task = measuring.start_board(runs, corpus, store.cache_dir)
    assert begun.wait(120) and (task.share, task.message) == (0.5, "measuring Vendi score")
    assert measuring.start_board(runs[::-1], corpus, store.cache_dir) is task, "asked again, it is joined"
    task.stop()
    task.wait(120)
    assert (
        task.state == "stopped"
        and stored_measures.stored_board(runs, corpus.fingerprint, store.cache_dir).find() is None
    )


def test_objectives_of_a_run_are_exact(world):
    corpus, store, runs = world
    values = measuring.objective_values(runs[0], corpus, store.cache_dir)
    chosen = runs[0].rows()["selected"].to_numpy(zero_copy_only=False)
    x = corpus.features[chosen].astype(float)
    total, size = x.sum(axis=0), len(x)
    assert values["pairwise"] == pytest.approx(-(total @ total - size) / (size * (size - 1)), rel=1e-5)
    assert values["facility"] == pytest.approx(np.maximum(corpus.features @ x.T, 0).max(axis=1).mean(), rel=1e-5)
