"""Warnings of a learning run: each produced by a real small run, none on healthy ones, told once and kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask import cli
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs import health
from datamask.runs.callbacks import Callbacks
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work

TINY = str(Path(__file__).parents[2] / "sample_data" / "tiny")
REINFORCE = {"estimator": "reinforce", "objective": "pairwise", "n_rollout": 16, "partial": 1.0, "init": "same"}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One folder for all, so that anchors are computed once."""
    return RunStore(tmp_path_factory.mktemp("health") / "runs")


def learned(store, inputs=TINY, **options):
    """The run, and what it told while it ran."""
    run = store.create(RunConfig(CorpusConfig((str(inputs),)), SelectionConfig.from_options(device="cpu", **options)))
    told = []
    summary = execute(run, Work(threads=1), callbacks=Callbacks(warn=told.append)).to_dict()
    assert summary["warnings"] == run.status().to_dict()["summary"]["warnings"] and set(summary["warnings"]) <= set(
        told
    )
    return run, told


def names(run):
    return [concern.name for concern in health.concerns(run.metrics(), run.config.selection, run.facts())]


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "pairwise"},
        {"objective": "facility", "lamb": 0.3},
        {"objective": "pairwise", "lamb": 0.05},
        {"objective": "pairwise", "estimator": "relaxed"},
        {"estimator": "greedy", "select_ratio": 0.05},
        {**REINFORCE, "n_epochs": 120, "max_lr": 3.0, "min_lr": 0.3},
        {**REINFORCE, "objective": "facility", "n_epochs": 120, "max_lr": 3.0, "min_lr": 0.3},
        # the paper's own learning rates, start and batch share
        {
            **REINFORCE,
            "n_epochs": 120,
            "n_rollout": 128,
            "partial": 0.1,
            "init": "quality",
            "max_lr": 10.0,
            "min_lr": 1.0,
        },
    ],
)
def test_healthy_runs_are_left_in_peace(store, options):
    run, told = learned(store, **options)
    assert told == [] and names(run) == [] and run.status().to_dict()["summary"]["warnings"] == []


def test_roundings_that_fall_are_no_divergence():
    """Newton's iterates round to selections that may get worse, and there is no step size to lower."""
    config = SelectionConfig.from_options(objective="pairwise", estimator="relaxed")
    metrics = {"step": np.arange(1.0, 9.0), "joint": np.array([0.1, 0.6, 0.6, 0.2, 0.2, 0.2, 0.2, 0.2])}
    facts = {"references": {"random": {"joint": 0.0}}}
    assert health.concerns(metrics, config, facts) == ()
    learned = SelectionConfig.from_options(objective="pairwise", estimator="counterfactual")
    assert [concern.name for concern in health.concerns(metrics, learned, facts)] == ["divergence"]


def test_swaps_and_bounds_after_a_learner_that_diverged_hide_nothing():
    config = SelectionConfig.from_options(objective="pairwise", estimator="counterfactual")
    joint = np.concatenate([np.linspace(0, 0.9, 15), np.linspace(0.9, 0.2, 15)])
    steps = {"step": np.arange(1.0, 31.0), "joint": joint}
    assert [concern.name for concern in health.concerns(steps, config, {})] == ["divergence"]
    beside = np.concatenate([np.full(30, np.nan), np.arange(1.0, 11.0)])
    told = {"step": np.arange(1.0, 41.0), "joint": np.concatenate([joint, np.full(10, 0.9)])}
    assert health.concerns(told, config, {}) == ()
    for name in ("swaps", "refills", "dual_steps"):
        assert [concern.name for concern in health.concerns({**told, name: beside}, config, {})] == ["divergence"]


@pytest.mark.parametrize(
    "name, options, says",
    [
        (
            "divergence",
            {
                **REINFORCE,
                "objective": "facility",
                "lamb": 0.6,
                "n_rollout": 2,
                "n_epochs": 60,
                "partial": 0.1,
                "init": "quality",
                "max_lr": 30.0,
                "min_lr": 30.0,
            },
            "Lower --max_lr (now 30) or raise --n_rollout",
        ),
        ("collapse", {**REINFORCE, "n_epochs": 40, "max_lr": 300.0, "min_lr": 300.0}, "all alike since step"),
        ("collapse", {"objective": "disf", "scale": "raw"}, "that quality alone would make"),
        (
            "dominated",
            {**REINFORCE, "n_epochs": 40, "max_lr": 3.0, "min_lr": 0.3, "scale": "raw"},
            "--scale calibrated",
        ),
        (
            "dominated",
            {"objective": "pairwise", "estimator": "counterfactual", "scale": "raw", "n_epochs": 20},
            "--scale calibrated",
        ),
        (
            "faint",
            {**REINFORCE, "n_rollout": 4, "n_epochs": 30, "partial": 0.1, "max_lr": 3.0, "min_lr": 0.3},
            "--estimator counterfactual",
        ),
    ],
)
def test_each_warning_comes_from_a_real_run(store, name, options, says):
    run, told = learned(store, **options)
    assert name in names(run), (names(run), told)
    assert any(says in sentence for sentence in told)


def test_a_start_from_quality_is_not_taken_for_a_collapse(store):
    """Stopped soon after such a start, the selection is still nearly top-quality's."""
    run = store.create(
        RunConfig(
            CorpusConfig((TINY,)),
            SelectionConfig.from_options(
                device="cpu", **{**REINFORCE, "init": "quality", "n_epochs": 1000, "max_lr": 0.01, "min_lr": 0.01}
            ),
        )
    )
    assert execute(run, Work.of(lambda: len(run.metrics().get("step", ())) >= 30, threads=1)) is None
    assert np.nanmax(run.metrics()["overlap_quality"]) > health.SAME_SELECTION
    assert "collapse" not in names(run)


def test_masks_of_one_value_are_said(store, tmp_path):
    rng = np.random.default_rng(0)
    pq.write_table(
        pa.table({"id": np.arange(80), "score": np.full(80, 3.0), "v": list(rng.normal(size=(80, 4)))}),
        tmp_path / "flat.parquet",
    )
    run, told = learned(store, tmp_path / "flat.parquet", **{**REINFORCE, "lamb": 1.0, "n_epochs": 12})
    assert names(run) == ["flat"] and "quality column differs" in told[0] and len(told) == 1


def test_overlaps_are_those_of_the_written_selections(store):
    """The last overlaps of a run, recomputed from other runs' ids."""
    run, _ = learned(store, objective="pairwise", estimator="counterfactual", polish="none", n_epochs=30)
    best, _ = learned(store, estimator="top-quality")
    apart, _ = learned(store, estimator="relaxed", objective="pairwise", lamb=0.0)
    chosen, quality, diversity = (set(r.selection()["chunk_id"].to_pylist()) for r in (run, best, apart))
    for name, other, apart in (("quality", quality, 1e-9), ("pairwise", diversity, 0.02)):
        last = run.metrics()[f"overlap_{name}"]
        # the best readout met is the one that was written
        assert np.isclose(last, len(chosen & other) / len(chosen | other), atol=apart, rtol=0).any()


def test_the_best_of_a_term_is_computed_again_where_it_was_not_kept(store):
    first, _ = learned(store, objective="pairwise", n_epochs=3)
    kept = next((store.cache_dir / first.facts()["fingerprint"]).glob("anchor-*-pairwise-360*.cache"))
    kept.write_bytes(b"damaged")
    second, _ = learned(store, objective="pairwise", n_epochs=3)
    np.testing.assert_array_equal(second.metrics()["overlap_pairwise"], first.metrics()["overlap_pairwise"])
    assert kept.stat().st_size > 360 / 8  # the subset is there again, a bit a row


def test_the_command_line_says_it_once_and_the_summary_keeps_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datamask.runs.recording.HEALTH_SECONDS", 0.0)
    assert (
        cli.main(
            [
                "select",
                TINY,
                "--output",
                "o.parquet",
                "--estimator",
                "reinforce",
                "--objective",
                "pairwise",
                "--scale",
                "raw",
                "--n_rollout",
                "16",
                "--n_epochs",
                "40",
                "--partial",
                "1",
                "--max_lr",
                "3",
                "--min_lr",
                "0.3",
                "--init",
                "same",
                "--device",
                "cpu",
                "--json",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    kept = json.loads(out.splitlines()[-1])["warnings"]
    dominated = [sentence for sentence in kept if "of the reward's variance is due to quality" in sentence]
    assert len(dominated) == 1
    assert sum("of the reward's variance is due to quality" in line for line in err.splitlines()) == 1
    assert "datamask: warning: " in err


def test_a_run_is_judged_by_the_steps_that_are_planned():
    """Fewer than its settings say, where there are many rows: half of 20 are 10, and only 20 gather signal."""
    config = SelectionConfig.from_options(**{**REINFORCE, "n_epochs": 60})

    def told(planned, **columns):
        facts = {} if planned is None else {"planned_steps": planned}
        return [str(concern) for concern in health.concerns({"step": np.arange(20.0), **columns}, config, facts)]

    late = {"flat": np.repeat([0.0, 1.0], 10)}
    assert "all 16 masks had one value" in told(None, **late)[0] and told(20, **late) == []
    alike = {"batch_joint_std": np.repeat([1.0, 1e-4], [14, 6])}
    assert "since step 13 of 60" in told(None, **alike)[0] and told(20, **alike) == []
    faint = {"signal": np.full(20, 0.02)}
    assert told(None, **faint) == [] and told(20, **faint)[0].startswith("Over all 20 steps")
