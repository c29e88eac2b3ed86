"""Every estimator records its way, in lines that are numbered through: steps, picks, swaps, steps of the bound."""

from __future__ import annotations

import numpy as np
import pytest

from datamask import catalogue
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs import recording
from datamask.runs.execute import execute
from datamask.work.context import Work
from tests.commands import TINY
from tests.reference import truth

ESTIMATORS = [entry.name for entry in catalogue.ESTIMATORS]
OBJECTIVES = [entry.name for entry in catalogue.OBJECTIVES]
PAIRS = [
    (estimator, objective)
    for estimator in ESTIMATORS
    for objective in OBJECTIVES
    if (estimator != "relaxed" or catalogue.objective(objective).proof)
    and catalogue.estimator(estimator).selects_by(objective)
]
ENOUGH = 10


@pytest.fixture
def store(tiny_store):
    return tiny_store


def start(store, estimator, objective, **options):
    masks = {"reinforce": {"n_epochs": 12, "n_rollout": 8}, "counterfactual": {"n_epochs": 12}}
    settings = SelectionConfig.from_options(
        estimator=estimator,
        objective=objective,
        device="cpu",
        lamb=0.4,
        select_ratio=0.1,
        **masks.get(estimator, {}),
        **options,
    )
    return store.create(RunConfig(CorpusConfig((TINY,)), settings))


def known(metrics, name):
    column = metrics.get(name, np.zeros(0))
    return column[np.isfinite(column)]


def of_definition(objective, x, members):
    if objective == "pairwise":
        s, size = x[members].sum(0), len(members)
        return -(s @ s - (x[members] ** 2).sum()) / (size * (size - 1))
    return truth.OBJECTIVES[objective](x, members)


@pytest.mark.parametrize(("estimator", "objective"), PAIRS)
def test_a_finished_run_has_ten_points_and_reports_the_values_of_the_written_ids(
    store, tiny_rows, estimator, objective
):
    """Ten, unless it took fewer steps; values recomputed in float64 with plain numpy, to 1e-4 relative."""
    run = start(store, estimator, objective)
    summary = execute(run, Work(threads=1)).to_dict()
    place, quality, x = tiny_rows
    members = [place[id_] for id_ in run.selection()["chunk_id"].to_pylist()]
    value = of_definition(objective, x, members)
    assert len(set(members)) == summary["selected"] == 120
    assert summary["quality"] == pytest.approx(quality[members].mean(), rel=1e-4)
    assert summary["diversity"] == pytest.approx(value, rel=1e-4)
    assert summary["joint"] == pytest.approx(0.4 * quality[members].mean() + 0.6 * value, rel=1e-4)
    ends = summary["anchors"]["diversity"][objective]
    share = (value - ends["random"]) / (ends["best"] - ends["random"])
    assert summary["calibrated"]["diversity"] == pytest.approx(share, rel=1e-3)
    metrics = run.metrics()
    lines = metrics.get("step", np.zeros(0))
    taken = summary["steps"] + sum(int(known(metrics, name).max(initial=0)) for name in ("swaps", "dual_steps"))
    assert len(lines) >= min(ENOUGH, taken)
    assert (np.diff(lines) > 0).all() and (np.diff(known(metrics, "seconds")) >= 0).all()
    for name in ("picks", "swaps", "dual_steps"):
        assert (np.diff(known(metrics, name)) > 0).all()
    # the way ends at the selection that was written
    if len(known(metrics, "joint")):
        assert known(metrics, "joint")[-1] == pytest.approx(summary["calibrated"]["joint"], abs=1e-6)
    # a bound never rises, and lies above what it bounds
    if summary["upper_bound"] is not None and estimator != "relaxed" and "dual_steps" in metrics:
        bounds = known(metrics, "upper_bound")
        assert (np.diff(bounds) <= 0).all() and bounds.min() >= summary["calibrated"]["joint"] - 1e-9
        assert summary["upper_bound"] <= bounds.min() + 2e-5  # proved in float64; those on the way are float32


def test_facility_tells_picks_swaps_and_steps_of_the_dual(store):
    run = start(store, "relaxed", "facility")
    execute(run, Work(threads=1))
    metrics = run.metrics()
    picks, swaps, steps = (np.isfinite(metrics[name]) for name in ("picks", "swaps", "dual_steps"))
    assert (metrics["picks"][picks][-1] == 120 and picks.sum() == swaps.sum() == ENOUGH) or swaps.sum() > ENOUGH
    joint = metrics["joint"]
    assert (np.diff(joint[picks]) > 0).all() and (np.diff(joint[swaps]) > 0).all()
    assert steps.sum() >= ENOUGH and joint[swaps][0] > joint[picks][-1] - 1e-9


@pytest.mark.parametrize(
    ("estimator", "objective", "where"),
    [
        ("relaxed", "facility", "dual_steps"),
        ("relaxed", "facility", "picks"),
        ("counterfactual", "facility", "swaps"),
        ("counterfactual", "disf", "swaps"),
        ("greedy", "facility", "dual_steps"),
    ],
)
def test_stopped_between_steps_and_resumed_has_the_lines_of_an_unbroken_run(
    store, estimator, objective, where, monkeypatch
):
    whole, broken = start(store, estimator, objective), start(store, estimator, objective)
    execute(whole, Work(threads=1))
    monkeypatch.setattr(recording.Recorder, "traced", traced := counted(recording.Recorder.traced, where))
    assert execute(broken, Work.of(lambda: traced.reached, threads=1)) is None
    assert np.isfinite(broken.metrics()[where]).any()
    monkeypatch.undo()
    execute(broken, Work(threads=1))
    for name in ("step", "joint", "picks", "swaps", "dual_steps", "upper_bound"):
        assert (name in whole.metrics()) == (name in broken.metrics())
        np.testing.assert_array_equal(broken.metrics().get(name), whole.metrics().get(name))
    assert broken.selection().equals(whole.selection())


def counted(traced, where):
    """`traced` that remembers whether it has been told of such a point."""

    def told(self, point):
        traced(self, point)
        told.reached = told.reached or where in point.metrics

    told.reached = False
    return told
