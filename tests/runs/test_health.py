"""The sentence on a run's learning: each cause from a made trace, and the overlaps that a run writes down."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from datamask.catalogue import NOT_FINITE
from datamask.cli import main
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.execute import execute
from datamask.runs.health import learning
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.commands import TINY

STEPS = 40
RISE = np.linspace(0.0, 0.9, 15)
SETTLED = {
    "joint": np.concatenate([RISE, np.full(25, 0.9)]),
    "decided": np.linspace(0.0, 0.93, STEPS),
    "batch_joint_std": np.linspace(1.0, 0.1, STEPS),
    "signal": np.full(STEPS, 1.0),
}
"""Columns of a learner that has settled."""

FALLEN = np.concatenate([RISE, np.linspace(0.9, 0.2, 25)])
DID_NOT = "Learning did not converge: "
SMALLER = "Lower the first step size (max_lr) below 10 or raise the masks per step (n_rollout) above 16."


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture
def store(tiny_store):
    return tiny_store


def learned(store, **options):
    run = store.create(RunConfig(CorpusConfig((TINY,)), SelectionConfig.from_options(device="cpu", **options)))
    execute(run, Work(threads=1))
    return run


@pytest.fixture
def said(tmp_path):
    """What is said of a run of these columns and facts."""

    def said(columns=SETTLED, facts=None, ending=None, **options):
        options = {"estimator": "reinforce", "objective": "pairwise", "n_rollout": 16, "n_epochs": STEPS} | options
        run = RunStore(tmp_path).create(RunConfig(CorpusConfig((TINY,)), SelectionConfig.from_options(**options)))
        with run.writer() as writer:
            writer.set_status("running")
            writer.update_facts(references={"random": {"joint": 0.0}}, **(facts or {}))
            for step in range(max(map(len, columns.values()), default=0)):
                known = {name: column[step] for name, column in columns.items() if np.isfinite(column[step])}
                writer.append_metrics({"step": step + 1, **known})
            if ending is not None:
                writer.finish("stopped", None, ending)
        return learning(run)

    return said


def test_a_run_that_settled_says_how_many_rows_converged(said):
    assert said() == "93 % of rows converged after 40 steps."
    assert said(n_epochs=60, facts={"planned_steps": 40}) == "93 % of rows converged after 40 steps."
    assert said(n_epochs=60) == "93 % of rows converged after 40 of at most 60 steps."


def test_nothing_is_said_of_what_learns_no_masks_or_has_not_begun(said):
    assert said(estimator="relaxed", n_rollout=None) == said({}) == said({"decided": np.ones(20)}) == ""


@pytest.mark.parametrize(
    "columns, sentence",
    [
        (
            {"joint": FALLEN},
            "71 % of the gain over a random subset was lost again. " + SMALLER,
        ),
        (
            {"batch_joint_std": np.repeat([1.0, 0.009], [14, 26])},
            "the masks are all alike from step 14 on. " + SMALLER,
        ),
        (
            {"batch_joint_std": np.full(STEPS, 1e-9), "flat": np.ones(STEPS)},
            "all masks of a step have the same value, so nothing is learned from them. Check that quality differs "
            "between rows, or raise the masks per step (n_rollout) above 16.",
        ),
        (
            {"joint": np.concatenate([RISE, np.full(15, 0.9), np.linspace(0.9, 0.92, 10)])},
            "the value still rose in the last steps. Raise the maximum steps (n_epochs) above 40.",
        ),
        (
            {"signal": np.full(STEPS, 0.1)},
            "its steps are mostly noise. Raise the masks per step (n_rollout) above 16.",
        ),
    ],
    ids=["fell", "alike", "one value", "rising", "noise"],
)
def test_each_cause_is_said_with_what_to_change(said, columns, sentence):
    assert said({**SETTLED, **columns}) == DID_NOT + sentence
    assert said({**SETTLED, **columns}, ending=NOT_FINITE) == f"{DID_NOT}{NOT_FINITE}. {SMALLER}"


@pytest.mark.parametrize(
    "columns, options",
    [
        ({"joint": np.concatenate([RISE, np.linspace(0.9, 0.8, 25)])}, {}),
        ({"batch_joint_std": np.repeat([1.0, 0.011], [14, 26])}, {}),
        ({"batch_joint_std": np.repeat([1.0, 0.0], [24, 16])}, {}),
        ({"batch_joint_std": np.repeat([1.0, 0.0, 1.0], [5, 6, 29])}, {}),
        ({"batch_joint_std": np.repeat([0.0, 1.0], [2, 38])}, {}),
        ({"joint": np.concatenate([RISE, np.full(15, 0.9), np.linspace(0.9, 0.905, 10)])}, {}),
        ({"joint": np.linspace(0.0, 0.9, STEPS)}, {"polish": "swaps"}),
        ({"joint": np.linspace(0.0, 0.9, STEPS)}, {"n_epochs": 50}),
        ({"signal": np.full(STEPS, 0.3)}, {}),
    ],
    ids=[
        "jitter",
        "less spread",
        "alike at the end",
        "alike for a while",
        "alike at first",
        "hardly rising",
        "swaps follow",
        "steps ahead",
        "heard",
    ],
)
def test_what_is_near_a_cause_is_none(said, columns, options):
    assert said({**SETTLED, **columns}, **options).startswith("93 % of rows converged after 40 ")


def test_a_record_without_steps_says_nothing(store):
    run = store.create(RunConfig(CorpusConfig((TINY,)), SelectionConfig.from_options(estimator="counterfactual")))
    (run.path / "metrics.jsonl").write_text('{"joint": 0.5}\n', encoding="utf-8")
    assert learning(run) == ""


def test_half_of_the_steps_are_of_those_that_are_planned(said):
    alike = {**SETTLED, "batch_joint_std": np.repeat([1.0, 1e-4], [24, 16])}
    assert "from step 24 on" in said(alike, n_epochs=60) and "alike" not in said(
        alike, n_epochs=60, facts={"planned_steps": 40}
    )


@pytest.mark.parametrize("name", ["swaps", "anneals", "refills", "dual_steps"])
def test_swaps_and_bounds_after_a_learner_that_fell_hide_nothing(said, name):
    after = {"joint": np.concatenate([FALLEN, np.full(10, 0.9)]), "decided": np.ones(50)}
    assert "lost again" not in said(after)
    assert "71 % of the gain" in said({**after, name: np.concatenate([np.full(STEPS, np.nan), np.arange(1.0, 11.0)])})


def test_runs_show_prints_it(store, capsys):
    run = learned(store, objective="pairwise", estimator="counterfactual", polish="none", n_epochs=30)
    assert learning(run).endswith("% of rows converged after 30 steps.")
    show = ["runs", "show", run.id, "--runs_dir", str(store.root)]
    assert main(show) == 0 and f"\n  {learning(run)}\n" in capsys.readouterr().out
    assert main([*show, "--json"]) == 0 and json.loads(capsys.readouterr().out)["learning"] == learning(run)


def test_a_stopped_run_shows_it_too(said, tmp_path, capsys):
    sentence = said(ending="stopped on request", n_epochs=60)
    (run,) = RunStore(tmp_path).list()
    assert main(["runs", "show", run.id, "--runs_dir", str(tmp_path)]) == 0
    assert f"\n{sentence}\n" in capsys.readouterr().out


def test_overlaps_are_those_of_the_written_selections(store):
    """The last overlaps of a run, recomputed from other runs' ids."""
    run = learned(store, objective="pairwise", estimator="counterfactual", polish="none", n_epochs=30)
    best = learned(store, estimator="top-quality")
    apart = learned(store, estimator="relaxed", objective="pairwise", lamb=0.0)
    chosen, quality, diversity = (set(r.selection()["chunk_id"].to_pylist()) for r in (run, best, apart))
    for name, other, apart in (("quality", quality, 1e-9), ("pairwise", diversity, 0.02)):
        last = run.metrics()[f"overlap_{name}"]
        # the best readout met is the one that was written
        assert np.isclose(last, len(chosen & other) / len(chosen | other), atol=apart, rtol=0).any()


def test_the_best_of_a_term_is_computed_again_where_it_was_not_kept(store):
    first = learned(store, objective="pairwise", n_epochs=3)
    kept = next((store.cache_dir / first.facts()["fingerprint"]).glob("anchor-*-pairwise-360*.cache"))
    kept.write_bytes(b"damaged")
    second = learned(store, objective="pairwise", n_epochs=3)
    np.testing.assert_array_equal(second.metrics()["overlap_pairwise"], first.metrics()["overlap_pairwise"])
    assert kept.stat().st_size > 360 / 8  # the subset is there again, a bit a row
