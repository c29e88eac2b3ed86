"""Keep as run and Solve in the answer bar: the problem of the view, at its lambda and under its rules."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from datamask.dashboard.frame.frame import PAGES
from datamask.dashboard.map.filters import Among
from datamask.dashboard.runs import listing
from datamask.dashboard.tradeoff import live, spots
from datamask.dashboard.workspace import keeping
from datamask.runs.run_queue import RunQueue
from tests.pages.reading import brush, captions, end_of, menu, titles, view

LONG = 240.0

pytestmark = pytest.mark.usefixtures("live_of_its_own", "idle_queue")


def kept(app, opened, store):
    """Solve the view and keep it as a run; the run, ended, and shown by the page."""
    before = {run.id for run in store.list()}
    if "answer_solve" in [button.key for button in app.button]:
        app.button(key="answer_solve").click().run()
        live.session(opened.corpus, solving(app), store.cache_dir).wait(LONG)
        app.run()
    app.button(key="answer_keep").click().run()
    assert not app.exception, app.exception[0].message
    (run,) = [run for run in store.list() if run.id not in before]
    end_of(run)
    app.run()
    assert not app.exception, app.exception[0].message
    return run


def solving(app):
    """The problem behind the slider of the page."""
    return next(iter(live._holder().sessions.values())).config


def test_without_a_run_it_solves_the_problem_of_the_address(page, opened, store, mapped):
    app = page(corpus=opened.key, objective="pairwise", select_ratio="0.2")
    run = kept(app, opened, store)
    selection = run.config.selection
    assert (selection.objective, selection.select_ratio, selection.estimator) == ("pairwise", 0.2, "relaxed")
    assert run.status().state == "done" and app.query_params["run"] in (run.id, [run.id])
    assert titles(app) == [f"Selected by {run.config.name}"] and keeping.STARTED not in app.session_state
    links = menu(app)
    assert len(links) == len(PAGES) and all(f"run={run.id}" in link for link in links.values())
    assert "Download 48 ids" in [button.proto.label for button in app.get("download_button")]


def test_with_a_run_it_is_the_same_problem_at_the_sliders_lambda_under_the_rules(page, opened, store, finished, mapped):
    first = finished(objective="pairwise", lamb=0.7, select_ratio=0.4)
    app = page(corpus=opened.key, run=first.id)
    # a stored run is solved and kept
    assert not {"answer_solve", "answer_keep"} & {button.key for button in app.button}
    source = np.array(opened.corpus.metadata["source"].to_pylist())
    brush(app, Among("source", ("web",)))
    view(app, lamb=0.12)
    app.button(key="rule_pin").click().run()
    assert "run" not in app.query_params, "the problem is another one"
    run = kept(app, opened, store)
    selection = run.config.selection
    assert (selection.objective, selection.lamb, selection.select_ratio) == ("pairwise", 0.12, 0.4)
    rows = run.rows()["selected"].to_numpy().astype(bool)
    assert rows[source == "web"].all() and not rows.all()
    # a rule that is let go binds nothing any more
    assert run.config.name.endswith("1 rule") and app.query_params["run"] in (run.id, [run.id])
    app.button(key="rule_0").click().run()
    free = kept(app, opened, store)
    assert free.config.selection == replace(selection, pin=None) and not free.config.name.endswith("rule")


def test_rules_that_nothing_can_obey_start_nothing_and_say_so(page, opened, store, finished, mapped):
    first = finished(objective="pairwise")
    app = page(corpus=opened.key, run=first.id)
    brush(app, Among("source", ("web", "code")))
    app.run()
    app.button(key="rule_pin").click().run()
    assert not {"answer_solve", "answer_keep"} & {button.key for button in app.button}
    assert "Pinned ids names" in captions(app) and [run.id for run in store.list()] == [first.id]


def test_whoever_went_on_to_another_run_is_not_taken_back_and_what_failed_is_said(
    page, opened, store, finished, mapped
):
    shown = finished(objective="pairwise", name="shown")
    other = finished(objective="pairwise", name="other")
    app = page(corpus=opened.key, run=shown.id)
    app.session_state[keeping.STARTED] = (other.id, replace(app.session_state["view"], lamb=0.9))
    app.run()
    assert titles(app) == ["Selected by shown"] and keeping.STARTED not in app.session_state
    failed = store.create(other.config)
    with failed.writer() as writer:
        writer.set_status("failed", error="no room left")
    app.session_state[keeping.STARTED] = (failed.id, app.session_state["view"])
    app.session_state["trouble"] = "A rule was refused."
    app.run()
    (warning,) = app.warning
    assert warning.value.replace("\\", "") == "A rule was refused. other: Failed. no room left"
    assert titles(app) == ["Selected by shown"]
    app.session_state[keeping.STARTED] = ("of a run that was deleted", app.session_state["view"])
    app.run()
    assert not app.exception and keeping.STARTED not in app.session_state


def test_two_presses_in_two_tabs_begin_one_run(page, opened, store, mapped, monkeypatch):
    # nobody takes it from the queue, so that the second press comes while it waits
    monkeypatch.setattr(RunQueue, "submit", lambda queue, run_id: None)
    # λ of a sum of objectives is solved by runs alone
    tabs = [page(corpus=opened.key, objective="pairwise:1,facility:1") for _ in range(2)]
    for tab in tabs:
        tab.button(key="answer_solve").click().run()
    (begun,) = store.list()
    assert [tab.session_state[keeping.STARTED][0] for tab in tabs] == [begun.id] * 2


def test_a_run_that_ends_before_the_page_lists_it_is_shown(page, opened, store, mapped, monkeypatch):
    app = page(corpus=opened.key, objective="pairwise:1,facility:1", select_ratio="0.2")
    listed = listing.running

    def running(*args, **options):
        for run in store.list():
            end_of(run)
        return listed(*args, **options)

    monkeypatch.setattr(listing, "running", running)
    app.button(key="answer_solve").click().run(timeout=LONG)
    (run,) = store.list()
    assert not app.exception and app.query_params["run"] in (run.id, [run.id])
    assert titles(app) == [f"Selected by {run.config.name}"] and keeping.STARTED not in app.session_state


def test_a_run_that_is_discarded_while_the_map_is_drawn_leaves_the_map_standing(
    page, opened, finished, mapped, monkeypatch
):
    shown, other = (finished(objective="pairwise", lamb=lamb, name="R") for lamb in (0.3, 0.7))
    listed, discarded = spots.spot_of, []

    def spot_of(run, fingerprint):
        spot = listed(run, fingerprint)
        if run.id == other.id and not discarded:  # between being listed and being read
            discarded.append(shutil.move(other.path, other.path.parent.parent / "away"))
        return spot

    monkeypatch.setattr(spots, "spot_of", spot_of)
    app = page(corpus=opened.key, run=shown.id)
    assert discarded and titles(app) == ["Selected by R"]
    # and one that was started here: gone between the two looks at it
    monkeypatch.setattr(keeping, "arrive", lambda told: None)
    app.session_state[keeping.STARTED] = (other.id, app.session_state["view"])
    app.run()
    assert not app.exception and titles(app) == ["Selected by R"]
