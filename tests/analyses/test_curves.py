"""Curves of one run and of several: phases, the scale, what they are held against, the end, and the chart."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.curves import chart, phases, tables
from datamask.analyses.curves import vitals as signs
from datamask.analyses.curves.tables import BATCH, CURVE, END, MASKS, RULE, SUBSET, TURN
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.runs.store import RunStore
from tests.making.runs import execute_run, write_shard

NAN = np.nan
ANCHORS = {
    "quality": {"random": 2.0, "best": 6.0, "best_kind": "best found"},
    "diversity": {"pairwise": {"random": -1.0, "best": -0.5, "best_kind": "best found"}},
}
LEARNED = [{"batch_joint_mean": 0.1, "joint": 0.1 * k} for k in range(1, 6)]
SWAPPED = [{"swaps": k, "joint": 0.5 + 0.05 * k} for k in range(1, 4)]
PROVED = [{"dual_steps": k, "joint": 0.65, "upper_bound": 0.9} for k in range(1, 3)]


def made(tmp_path, lines=(), summary=None, name="mine", facts=None, **options):
    """A run with these lines of metrics; ended where there is a summary."""
    store = RunStore(tmp_path)
    selection = SelectionConfig.from_options(**{"objective": "pairwise", **options})
    run = store.create(RunConfig(CorpusConfig(("a.parquet",)), selection, name))
    with run.writer() as writer:
        writer.set_status("running")
        writer.update_facts(**(facts or {}))
        for step, line in enumerate(lines, 1):
            writer.append_metrics({"step": step, "seconds": 0.5 * step, **line})
        if summary is not None:
            writer.finish("stopped", None, summary=summary)
    return run


def scored(values, batch=None, bounds=None):
    """Lines of a run whose subset takes `values`, whose masks score `batch`, and whose bounds are `bounds`."""
    for k, value in enumerate(values):
        more = {"batch_joint_mean": batch[k], "batch_joint_std": 0.01} if batch else {}
        yield {"joint": value, **more, **({"upper_bound": bounds[k]} if bounds else {})}


def levels(curve) -> dict:
    """Names and values of what a curve is held against."""
    rules = curve.of(RULE) if isinstance(curve, tables.Curves) else curve
    return dict(zip(rules["note"], rules["value"], strict=True))


def test_masks_and_subset_are_two_curves_and_one_mask_has_no_spread(tmp_path):
    lines = [
        {"batch_joint_mean": k / 2, "batch_joint_std": 0.5, **({"joint": k} if k % 5 == 0 else {})} for k in range(10)
    ]
    curve = tables.curve(made(tmp_path, lines, scale="raw"))
    batch, subset = curve.of(MASKS), curve.of(CURVE)
    assert (
        batch["value"].tolist() == [k / 2 for k in range(10)] and (batch["high"] - batch["low"]).tolist() == [1.0] * 10
    )
    assert subset["step"].tolist() == [1, 6] and subset["value"].tolist() == [0, 5] and subset["low"].isna().all()
    assert curve.series == (SUBSET, BATCH) and curve.table.columns.tolist() == list(tables.COLUMNS)
    alone = tables.curve(made(tmp_path, LEARNED)).of(MASKS)
    assert len(alone) == 5 and (alone["low"] == alone["value"]).all()


def test_of_many_steps_the_first_and_widest_masks_squeeze_nothing(tmp_path):
    means = np.concatenate([[-3.0, -2.0], np.linspace(0, 1, 98)])
    spreads = np.where(np.arange(100) == 50, 9.0, 0.1)
    lines = [{"batch_joint_mean": m, "batch_joint_std": s, "joint": 9 * m} for m, s in zip(means, spreads, strict=True)]
    batch = tables.curve(made(tmp_path, lines, scale="raw")).of(MASKS)
    assert batch["value"].tolist() == pytest.approx(means[1:].tolist())
    low, high = np.sort(means - spreads)[1], np.sort(means + spreads)[98]
    assert (batch["low"].min(), batch["high"].max()) == (pytest.approx(low), pytest.approx(high))


def test_long_curves_are_thinned_and_keep_both_ends_and_none_is_an_empty_table(tmp_path):
    there = tables.thinned(np.arange(3, 5003))
    assert len(there) <= tables.MAX_POINTS and (there[0], there[-1]) == (3, 5002)
    assert tables.curve(made(tmp_path)).of(CURVE).empty


def test_references_are_in_the_runs_scale_and_the_bound_is_one_of_joint(tmp_path):
    points = {
        "random": {"joint": 0.0, "quality": 0.0, "diversity": 0.0},
        "top_quality": {"joint": -0.4, "quality": 1.0, "diversity": -1.8},
    }
    run = made(tmp_path, LEARNED, {"upper_bound": 0.9}, facts={"references": points})
    known = {measure: levels(tables.references(run, measure)) for measure in ("joint", "quality")}
    assert known["joint"] == {"random subset": 0.0, "best-quality rows": -0.4, "bound": 0.9}
    assert known["quality"] == {"random subset": 0.0, "best-quality rows": 1.0}
    # calibration says where random is before anything was measured
    assert levels(tables.references(made(tmp_path), "joint")) == {"random subset": 0.0}
    assert levels(tables.references(made(tmp_path, scale="raw"), "joint")) == {}


def test_the_unit_says_which_scale(tmp_path):
    assert "raw" in tables.curve(made(tmp_path, scale="raw"), "joint").unit
    curve = tables.curve(made(tmp_path), "quality")
    assert "random" in curve.unit and not curve.raw
    assert (tables.said(0.7387, curve.raw), tables.said(0.7387, True)) == ("73.9\u00a0%", "0.739")


@pytest.mark.parametrize("scale, ends", [("calibrated", 0.8), ("raw", 4.0)])
def test_the_end_is_in_the_runs_scale_on_every_axis(tmp_path, scale, ends):
    summary = {"joint": 4.0, "calibrated": {"joint": 0.8}}
    curve = tables.curve(made(tmp_path, [{"joint": 0.5}], summary, scale=scale, n_rollout=4))
    assert curve.of(END)[["step", "seconds", "masks", "value"]].to_numpy().tolist() == [[1.0, 0.5, 4.0, ends]]
    assert tables.curve(made(tmp_path, [{"joint": 0.5}])).of(END).empty


def test_masks_scored_are_an_axis_where_masks_are_scored(tmp_path):
    run = made(tmp_path, [*LEARNED, *SWAPPED], n_rollout=8)
    assert tables.across(run) == ("step", "seconds", "masks")
    assert tables.curve(run).of(CURVE)["masks"].tolist() == [8, 16, 24, 32, 40, 40, 40, 40]
    assert tables.across(made(tmp_path, estimator="relaxed")) == ("step", "seconds")


def test_what_is_far_off_is_said_and_squeezes_nothing(tmp_path):
    """Top-quality at -0.9 and masks scored at -0.4 beside a curve from 0.5 to 0.75: neither is on the axis."""
    points = {"random": {"joint": 0.0}, "top_quality": {"joint": -0.9}}
    far = scored([0.5, 0.7, 0.75], [-0.5, -0.45, -0.4])
    curve = tables.curve(made(tmp_path, far, facts={"references": points}))
    assert levels(curve) == {"random subset": 0.0} and curve.of(MASKS).empty and curve.series == (SUBSET,)
    assert curve.far == ("▼ best-quality rows −90.0\u00a0%", f"▼ {BATCH} −40.0\u00a0%")
    assert chart.notes(curve) == [f"Not drawn: {', '.join(curve.far)}."]
    near = tables.curve(made(tmp_path, scored([0.5, 0.7, 0.75], [-0.9, 0.3, 0.6])))
    assert near.of(MASKS)["step"].tolist() == [2, 3] and not near.far
    young = made(tmp_path, scored([0.001]), facts={"references": {**points, "top_quality": {"joint": 0.08}}})
    assert len(levels(tables.curve(young))) == 2


def test_the_distance_to_the_bound_is_to_the_best_bound_so_far(tmp_path):
    run = made(tmp_path, scored([0.5, 0.7, 0.8], bounds=[1.0, 0.9, 0.95]))
    assert tables.measures(run) == ("joint", "quality", "diversity", "gap")
    curve = tables.curve(run, tables.GAP)
    assert curve.of(CURVE)["value"].tolist() == pytest.approx([0.5, 0.2, 0.1]) and curve.of(RULE).empty
    places = [layer["encoding"]["y"] for layer in chart.curves(curve)["layer"] if layer["mark"]["type"] == "line"]
    assert {place["scale"]["type"] for place in places} == {"log"}


@pytest.mark.parametrize("gap, shown", [(0.05, 0.05), (0.0, tables.CLOSED)])
def test_a_bound_of_the_end_is_held_against_every_step(tmp_path, gap, shown):
    assert tables.measures(made(tmp_path, scored([0.5, 0.85]))) == tables.MEASURES
    summary = {"upper_bound": 0.9, "gap": gap, "joint": 0.9 - gap}
    curve = tables.curve(made(tmp_path, scored([0.5, 0.85]), summary), tables.GAP)
    assert curve.of(CURVE)["value"].tolist() == pytest.approx([0.4, 0.05])
    assert curve.of(END)["value"].tolist() == [pytest.approx(shown)]


def test_phases_are_named_by_what_a_record_counts(tmp_path):
    run = made(tmp_path, [*LEARNED, *SWAPPED, *PROVED])
    assert phases.phases(run.metrics()) == [
        phases.Phase("mask learning", 0, 4),
        phases.Phase("swaps", 5, 7),
        phases.Phase("bound", 8, 9),
    ]
    assert phases.phases({}) == []


def test_what_measures_nothing_is_no_stretch_of_the_way(tmp_path):
    last_word = {"joint": SWAPPED[-1]["joint"]}
    swapped_first = made(tmp_path, [*SWAPPED, {}, last_word, *PROVED])
    assert [phase.name for phase in phases.phases(swapped_first.metrics())] == ["swaps", "bound"]
    rounds = made(tmp_path, [{"joint": 0.2}, {"joint": 0.2}, *SWAPPED, {"joint": 0.7}, *PROVED])
    assert [phase.name for phase in phases.phases(rounds.metrics())] == ["solver", "swaps", "solver", "bound"]
    empty_first = made(tmp_path, [{}, *SWAPPED])
    assert phases.phases(empty_first.metrics()) == [phases.Phase("swaps", 0, 3)]


def test_every_record_is_in_exactly_one_phase_of_real_runs(tmp_path):
    config = write_shard(tmp_path / "shard.parquet", 120)
    seen = set()
    for options in (
        {"objective": "facility"},
        {"objective": "pairwise", "estimator": "counterfactual", "n_epochs": 6},
        {"objective": "facility", "estimator": "greedy"},
    ):
        run = execute_run(RunStore(tmp_path / "runs"), config, **options)
        metrics = run.metrics()
        stretches = phases.phases(metrics)
        covered = list(itertools.chain(*(range(phase.first, phase.last + 1) for phase in stretches)))
        assert covered == list(range(len(metrics["step"])))
        seen |= {phase.name for phase in stretches}
        drawn, own = tables.curves([run]), tables.curve(run)
        final = run.status().to_dict()["summary"]["calibrated"]["joint"]
        assert drawn.of(END)["value"].tolist() == own.of(END)["value"].tolist() == [final]
        subset = metrics["joint"][np.isfinite(metrics["joint"])]
        assert own.of(CURVE)["value"].tolist() == subset.tolist()
    assert seen == {"mask learning", "swaps", "bound", "picks"}


def test_turns_and_warm_starts_are_marked_where_they_are(tmp_path):
    cold = made(tmp_path, [*LEARNED, *SWAPPED, *PROVED], name="cold")
    warm = made(tmp_path, [*SWAPPED, *PROVED], name="warm", facts={"warm_from": cold.id})
    both = tables.curves([cold, warm])
    marked = both.of(TURN)[["series", "step", "note"]].to_numpy().tolist()
    assert marked == [
        ["cold", 6, "swaps begins"],
        ["cold", 9, "bound begins"],
        ["warm", 1, tables.GOES_ON],
        ["warm", 4, "bound begins"],
    ]
    assert chart.notes(both) == ["▲ local search, ■ bound, ✚ continues from another run."]
    assert tables.curve(warm).of(TURN)[["step", "value"]].to_numpy().tolist() == [[1, 0.55], [4, 0.65]]
    named = {f"{name} begins" for _, name in phases.SIGNS} | {f"{phases.SOLVING} begins", tables.GOES_ON}
    assert named == set(chart.TURNS), "a turn without a mark would not be drawn"


def test_raw_values_are_brought_to_shares_by_the_anchors(tmp_path):
    raw = [{"raw_quality": q, "raw_diversity": d} for q, d in ((2, -1), (4, -0.75), (6, -0.5), (8, 0.0))]
    run = made(tmp_path, raw, scale="raw", lamb=0.25, facts={"anchors": ANCHORS})
    for measure, expected in (
        ("quality", [0.0, 0.5, 1.0, 1.5]),
        ("diversity", [0.0, 0.5, 1.0, 2.0]),
        ("joint", [0.0, 0.5, 1.0, 0.25 * 1.5 + 0.75 * 2.0]),
    ):
        np.testing.assert_allclose(tables.curves([run], measure).of(CURVE)["value"], expected)


def test_joint_values_of_several_lambdas_are_weighed_at_one(tmp_path):
    """At λ 0.9 and 0.5 one selection has two joint values: on one axis both stand at one height."""
    way = [{"quality": q, "diversity": d} for q, d in ((0.1, 0.9), (0.3, 0.8), (0.5, 0.7), (0.8, 0.4))]
    lined = {
        lamb: [{**line, "joint": lamb * line["quality"] + (1 - lamb) * line["diversity"]} for line in way]
        for lamb in (0.5, 0.9)
    }
    runs = [
        made(tmp_path, lines, {"calibrated": {**lines[-1]}}, f"at {lamb}", lamb=lamb) for lamb, lines in lined.items()
    ]
    assert tables.lambdas(runs) == [0.5, 0.9]
    with pytest.raises(ValueError, match="no common axis"):
        tables.curves(runs)
    for lamb, lines in lined.items():
        drawn = tables.curves(runs, lamb=lamb)
        for _, points in drawn.of(CURVE).groupby("series"):
            np.testing.assert_allclose(points["value"], [line["joint"] for line in lines])
        np.testing.assert_allclose(drawn.of(END)["value"], [lines[-1]["joint"]] * 2)
    assert len(tables.curves(runs, "quality").series) == 2


def test_few_points_are_said_and_not_drawn(tmp_path):
    short = made(tmp_path, LEARNED[:3], {"calibrated": {"joint": 0.5}}, "short")
    none = made(tmp_path, [], {"calibrated": {"joint": -0.25}}, "none")
    silent = made(tmp_path, [], name="silent")
    drawn = made(tmp_path, LEARNED[:4], name="drawn")
    shown = tables.curves([short, none, silent, drawn])
    assert shown.series == ("drawn",) and set(shown.of(CURVE)["series"]) == {"drawn"}
    assert {label: reason.replace("\u00a0", " ") for label, reason in shown.without.items()} == {
        "short": "only 3 values were measured on the way, it ended at 50.0 %",
        "none": "no value was measured on the way, it ended at −25.0 %",
        "silent": "no value was measured on the way",
    }


def test_runs_of_one_name_are_told_apart_and_no_more_than_there_are_colors(tmp_path):
    runs = [made(tmp_path, LEARNED, name="same") for _ in range(tables.MOST + 2)]
    shown = tables.curves(runs)
    assert len(shown.series) == len(set(shown.series)) == tables.MOST
    with pytest.raises(ValueError, match="measure must be one of joint"):
        tables.curves(runs, "gap")


def test_low_beginnings_squeeze_nothing(tmp_path):
    """Greedy picks begin at -30, where nothing else would be seen of the other curves."""
    runs = [made(tmp_path, [*LEARNED, {"joint": 0.7 + 0.001 * k}], name=f"run {k}") for k in range(3)]
    low = made(tmp_path, [{"picks": k, "joint": -30.0 + 10 * k} for k in range(4)], name="greedy")
    shown = tables.curves([*runs, low])
    assert shown.of(CURVE)["value"].min() > -1 and shown.far == ("values far below all ends",)
    assert shown.of(CURVE).query("series == 'greedy'")["value"].tolist() == [0.0]
    assert not tables.curves(runs).far


def test_of_two_versions_ends_only_the_first_are_drawn(tmp_path):
    """One axis has one place for the best end; quality has the same ends in both."""

    def with_best(name, best, **options):
        end = {"random": -1.0, "best": best, "best_kind": "proved"}
        anchors = {"quality": {**end, "best": 6.0}, "diversity": {"pairwise": end}}
        lines = [{**line, "quality": 0.5, "diversity": 0.5} for line in LEARNED]
        return made(tmp_path, lines, {"selected": 9, "anchors": anchors}, name, **options)

    runs = [with_best("mine", -0.5), with_best("same", -0.5), with_best("later", -0.4999)]
    for measure in ("joint", "diversity"):
        shown = tables.curves(runs, measure)
        assert shown.series == ("mine", "same") and "another version" in shown.without["later"]
    assert tables.curves(runs, "quality").series == ("mine", "same", "later")
    assert len(tables.curves([runs[0], with_best("centered", -0.4, center=True)]).series) == 2


def test_the_chart_changes_with_the_ground_and_not_with_the_data(tmp_path):
    """A live chart is mounted anew where its specification changes."""
    run = made(tmp_path, LEARNED, facts={"references": {"random": {"joint": 0.0}}})
    before = chart.curves(tables.curve(run))
    with run.writer() as writer:
        writer.append_metrics({"step": 6, "seconds": 3.1, "batch_joint_mean": 0.2, "joint": 0.7})
        writer.update_facts(references={"random": {"joint": 0.0}, "top_quality": {"joint": 0.4}})
    assert chart.curves(tables.curve(run)) == before != chart.curves(tables.curve(run), dark=True)
    kinds = {kind for layer in before["layer"] for kind in layer["transform"][0]["filter"]["oneOf"]}
    assert kinds == {CURVE, MASKS, RULE, TURN, END}, "every row is drawn"


METRICS = {
    "step": np.array([1.0, 2, 3, 4]),
    "decided": np.array([NAN, 0.5, NAN, 0.93]),
    "joint": np.array([NAN, 0.4, NAN, 0.6]),
    "changed": np.array([NAN, NAN, NAN, 0.04]),
    "signal": np.array([16.0, 16, 16, 16]),
    "batch_joint_std": np.array([0.2, 0.1, 0.1, 0.05]),
    "share_facility": np.array([0.7, 0.6, NAN, 0.6]),
    "share_quality": np.array([0.3, 0.4, NAN, 0.4]),
    "overlap_quality": np.array([NAN, 0.2, NAN, 0.3]),
    "overlap_facility": np.array([NAN, 0.4, NAN, 0.5]),
    "missed": np.array([NAN, 0.0, NAN, 0.0]),
}
FACTS = {"selected": 300, "n": 1000}


def test_each_vital_sign_has_its_table_and_what_is_not_there_is_left_out():
    config = SelectionConfig.from_options(estimator="counterfactual")
    found = {sign.name: sign for sign in signs.vitals(METRICS, config, FACTS)}
    # nothing was missed, and one look tells no change per step
    assert list(found) == ["decided", "signal", "spread", "shares", "overlap"]
    assert found["shares"].curves.series == ("quality", "Facility location")
    assert levels(found["overlap"].curves) == {"by chance": pytest.approx(0.3 / 1.7)}
    assert found["signal"].table["value"].tolist() == [4.0] * 4
    assert "credit" in found["shares"].help and all(sign.help for sign in found.values())
    assert signs.vitals({}, config, {}) == ()
    for sign in found.values():
        more = tables.Curves(pd.concat([sign.curves.table] * 2), sign.curves.series, sign.title, "", not sign.shares)
        assert chart.curves(sign.curves) == chart.curves(more)
        legend = chart.curves(more)["layer"][3]["encoding"]["color"]["legend"]
        assert (legend is None) == (len(more.series) == 1)


def test_changes_are_rows_per_step():
    metrics = {
        "step": np.array([1.0, 2, 3, 4, 5, 6]),
        "joint": np.array([NAN, 0.1, NAN, 0.2, NAN, 0.3]),
        "changed": np.array([NAN, NAN, NAN, 0.5, NAN, 0.1]),
    }
    (sign,) = signs.vitals(metrics, SelectionConfig.from_options(), FACTS)
    assert sign.table["step"].tolist() == [4, 6] and sign.table["value"].tolist() == pytest.approx([75, 15])
