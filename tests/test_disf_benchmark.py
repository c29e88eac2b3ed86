"""benchmarks/disf.py: rows are drawn once, outcomes are put on one scale, and the results say what the README says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import disf
from benchmarks.stochastic_greedy import FIRST, Moments, fewest_candidates, stochastic_greedy
from datamask.objectives.disf import DiSF, standardise

ROOT = Path(__file__).parents[1]


def test_rows_are_drawn_once(tmp_path):
    corpus = ROOT / "sample_data" / "tiny"
    folder = disf.drawn(corpus, 50, tmp_path)
    (path,) = folder.glob("*.parquet")
    table, written = pq.read_table(path), path.stat().st_mtime_ns
    assert table.column_names == disf.COLUMNS and len(set(table["chunk_id"].to_pylist())) == 50
    assert disf.drawn(corpus, 50, tmp_path) == folder and path.stat().st_mtime_ns == written


def test_an_outcome_is_put_on_another_scale():
    anchors = {"quality": {"random": 2.0, "best": 4.0}, "diversity": {"disf": {"random": -0.5, "best": -0.1}}}
    assert disf.joint_on(anchors, {"quality": 3.0, "diversity": -0.2}) == pytest.approx(0.5 * 0.5 + 0.5 * 0.75)


def _function(n: int, d: int) -> DiSF:
    return DiSF(standardise(torch.from_numpy(np.random.default_rng(n).normal(size=(n, d)).astype(np.float32))))


def test_moments_tell_the_value_with_one_more_row():
    function, members = _function(60, 5), np.arange(20)
    rows = function.y.double().numpy()
    moments = Moments(rows[members[:FIRST]])
    for member in members[FIRST:]:
        moments.add(rows[member])
    others = np.arange(20, 60)
    expected = []
    for other in others:
        mask = torch.zeros(60, dtype=torch.bool)
        mask[members], mask[other] = True, True
        expected.append(function.value(mask))
    assert moments.values_with(rows[others]) == pytest.approx(expected, abs=1e-8)


def test_stochastic_greedy_with_all_candidates_takes_the_best_row_each_time():
    function = _function(40, 4)
    rows, quality = function.y.double().numpy(), np.random.default_rng(1).normal(size=40)
    picks = stochastic_greedy(rows, quality, 12, (0.7, 3.0), candidates=40)
    assert len(set(picks.tolist())) == 12
    for count in range(FIRST, 12):
        joints = {}
        for row in set(range(40)) - set(picks[:count].tolist()):
            mask = torch.zeros(40, dtype=torch.bool)
            mask[[*picks[:count].tolist(), row]] = True
            joints[row] = 0.7 * quality[mask.numpy()].mean() + 3.0 * function.value(mask)
        assert joints[int(picks[count])] == pytest.approx(max(joints.values()), abs=1e-12)


def test_few_candidates_are_enough_for_the_paper_of_stochastic_greedy():
    assert fewest_candidates(100_000, 30_000) == 16


def test_the_results_keep_what_was_asked_of_them():
    results = json.loads((ROOT / "benchmarks" / "results" / "disf.json").read_text(encoding="utf-8"))
    assert max(results["base"]["cpu_seconds_here_over_base"]["1"]) < 1 / 3
    assert min(results["base"]["joint_above_base"]) > -5e-4
    assert results["large"]["default"]["seconds_command"] < 600
    greedy = results["greedy"]
    assert greedy["default"]["joint_on_one_scale"] > greedy["greedy"]["joint_on_one_scale"]
    for part, default in (
        ("greedy", greedy["default"]["joint_on_one_scale"]),
        ("large", results["large"]["default"]["calibrated"]["joint"]),
    ):
        joints = [entry["joint_on_one_scale"] for entry in results["stochastic"][part]]
        assert joints == sorted(joints) and joints[-1] < default
