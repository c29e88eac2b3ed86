"""The table of runs against what lies in the run folders, read by the standard library."""

from __future__ import annotations

import json
import math
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.runs import runs_table
from datamask.runs.store import Run, RunStore
from tests.making.runs import finish_run, write_shard


def create(store: RunStore, name: str = "", notes: str = "", **options) -> Run:
    selection = SelectionConfig.from_options(**options)
    return store.create(RunConfig(CorpusConfig(("a.parquet",)), selection, name, notes))


@pytest.fixture
def corpus(tmp_path):
    config = write_shard(tmp_path / "shard.parquet", 60)
    return SimpleNamespace(config=config, rows=open_corpus(config))


def stored(run: Run, file: str) -> dict:
    return json.loads((run.path / f"{file}.json").read_text())


def test_every_number_is_the_one_in_the_files(tmp_path, corpus):
    store = RunStore(tmp_path / "runs")
    shares = ((0.81, 0.42), (-0.25, None), (0.5, 1.0))
    for place, (quality, diversity) in enumerate(shares):
        run = finish_run(
            store,
            corpus.rows,
            corpus.config,
            corpus.rows.quality,
            name=f"run {place}",
            shares={"quality": quality, "diversity": diversity},
            lamb=0.1 * place,
            select_ratio=0.2,
            objective="pairwise",
        )
        with run.writer() as writer:
            numbers = {"gap": 0.01 * place, "tokens": 700 + place, "seconds_total": 2.5 + place}
            writer.finish("done", None, "converged", summary={**run.status().to_dict()["summary"], **numbers})
    runs = store.list()
    frame = runs_table.table(runs)
    assert frame.index.tolist() == [run.id for run in runs]
    assert [column.name for column in runs_table.COLUMNS if column.name != runs_table.CORPUS] == list(frame)
    for run in runs:
        row, settings = frame.loc[run.id], stored(run, "config")["config"]
        summary = stored(run, "status")["summary"]
        selection = settings["selection"]
        assert (row["name"], row["state"]) == (settings["name"], "done")
        for name, expected in {
            "quality": summary["calibrated"]["quality"],
            "diversity": summary["calibrated"]["diversity"],
            "lamb": selection["lamb"],
            "ratio": selection["select_ratio"],
            "gap": summary["gap"],
            "tokens": summary["tokens"],
            "seconds": summary["seconds_total"],
        }.items():
            assert np.array_equal(row[name], np.nan if expected is None else expected, equal_nan=True), name
        assert row["below"] == ("quality" if summary["calibrated"]["quality"] < 0 else None)
        assert (row["objective"], row["estimator"]) == ("Pair-wise similarity", "Solve")
        assert abs(row["age"].timestamp() - stored(run, "status")["created"]) <= 0.001


def test_what_is_not_known_is_empty_and_never_nought(tmp_path):
    store = RunStore(tmp_path)
    run = create(store, objective="disf")
    frame = runs_table.table([run])
    row = frame.loc[run.id]
    assert row["state"] == "queued" and row["name"] == run.id
    assert all(math.isnan(row[name]) for name in ("quality", "diversity", "gap", "tokens", "seconds"))
    assert row["tags"] is None and row["note"] is None
    assert (row["lamb"], row["ratio"]) == (0.5, 0.3)


def test_nought_is_kept_where_it_was_measured(tmp_path):
    run = create(RunStore(tmp_path), lamb=0)
    with run.writer() as writer:
        summary = {"calibrated": {"quality": 0.0, "diversity": 0.0}, "gap": 0.0, "seconds_total": 0.0, "seconds": 3.0}
        writer.finish("stopped", None, summary=summary)
    row = runs_table.table([run]).loc[run.id]
    assert [row[name] for name in ("quality", "diversity", "gap", "seconds", "lamb")] == [0.0] * 5


def test_lambda_is_empty_where_it_had_no_say_and_a_gap_where_it_is_in_other_units(tmp_path):
    store = RunStore(tmp_path)
    random, raw = create(store, estimator="random"), create(store, scale="raw")
    with raw.writer() as writer:
        writer.finish("stopped", None, summary={"gap": 12.0})
    frame = runs_table.table([random, raw])
    assert math.isnan(frame.loc[random.id, "lamb"]) and frame.loc[raw.id, "lamb"] == 0.5
    assert math.isnan(frame.loc[raw.id, "gap"])


def test_the_ratio_of_a_token_budget_is_what_it_came_to(tmp_path):
    store = RunStore(tmp_path)
    running, done = create(store, budget=500.0), create(store, budget=500.0)
    with done.writer() as writer:
        writer.finish("stopped", None, summary={"selected": 30, "n": 120})
    frame = runs_table.table([running, done])
    assert math.isnan(frame.loc[running.id, "ratio"]) and frame.loc[done.id, "ratio"] == 0.25


def test_names_tags_and_notes_are_those_of_now(tmp_path):
    run = create(RunStore(tmp_path), "before", "first")
    with run.writer() as writer:
        writer.finish("stopped")
    assert runs_table.table([run]).loc[run.id, "note"] == "first"
    run.relabel("after", "second", ["paper", "keep"])
    row = runs_table.table([run]).loc[run.id]
    assert (row["name"], row["note"], row["tags"]) == ("after", "second", ["paper", "keep"])


def test_a_row_is_read_once_and_again_after_any_of_its_files_changed(tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.memo.SETTLED_SECONDS", -1.0)
    run = create(RunStore(tmp_path), "one")
    with run.writer() as writer:
        writer.finish("stopped")
    reads = []
    monkeypatch.setattr(runs_table, "_read", lambda run, read=runs_table._read: reads.append(run.id) or read(run))
    assert runs_table.table([run]).equals(runs_table.table([run])) and len(reads) == 1
    run.relabel("two")
    assert runs_table.table([run]).loc[run.id, "name"] == "two" and len(reads) == 2
    with run.writer() as writer:
        writer.finish("failed", error="no room")
        assert runs_table.table([run]).loc[run.id, "state"] == "failed"


def test_who_holds_the_lock_decides_whether_a_run_is_at_work(tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.memo.SETTLED_SECONDS", -1.0)
    run = create(RunStore(tmp_path))
    with run.writer() as writer:
        writer.set_status("running")
        assert runs_table.table([run])["state"].tolist() == ["running"]
    assert runs_table.table([run])["state"].tolist() == ["interrupted"]
    with run.writer() as writer:
        writer.set_status("running", step=1)
        assert runs_table.table([run])["state"].tolist() == ["running"]


def test_a_damaged_record_has_a_row_without_numbers(tmp_path):
    store = RunStore(tmp_path)
    run = create(store, "whole")
    (run.path / "config.json").write_text("{")
    row = runs_table.table(store.list(), several=True).loc[run.id]
    assert (row["name"], row["state"], row["corpus"]) == (run.id, "failed", None)
    assert math.isnan(row["lamb"]) and row["objective"] is None


@pytest.mark.parametrize("number", [10**400, float("inf"), 2**40])
def test_numbers_that_no_column_can_hold_are_not_known(tmp_path, number):
    run = create(RunStore(tmp_path))
    with run.writer() as writer:
        writer.finish("stopped", None, summary={"tokens": 5})
    status = stored(run, "status")
    status["summary"]["tokens"], status["created"] = number, 253370764799.0
    (run.path / "status.json").write_text(json.dumps(status))
    row = runs_table.table([run]).loc[run.id]
    assert row["tokens"] == number if number == 2**40 else math.isnan(row["tokens"])
    assert row["age"].year == 9998


def test_rows_are_found_by_all_words_anywhere(tmp_path):
    store = RunStore(tmp_path)
    first, second = create(store, "Wide net", "for the paper"), create(store, "narrow", objective="disf")
    first.relabel(tags=["Section 4"])
    frame = runs_table.table([first, second])
    for search, expected in {
        "": [first.id, second.id],
        " WIDE paper": [first.id],
        "section facility": [first.id],
        "decorrelation": [second.id],
        "queued": [first.id, second.id],
        "wide narrow": [],
        second.id[-6:]: [second.id],
    }.items():
        assert runs_table.matching(frame, search).index.tolist() == expected, search


def test_no_run_gives_an_empty_table_of_the_same_types(tmp_path):
    empty = runs_table.table([])
    full = runs_table.table([create(RunStore(tmp_path))])
    assert list(empty) == list(full) and empty.dtypes.tolist() == full.dtypes.tolist()
    assert runs_table.matching(empty, "x").empty


def test_a_column_is_one_entry(tmp_path, monkeypatch):
    added = runs_table.Column("device", "Device", runs_table.TEXT, "Where.", lambda record: record.selection.device)
    monkeypatch.setattr(runs_table, "COLUMNS", (*runs_table.COLUMNS, added))
    run = create(RunStore(tmp_path), device="cpu")
    assert runs_table.table([run]).loc[run.id, "device"] == "cpu"


def test_rows_of_several_corpora_name_theirs(tmp_path):
    run = create(RunStore(tmp_path))
    assert "corpus" not in runs_table.table([run])
    frame = runs_table.table([run], several=True)
    assert frame["corpus"].tolist() == ["a.parquet"]
    assert (
        isinstance(frame["age"].dtype, pd.DatetimeTZDtype) and abs(frame["age"].iloc[0].timestamp() - time.time()) < 600
    )
