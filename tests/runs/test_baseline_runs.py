"""Baselines as runs like any other: values of the written ids, ranks, stopping and resuming between picks."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datamask.api
from datamask.config import CorpusConfig, QualityColumn, RunConfig, SelectionConfig
from datamask.corpus import open_corpus
from datamask.dashboard.runs import outcome
from datamask.errors import OptionError
from datamask.learning import greedy
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.commands import TINY
from tests.reference import truth

OBJECTIVES = ["pairwise", "facility", "disf"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    # on tensors this small, threads wait for each other longer than they work
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture
def start(tiny_store):
    def create(**options):
        options = {"objective": "pairwise", "device": "cpu", "select_ratio": 0.1, **options}
        return tiny_store.create(RunConfig(CorpusConfig((TINY,)), SelectionConfig.from_options(**options)))

    return create


@pytest.mark.parametrize("estimator", ["greedy", "semdedup"])
def test_reported_values_are_those_of_the_written_ids(start, tiny_rows, estimator):
    place, quality, x = tiny_rows
    run = start(estimator=estimator, lamb=0.3, prune=0.2)
    summary = execute(run).to_dict()
    members = [place[id_] for id_ in run.selection()["chunk_id"].to_pylist()]
    assert len(set(members)) == summary["selected"] == 120
    assert quality[members].min() >= np.sort(quality)[240] - 1e-6
    assert summary["quality"] == pytest.approx(quality[members].mean(), rel=1e-6)
    assert summary["diversity"] == pytest.approx(truth.pairwise(x, members), rel=1e-4)
    assert run.status().ending and run.status().state == "done"
    assert run.metrics()["joint"][-1] == pytest.approx(summary["calibrated"]["joint"])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_greedy_beats_every_baseline_that_looks_away(start, objective):
    joint = {
        estimator: execute(start(objective=objective, estimator=estimator)).to_dict()["calibrated"]["joint"]
        for estimator in ("greedy", "random", "top-quality", "semdedup")
    }
    assert joint["greedy"] == max(joint.values()) and joint["greedy"] > joint["random"] + 0.3


def test_the_rank_of_a_greedy_run_is_the_order_of_picking(start, tiny_rows):
    run = start(estimator="greedy", lamb=0.0, objective="facility", select_ratio=0.05)
    summary = execute(run).to_dict()
    place, _, x = tiny_rows
    picks = [place[id_] for id_ in run.selection()["chunk_id"].to_pylist()]
    assert run.selection()["logit"].to_pylist() == [-k for k in range(60)]
    assert run.rows()["logit"].null_count == len(place) - 60
    values = [truth.facility(x, picks[:k]) for k in range(1, 61)]
    gains = np.diff(values)
    # the first picks add most; on lists of 160 of 1,200 rows, the very first do not see all of what they add
    assert gains[:5].min() > gains[20:].max() and (np.diff(gains[20:]) <= 2e-4).all()
    assert summary["steps"] == 60 and summary["diversity"] == pytest.approx(values[-1], rel=1e-5)


@pytest.mark.parametrize("objective", ["facility", "disf"])
def test_stopped_and_resumed_equals_unbroken(start, objective, monkeypatch):
    monkeypatch.setattr(greedy, "STEP_SECONDS", 0.0)
    monkeypatch.setattr("datamask.learning.medoids.PAIRS_AT_ONCE", 1)
    monkeypatch.setattr("datamask.learning.medoids.PAIRS_PER_ROW", 0)
    whole, broken = (start(estimator="greedy", objective=objective, select_ratio=0.03) for _ in range(2))
    execute(whole)

    def stop():
        return len(broken.metrics().get("step", ())) >= 9

    assert execute(broken, Work.of(stop)) is None
    assert broken.metrics()["step"].max() == 9
    seen = []
    execute(broken, Work(report=lambda share, what: seen.append((share, what))))
    assert all(0 <= share <= 1 for share, _ in seen) and any(what == "step 36 of 36" for _, what in seen)
    assert broken.status().total_steps == 36
    assert broken.metrics()["step"].tolist() == whole.metrics()["step"].tolist()
    assert np.nanmax(broken.metrics()["picks"]) == 36
    assert broken.selection().equals(whole.selection())


@pytest.mark.parametrize("estimator", ["greedy", "semdedup", "random"])
def test_in_memory_with_progress(estimator):
    seen = []
    found = datamask.api.select(
        open_corpus(CorpusConfig((TINY,))),
        progress=lambda *at: seen.append(at),
        estimator=estimator,
        objective="pairwise",
        select_ratio=0.1,
        device="cpu",
    )
    assert len(found.rows) == 120 and all(0 <= share <= 1 for share, _ in seen)


@pytest.fixture
def graded(tmp_path):
    """A corpus of two quality columns, less being better in the second, and the values of both."""
    rng = np.random.default_rng(4)
    values = {"edu": rng.normal(size=90), "perplexity": rng.uniform(5, 50, size=90)}
    pq.write_table(
        pa.table({"id": np.arange(90), **values, "v": list(rng.normal(size=(90, 4)))}), tmp_path / "in.parquet"
    )
    config = CorpusConfig(
        (str(tmp_path / "in.parquet"),),
        quality_columns=tuple(QualityColumn.parse(text) for text in ("edu:0.5:z", "perplexity:-0.5:z")),
    )
    return config, values


@pytest.mark.parametrize("column, sign", [("edu", 1), ("perplexity", -1)])
def test_top_quality_by_one_of_several_columns(tmp_path, graded, column, sign):
    """Measured on their weighted sum like any run, and chosen by the one column; less is better at a weight below 0."""
    config, values = graded
    selection = SelectionConfig.from_options(estimator=f"Top_Quality:{column}", objective="pairwise", device="cpu")
    assert selection.estimator == f"top-quality:{column}"
    run = RunStore(tmp_path / "runs").create(RunConfig(config, selection))
    assert f"top-quality:{column}" in run.config.arguments()
    summary = execute(run).to_dict()
    chosen = set(run.selection()["id"].to_pylist())
    assert chosen == set(np.argsort(-sign * values[column])[:27].tolist())
    standard = {name: (v - v.mean()) / v.std() for name, v in values.items()}
    combined = 0.5 * standard["edu"] - 0.5 * standard["perplexity"]
    assert summary["quality"] == pytest.approx(combined[list(chosen)].mean())
    assert column in outcome.headline(run)


def test_options_of_a_baseline_that_are_not_at_their_defaults_are_said(start):
    for options, words in (
        ({"estimator": "soft-quality"}, "Soft quality sampling (baseline) · 10"),
        ({"estimator": "soft-quality", "temperature": 0.5}, "Soft quality sampling (baseline) · temperature 0.5 · 10"),
        (
            {"estimator": "cluster-balanced", "inside": "best", "clip": 1.0},
            "Cluster-balanced (baseline) · inside best · 10",
        ),
    ):
        assert words in outcome.headline(start(**options))


def test_a_column_that_is_not_there_is_named(start):
    with pytest.raises(OptionError, match="'nope' is no quality column of this corpus; it has quality_score"):
        execute(start(estimator="top-quality:nope"))
    with pytest.raises(OptionError, match="random:edu"):
        SelectionConfig.from_options(estimator="random:edu")
