"""Imported ids: values against numpy, the same numbers as a selected run, nothing left behind when it fails."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import catalogue, cli
from datamask.cli.parser import import_config, parse
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.errors import InputError, OptionError, RunStateError, Stopped
from datamask.runs import exports, imports
from datamask.runs.execute import execute
from datamask.runs.imports import import_ids
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.commands import TINY
from tests.reference import truth


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def raw():
    """ids, quality and unit features of the tiny shards, read with pyarrow and numpy alone."""
    table = pa.concat_tables(pq.read_table(path) for path in sorted(Path(TINY).glob("*.parquet")))
    x = np.array(table["feature_arr"].to_pylist(), dtype=np.float64)
    return (
        table["chunk_id"].to_pylist(),
        table["quality_score"].to_numpy().astype(np.float64),
        x / np.linalg.norm(x, axis=1, keepdims=True),
    )


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def written(path, ids, rows):
    path.write_text("\n".join(str(ids[i]) for i in rows) + "\n\n", encoding="utf-8")
    return str(path)


def asked(path, name="", ignore_unknown=False, **selection):
    options = {"objective": "pairwise", "lamb": 0.4, "device": "cpu", **selection}
    return RunConfig(
        CorpusConfig((TINY,)), SelectionConfig(**options, estimator="imported"), name, "", path, ignore_unknown
    )


def test_an_import_without_a_list_is_refused_and_leaves_nothing(store):
    with pytest.raises(OptionError, match="--ids is required"):
        import_ids(store, asked(None))
    assert store.list() == []


def test_an_imported_list_is_a_done_run_with_the_lists_own_values(store, raw, tmp_path, rng):
    ids, quality, x = raw
    rows = np.sort(rng.choice(len(ids), 77, replace=False))
    seen = []
    run = import_ids(store, asked(written(tmp_path / "mine.txt", ids, rows)), Work(report=lambda *at: seen.append(at)))
    assert run.status().state == "done" and "77 ids imported from mine.txt" in run.status().ending
    assert run.config.name == "mine" and run.config.selection.estimator == "imported"
    assert run.config.selection.size(len(ids)) == 77
    summary = run.status().to_dict()["summary"]
    s = x[rows].sum(0)
    diversity = -(s @ s - 77) / (77 * 76)
    assert (summary["selected"], summary["n"], summary["unknown_ids"]) == (77, len(ids), 0)
    assert summary["quality"] == pytest.approx(quality[rows].mean(), rel=1e-6)
    assert summary["diversity"] == pytest.approx(diversity, rel=1e-5)
    ends = run.facts()["anchors"]["quality"]
    assert ends["random"] == pytest.approx(quality.mean())
    assert ends["best"] == pytest.approx(np.sort(quality)[-77:].mean())
    assert summary["calibrated"]["quality"] == pytest.approx(
        (quality[rows].mean() - ends["random"]) / (ends["best"] - ends["random"]), abs=1e-6
    )
    assert summary["upper_bound"] >= summary["calibrated"]["joint"]
    table = run.rows()
    assert np.flatnonzero(table["selected"].to_numpy()).tolist() == rows.tolist()
    assert set(run.selection()["chunk_id"].to_pylist()) == {ids[i] for i in rows}
    assert run.selection()["rank"].to_pylist() == list(range(1, 78)) and run.selection()["logit"].null_count == 77
    shares = [share for share, _ in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_it_says_the_same_as_the_run_it_was_exported_from(store, tmp_path):
    """Facts, summary and tables of an export that is read back are those of the run, but for how it came about."""
    options = {"objective": "facility", "lamb": 0.3, "select_ratio": 0.21, "device": "cpu"}
    selection = SelectionConfig.from_options(estimator="top-quality", **options)
    run = store.create(RunConfig(CorpusConfig((TINY,)), selection))
    execute(run, Work(threads=1))
    for name in ("ids.csv", "ids.parquet"):
        path = str(tmp_path / name)
        exports.write_selection(run, path)
        again = import_ids(store, asked(path, "back", **{k: v for k, v in options.items() if k != "select_ratio"}))
        assert again.rows().equals(run.rows()) and again.selection().equals(run.selection())
        facts, others = again.facts(), run.facts()
        for fact in (
            "fingerprint",
            "n",
            "dim",
            "selected",
            "total_rows",
            "columns",
            "files",
            "dropped",
            "notes",
            "eligible",
            "anchors",
            "references",
            "switched_off",
        ):
            assert facts[fact] == others[fact], fact
        same = ("quality", "diversity", "joint", "objectives", "calibrated", "tokens", "upper_bound", "gap", "scale")
        assert {k: again.status().to_dict()["summary"][k] for k in same} == {
            k: run.status().to_dict()["summary"][k] for k in same
        }
        assert set(run.status().to_dict()["summary"]) <= set(again.status().to_dict()["summary"])
        with pytest.raises(RunStateError, match="is done"):
            execute(again)


def test_unknown_ids_are_counted_and_refused_or_left_out(store, raw, tmp_path):
    ids = raw[0]
    path = written(tmp_path / "some.txt", [*ids[:30], "nobody", "no one"], range(32))
    sentence = r"2 of its 32 ids are not in the corpus of 1,200 rows, the first of them 'nobody'"
    with pytest.raises(InputError, match=sentence):
        import_ids(store, asked(path))
    assert store.list() == []
    run = import_ids(store, asked(path, ignore_unknown=True))
    assert run.status().to_dict()["summary"]["unknown_ids"] == 2 and run.status().to_dict()["summary"]["selected"] == 30
    assert "2 more are not in this corpus" in run.status().ending


def test_nothing_is_left_behind(store, raw, tmp_path, monkeypatch):
    path = written(tmp_path / "a.txt", raw[0], range(30))
    with pytest.raises(Stopped):
        import_ids(store, asked(path), Work.of(lambda: True))
    with pytest.raises(OptionError, match="lamb"):
        asked(path, lamb=2.0)

    def full(*args):
        raise OSError("no room")

    monkeypatch.setattr("datamask.runs.writer.RunWriter.write_selection", full)
    with pytest.raises(OSError, match="no room"):
        import_ids(store, asked(path))
    assert store.list() == []


def test_imported_is_no_way_to_select(store):
    with pytest.raises(OptionError, match="runs import"):
        SelectionConfig.from_options(estimator="imported")
    assert "imported" not in [entry.name for entry in catalogue.ESTIMATORS]
    run = store.create(RunConfig(CorpusConfig((TINY,)), SelectionConfig(objective="pairwise", estimator="imported")))
    with pytest.raises(OptionError, match="cannot be selected again"):
        execute(run)


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(CorpusConfig(("a.parquet", "b")), SelectionConfig(estimator="imported"), "", "", "/x/ids.csv"),
        RunConfig(
            CorpusConfig(("-a",), id_column="i", rows=9, seed=4, drop_invalid=True),
            SelectionConfig(
                objective="pairwise:2,facility:1", lamb=0.25, scale="raw", seed=3, device="cpu", estimator="imported"
            ),
            "a name",
            "-n",
            "/x y/ids.txt",
            True,
        ),
    ],
)
def test_its_command_line_reads_back_as_the_run(config):
    words = config.arguments()
    assert words[:2] == ["runs", "import"] and "--output" not in words and "--estimator" not in words
    assert import_config(parse(words)) == config
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_from_the_command_line(store, raw, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "list.txt", [*raw[0][:40], "nobody"], range(41))
    words = ["runs", "import", "list.txt", "--input", TINY, "--objective", "pairwise", "--device", "cpu"]
    assert cli.main(words) == 2
    assert "--ignore_unknown" in capsys.readouterr().err and store.list() == []
    assert cli.main([*words, "--ignore-unknown", "--name", "mine", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    run = RunStore("runs").get(summary["run_id"])
    assert (summary["status"], summary["selected"], summary["unknown_ids"]) == ("done", 40, 1)
    assert run.config.name == "mine" and run.config.ids == str(tmp_path / "list.txt")
    assert cli.main([*words, "--ignore-unknown"]) == 0
    assert "by importing list.txt, leaving out 1 unknown ids (pairwise, lambda 0.5)" in capsys.readouterr().out
    assert cli.main(["runs", "show", run.id]) == 0
    shown = capsys.readouterr().out
    assert f"runs import {tmp_path / 'list.txt'}" in shown and "--ignore_unknown" in shown
    assert cli.main(["runs", "import", "list.txt"]) == 2
    assert "INPUT is required" in capsys.readouterr().err
    assert cli.main(["runs", "import", "--input", TINY]) == 2
    assert "IDS is required" in capsys.readouterr().err


@pytest.mark.parametrize(
    "size, n, ratio",
    [
        (6367, 63666, 0.1),
        (77, 1200, 0.064),
        (1, 3, 0.3),
        (2, 3, 0.7),
        (1, 10**9, 1e-9),
        (10**9 - 1, 10**9, 0.999999999),
    ],
)
def test_the_ratio_is_the_shortest_that_gives_the_size(size, n, ratio):
    found = imports._sized(SelectionConfig(estimator="imported"), size, n)
    assert found.select_ratio == ratio and found.size(n) == size


def test_facility_of_an_import_is_the_definition(store, raw, tmp_path):
    ids, _, x = raw
    rows = np.arange(0, len(ids), 6)
    run = import_ids(store, dataclasses.replace(asked(written(tmp_path / "f.txt", ids, rows), objective="facility")))
    assert run.status().to_dict()["summary"]["diversity"] == pytest.approx(truth.facility(x, rows), rel=1e-5)
