"""`select` on a corpus that does not fit into memory: all rows in mapped files, or a sample."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from datamask.cli import main
from datamask.corpus import shards
from datamask.corpus.readers import PARQUET
from tests.making.derivable_runs import shard

ROWS, FITTING = 1_500, 1_000


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """1,500 rows of which 1,000 fit into memory; the working folder is empty."""
    pq.write_table(shard(ROWS), tmp_path / "rows.parquet")
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: FITTING)
    monkeypatch.setattr("datamask.cli.beyond_memory.lies_in_memory", lambda folder: False)  # wherever tests are run
    monkeypatch.setattr(shutil, "disk_usage", lambda place: disk(free=2**41))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "rows.parquet"


def disk(free):
    """What the system says of a disk with this room."""
    return SimpleNamespace(total=2**42, used=2**42 - free, free=free)


def answer_of(capsys, *words):
    """What the command says of the run, and what it says beside it."""
    assert main(["select", "rows.parquet", "--select_ratio", "0.2", "--json", *words]) == 0
    told = capsys.readouterr()
    return json.loads(told.out.splitlines()[-1]), told.err


@pytest.mark.parametrize("objective", ["pairwise", "facility"])
def test_all_rows_are_selected_from_in_mapped_files(corpus, capsys, objective):
    answer, told = answer_of(capsys, "--objective", objective)
    assert (answer["n"], answer["selected"]) == (ROWS, 300)
    (line,) = (line for line in told.splitlines() if "1,000 of 1,500 rows fit into memory" in line)
    assert "--rows N takes a uniform sample instead. Takes about" in line
    assert f"of disk (2 TiB free in {corpus.parent / 'runs' / '.scratch'})" in line


def test_a_disk_without_room_is_refused_in_one_sentence(corpus, capsys, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda place: disk(free=50_000))
    assert main(["select", "rows.parquet", "--objective", "pairwise"]) == 2
    refused = capsys.readouterr().err.splitlines()[-1]
    assert (
        "1,500 rows do not fit into memory" in refused
        and "(48.8 KiB free in" in refused
        and not list(corpus.parent.glob("runs/*"))
    )
    assert "--scratch_dir" in refused and "--rows N" in refused
    assert main(["select", "rows.parquet", "--objective", "pairwise", "--dry_run"]) == 0
    assert "more disk than is free" in capsys.readouterr().out
    answer, _ = answer_of(capsys, "--objective", "pairwise", "--rows", str(FITTING))
    assert answer["n"] == FITTING


@pytest.mark.parametrize("words", [("--objective", "disf"), ("--objective", "pairwise", "--estimator", "reinforce")])
def test_every_method_selects_from_all_rows(corpus, capsys, words):
    mapped, told = answer_of(capsys, *words, "--n_epochs", "2", "--output", "all.csv")
    folder = corpus.parent / "runs" / ".scratch"
    assert mapped["n"] == ROWS and f"lie in files in {folder}" in told and not list(folder.iterdir())
    selected = pa_csv.read_csv("all.csv")["id"][0].as_py()
    assert main(["explain", mapped["run_id"], selected]) == 0 and selected in capsys.readouterr().out
    held, told = answer_of(capsys, *words, "--n_epochs", "2", "--rows", str(ROWS), "--output", "memory.csv")
    assert "lie in files" not in told and held["joint"] == mapped["joint"]
    assert Path("all.csv").read_bytes() == Path("memory.csv").read_bytes()


def test_rows_are_a_sample_and_what_fits_lies_in_memory(corpus, capsys, monkeypatch):
    answer, told = answer_of(capsys, "--objective", "pairwise", "--rows", "400")
    assert answer["n"] == 400 and "fit into memory" not in told
    monkeypatch.setattr("datamask.corpus.opening.default_row_limit", lambda *_, **__: ROWS)
    answer, told = answer_of(capsys, "--objective", "pairwise")
    assert answer["n"] == ROWS and "mapped files" not in told


def test_files_lie_beside_the_runs_and_not_in_memory_unless_asked_for(corpus, capsys, monkeypatch):
    folder = corpus.parent / "runs" / ".scratch"
    monkeypatch.setattr("datamask.cli.beyond_memory.lies_in_memory", lambda place: place == folder)
    for asked in ([], ["--dry_run"]):
        assert main(["select", "rows.parquet", "--objective", "pairwise", *asked]) == 2
        assert "lies in memory (tmpfs)" in capsys.readouterr().err
    answer, told = answer_of(capsys, "--objective", "pairwise", "--scratch_dir", str(folder))
    assert answer["n"] == ROWS and f"lie in files in {folder}" in told


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
