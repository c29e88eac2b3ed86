"""Studies on the tiny corpus: every arm with its seeds, tables that equal the runs, files that stand alone."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from datamask import cli
from datamask.runs.store import RunStore
from datamask.runs.study import CLOSE, STABLE, _counting
from datamask.runs.study_arms import arms, points_of
from datamask.runs.study_report import table
from datamask.runs.varying import STUDIES

TINY = str(Path(__file__).parents[2] / "sample_data" / "tiny")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a quick study of each kind, its answer beside it."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        for kind in STUDIES:
            more = ["--objectives", "pairwise,facility"] if kind == "single" else []
            words = [
                "study",
                kind,
                TINY,
                "--quick",
                "--runs_dir",
                folder / "runs",
                "--output",
                folder / kind,
                "--device",
                "cpu",
                *more,
            ]
            assert cli.main(list(map(str, words))) == 0
    return folder


def told(place, kind):
    return json.loads((place / kind / "study.json").read_text())


def runs_of(place, kind):
    return [run for run in RunStore(place / "runs").list() if run.facts()["sweep"] == told(place, kind)["sweep"]]


@pytest.mark.parametrize("kind", STUDIES)
def test_a_study_is_one_table_in_three_formats_and_one_page(place, kind):
    answer = told(place, kind)
    rows = list(csv.DictReader((place / kind / "study.csv").open()))
    assert [row["arm"] for row in rows] == [row["arm"] for row in answer["rows"]]
    text = (place / kind / "study.md").read_text()
    assert all(f"| {row['arm']} |" in text for row in rows) and all(note in text for note in answer["notes"])
    page = (place / kind / "study.html").read_text()
    # self-contained: the library is inside, and nothing is fetched
    assert "Plotly.newPlot" in page and not re.search(r'<(script|link)[^>]+(src|href)="http', page)
    assert page.count("error_x") + page.count("error_y") >= 1


@pytest.mark.parametrize("kind", ["ablation", "acceleration", "G"])
def test_means_and_spreads_are_those_of_the_runs(place, kind):
    answer = told(place, kind)
    stored = runs_of(place, kind)
    assert len(stored) == sum(row["runs"] for row in answer["rows"])
    levels = {
        "ablation": ("max_lr", "n_epochs", "init"),
        "acceleration": ("partial", "prune", "init"),
        "G": ("n_rollout",),
    }[kind]
    for row in answer["rows"][:-1]:
        mine = [
            run
            for run in stored
            if run.config.selection.estimator == "reinforce"
            and all(getattr(run.config.selection, name) == row[name] for name in levels)
        ]
        joint = [run.status().to_dict()["summary"]["calibrated"]["joint"] for run in mine]
        assert len(mine) == row["runs"] == 3 and len({run.config.selection.seed for run in mine}) == 3
        assert row["joint"] == pytest.approx(np.mean(joint)) and row["joint_sd"] == pytest.approx(np.std(joint, ddof=1))
    reference = answer["rows"][-1]
    assert reference["runs"] == 1 and reference["joint_sd"] is None
    assert reference["joint"] >= max(row["joint"] for row in answer["rows"])
    assert all(row["joint"] <= row["upper_bound"] <= reference["upper_bound"] + 1e-3 for row in answer["rows"])
    if kind == "acceleration":  # what is pruned away cannot be had
        bounds = {row["arm"]: row["upper_bound"] for row in answer["rows"]}
        assert bounds["pruned by 0.5"] < bounds["plain"] - 0.01


def test_the_single_study_measures_every_selection_by_every_term(place):
    rows = {row["arm"]: row for row in told(place, "single")["rows"]}
    assert list(rows) == [
        "random",
        "quality alone",
        "pairwise alone",
        "pairwise with quality",
        "facility alone",
        "facility with quality",
    ]
    assert rows["quality alone"]["quality"] == pytest.approx(1.0)
    for name, other in (("pairwise", "facility"), ("facility", "pairwise")):
        assert rows[f"{name} alone"][name] > max(rows[f"{other} alone"][name], 0.9)
        assert rows[f"{name} with quality"]["quality"] > rows[f"{name} alone"]["quality"]
        assert abs(rows["random"][name]) < 0.3
    own = {
        run.config.selection.objective: run
        for run in runs_of(place, "single")
        if run.config.selection.lamb == 0.5 and run.config.selection.estimator == "counterfactual"
    }
    for name, run in own.items():
        assert rows[f"{name} with quality"][name] == pytest.approx(
            run.status().to_dict()["summary"]["calibrated"]["diversity"],
            abs=5 * rows[f"{name} with quality"][f"{name}_sd"] + 1e-9,
        )


def test_rows_that_count_are_the_selected_and_the_given_ones():
    selected, given = [True, False, False], [False, True, False]
    assert _counting(pa.table({"selected": selected, "given": given})).tolist() == [True, True, False]
    assert _counting(pa.table({"selected": selected})).tolist() == selected  # a run from before there were given rows


def test_the_stable_group_size_follows_its_rule(place):
    answer = told(place, "G")
    smallest = []
    for row in answer["rows"][:-1]:
        joint = [
            run.metrics()["joint"]
            for run in runs_of(place, "G")
            if run.config.selection.n_rollout == row["n_rollout"] and run.config.selection.estimator == "reinforce"
        ]
        stable = all(np.nanmax(j) - j[-1] <= STABLE for j in joint) and row["joint_sd"] <= STABLE
        assert row["stable"] == stable
        smallest += [row["n_rollout"]] * stable
    advice = f"smallest stable G here is {min(smallest)}" if smallest else "No G is stable"
    assert any(advice in note for note in answer["notes"])


def test_seconds_to_level_are_read_off_the_curves(place):
    rows = told(place, "acceleration")["rows"]
    plain = [
        run
        for run in runs_of(place, "acceleration")
        if run.config.selection.prune == 0
        and run.config.selection.init == "same"
        and run.config.selection.partial == 0.5
    ]
    times = []
    for run in plain:
        metrics = run.metrics()
        reached = metrics["joint"] >= rows[0]["joint"] - CLOSE
        times.append(metrics["seconds"][reached][0] if reached.any() else None)
    expected = None if None in times else pytest.approx(np.mean(times))
    assert rows[0]["seconds_to_level"] == expected


def test_repeating_a_study_does_nothing_twice(place, monkeypatch, capsys):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    before = len(RunStore(place / "runs").list())
    words = [
        "study",
        "G",
        TINY,
        "--quick",
        "--runs_dir",
        place / "runs",
        "--output",
        place / "G",
        "--device",
        "cpu",
        "--json",
    ]
    assert cli.main(list(map(str, words))) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["rows"] == told(place, "G")["rows"]
    assert len(RunStore(place / "runs").list()) == before


def test_arms_at_full_scale():
    """What a study does when nobody is in a hurry; no run is made."""
    group = arms("G", {})
    assert [dict(arm.levels)["n_rollout"] for arm in group[:-1]] == [32, 64, 128, 256, 512]
    assert group[-1].name == "reference: relaxed" and len(points_of(group)) == 16
    rates = {dict(arm.levels)["max_lr"] for arm in arms("ablation", {})[:-1]}
    assert rates == {1.0, 3.0, 10.0, 30.0}
    pruned = [dict(arm.levels)["prune"] for arm in arms("acceleration", {"select_ratio": 0.55})[:-1]]
    assert max(pruned) == 0.4  # half of the rows would not leave enough
    assert arms("G", {"objective": "disf"})[-1].name == "reference: counterfactual"
    assert len(arms("single", {})) == 14


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["nothing"], "KIND must be one of single"),
        (["G", "--objectives", "pairwise"], "study single"),
        (["G", "--estimator", "relaxed"], "must be counterfactual or reinforce"),
        (["single", "--lamb", "1"], "below 1"),
    ],
)
def test_what_cannot_be_studied_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["study", words[0], TINY, *words[1:], "--device", "cpu"]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_table_shows_spreads_and_leaves_out_what_is_empty():
    text = table(
        [
            {"arm": "a", "joint": 0.5, "joint_sd": 0.01, "stable": True, "none": None},
            {"arm": "b", "joint": 0.25, "joint_sd": None, "n_rollout": 32},
        ]
    )
    assert text.splitlines() == [
        "| arm | joint | stable | n rollout |",
        "| --- | --- | --- | --- |",
        "| a | 0.500 ± 0.010 | yes |  |",
        "| b | 0.250 |  | 32 |",
    ]


@pytest.mark.parametrize("kind", STUDIES)
def test_all_arms_pose_the_problem_that_was_given(kind):
    given = {"center": True, "neighbors": "exact", "select_ratio": 0.2, "collapse": "exact"}
    for arm in arms(kind, given):
        for point in arm.points:
            assert {name: getattr(point.selection, name) for name in given} == given, arm.name
