"""`select` on a corpus that does not fit into memory: all rows, a sample, or two commands to choose from."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus import shards
from datamask.corpus.readers import PARQUET
from datamask.runs import forecast as forecasts
from tests.making.derivable_runs import shard

ROWS, FITTING = 1_500, 1_000


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """1,500 rows of which 1,000 fit into memory; the working folder is empty."""
    pq.write_table(shard(ROWS), tmp_path / "rows.parquet")
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: FITTING)
    monkeypatch.setattr("datamask.runs.mapping.lies_in_memory", lambda folder: False)  # wherever tests are run
    monkeypatch.chdir(tmp_path)
    return tmp_path / "rows.parquet"


def answer_of(capsys, *words):
    """What the command says of the run, and what it says beside it."""
    assert main(["select", "rows.parquet", "--select_ratio", "0.2", "--json", *words]) == 0
    told = capsys.readouterr()
    return json.loads(told.out.splitlines()[-1]), told.err


def planned_as(monkeypatch, **change):
    """Let the forecast be another one."""
    true = forecasts.forecast
    monkeypatch.setattr(forecasts, "forecast", lambda config, poll: replace(true(config, poll), **change))


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_all_rows_are_selected_from_where_that_is_quick(corpus, capsys, objective):
    answer, told = answer_of(capsys, "--objective", objective)
    assert (answer["n"], answer["selected"]) == (ROWS, 300)
    assert "1,000 of 1,500 rows do" in told and "in mapped files. Columns:" in told and "Mapped files lie in" in told


def test_a_long_forecast_is_refused_with_two_commands_that_work(corpus, capsys, monkeypatch):
    planned_as(monkeypatch, minutes=61.0)
    assert main(["select", "rows.parquet", "--objective", "pairwise", "--select_ratio", "0.2", "--json"]) == 2
    refused = capsys.readouterr().err
    assert "a selection from all 1,500 rows takes more than 1 h" in refused and not list(corpus.parent.glob("runs/*"))
    offered = (line.partition(": python -m datamask ")[2] for line in refused.splitlines())
    sample, everything = (shlex.split(words) for words in offered if words)
    assert sample[-2:] == ["--rows", "1000"] and everything[-1] == "--all"
    for words, rows in ((sample, FITTING), (everything, ROWS)):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["n"] == rows


def test_a_disk_without_room_is_refused_too(corpus, capsys, monkeypatch):
    planned_as(monkeypatch, disk_bytes=10**18)
    assert main(["select", "rows.parquet", "--objective", "pairwise"]) == 2
    assert "has no room for its files" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--objective", "disf"), ("--objective", "pairwise", "--estimator", "reinforce")])
def test_every_method_selects_from_all_rows(corpus, capsys, words):
    mapped, told = answer_of(capsys, *words, "--n_epochs", "2", "--all", "--output", "all.csv")
    folder = corpus.parent / "runs" / ".scratch"
    assert mapped["n"] == ROWS and f"lie in files in {folder}" in told and not list(folder.iterdir())
    selected = pa_csv.read_csv("all.csv")["id"][0].as_py()
    assert main(["explain", mapped["run_id"], selected]) == 0 and selected in capsys.readouterr().out
    held, told = answer_of(capsys, *words, "--n_epochs", "2", "--rows", str(ROWS), "--output", "memory.csv")
    assert "lie in files" not in told and held["joint"] == mapped["joint"]
    assert Path("all.csv").read_bytes() == Path("memory.csv").read_bytes()


def test_rows_are_a_sample_that_was_asked_for(corpus, capsys):
    answer, told = answer_of(capsys, "--objective", "pairwise", "--rows", "400")
    assert answer["n"] == 400 and "does not fit" not in told


def test_options_of_all_rows_change_nothing_where_they_fit(corpus, capsys, monkeypatch):
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: ROWS)
    ids = {}
    for name, words in {"plain": (), "all": ("--all",)}.items():
        answer_of(capsys, "--objective", "facility", *words, "--output", f"{name}.parquet")
        ids[name] = pq.read_table(f"{name}.parquet")["id"].to_pylist()
    assert ids["plain"] == ids["all"]


def test_files_lie_beside_the_runs_and_not_in_memory_unless_asked_for(corpus, capsys, monkeypatch):
    _, told = answer_of(capsys, "--objective", "pairwise", "--all")
    folder = corpus.parent / "runs" / ".scratch"
    assert f"lie in files in {folder}" in told and not list(folder.iterdir())
    monkeypatch.setattr("datamask.runs.mapping.lies_in_memory", lambda place: place == folder)
    assert main(["select", "rows.parquet", "--objective", "pairwise", "--all"]) == 2
    assert "lies in memory (tmpfs)" in capsys.readouterr().err
    answer_of(capsys, "--objective", "pairwise", "--all", "--scratch_dir", str(folder))


def test_a_file_is_looked_at_once_as_long_as_it_stays_as_it_is(tmp_path, monkeypatch):
    path, opened = tmp_path / "rows.parquet", []
    true = PARQUET.look
    looking = replace(PARQUET, look=lambda *given: opened.append(1) or true(*given))
    monkeypatch.setattr("datamask.corpus.readers.shard.reader_of", lambda *given: looking)
    monkeypatch.setattr("datamask.memo.SETTLED_SECONDS", -1.0)
    for rows in (10, 10, 20):
        if not path.exists() or rows == 20:
            pq.write_table(shard(rows), path)
        assert shards.open_source("input", [str(path)]).rows == rows
    assert len(opened) == 2
