"""The form of Runs shows the problem of the view, and changes it."""

from __future__ import annotations

import pytest

from datamask import catalogue
from datamask.runs.run_queue import run_queue
from tests.pages.reading import end_of, view

RUNS = "pages/runs.py"
FORM = ("lamb", "objective", "select_ratio")


@pytest.fixture
def run(finished, opened, mapped):
    return finished(objective="pairwise", lamb=0.7, select_ratio=0.4)


def form(app) -> tuple:
    assert not app.exception
    return tuple(app.session_state[f"form_{name}"] for name in FORM)


def address_of(app) -> dict[str, str]:
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def test_it_starts_at_the_shown_run_and_at_a_moved_lambda(page, opened, run):
    assert form(page(RUNS, corpus=opened.key, run=run.id)) == (0.7, "pairwise", 0.4)
    app = page(RUNS, corpus=opened.key, run=run.id, **{"lambda": "0.37"})
    assert form(app) == (0.37, "pairwise", 0.4)
    assert app.slider(key="form_lamb").value == 0.37


def test_what_it_says_is_the_view(page, opened, run):
    app = page(RUNS, corpus=opened.key, run=run.id)
    app.number_input(key="form_select_ratio").set_value(0.2).run()
    assert form(app.run()) == (0.7, "pairwise", 0.2)
    assert "run" not in app.query_params
    again = page(RUNS, **address_of(app))
    assert form(again) == (0.7, "pairwise", 0.2), "a reload forgot the form"
    assert form(view(app, lamb=0.9)) == (0.9, "pairwise", 0.2)


def test_its_method_and_settings_are_in_the_address(page, opened, mapped):
    learner = catalogue.estimator("reinforce").label
    app = page(RUNS, corpus=opened.key, form_learner=learner, reinforce_n_rollout="32", form_seed="7")
    assert app.selectbox(key="form_learner").value == "reinforce"
    assert (app.number_input(key="reinforce_n_rollout").value, app.number_input(key="form_seed").value) == (32, 7)


def test_settings_of_a_run_that_were_copied_stay(page, opened, run):
    app = page(RUNS, corpus=opened.key, run=run.id)
    app.slider(key="form_lamb").set_value(0.2).run()
    app.button(key="use_settings").click().run()
    assert form(app.run()) == (0.7, "pairwise", 0.4)


def test_a_run_of_the_form_does_not_change_what_is_chosen_for_the_next(page, opened, store, mapped, runs_dir):
    app = page(RUNS, corpus=opened.key)
    app.selectbox(key="form_objective").set_value("pairwise")
    app.slider(key="form_lamb").set_value(0.2).run()
    app.button(key="start").click().run()
    (run,) = store.list()
    app.slider(key="form_lamb").set_value(0.9).run()
    end_of(run)
    run_queue(runs_dir).close(10)
    assert form(app.run()) == (0.9, "pairwise", 0.3)
