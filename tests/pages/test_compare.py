"""Compare: one run is not enough, two show what changes, more hold each against the first, strangers get a reason."""

from __future__ import annotations

import json

import numpy as np
import pytest

from datamask.dashboard import comparison, words
from tests.dashboard.made_runs import finish_run
from tests.pages.reading import map_data, parcels, titles


@pytest.fixture
def runs(opened, store, mapped):
    """Three runs, oldest first: two of one kind, and one of another size and objective."""
    corpus, config = opened.corpus, opened.config
    noise = np.random.default_rng(1).normal(size=(2, len(corpus)))
    return [finish_run(store, corpus, config, noise[0], name="first", lamb=0.5),
            finish_run(store, corpus, config, noise[0] + noise[1], name="second", lamb=0.2),
            finish_run(store, corpus, config, noise[1], name="third", select_ratio=0.1, objective="pairwise")]


def text_of(app) -> str:
    return " ".join(element.value for kind in (app.caption, app.markdown, app.info) for element in kind)


def test_one_run_is_not_enough(page, opened, store):
    finish_run(store, opened.corpus, opened.config, opened.corpus.quality)
    app = page("pages/compare.py", corpus=opened.key)
    assert app.subheader[0].value == "One more finished run is needed"
    assert map_data(app) is None


def test_two_runs_of_one_kind(page, opened, runs, explained):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    assert titles(app) == ["A · first", "B · second", "B · second against A"]
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in runs[:2])
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown == {"Overlap": words.percent(len(a & b) / len(a | b)), "Kept": words.count(len(a & b)),
                     "Lost": words.count(len(a - b)), "Gained": words.count(len(b - a))}
    assert f"by chance {words.percent(0.3 / 1.7)}" in text_of(app)
    values, settings, only = (frame.value for frame in app.dataframe)
    assert values["run"].tolist() == ["A · first", "B · second"] and values["quality"].tolist() == [80.0, 80.0]
    assert settings["Setting"].tolist() == ["Balance λ"]
    assert set(only["chunk_id"]) == {f"doc-{row:04d}" for row in a - b}
    change = parcels(app)["2"]
    assert [said for _, _, said in change["key"]][:2] == [f"gained {len(b - a):,}", f"lost {len(a - b):,}"]
    charts = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert len(charts) == 2
    explained(app, 6)


def test_the_other_side_can_be_listed(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key, run=runs[1].id)
    app.get_by_key("compare_only").set_value("B").run()
    a, b = (set(np.flatnonzero(run.rows()["selected"])) for run in runs[:2])
    assert set(app.dataframe[-1].value["chunk_id"]) == {f"doc-{row:04d}" for row in b - a}


def test_three_runs_of_different_kinds(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key)
    app.multiselect(key="compare").set_value([run.id for run in runs]).run()
    assert not app.exception
    assert titles(app) == ["A · first", "B · second against A", "C · third against A"]
    assert not app.metric and app.dataframe[0].value["runs"].tolist() == ["A and B", "A and C", "B and C"]
    said = text_of(app)
    assert "different numbers of rows" in said and "no common scale of quality" in said
    app.get_by_key("compare_panels").set_value("selected").run()
    assert titles(app) == ["A · first", "B · second", "C · third"]
    app.get_by_key("compare_marks").set_value("hexagons").run()
    assert not app.exception


def test_fewer_than_two_is_said(page, opened, runs):
    app = page("pages/compare.py", corpus=opened.key)
    app.multiselect(key="compare").set_value([runs[0].id]).run()
    assert app.info[0].value == "Choose at least two runs." and map_data(app) is None


def test_strangers_are_listed_with_their_reason(page, opened, store, runs):
    with runs[2].writer() as writer:
        writer.update_facts(fingerprint="f" * 64)
    app = page("pages/compare.py", corpus=opened.key)
    assert runs[2].id not in app.multiselect(key="compare").options
    assert app.expander[0].label == "1 run cannot be compared here"
    assert "ffffffff" in text_of(app)
    assert comparison.candidates(store.list(), opened.corpus.fingerprint)[1][0].run.id == runs[2].id
