"""Attached results against pandas."""

import numpy as np
import pandas as pd
import pytest

from datamask.analyses.downstream import tables as downstream
from datamask.analyses.downstream.chart import downstream as chart
from datamask.corpus import open_corpus
from datamask.runs.labels import Result
from datamask.runs.store import RunStore
from tests.making.runs import finish_run, write_shard


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
    names = [f"curve {k}" for k in range(3)]
    rows = [("math", names[1], 0.2, 0.5, 0.4, 0.6, 3, 1), ("math", names[1], 0.8, 0.7, np.nan, np.nan, 1, 1)]
    rows += [("math", names[2], np.nan, 0.6, 0.5, 0.7, 3, 1)]
    alone = chart(pd.DataFrame(rows[:2], columns=downstream.COLUMNS), "math", names)
    both = chart(pd.DataFrame(rows, columns=downstream.COLUMNS), "math", names)
    key, marks, across = ([part for part in both.data if kind(part)] for kind in (in_key, has_marks, is_across))
    assert [part.name for part in key] == names and len({part.line.color for part in key}) == 3
    assert len({part.line.dash for part in key}) == 3 and len({part.marker.symbol for part in key[:2]}) == 2
    (curve,), (level,) = marks, across
    assert curve.line == key[1].line and level.line == key[2].line and set(level.y) == {0.6}
    assert (
        list(curve.x) == [0.2, 0.8] and list(curve.y) == [0.5, 0.7] and curve.error_y.array == pytest.approx([0.1, 0.0])
    )
    assert "less one sd: 0.4000" in curve.text[0] and "sd" not in curve.text[1] and "λ" not in level.text[0]
    assert next(part for part in alone.data if has_marks(part)).line == curve.line


def in_key(part) -> bool:
    return bool(part.showlegend)


def has_marks(part) -> bool:
    return not part.showlegend and "markers" in part.mode


def is_across(part) -> bool:
    return not part.showlegend and "markers" not in part.mode


def test_more_curves_than_marks_are_drawn_all():
    names = [f"curve {k}" for k in range(11)]
    rows = [("math", name, 0.5, 0.1 * k, np.nan, np.nan, 1, 1) for k, name in enumerate(names)]
    drawn = chart(pd.DataFrame(rows, columns=downstream.COLUMNS), "math", names)
    assert sum(has_marks(part) for part in drawn.data) == 11
