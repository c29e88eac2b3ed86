"""benchmarks/disf.py: rows are drawn once, outcomes are put on one scale, and the results say what the README says."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import disf

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


def test_the_results_keep_what_was_asked_of_them():
    results = json.loads((ROOT / "benchmarks" / "results" / "disf.json").read_text(encoding="utf-8"))
    assert max(results["base"]["cpu_seconds_here_over_base"]["1"]) < 1 / 3
    assert min(results["base"]["joint_above_base"]) > -5e-4
    assert results["large"]["default"]["seconds_command"] < 600
    greedy = results["greedy"]
    assert greedy["default"]["joint_on_one_scale"] > greedy["greedy"]["joint_on_one_scale"]
