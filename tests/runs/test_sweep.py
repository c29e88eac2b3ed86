"""Sweeps: points equal single runs, done ones are skipped, a shared pool changes nothing, and bad plans are refused."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.cli import sweeps as cli_sweeps
from datamask.config import CorpusConfig, RunConfig
from datamask.corpus import open_corpus
from datamask.errors import OptionError
from datamask.evaluation.pool import Pool
from datamask.runs import mapping
from datamask.runs import store as stores
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.runs.sweep import sweep
from datamask.runs.varying import Plan, parse_vary, points
from datamask.runs.writer import RunWriter
from datamask.work.context import Work
from tests.commands import TINY

BASE = {"objective": "pairwise", "n_epochs": 4, "n_rollout": 2, "device": "cpu"}


def plan_of(given, *varied, seeds=1):
    return Plan(CorpusConfig((TINY,)), points(given, [parse_vary(text) for text in varied], seeds))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


# -- what is varied ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("lamb=0:1:11", ("lamb", tuple(k / 10 for k in range(11)))),
        ("select-ratio=0.1,0.3", ("select_ratio", (0.1, 0.3))),
        ("seed=0,1,2", ("seed", (0, 1, 2))),
        ("n_rollout=32:128:4", ("n_rollout", (32, 64, 96, 128))),
        ("init=same,quality", ("init", ("same", "quality"))),
        ("--algorithm=DiSF", ("objective", ("DiSF",))),
    ],
)
def test_what_may_be_varied_is_read(text, expected):
    name, values = parse_vary(text)
    assert (name, values) == expected and [type(v) for v in values] == [type(v) for v in expected[1]]


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("colour=red", "must name one of lamb"),
        ("lamb", "START:STOP:COUNT"),
        ("lamb=", "START:STOP:COUNT"),
        ("lamb=0:1", "COUNT"),
        ("lamb=0:1:1", "COUNT"),
        ("lamb=a,b", "numbers, got 'a'"),
        ("seed=0.5", "whole numbers"),
        ("seed=0:1:3", "whole numbers"),
        ("lamb=0.1,0.1", "once"),
        ("seed=inf", "whole numbers"),
        ("lamb=0:1:100000", "at most"),
    ],
)
def test_what_may_not_is_refused_in_one_sentence(text, sentence):
    with pytest.raises(OptionError, match=sentence):
        parse_vary(text)


def test_points_are_the_cross_product_with_seeds_where_there_is_chance():
    found = points({"n_epochs": None}, [("estimator", ("random", "top-quality")), ("lamb", (0.2, 0.4))], seeds=3)
    assert [dict(p.swept).get("seed") for p in found] == [0, 1, 2, 0, 1, 2, None, None]
    assert [p.selection.lamb for p in found] == [0.2] * 3 + [0.4] * 3 + [0.2, 0.4]
    assert len(points({}, [("seed", (4, 5))], seeds=3)) == 2
    # what decides the estimator of a single run decides it here
    assert points({}, [("max_lr", (1.0, 3.0)), ("min_lr", (0.5,))])[0].selection.estimator == "reinforce"
    for given, varied, sentence in [
        ({}, [("lamb", (2.0,))], "lamb"),
        ({}, [("lamb", (0.1,)), ("lamb", (0.2,))], "once"),
        ({"n_rollout": 4}, [("estimator", ("random",))], "n_rollout"),
    ]:
        with pytest.raises(OptionError, match=sentence):
            points(given, varied)


def test_the_id_follows_from_the_settings():
    one, same, other = (plan_of(BASE, f"lamb={values}") for values in ("0.2,0.4", "0.2,0.4", "0.2,0.5"))
    assert one.id == same.id != other.id


# -- sweeping ----------------------------------------------------------------------------------------------------------


def test_points_equal_single_runs_and_repeating_skips_them(tmp_path, monkeypatch):
    plan = plan_of(BASE, "init=same,quality", "objective=pairwise,facility")
    opened, under = [], Pool.under
    monkeypatch.setattr(Pool, "under", lambda *a, **k: opened.append(1) or under(*a, **k))
    store = RunStore(tmp_path / "runs")
    done = sweep(store, plan)
    assert len(done) == 4 and len(opened) == 1
    assert {one.run.facts()["sweep"] for one in done} == {plan.id}
    assert done[3].run.facts()["swept"] == {"init": "quality", "objective": "facility"}

    alone = RunStore(tmp_path / "alone")
    for one in done:
        single = alone.create(RunConfig(plan.corpus, one.point.selection))
        summary = execute(single).to_dict()
        for key in ("quality", "diversity", "joint", "calibrated", "upper_bound", "steps"):
            assert one.run.status().to_dict()["summary"][key] == summary[key], key
        assert one.run.selection().equals(single.selection())

    again = sweep(store, plan)
    assert [one.run.id for one in again] == [one.run.id for one in done]
    assert len(store.list()) == 4
    assert [one.row() for one in again] == [one.row() for one in done]


def test_on_all_rows_points_share_one_corpus_and_repeating_skips_them(tmp_path, monkeypatch):
    """Pages draw fewer rows of each point."""
    monkeypatch.setattr(mapping, "LARGEST_SAMPLE", 300)
    plan = plan_of({**BASE, "scratch_dir": str(tmp_path / "scratch")}, "lamb=0.2,0.6")
    opened, under = [], Pool.under
    monkeypatch.setattr(Pool, "under", lambda *a, **k: opened.append(1) or under(*a, **k))
    for rows in (None, 400):
        plan = replace(plan, corpus=replace(plan.corpus, rows=rows))
        store = RunStore(tmp_path / f"runs {rows}")
        done = sweep(store, plan)
        assert [(one.run.facts()["n"], one.run.whole["rows"]) for one in done] == [(rows or 300, 1200)] * 2
        assert len(opened) == 1
        assert [one.run.id for one in sweep(store, plan)] == [one.run.id for one in done]
        opened.clear()


def test_stopped_sweeps_go_on_where_they_were(tmp_path):
    plan = plan_of({**BASE, "n_epochs": 30}, "lamb=0.2,0.4,0.6")
    store = RunStore(tmp_path)

    def in_the_second():
        runs = store.list()
        return len(runs) == 2 and len(runs[0].metrics().get("step", ())) >= 5

    first = sweep(store, plan, Work.of(in_the_second))
    assert [one.run.status().state for one in first] == ["done", "stopped"]
    whole = sweep(store, plan)
    assert [one.run.status().state for one in whole] == ["done"] * 3 and len(store.list()) == 3
    assert [one.run.id for one in whole[:2]] == [one.run.id for one in first]
    recorded = whole[1].run.metrics()["step"]
    assert recorded.tolist() == list(range(1, len(recorded) + 1)) and len(recorded) >= 30


def test_along_lambda_the_relaxation_starts_from_its_neighbour(tmp_path):
    given = {"objective": "pairwise", "estimator": "relaxed", "device": "cpu"}
    store = RunStore(tmp_path / "runs")
    done = sweep(store, plan_of(given, "lamb=0.3:0.5:5"))
    assert [one.run.facts().get("start_from") for one in done] == [None, *(one.run.id for one in done[:-1])]
    steps = [one.row()["steps"] for one in done]
    alone = RunStore(tmp_path / "alone")
    singles = [execute(alone.create(RunConfig(CorpusConfig((TINY,)), one.point.selection))).to_dict() for one in done]
    assert sum(steps) < sum(single["steps"] for single in singles)
    # both are within their proved gaps of one optimum, so of each other
    for one, single in zip(done, singles):
        assert one.row()["joint"] == pytest.approx(
            single["calibrated"]["joint"], abs=max(one.row()["gap"], single["gap"])
        )


def test_a_point_that_cannot_be_is_recorded_and_the_others_go_on(tmp_path):
    done = sweep(RunStore(tmp_path), plan_of(BASE, "prune=0,0.8"))
    rows = [one.row() for one in done]
    assert [row["state"] for row in rows] == ["done", "failed"]
    assert "prune 0.8" in rows[1]["error"] and rows[1]["joint"] is None and done[1].fault is None


def test_a_changed_corpus_is_swept_anew(tmp_path):
    tables = [pq.read_table(path) for path in sorted(Path(TINY).glob("*.parquet"))]
    shard = tmp_path / "in.parquet"
    pq.write_table(tables[0], shard)
    plan = Plan(CorpusConfig((str(shard),)), points(BASE, [("lamb", (0.5,))]))
    store = RunStore(tmp_path / "runs")
    before = sweep(store, plan)[0]
    pq.write_table(tables[1], shard)
    os.utime(shard, ns=(1, 1))
    after = sweep(store, plan)[0]
    assert after.run.id != before.run.id
    assert after.run.facts()["fingerprint"] == open_corpus(plan.corpus).fingerprint


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_one_row_per_point(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", TINY, "--vary", "lamb=0:1:3", "--vary", "estimator=random,relaxed", "--objective", "pairwise"]
    words += ["--seeds", "2", "--device", "cpu", "--json", "--output"]
    readers = {
        ".parquet": lambda path: pq.read_table(path).to_pylist(),
        ".csv": lambda path: list(csv.DictReader(path.open())),
        ".jsonl": lambda path: list(map(json.loads, path.read_text().splitlines())),
    }
    for suffix, read in readers.items():  # what is swept already is not swept again
        assert cli.main([*words, f"table{suffix}"]) == 0
        answer = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert answer["points"] == len(answer["rows"]) == 9
        rows = read(tmp_path / f"table{suffix}")
        assert [float(row["lamb"]) for row in rows] == [0] * 3 + [0.5] * 3 + [1] * 3
        joint = np.array([float(row["joint"]) for row in rows])
        relaxed = np.array([row["estimator"] == "relaxed" for row in rows])
        assert (joint[relaxed] > joint[~relaxed].max()).all()
        assert {row["upper_bound"] in (None, "") for row in rows} == {False}


def test_a_point_whose_record_cannot_be_read_is_no_stop(tmp_path, monkeypatch, capsys):
    """A disk that refuses once, when the end of the second point is read: exit code 2 and the reason, not 130."""
    ended, reading = [], stores.read_json

    def refusing(path):
        if path.name == "status.json" and len(ended) == 2:
            ended.append(path)
            raise OSError(5, "Input/output error")
        return reading(path)

    def counting(self, state, *args, **fields):
        finish(self, state, *args, **fields)
        ended.append(state)

    finish = RunWriter.finish
    monkeypatch.setattr(RunWriter, "finish", counting)
    monkeypatch.setattr(stores, "read_json", refusing)
    monkeypatch.chdir(tmp_path)
    words = [
        "sweep",
        TINY,
        "--vary",
        "lamb=0.2,0.8",
        "--objective",
        "pairwise",
        "--estimator",
        "relaxed",
        "--n_epochs",
        "4",
        "--device",
        "cpu",
        "--json",
    ]
    assert cli.main(words) == 2
    answer, errors = capsys.readouterr()
    assert "Input/output error" in errors.splitlines()[-1] and "stopped" not in errors.splitlines()[-1]
    assert [row["state"] for row in json.loads(answer.splitlines()[-1])["rows"]] == ["done", "failed"]
    assert cli.main(words) == 0


def test_the_command_says_no_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words, sentence in [
        (["--vary", "colour=red"], "must name one of"),
        ([], "sweep needs --vary OPTION=VALUES"),
        (["--vary", "lamb=0,2"], "--lamb must be"),
        (["--vary", "lamb=0,1", "--output", "x.txt"], ".parquet, .csv or .jsonl"),
        (["--vary", "prune=0.9"], "prune 0.9"),
    ]:
        assert cli.main(["sweep", TINY, "--objective", "pairwise", "--device", "cpu", *words]) == 2
        assert sentence in capsys.readouterr().err


def test_a_stopped_command_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = RunStore("runs")

    def after_one():
        return sum(run.status().state == "done" for run in store.list()) >= 1

    words = ["sweep", TINY, "--vary", "lamb=0.2,0.6", "--objective", "pairwise", "--n_epochs", "3", "--device", "cpu"]
    with monkeypatch.context() as patch:
        patch.setattr(cli_sweeps, "command_work", lambda progress: contextlib.nullcontext(Work.of(after_one)))
        assert cli.main(words) == 130
    assert "1 of 2 points; the same command goes on" in capsys.readouterr().err
    assert cli.main(words) == 0 and len(store.list()) == 2
    assert "lamb" in capsys.readouterr().out.lower()


def test_with_reuse_a_finished_run_serves_whatever_it_was_made_for(tmp_path):
    store = RunStore(tmp_path / "runs")
    plan = plan_of(BASE, "lamb=0.2,0.6,1")
    alone = store.create(RunConfig(plan.corpus, plan.points[1].selection))
    execute(alone)
    turns = []

    @contextlib.contextmanager
    def turn():
        turns.append(len(store.list()))
        yield

    done = sweep(store, plan, reuse=True, turn=turn)
    assert [one.run.id == alone.id for one in done] == [False, True, False]
    # a turn for each point that is computed, none for the one that is read
    assert turns == [2, 3] and len(store.list()) == 3
    assert all(one.run.id != alone.id for one in sweep(store, plan_of(BASE, "lamb=0.6")))
