"""The paper's figures as sweeps on the tiny corpus: every arm with its seeds, rows that equal the runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from datamask import cli
from datamask.runs.paper_figures import arms, points_of
from datamask.runs.store import RunStore
from datamask.runs.varying import FIGURES

TINY = str(Path(__file__).parents[2] / "sample_data" / "tiny")
FEW = ("--rows", "60", "--n_epochs", "4", "--n_rollout", "4", "--device", "cpu")


@pytest.mark.parametrize("figure", FIGURES)
def test_a_sweep_does_each_arm_of_a_figure_once(figure, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    more = ("--objectives", "pairwise,facility") if figure == "single" else ()
    few = FEW if figure != "single" else FEW[:2] + FEW[-2:]
    words = ["sweep", TINY, "--figure", figure, "--seeds", "2", "--runs_dir", str(tmp_path), "--json", *few, *more]
    assert cli.main(words) == 0
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows, runs = answer["rows"], {run.id: run for run in RunStore(tmp_path).list()}
    assert len(rows) == len(runs) == answer["points"]
    given = {} if figure == "single" else {"n_epochs": 4, "n_rollout": 4}
    asked = arms(figure, given, seeds=2, objectives=("pairwise", "facility") if more else None)
    # arms may share a setting, which is done once
    assert {row["arm"] for row in rows} <= {arm.name for arm in asked} and rows[0]["arm"] == asked[0].name
    assert len(rows) == len(points_of(asked))
    for row in rows:
        run = runs[row["run_id"]]
        levels = dict(next(arm.levels for arm in asked if arm.name == row["arm"]))
        assert {name: getattr(run.config.selection, name) for name in levels} == levels
        result = run.status().result
        assert row["joint"] == result.calibrated.joint and row["upper_bound"] == result.certificate.upper_bound
    if figure == "single":
        (quality,) = [row for row in rows if row["arm"] == "quality alone"]
        assert quality["quality"] == pytest.approx(1.0)
    else:
        (reference,) = [row for row in rows if row["arm"].startswith("reference")]
        assert all(row["joint"] <= reference["upper_bound"] + 1e-6 for row in rows if row.get("prune") in (0.0, None))
    assert cli.main(words) == 0 and len(RunStore(tmp_path).list()) == len(runs)  # nothing is done twice


def test_arms_at_full_scale():
    """No run is made."""
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
        (["nothing"], "--figure must be one of single"),
        (["G", "--objectives", "pairwise"], "for --figure single"),
        (["G", "--estimator", "relaxed"], "must be counterfactual or reinforce"),
        (["single", "--lamb", "1"], "below 1"),
        (["G", "--vary", "lamb=0,1"], "either --vary OPTION=VALUES or --figure"),
        (["G", "--seeds", "0"], "--seeds must be"),
    ],
)
def test_a_figure_that_cannot_be_made_is_refused_in_one_sentence(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", TINY, "--figure", *words, "--device", "cpu"]) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("figure", FIGURES)
def test_all_arms_pose_the_problem_that_was_given(figure):
    given = {"center": True, "neighbors": "exact", "select_ratio": 0.2, "collapse": "exact"}
    for arm in arms(figure, given):
        for point in arm.points:
            assert {name: getattr(point.selection, name) for name in given} == given, arm.name
