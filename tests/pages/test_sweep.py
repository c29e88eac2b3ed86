"""Frontier where another setting than λ varies: one form, what it starts, and the chart of what is stored."""

from __future__ import annotations

import json

import pytest

from datamask.analyses.frontier import sweeping
from datamask.config import SelectionConfig
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.work.worker import worker
from tests.making.runs import finish_run

LONG = 240.0


def text_of(app) -> str:
    return " ".join(element.value for kind in (app.caption, app.markdown, app.subheader) for element in kind)


@pytest.mark.parametrize("word", [word for word in kinds.LABELS if word != kinds.LAMBDA])
def test_every_kind_has_a_form_that_can_be_started(page, opened, word, explained):
    app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS[word])
    assert not app.exception and not app.error
    assert app.selectbox(key="vary").value == word and not app.get_by_key("start_sweep").disabled
    assert app.subheader[0].value == "No stored sweep of this kind" and not app.get("plotly_chart")
    explained(app, 2)


def test_stored_runs_of_older_sweeps_are_drawn_by_kind(page, opened, store):
    def finished(**options):
        finish_run(store, opened.corpus, opened.config, opened.corpus.quality, objective="pairwise", **options)

    for ratio in (0.1, 0.3, 0.5):
        finished(estimator="relaxed", select_ratio=ratio)
    for size in (8, 32):
        for seed in range(2):
            finished(estimator="reinforce", n_rollout=size, seed=seed)
    drawn = {}
    for word in ("select_ratio", "n_rollout", "estimator"):
        app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS[word])
        charts = app.get("plotly_chart")
        drawn[word] = json.loads(charts[0].proto.spec) if charts else None
        if word == "n_rollout":
            assert app.dataframe[0].value["seeds"].tolist() == [2, 2]
    # over a number, over seconds; and of two methods with other options none is at its defaults
    assert [trace["name"] for trace in drawn["select_ratio"]["data"]] == ["quality", "diversity"]
    assert [trace["name"] for trace in drawn["n_rollout"]["data"] if trace.get("showlegend")] == ["8", "32"]
    assert drawn["estimator"] is None


def test_seeds_are_asked_for_only_where_they_multiply_the_runs(page, opened):
    app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS["select_ratio"])
    values = len(app.text_input(key="sweep_values_select_ratio").value.split(","))
    assert "Seeds" not in [number.label for number in app.number_input] and f"**{values}** runs" in text_of(app)
    app.selectbox(key="sweep_method_" + "_".join(kinds.methods("select_ratio"))).set_value("reinforce").run()
    assert app.number_input(key="sweep_seeds").value == 3 and f"**{3 * values}** runs" in text_of(app)


def test_values_that_are_none_are_said_and_not_started(page, opened):
    app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS["select_ratio"])
    app.text_input(key="sweep_values_select_ratio").set_value("a few").run()
    assert "Values must be different numbers" in app.error[0].value and app.get_by_key("start_sweep").disabled
    app.text_input(key="sweep_values_select_ratio").set_value("0.2, 1.5").run()
    assert "between 0 and 1" in app.error[0].value and app.get_by_key("start_sweep").disabled


def test_a_sweep_computes_what_the_form_says_and_then_shows_it(page, opened, store):
    app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS["n_rollout"])
    app.selectbox(key="sweep_method_reinforce_counterfactual").set_value("reinforce").run()
    app.text_input(key="sweep_values_n_rollout").set_value("2:4:2").run()
    app.number_input(key="sweep_seeds").set_value(2).run()
    app.number_input(key="sweep_steps").set_value(10).run()
    app.slider(key="sweep_lamb").set_value(0.25).run()
    assert "**4** runs" in text_of(app)
    app.get_by_key("start_sweep").click().run()
    job = worker().find(sweeping.key_of(opened.corpus.fingerprint))
    job.wait(LONG)
    assert (job.state, job.result) == ("done", "")
    expected = {
        SelectionConfig.from_options(
            objective="facility", estimator="reinforce", lamb=0.25, n_epochs=10, n_rollout=size, seed=seed
        )
        for size in (2, 4)
        for seed in range(2)
    }
    assert {run.config.selection for run in store.list()} == expected
    app.run()
    assert "All 4 runs are stored" in text_of(app) and len(app.get("plotly_chart")) == 1
    assert (job.sign.page, job.sign.link) == ("pages/frontier.py", {"vary": kinds.LABELS["n_rollout"]})
