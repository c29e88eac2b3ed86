"""Boards and agreements of real runs: kept on disk, the same as asked for directly, refused where they mean nothing."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from datamask.analyses.scoreboard.compute import agreement, boards
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.errors import OptionError, RunStateError, Stopped
from datamask.evaluation import score_selection
from datamask.runs import stored_measures
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.commands import TINY
from tests.making.runs import execute_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with three done runs of the tiny shards, two of them of one size, and the corpus."""
    store = RunStore(tmp_path_factory.mktemp("runs"))
    corpus = CorpusConfig((TINY,))
    for options in ({"lamb": 0.2}, {"lamb": 0.8}, {"estimator": "random", "select_ratio": 0.1}):
        execute_run(store, corpus, **{"objective": "pairwise", "estimator": "relaxed", "select_ratio": 0.2, **options})
    runs = sorted(store.list(), key=lambda run: (-run.config.selection.select_ratio, run.config.selection.lamb))
    return store, runs, open_corpus(corpus)


def test_a_board_is_kept_whatever_the_order(made):
    store, runs, corpus = made
    pair = runs[:2]
    assert stored_measures.stored_board(pair, corpus.fingerprint, store.cache_dir).find() is None
    boards.write_board(pair, corpus, store.cache_dir)
    board = stored_measures.stored_board(pair[::-1], corpus.fingerprint, store.cache_dir).find()
    values = {row["measure"]: row["selections"] for row in board["measures"]}
    rows = runs[0].rows()["selected"].to_numpy(zero_copy_only=False).nonzero()[0]
    alone = score_selection(corpus, rows, store.cache_dir, "cpu")
    for name, value in alone["objectives"].items():
        # the board has the Vendi score, which is the exponential of the objective
        expected = math.exp(value) if name == "vendi" else value
        assert values[name][runs[0].id]["value"] == pytest.approx(expected, rel=1e-7 if name == "vendi" else 1e-9)
    assert values["pairwise"][runs[0].id]["verdict"] == "hatched"  # made by it, so never best on it
    assert {"random", "top-quality"} < set(values["quality"])


def test_a_stop_keeps_what_is_measured_and_the_next_start_goes_on(made):
    store, runs, corpus = made
    three = runs[:1] + runs[2:]
    stopping = False

    def progress(share, what):
        nonlocal stopping
        stopping = share > 0.3

    with pytest.raises(Stopped):
        boards.write_board(three, corpus, store.cache_dir, Work.of(lambda: stopping, progress))
    part = stored_measures.stored_board(three, corpus.fingerprint, store.cache_dir).find()
    assert part["left"] and part["measures"]
    heard = []
    whole = boards.write_board(three, corpus, store.cache_dir, Work(report=lambda share, what: heard.append(share)))
    assert heard[0] > 0.25 and whole["left"] == [] and len(whole["measures"]) > len(part["measures"])
    assert stored_measures.stored_board(three, corpus.fingerprint, store.cache_dir).find() == json.loads(
        json.dumps(whole)
    )
    stored_measures.stored_board(three, corpus.fingerprint, store.cache_dir).drop()
    boards.write_board(three, corpus, store.cache_dir)
    assert stored_measures.stored_board(three, corpus.fingerprint, store.cache_dir).find() == json.loads(
        json.dumps(whole)
    )


def test_agreement_is_kept(made):
    store, runs, corpus = made
    assert stored_measures.stored_agreement(runs[0], corpus.fingerprint, store.cache_dir).find() is None
    agreement.write_agreement(runs[0], corpus, store.cache_dir)
    appeared, selected = stored_measures.stored_agreement(runs[0], corpus.fingerprint, store.cache_dir).find()
    assert appeared.sum() == 20 * 960 and selected.sum() == 20 * 192 and (selected <= appeared).all()
    chosen = runs[0].rows()["selected"].to_numpy(zero_copy_only=False).astype(bool)
    share = np.divide(selected, appeared, out=np.zeros(len(appeared)), where=appeared > 0)
    path = stored_measures.stored_agreement(runs[0], corpus.fingerprint, store.cache_dir).path
    path.write_bytes(path.read_bytes()[:500])  # cut short: as if it had never been there
    assert stored_measures.stored_agreement(runs[0], corpus.fingerprint, store.cache_dir).find() is None
    assert share[chosen].mean() > 0.8 and share[~chosen].mean() < 0.1


def test_what_means_nothing_is_refused_and_stopping_leaves_nothing(made, tmp_path):
    store, runs, corpus = made
    waiting = RunStore(tmp_path).create(runs[0].config)
    with pytest.raises(RunStateError, match="only a done run"):
        boards.write_board([waiting], corpus, store.cache_dir)
    with pytest.raises(RunStateError, match="other rows"):
        agreement.write_agreement(runs[0], replace(corpus, fingerprint="0" * 32), store.cache_dir)
    with pytest.raises(Stopped):
        agreement.write_agreement(runs[2], corpus, store.cache_dir, Work.of(lambda: True))
    assert stored_measures.stored_agreement(runs[2], corpus.fingerprint, store.cache_dir).find() is None
    (tmp_path / "pin.txt").write_text(str(corpus.ids[0]))
    options = {"objective": "pairwise", "estimator": "relaxed", "pin": str(tmp_path / "pin.txt")}
    pinned = execute_run(RunStore(tmp_path), runs[0].config.corpus, **options)
    with pytest.raises(OptionError, match="agreement"):
        agreement.write_agreement(pinned, corpus, store.cache_dir)
