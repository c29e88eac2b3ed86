"""The learning curve: two curves kept apart, references in the run's scale, and a chart that draws just that."""

import numpy as np
import pyarrow as pa
import pytest

from datamask.analyses.convergence import tables as view
from datamask.analyses.convergence.chart import (
    FRAME,
    FURNITURE,
    NARROW,
    ROLES,
    RULE,
    WORDS,
    convergence,
    drawn,
)
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.drawing.placement import LINE, width_of
from datamask.runs.store import RunStore


def metrics(steps: int, every: int = 1) -> dict[str, np.ndarray]:
    step = np.arange(1, steps + 1, dtype=float)
    looked = step % every == 0
    return {
        "step": step,
        "seconds": step / 10,
        "batch_joint_mean": step,
        "batch_joint_std": np.full(steps, 0.5),
        "joint": np.where(looked, 2 * step, np.nan),
    }


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
    run = run_with(
        tmp_path,
        {
            "random": {"joint": 0.0, "quality": 0.0, "diversity": 0.0},
            "top_quality": {"joint": -0.4, "quality": 1.0, "diversity": -1.8},
        },
    )
    joint = [(reference.label, reference.value) for reference in view.references(run, "joint")]
    assert joint == [("random subset", 0.0), ("best-quality rows", -0.4)]
    assert [r.value for r in view.references(run, "quality")] == [1.0, 0.0]


def test_a_calibrated_run_knows_random_before_anything_is_measured(tmp_path):
    assert [r.value for r in view.references(run_with(tmp_path / "a"), "joint")] == [0.0]
    assert view.references(run_with(tmp_path / "b", scale="raw"), "joint") == ()


def test_the_unit_says_which_scale(tmp_path):
    assert "raw" in view.curve(run_with(tmp_path / "a", scale="raw"), "joint").unit
    curve = view.curve(run_with(tmp_path / "b"), "quality")
    assert "random" in curve.unit and not curve.raw
    assert (view.said(0.7387, curve.raw), view.said(0.7387, True)) == ("73.9\u00a0%", "0.739")


def test_the_bound_is_a_reference_of_the_joint_value_only(tmp_path):
    run = run_with(tmp_path)
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", None, "converged", summary={"upper_bound": 0.9})
    assert view.references(run, "joint")[0].role == "bound"
    assert all(r.role != "bound" for r in view.references(run, "quality"))


@pytest.mark.parametrize(
    "scale, joint, shown", [("calibrated", 0.8, [0.8]), ("calibrated", 0.5, []), ("raw", 0.5, [4.0])]
)
def test_a_polished_selection_is_shown_where_it_ended(tmp_path, scale, joint, shown):
    run = run_with(tmp_path, None, [{"step": 1, "seconds": 0.1, "joint": 0.5}], scale=scale)
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", None, "converged", summary={"joint": 4.0, "calibrated": {"joint": joint}})
    assert [r.value for r in view.references(run, "joint") if r.role == "final"] == shown


def test_of_a_run_on_all_rows_the_passes_are_drawn_once_there_are_some(tmp_path):
    of_sample = [{"step": step, "seconds": 0.1 * step, "joint": 0.4 + 0.1 * step} for step in (1, 2)]
    run = run_with(tmp_path, None, of_sample)
    assert list(view.curve(run).table["value"]) == [0.5, pytest.approx(0.6)]
    with run.writer() as writer:
        for number, joint in ((1, 0.3), (2, 0.45)):
            writer.append_metrics(
                {"step": 2 + number, "seconds": 1.0, "joint": joint, "upper_bound": 0.46, "pass": number}
            )
    table = view.curve(run).table
    assert list(table["step"]) == [1, 2] and list(table["value"]) == [0.3, 0.45]
    assert list(view.curve(run, view.GAP).table["value"]) == [pytest.approx(0.16), pytest.approx(0.01)]


@pytest.mark.parametrize("across", ["step", "seconds"])
def test_the_chart_draws_band_lines_and_references_apart(tmp_path, across):
    run = run_with(
        tmp_path,
        {"random": {"joint": 0.0}, "top_quality": {"joint": 0.2}},
        [{"step": 1, "seconds": 0.5, "joint": 0.1, "batch_joint_mean": 0.0, "batch_joint_std": 0.1}],
    )
    curve = view.curve(run)
    lines = [layer for layer in convergence(curve, across)["layer"] if layer["mark"]["type"] == "line"]
    assert all(layer["encoding"]["x"]["field"] == across for layer in lines)
    assert [layer["transform"][0]["filter"]["equal"] for layer in lines] == [view.BATCH, view.SUBSET]
    table = drawn(curve, across)
    assert table.loc[table["series"] == RULE, ["value", "role"]].to_numpy().tolist() == [[0.2, "best"], [0.0, "random"]]
    assert noted(table) == ["best-quality rows  20.0\u00a0%", "random subset  0.0\u00a0%"]
    assert set(curve.table.columns) == {"step", "seconds", "masks", "series", "value", "low", "high", "note"}


def test_every_row_of_the_data_is_drawn_once_by_its_layers(tmp_path):
    """A layer per role: a role without one would leave a line without words."""
    roles = {
        layer["transform"][0]["filter"]
        for layer in convergence(view.curve(run_with(tmp_path)))["layer"]
        if isinstance(layer.get("transform", [{}])[0].get("filter"), str)
    }
    assert {f"datum.series === '{RULE}' && datum.role === '{role}'" for role in ROLES} <= roles
    assert {f"datum.series === '{WORDS}' && datum.role === '{role}'" for role in (*ROLES, view.EDGE)} <= roles


def test_the_chart_changes_with_the_ground_and_not_with_the_data(tmp_path):
    run = run_with(tmp_path, {"random": {"joint": 0.0}})
    before = convergence(view.curve(run))
    with run.writer() as writer:
        writer.append_metrics({"step": 1, "seconds": 0.1, "joint": 0.3})
        writer.update_facts(references={"random": {"joint": 0.0}, "top_quality": {"joint": 0.4}})
    assert convergence(view.curve(run)) == before, "a live chart is redrawn from scratch if its specification changes"
    assert convergence(view.curve(run), dark=True) != before


def noted(table) -> list[str]:
    """The words of the references in the picture, from top to bottom."""
    words = table[(table["series"] == WORDS) & (table["role"] != view.EDGE)]
    return words.sort_values("value", ascending=False)["note"].tolist()


CASES = {
    "polished onto the end": ([0.1, 0.5, 0.7, 0.74, 0.745, 0.746], 0.749, 0.7495, {"random": 0.0, "top_quality": 0.4}),
    "all at one place": ([0.5, 0.5, 0.5], 0.5001, 0.5002, {"random": 0.5, "top_quality": 0.5}),
    "random where the curve is": ([-0.02, 0.0, 0.01], None, None, {"random": 0.0, "top_quality": -0.9}),
    "far off on both sides": ([0.1, 0.12, 0.13], 0.2, 0.21, {"random": 0.0, "top_quality": 5.0}),
    "falling": ([0.9, 0.5, 0.2, 0.05, 0.0], 0.1, 1.0, {"random": 0.0, "top_quality": 0.02}),
    "one step": ([0.3], None, None, {"random": 0.0}),
    "huge": ([1e9, 2e9, 3e9], 3.1e9, 3.2e9, {"random": 0.0, "top_quality": 2.9e9}),
}


@pytest.mark.parametrize("height", [320, 240])
@pytest.mark.parametrize("case", CASES)
def test_words_lie_neither_on_each_other_nor_on_the_bold_line(tmp_path, case, height):
    values, final, bound, points = CASES[case]
    run = run_with(
        tmp_path, {name: {"joint": value} for name, value in points.items()}, records(values, [-0.4] * len(values))
    )
    if final is not None:
        with run.writer() as writer:
            writer.write_selection(pa.table({"id": [1]}), {})
            writer.finish(
                "done",
                None,
                "converged",
                summary={"calibrated": {"joint": final}, "upper_bound": bound, "gap": bound - final},
            )
    curve = view.curve(run)
    table = drawn(curve, "step", height)
    low, high = table.loc[table["series"] == FRAME, "value"]
    pixel = (high - low) / (height - FURNITURE)
    words = table[(table["series"] == WORDS) & (table["role"] != view.EDGE)].sort_values("value")
    assert len(words) == len(curve.references) >= 1
    assert (np.diff(words["value"]) >= (LINE - 1e-6) * pixel).all(), "words lie on words"
    assert words["value"].between(low + 7.9 * pixel, high - 7.9 * pixel).all(), "words stick out"
    # the bold line, read at every pixel behind the words, in a picture as narrow as they get
    subset = curve.table[curve.table["series"] == view.SUBSET]
    for _, said in words.iterrows():
        across = np.linspace(max(0.0, 1 - width_of(said["note"]) / NARROW), 1, 200) * subset["step"].max()
        behind = np.interp(across, subset["step"], subset["value"])
        assert (np.abs(behind - said["value"]) > 7 * pixel).all(), f"{said['note']} lies on the bold line"
        for line in curve.references:
            assert line.edge or abs(line.value - said["value"]) > 7 * pixel, f"{said['note']} is crossed out"
    for _, said in table[table["role"] == view.EDGE].iterrows():
        across = np.linspace(0, width_of(said["note"]) / NARROW, 200) * subset["step"].max()
        behind = np.interp(across, subset["step"], subset["value"])
        if len(subset) > 1:
            assert (np.abs(behind - said["value"]) > 7 * pixel).all(), f"{said['note']} lies on the bold line"


def records(values, batch=None, bound=None):
    """Records of a run whose subset takes `values`, whose masks score `batch`, and whose bounds are `bound`."""
    for k, value in enumerate(values):
        yield {
            "step": k + 1,
            "seconds": 0.5 * (k + 1),
            "joint": value,
            **({"batch_joint_mean": batch[k], "batch_joint_std": 0.01} if batch else {}),
            **({"upper_bound": bound[k]} if bound else {}),
        }


def test_what_is_far_off_is_an_arrow_and_squeezes_nothing(tmp_path):
    """Top-quality at -0.9 and masks scored at -0.4 beside a curve from 0.5 to 0.75: neither is on the axis."""
    run = run_with(
        tmp_path,
        {"random": {"joint": 0.0}, "top_quality": {"joint": -0.9}},
        records([0.5, 0.7, 0.75], [-0.5, -0.45, -0.4]),
    )
    curve = view.curve(run)
    assert {line.label: line.edge for line in curve.references} == {"random subset": "", "best-quality rows": "below"}
    edge = curve.table[curve.table["series"] == view.EDGE]
    assert edge["note"].tolist() == [f"▼ {view.BATCH}  −40.0\u00a0%"] and edge["value"].tolist() == [-1.0]
    assert not (curve.table["series"] == view.BATCH).any()
    table = drawn(curve)
    assert table.loc[table["series"] == RULE, "value"].tolist() == [0.0]
    assert "▼ best-quality rows  −90.0\u00a0%" in noted(table)
    assert table.loc[table["role"] == view.EDGE, "note"].tolist() == edge["note"].tolist()


def test_masks_that_come_near_are_drawn_from_there_on(tmp_path):
    curve = view.curve(run_with(tmp_path, {"random": {"joint": 0.0}}, records([0.5, 0.7, 0.75], [-0.9, 0.3, 0.6])))
    batch = curve.table[curve.table["series"] == view.BATCH]
    assert batch["step"].tolist() == [2, 3] and not (curve.table["series"] == view.EDGE).any()


def test_near_references_stay_lines_while_the_curve_is_young(tmp_path):
    run = run_with(tmp_path, {"random": {"joint": 0.0}, "top_quality": {"joint": 0.08}}, records([0.001]))
    assert [line.edge for line in view.curve(run).references] == ["", ""]


def test_the_distance_to_the_bound_is_to_the_best_bound_so_far(tmp_path):
    run = run_with(tmp_path, None, records([0.5, 0.7, 0.8], bound=[1.0, 0.9, 0.95]))
    assert view.measures(run) == ("joint", "quality", "diversity", "gap")
    curve = view.curve(run, view.GAP)
    assert curve.table["value"].tolist() == pytest.approx([0.5, 0.2, 0.1]) and curve.references == ()
    spec = convergence(curve)
    assert all(
        layer["encoding"]["y"]["scale"]["type"] == "log" for layer in spec["layer"] if layer["mark"]["type"] == "line"
    )


@pytest.mark.parametrize("gap, shown", [(0.05, 0.05), (0.0, view.CLOSED)])
def test_a_bound_of_the_end_is_held_against_every_step(tmp_path, gap, shown):
    run = run_with(tmp_path, None, records([0.5, 0.85]))
    assert view.measures(run) == view.MEASURES
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", None, "converged", summary={"upper_bound": 0.9, "gap": gap, "joint": 0.9 - gap})
    curve = view.curve(run, view.GAP)
    assert curve.table["value"].tolist() == pytest.approx([0.4, 0.05])
    assert curve.final["value"] == pytest.approx(shown) and curve.final["step"] == 2
    assert [layer for layer in convergence(curve)["layer"] if layer["mark"].get("shape") == "diamond"]


def test_masks_scored_are_an_axis_where_masks_are_scored(tmp_path):
    run = run_with(tmp_path / "a", None, records([0.5, 0.7]), n_rollout=8)
    assert view.across(run) == ("step", "seconds", "masks")
    assert view.curve(run).table["masks"].tolist() == [8, 16]
    assert view.across(run_with(tmp_path / "b", estimator="relaxed")) == ("step", "seconds")


def test_a_polished_selection_has_its_mark_on_every_axis(tmp_path):
    run = run_with(tmp_path, None, records([0.5]), n_rollout=4)
    with run.writer() as writer:
        writer.write_selection(pa.table({"id": [1]}), {})
        writer.finish("done", None, "converged", summary={"calibrated": {"joint": 0.6}})
    curve = view.curve(run)
    assert curve.final == {"step": 1.0, "seconds": 0.5, "masks": 4.0, "value": 0.6}
    for across in view.across(run):
        marks = [layer for layer in convergence(curve, across)["layer"] if layer["mark"].get("shape") == "diamond"]
        assert marks[0]["data"]["values"] == [curve.final] and marks[0]["encoding"]["x"]["field"] == across
