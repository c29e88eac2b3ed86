"""Frontier: a sweep becomes a curve of stored runs, a point its price; another setting has its form and chart."""

from __future__ import annotations

import json
import math
import time

import pytest

from datamask.analyses.frontier import kinds, sweeping
from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.work.worker import worker
from tests.making.runs import finish_run
from tests.pages.reading import captions

LONG = 240.0


pytestmark = pytest.mark.usefixtures("live_of_its_own")


def stored(opened, store, **options):
    """A curve like a quarter circle over five lambdas; the runs by rising lambda."""
    runs = []
    for lamb in (0.0, 0.25, 0.5, 0.75, 1.0):
        length = math.hypot(lamb, 1 - lamb)
        runs.append(
            finish_run(
                store,
                opened.corpus,
                opened.config,
                opened.corpus.quality,
                lamb=lamb,
                shares={"quality": lamb / length, "diversity": (1 - lamb) / length},
                **{"objective": "pairwise", "estimator": "relaxed", **options},
            )
        )
    return runs


def text_of(app) -> str:
    return " ".join(element.value for kind in (app.caption, app.markdown, app.info, app.subheader) for element in kind)


def spec(app) -> dict:
    """The page's plotly figure."""
    return json.loads(app.get("plotly_chart")[0].proto.spec)


def drawn(app) -> set[str]:
    """The runs that can be clicked."""
    found = set()
    for trace in spec(app)["data"]:
        if isinstance(trace.get("customdata"), list):
            found |= set(trace["customdata"])
    return found


def test_before_the_first_sweep_it_says_what_to_do(page, opened, explained):
    app = page("pages/frontier.py", corpus=opened.key)
    assert app.subheader[0].value == "No run on this corpus yet" and not app.get("plotly_chart")
    assert "**11** runs" in text_of(app)  # of one objective: a second takes as long again, so it is asked for
    app.get_by_key("frontier_objectives").set_value(["facility", "pairwise"]).run()
    assert "**22** runs: 11 of Facility location, 11 of Pair\\-wise similarity" in text_of(app)
    assert not app.get_by_key("start_sweep").disabled
    explained(app, 5)


@pytest.mark.parametrize("vary", [kinds.LAMBDA, "select_ratio"])
def test_a_sweep_starts_at_the_objective_of_the_current_selection(page, opened, finished, vary):
    def chosen(**parameters):
        app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS[vary], **parameters)
        return app.get_by_key("frontier_objectives").value

    assert chosen() == ["facility"]  # the problem that a fresh corpus is solved for
    runs = [finished(objective=objective) for objective in ("vendi", "pairwise")]
    assert chosen() == ["pairwise"]  # the address names no run, and the page shows the newest
    assert chosen(run=runs[0].id) == ["vendi"]


def test_stored_sweeps_appear_at_once_and_the_point_tells_its_price(page, opened, store, explained):
    runs = stored(opened, store)
    middle = next(run for run in runs if run.config.selection.lamb == 0.5)
    app = page("pages/frontier.py", corpus=opened.key, run=middle.id)
    assert {run.id for run in runs} <= drawn(app)
    assert not app.metric  # quality and diversity stand in the answer bar
    assert "quality costs 1 % diversity" in text_of(app)
    assert "100 % best found" in spec(app)["layout"]["xaxis"]["title"]["text"]
    app = page("pages/frontier.py", corpus=opened.key, run=runs[3].id)
    assert "costs 3 % diversity" in text_of(app)
    explained(app, 5)
    (table,) = app.dataframe
    shares = [100 * run.status().result.calibrated.quality for run in runs]
    assert table.value["quality"].tolist() == pytest.approx(shares)


def test_the_current_run_is_a_dot_where_no_curve_that_is_drawn_has_it(page, opened, store, finished):
    stored(opened, store)
    finished(objective="pairwise", estimator="counterfactual", lamb=0.5, shares={"quality": 0.6, "diversity": 0.6})

    def dots():
        app = page("pages/frontier.py", corpus=opened.key)
        return [(trace["x"], trace["y"]) for trace in spec(app)["data"] if trace["name"] == "the current selection"]

    assert dots() == [([0.6], [0.6])]
    finished(objective="pairwise", estimator="relaxed", lamb=0.6, shares={"quality": 0.7, "diversity": 0.6})
    assert not dots()


def test_curves_can_be_left_out_and_far_points_are_named(page, opened, store, finished):
    stored(opened, store)
    other = stored(opened, store, objective="disf", estimator="counterfactual")
    finished(objective="disf", estimator="top-quality", shares={"quality": 1.0, "diversity": -0.9})
    app = page("pages/frontier.py", corpus=opened.key)
    assert {run.id for run in other} <= drawn(app)
    assert "Outside the picture: Top quality" in captions(app)
    assert "only the hull" in captions(app)
    menu = next(element for element in app.get("button_group") if str(element.key).startswith("frontier_lines"))
    menu.set_value([menu.value[0] if "disf" not in menu.value[0] else menu.value[1]]).run()
    assert len(drawn(app)) < 11


def test_a_sweep_is_computed_as_runs_that_the_page_then_shows(page, opened, store):
    app = page("pages/frontier.py", corpus=opened.key)
    app.get_by_key("frontier_objectives").set_value(["pairwise"]).run()
    app.text_input(key="sweep_values_lamb").set_value("0:1:5").run()
    app.get_by_key("start_sweep").click().run()
    job = worker().find(sweeping.key_of(opened.corpus.fingerprint))
    job.wait(LONG)
    assert (job.state, job.result) == ("done", "")
    app.run()
    runs = store.list()
    assert sorted(run.config.selection.lamb for run in runs) == [0, 0.25, 0.5, 0.75, 1]
    assert {run.id for run in runs} <= drawn(app)
    assert "All 5 runs are stored" in text_of(app) and app.get_by_key("start_sweep").disabled
    # a finer sweep computes only what is missing
    app.text_input(key="sweep_values_lamb").set_value("0:1:21").run()
    assert "**16** runs (stored already: 5)" in text_of(app)
    # baselines are added where the method varies
    assert "Vary *Method* to add baselines" in captions(app)
    app.get_by_key("vary").set_value("estimator").run()
    app.multiselect(key="sweep_values_estimator").set_value(["top-quality"]).run()
    app.get_by_key("start_sweep").click().run()
    worker().find(job.key).wait(LONG)
    app.get_by_key("vary").set_value(kinds.LAMBDA).run()
    (added,) = (run for run in store.list() if run.config.selection.estimator == "top-quality")
    assert added.config.selection.objective == "pairwise" and added.id in drawn(app)
    assert "to add baselines" not in captions(app)


def test_a_stopped_sweep_keeps_its_points(page, opened, store, monkeypatch):
    def work(job):
        job.report(0.4, "point 2 of 5")
        while not job.work.stopping():
            time.sleep(0.01)
        raise Stopped("stopped")

    job = worker().start(sweeping.key_of(opened.corpus.fingerprint), work)
    app = page("pages/frontier.py", corpus=opened.key)
    assert "first point is being solved" in text_of(app)
    app.get_by_key("stop_sweep").click().run()
    job.wait(LONG)
    app.run()
    assert "Finished points are kept" in captions(app)


# -- along another setting ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", [word for word in kinds.LABELS if word != kinds.LAMBDA])
def test_every_kind_has_a_form_that_can_be_started(page, opened, word, explained):
    app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS[word])
    assert not app.exception and not app.error
    assert app.selectbox(key="vary").value == word and not app.get_by_key("start_sweep").disabled
    assert app.subheader[0].value == "No stored sweep of this kind" and not app.get("plotly_chart")
    explained(app, 2)


def test_stored_runs_of_older_sweeps_are_drawn_by_kind(page, opened, finished):
    for ratio in (0.1, 0.3, 0.5):
        finished(objective="pairwise", estimator="relaxed", select_ratio=ratio)
    for size in (8, 32):
        for seed in range(2):
            finished(objective="pairwise", estimator="reinforce", n_rollout=size, seed=seed)
    drawn = {}
    for word in ("select_ratio", "n_rollout", "estimator"):
        app = page("pages/frontier.py", corpus=opened.key, vary=kinds.LABELS[word])
        charts = [*app.get("plotly_chart"), *app.get("vega_lite_chart")]
        drawn[word] = json.loads(charts[0].proto.spec) if charts else None
        if word == "n_rollout":
            assert app.dataframe[0].value["seeds"].tolist() == [2, 2]
    # over a number, over seconds; and of two methods with other options none is at its defaults
    assert [trace["name"] for trace in drawn["select_ratio"]["data"]] == ["quality", "diversity"]
    assert drawn["n_rollout"]["layer"][3]["encoding"]["color"]["scale"]["domain"] == ["8", "32"]
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
    assert "All 4 runs are stored" in text_of(app) and len(app.get("vega_lite_chart")) == 1
    assert (job.sign.page, job.sign.link) == ("pages/frontier.py", {"vary": kinds.LABELS["n_rollout"]})
