"""Runs made by the program of commit 0d4efc3 (see make_runs.py): listed, shown, resumed, exported, reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.analyses.report import report
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.runs.store import RunStore
from tests.commands import ROOT, last_json, run

GOLDEN = Path(__file__).parent
CORPUS = "tests/golden/corpus/part-1.parquet"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))
DONE = [run_id for run_id, expected in EXPECTED.items() if expected["state"] == "done"]
UNFINISHED = [run_id for run_id, expected in EXPECTED.items() if expected["state"] in ("stopped", "interrupted")]


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A copy of the folder, seen from where its runs were made: their inputs are relative paths."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    shutil.copytree(GOLDEN / "runs", tmp_path / "runs")
    monkeypatch.setenv("DATAMASK_RUNS_DIR", str(tmp_path / "runs"))
    return RunStore(tmp_path / "runs")


def selected_ids(stored_run) -> list[str]:
    return sorted(stored_run.selection()["chunk_id"].to_pylist())


def test_all_of_them_are_listed_as_they_stood(store, capsys):
    assert {stored.id: stored.status().state for stored in store.list()} == {
        run_id: expected["state"] for run_id, expected in EXPECTED.items()
    }
    assert run("runs", "list") == cli.DONE
    printed = capsys.readouterr().out
    assert all(run_id in printed for run_id in EXPECTED if run_id != "archived-greedy")


def test_labels_and_results_are_read(store):
    archived = store.get("archived-greedy")
    assert archived.label().archived and archived.label().tags == ("old", "greedy")
    assert archived.config.notes == "kept for its ids"
    assert [(result.score, result.seed) for result in store.get("done-facility").results()] == [(0.5, "1"), (0.75, "2")]


@pytest.mark.parametrize("run_id", EXPECTED)
def test_each_is_shown(store, capsys, run_id):
    assert run("runs", "show", run_id) == cli.DONE
    assert EXPECTED[run_id]["state"] in capsys.readouterr().out


@pytest.mark.parametrize("run_id", DONE)
def test_a_done_one_has_its_ids(store, run_id):
    assert selected_ids(store.get(run_id)) == EXPECTED[run_id]["ids"]


@pytest.mark.parametrize("run_id", UNFINISHED)
def test_an_unfinished_one_resumes_to_the_ids_of_an_unbroken_run(store, run_id, capsys):
    assert run("resume", run_id, "--json") == cli.DONE
    assert last_json(capsys)["status"] == "done"
    assert selected_ids(store.get(run_id)) == EXPECTED[run_id]["ids"]


@pytest.mark.parametrize("run_id", DONE)
def test_a_done_one_is_exported(store, run_id, tmp_path, capsys):
    words = ["--ids", tmp_path / "ids.parquet", "--rows", tmp_path / "rows.parquet", "--mask", tmp_path / "masks"]
    assert run("runs", "export", run_id, *words) == cli.DONE
    expected = EXPECTED[run_id]["ids"]
    assert sorted(pq.read_table(tmp_path / "ids.parquet")["chunk_id"].to_pylist()) == expected
    rows = pq.read_table(tmp_path / "rows.parquet")
    corpus = pq.read_table(CORPUS)
    chosen = [row_id in set(expected) for row_id in corpus["chunk_id"].to_pylist()]
    assert rows.equals(corpus.filter(chosen))
    assert pq.read_table(next((tmp_path / "masks").rglob("*.parquet")))["selected"].to_pylist() == chosen


@pytest.mark.parametrize("run_id", DONE)
def test_a_done_one_has_a_recipe_where_its_objective_has_a_rule(store, run_id, tmp_path, capsys):
    selection = store.get(run_id).config.selection
    code = run("recipe", run_id, "--output", tmp_path / "recipe.json", "--json")
    if selection.objective != "pairwise" or selection.estimator == "imported":
        assert code == cli.BAD and "has no recipe: " in capsys.readouterr().err
        return
    assert code == cli.DONE
    told = last_json(capsys)
    # few rows are selected in 64 dimensions, so many lie near the threshold
    assert told["selected"] == len(EXPECTED[run_id]["ids"]) and told["otherwise"] < 0.4 * told["selected"]
    assert run("apply", tmp_path / "recipe.json", CORPUS, "--output", tmp_path / "out", "--json") == cli.DONE
    assert last_json(capsys)["kept"] == told["kept"]


@pytest.mark.parametrize("run_id", DONE)
def test_a_done_one_is_reported(store, run_id):
    stored = store.get(run_id)
    page = report(stored, store.list(), open_corpus(CorpusConfig((CORPUS,))), store.cache_dir)
    assert page.startswith("<!DOCTYPE html>") and f"{len(EXPECTED[run_id]['ids']):,}" in page


def test_a_run_on_a_file_whose_name_is_no_utf8_is_reported(store):
    stored = store.get("done-budget")
    record = json.loads((stored.path / "config.json").read_text(encoding="utf-8"))
    record["config"]["corpus"]["inputs"] = ["caf\udce9.parquet"]
    (stored.path / "config.json").write_text(json.dumps(record), encoding="utf-8")
    page = report(stored, store.list(), None, store.cache_dir)
    assert "caf\\udce9.parquet" in page and page.encode("utf-8")
