"""The learning curve: two curves kept apart, references in the run's scale, and a chart that draws just that."""

import numpy as np
import pyarrow as pa
import pytest

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.charts.convergence import convergence
from datamask.dashboard.views import convergence as view
from datamask.runs.store import RunStore


def metrics(steps: int, every: int = 1) -> dict[str, np.ndarray]:
    step = np.arange(1, steps + 1, dtype=float)
    looked = step % every == 0
    return {"step": step, "seconds": step / 10, "batch_joint_mean": step, "batch_joint_std": np.full(steps, 0.5),
            "joint": np.where(looked, 2 * step, np.nan)}


def run_with(tmp_path, references=None, records=(), **options):
    run = RunStore(tmp_path).create(RunConfig(CorpusConfig(("a.parquet",)), SelectionConfig.from_options(**options)))
    with run.writer() as writer:
        writer.set_status("running")
        if references:
            writer.update_facts(references=references)
        for record in records:
            writer.append_metrics(record)
    return run


def test_masks_and_subset_are_two_curves():
    table = view.curve_table(metrics(10, every=5), "joint")
    batch, subset = (table[table["series"] == name] for name in (view.BATCH, view.SUBSET))
    assert list(batch["value"]) == list(range(1, 11)) and list(batch["high"] - batch["low"]) == [1.0] * 10
    assert list(subset["step"]) == [5, 10] and list(subset["value"]) == [10, 20]
    assert subset["low"].isna().all()


def test_long_curves_are_thinned_and_keep_both_ends():
    table = view.curve_table(metrics(5000), "joint")
    subset = table[table["series"] == view.SUBSET]
    assert len(subset) <= view.MAX_POINTS
    assert subset["step"].iloc[0] == 1 and subset["step"].iloc[-1] == 5000


def test_one_mask_has_no_spread():
    one = metrics(3)
    del one["batch_joint_std"]
    batch = view.curve_table(one, "joint").query("series == @view.BATCH")
    assert (batch["low"] == batch["value"]).all()


def test_nothing_learned_yet_is_an_empty_table():
    assert len(view.curve_table({}, "joint")) == 0


def test_references_come_highest_first_in_the_runs_scale(tmp_path):
    run = run_with(tmp_path, {"random": {"joint": 0.0, "quality": 0.0, "diversity": 0.0},
                              "top_quality": {"joint": -0.4, "quality": 1.0, "diversity": -1.8}})
    joint = [(reference.label, reference.value) for reference in view.references(run, "joint")]
    assert joint == [("random subset", 0.0), ("best-quality rows", -0.4)]
    assert [r.value for r in view.references(run, "quality")] == [1.0, 0.0]


def test_a_calibrated_run_knows_random_before_anything_is_measured(tmp_path):
    assert [r.value for r in view.references(run_with(tmp_path / "a"), "joint")] == [0.0]
    assert view.references(run_with(tmp_path / "b", scale="raw"), "joint") == ()


def test_the_unit_says_which_scale(tmp_path):
    assert "raw" in view.curve(run_with(tmp_path / "a", scale="raw"), "joint").unit
    assert "random" in view.curve(run_with(tmp_path / "b"), "quality").unit


def test_the_bound_is_a_reference_of_the_joint_value_only(tmp_path):
    run = run_with(tmp_path)
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", {"upper_bound": 0.9}, "converged")
    assert view.references(run, "joint")[0].role == "bound"
    assert all(r.role != "bound" for r in view.references(run, "quality"))


@pytest.mark.parametrize("scale, joint, shown", [("calibrated", 0.8, [0.8]), ("calibrated", 0.5, []),
                                                 ("raw", 0.5, [4.0])])
def test_a_polished_selection_is_shown_where_it_ended(tmp_path, scale, joint, shown):
    run = run_with(tmp_path, None, [{"step": 1, "seconds": 0.1, "joint": 0.5}], scale=scale)
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", {"joint": 4.0, "calibrated": {"joint": joint}}, "converged")
    assert [r.value for r in view.references(run, "joint") if r.role == "final"] == shown


def test_gauges_say_the_latest_finite_value():
    said = {gauge.label: gauge.value for gauge in view.gauges({
        "changed": np.array([0.5, 0.25, np.nan]), "snr": np.array([3.14159]), "decided": np.array([np.nan])})}
    assert said["Changed"].startswith("25") and said["Signal to noise"] == "3.1"
    assert "Decided" not in said


@pytest.mark.parametrize("across", ["step", "seconds"])
def test_the_chart_draws_band_lines_and_references_apart(tmp_path, across):
    run = run_with(tmp_path, {"random": {"joint": 0.0}, "top_quality": {"joint": 0.2}},
                   [{"step": 1, "seconds": 0.5, "joint": 0.1, "batch_joint_mean": 0.0, "batch_joint_std": 0.1}])
    curve = view.curve(run)
    spec = convergence(curve, across)
    own = [layer for layer in spec["layer"] if "data" not in layer]
    lines = [layer for layer in own if layer["mark"]["type"] == "line"]
    assert all(layer["encoding"]["x"]["field"] == across for layer in own)
    assert [layer["transform"][0]["filter"]["equal"] for layer in lines] == [view.BATCH, view.SUBSET]
    labels = [layer["data"]["values"][0]["label"] for layer in spec["layer"]
              if "text" in layer.get("encoding", {}) and "color" in layer["mark"]]
    assert labels == ["best-quality rows  0.2", "random subset  0"]
    assert set(curve.table.columns) == {"step", "seconds", "series", "value", "low", "high"}


def test_the_chart_changes_with_the_ground_and_not_with_the_data(tmp_path):
    run = run_with(tmp_path, {"random": {"joint": 0.0}})
    before = convergence(view.curve(run))
    with run.writer() as writer:
        writer.append_metrics({"step": 1, "seconds": 0.1, "joint": 0.3})
    assert convergence(view.curve(run)) == before, "a live chart is redrawn from scratch if its specification changes"
    assert convergence(view.curve(run), dark=True) != before
