"""Curves of several runs: phases of the way, shares by the anchors, the last point the final value, and the chart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from datamask.analyses.convergence import chart as single_chart
from datamask.analyses.convergence import phases
from datamask.analyses.convergence import tables as convergence
from datamask.analyses.run_lines import chart
from datamask.analyses.run_lines import tables as run_lines
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.dashboard.drawing import placement
from datamask.runs.execute import execute
from datamask.runs.store import RunStore
from datamask.work.context import Work
from tests.making.runs import write_shard

ANCHORS = {"quality": {"random": 2.0, "best": 6.0}, "diversity": {"pairwise": {"random": -1.0, "best": -0.5}}}


def made(tmp_path, lines, summary=None, name="mine", facts=None, **options):
    """A run with these lines of metrics; ended where there is a summary."""
    store = RunStore(tmp_path)
    selection = SelectionConfig.from_options(objective="pairwise", **options)
    run = store.create(RunConfig(CorpusConfig(("a.parquet",)), selection, name))
    with run.writer() as writer:
        writer.set_status("running")
        writer.update_facts(**(facts or {}))
        for step, line in enumerate(lines, 1):
            writer.append_metrics({"step": step, "seconds": 0.5 * step, **line})
        if summary is not None:
            writer.finish("stopped", None, summary=summary)
    return run


LEARNED = [{"batch_joint_mean": 0.1, "joint": 0.1 * k} for k in range(1, 6)]
SWAPPED = [{"swaps": k, "joint": 0.5 + 0.05 * k} for k in range(1, 4)]
PROVED = [{"dual_steps": k, "joint": 0.65, "upper_bound": 0.9} for k in range(1, 3)]


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
        selection = SelectionConfig.from_options(device="cpu", **options)
        run = RunStore(tmp_path / "runs").create(RunConfig(config, selection))
        execute(run, Work(threads=1))
        metrics = run.metrics()
        stretches = phases.phases(metrics)
        covered = list(itertools.chain(*(range(phase.first, phase.last + 1) for phase in stretches)))
        assert covered == list(range(len(metrics["step"])))
        seen |= {phase.name for phase in stretches}
        drawn = run_lines.lines([run])
        final = run.status().to_dict()["summary"]["calibrated"]["joint"]
        assert drawn.ends["value"].tolist() == [final] and drawn.ends["phase"].tolist() == [run_lines.FINAL]
        subset = metrics["joint"][np.isfinite(metrics["joint"])]
        assert drawn.table["value"].tolist()[:-1] == subset.tolist()
    assert seen == {"mask learning", "swaps", "bound", "picks"}


def test_the_line_goes_the_whole_way_to_the_final_value_though_nothing_was_told_of_it(tmp_path):
    run = made(tmp_path, LEARNED, {"calibrated": {"joint": 0.77}})
    lines = run_lines.lines([run])
    last = lines.table.iloc[-1]
    assert (last["step"], last["seconds"], last["value"], last["phase"]) == (5, 2.5, 0.77, run_lines.FINAL)
    assert len(lines.table) == 6 and lines.without == {}


def test_raw_values_are_brought_to_shares_by_the_anchors(tmp_path):
    raw = [{"raw_quality": q, "raw_diversity": d} for q, d in ((2, -1), (4, -0.75), (6, -0.5), (8, 0.0))]
    run = made(tmp_path, raw, scale="raw", lamb=0.25, facts={"anchors": _complete()})
    for measure, expected in (
        ("quality", [0.0, 0.5, 1.0, 1.5]),
        ("diversity", [0.0, 0.5, 1.0, 2.0]),
        ("joint", [0.0, 0.5, 1.0, 0.25 * 1.5 + 0.75 * 2.0]),
    ):
        np.testing.assert_allclose(run_lines.lines([run], measure).table["value"], expected)


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
    assert run_lines.lambdas(runs) == [0.5, 0.9]
    with pytest.raises(ValueError, match="no common axis"):
        run_lines.lines(runs)
    for lamb, lines in lined.items():
        drawn = run_lines.lines(runs, lamb=lamb).table
        for _, points in drawn.groupby("run"):
            np.testing.assert_allclose(points["value"], [*(line["joint"] for line in lines), lines[-1]["joint"]])
    assert len(run_lines.lines(runs, "quality").runs) == 2


def _complete():
    return {
        "quality": {**ANCHORS["quality"], "best_kind": "best found"},
        "diversity": {"pairwise": {**ANCHORS["diversity"]["pairwise"], "best_kind": "best found"}},
    }


def test_few_points_are_said_and_not_drawn(tmp_path):
    short = made(tmp_path, LEARNED[:3], {"calibrated": {"joint": 0.5}}, "short")
    none = made(tmp_path, [], {"calibrated": {"joint": -0.25}}, "none")
    silent = made(tmp_path, [], name="silent")
    drawn = made(tmp_path, LEARNED[:4], name="drawn")
    lines = run_lines.lines([short, none, silent, drawn])
    assert lines.runs == ("drawn",) and set(lines.table["run"]) == {"drawn"}
    assert {label: reason.replace("\u00a0", " ") for label, reason in lines.without.items()} == {
        "short": "only 3 values were measured on the way, it ended at 50.0 %",
        "none": "no value was measured on the way, it ended at −25.0 %",
        "silent": "no value was measured on the way",
    }
    assert convergence.curve(short).points == 3 and convergence.curve(silent).points == 0


def test_turns_and_warm_starts_are_marked_where_they_are(tmp_path):
    cold = made(tmp_path, [*LEARNED, *SWAPPED, *PROVED], name="cold")
    warm = made(tmp_path, [*SWAPPED, *PROVED], name="warm", facts={"warm_from": cold.id})
    lines = run_lines.lines([cold, warm])
    marked = [(turn["run"], turn["step"], turn["turn"]) for turn in chart.turns(lines)]
    assert marked == [
        ("cold", 6, chart.SWAPS_BEGIN),
        ("cold", 9, chart.BOUND_BEGINS),
        ("warm", 1, chart.GOES_ON),
        ("warm", 4, chart.BOUND_BEGINS),
    ]
    assert convergence.curve(cold).start is None
    assert convergence.curve(warm).start == {"step": 1.0, "seconds": 0.5, "value": 0.55}


def test_runs_of_one_name_are_told_apart_and_no_more_than_there_are_colours(tmp_path):
    runs = [made(tmp_path, LEARNED, name="same") for _ in range(run_lines.MOST + 2)]
    lines = run_lines.lines(runs)
    assert len(lines.runs) == len(set(lines.runs)) == run_lines.MOST
    with pytest.raises(ValueError, match="measure must be one of joint"):
        run_lines.lines(runs, "gap")


def test_names_at_the_ends_lie_on_nothing_and_low_beginnings_squeeze_nothing(tmp_path):
    runs = [made(tmp_path, [*LEARNED, {"joint": 0.7 + 0.001 * k}], name=f"run {k}") for k in range(6)]
    low = made(tmp_path, [{"picks": k, "joint": -30.0 + 10 * k} for k in range(4)], name="greedy")
    lines = run_lines.lines([*runs, low])
    bottom, top = chart.frame(lines)
    assert top > max(lines.table["value"]) and -1 < bottom < 0 and chart.cut_off(lines)
    assert not chart.cut_off(run_lines.lines(runs))
    named = chart.labels(lines, bottom, top, 380)
    places = sorted((top - name["place"]) / (top - bottom) * 380 for name in named)
    assert all(lower - upper >= placement.LINE - 1 for upper, lower in itertools.pairwise(places))
    assert places[0] >= 0 and places[-1] <= 380
    spec = chart.run_lines(lines)
    assert spec["layer"][2]["encoding"]["color"]["scale"]["domain"] == list(lines.runs)


def test_names_of_phases_stand_in_one_line_in_their_order():
    rng = np.random.default_rng(0)
    for _ in range(200):
        widths = rng.uniform(20, 80, int(rng.integers(1, 6)))
        wanted = np.sort(rng.uniform(0, 560, len(widths))).tolist()
        lefts = placement.row(wanted, widths.tolist(), 560)
        assert all(right >= left + wide - 1e-9 for left, right, wide in zip(lefts, lefts[1:], widths, strict=False))
        assert lefts[-1] + widths[-1] <= 560 + 1e-9 and lefts[0] >= -1e-9
    assert placement.row([10.0, 300.0], [50.0, 50.0], 560) == [10.0, 300.0]
    assert placement.row([], [], 560) == []


@pytest.mark.parametrize("x", ["step", "seconds", "masks"])
def test_the_chart_of_one_run_names_its_phases_from_the_data(tmp_path, x):
    run = made(tmp_path, [*LEARNED, *SWAPPED, *PROVED], estimator="counterfactual", facts={"warm_from": "other"})
    curve = convergence.curve(run)
    table = single_chart.drawn(curve, x)
    names = table.loc[table["series"] == single_chart.NAME]
    assert names["note"].tolist() == ["mask learning", "swaps", "bound"]
    assert names[x].is_monotonic_increasing and names[x].max() <= np.nanmax(curve.table[x])
    begins = table.loc[table["series"] == single_chart.PHASE, x].tolist()
    assert begins == {"step": [6, 9], "seconds": [3.0, 4.5], "masks": [10, 10]}[x]
    assert (table["series"] == single_chart.START).sum() == 1


def test_of_two_versions_ends_only_the_first_are_drawn(tmp_path):
    """One axis has one place for the best end; quality has the same ends in both."""

    def with_best(name, best, **options):
        end = {"random": -1.0, "best": best, "best_kind": "proved"}
        anchors = {"quality": {**end, "best": 6.0}, "diversity": {"pairwise": end}}
        lines = [{**line, "quality": 0.5, "diversity": 0.5} for line in LEARNED]
        return made(tmp_path, lines, {"selected": 9, "anchors": anchors}, name, **options)

    runs = [with_best("mine", -0.5), with_best("same", -0.5), with_best("later", -0.4999)]
    for measure in ("joint", "diversity"):
        lines = run_lines.lines(runs, measure)
        assert lines.runs == ("mine", "same") and "another version" in lines.without["later"]
    assert run_lines.lines(runs, "quality").runs == ("mine", "same", "later")
    assert len(run_lines.lines([runs[0], with_best("centered", -0.4, center=True)]).runs) == 2
