"""Attached results against pandas."""

import numpy as np
import pytest

from datamask.corpus import open_corpus
from datamask.dashboard.charts.downstream import downstream as chart
from datamask.dashboard.views import downstream
from datamask.runs.labels import Result
from datamask.runs.store import RunStore
from tests.dashboard.made_runs import finish_run, write_shard


@pytest.fixture
def runs(tmp_path):
    config = write_shard(tmp_path / "shard.parquet")
    corpus, store = open_corpus(config), RunStore(tmp_path / "runs")
    made = [
        finish_run(store, corpus, config, np.arange(len(corpus)), lamb=lamb, objective=objective, **more)
        for lamb, objective, more in (
            (0.2, "facility", {}),
            (0.8, "facility", {}),
            (0.8, "facility", {"seed": 1}),
            (0.2, "pairwise", {}),
            (0.5, "facility", {"estimator": "random"}),
        )
    ]
    for k, run in enumerate(made):
        run.attach(
            [Result("math", 0.5 + 0.1 * k + 0.02 * seed, str(seed)) for seed in range(3)] + [Result("logic", 0.1 * k)]
        )
    return made


def test_points_are_means_and_standard_deviations(runs):
    table = downstream.points(downstream.collected(runs))
    math = table[(table.task == "math")].set_index(["curve", "lamb"])
    assert len(math) == 4, "two seeds of one setting are one point"
    both = [0.6, 0.62, 0.64, 0.7, 0.72, 0.74]
    point = math.loc[("Facility location, 30\u00a0%", 0.8)]
    assert point["mean"] == pytest.approx(np.mean(both)) and point["seeds"] == 6 and point["runs"] == 2
    assert point["high"] - point["mean"] == pytest.approx(np.std(both, ddof=1))
    assert np.isnan(table[(table.task == "logic") & (table.lamb == 0.2)]["low"]).all()
    baseline = table[table.curve.str.startswith("Random")]
    assert len(baseline) == 2 and baseline["lamb"].isna().all(), "no lambda made it"
    assert {curve for curve, _ in math.index} == {
        "Facility location, 30\u00a0%",
        "Pair-wise similarity, 30\u00a0%",
        "Random (baseline), 30\u00a0%",
    }


def test_runs_without_results_have_no_line(runs):
    runs[0].attach([])
    found = downstream.collected(runs)
    assert runs[0].id not in set(found["run_id"]) and len(found) == 16
    tally = downstream.tally(found, {run.id: run.id for run in runs})
    assert tally["run"].tolist() == [run.id for run in runs[1:]] and set(tally["numbers"]) == {4}
    assert downstream.points(downstream.collected([runs[0]])).empty


def test_a_curve_keeps_its_look_from_task_to_task():
    spec = chart("math", ["one", "two"])
    line, _, across, mark = (layer["encoding"] for layer in spec["layer"])
    assert line["color"]["scale"]["domain"] == ["one", "two"] == mark["shape"]["scale"]["domain"]
    assert "x" not in across and across["color"] == line["color"]
    assert len(set(mark["shape"]["scale"]["range"])) == 2
