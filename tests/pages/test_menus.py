"""Menus of runs: a run is its id, under whatever words a browser last saw it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from datamask.config import RunConfig, SelectionConfig
from datamask.dashboard.shell.menus import REMEMBERED
from tests.making.runs import finish_run


class Seen:
    """What a browser sends back of a select box: the words it drew, which may have changed meanwhile.

    AppTest sends the words of a value, as a browser does; what is no value any more it sends as it stands.
    """

    def __init__(self, app: AppTest, key: str) -> None:
        self.words = list(app.selectbox(key=key).options)

    def send(self, app: AppTest, key: str, place: int) -> None:
        box = app.selectbox(key=key)
        box.options.append(self.words[place])
        box.set_value(self.words[place]).run()
        assert not app.exception


def test_the_address_keeps_the_id_when_the_words_of_the_run_change(page, opened, store):
    finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="older")
    run = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="newer")
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    seen = Seen(app, "run_choice")
    run.relabel("newest")
    app.run()
    assert app.selectbox(key="run_choice").options != seen.words
    seen.send(app, "run_choice", 0)
    assert app.query_params["run"] == run.id
    assert app.session_state["run_choice"] == run.id


@pytest.mark.parametrize(("script", "key"), [("pages/export.py", "run_choice"), ("app.py", "explore_run")])
def test_a_run_chosen_under_its_old_name_is_that_run(page, opened, store, script, key):
    runs = [finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=f"run {k}") for k in range(3)]
    app = page(script, corpus=opened.key, run=runs[2].id)
    seen = Seen(app, key)
    place = next(place for place, words in enumerate(seen.words) if words.startswith("run 0"))
    runs[0].relabel("another name")
    app.run()
    assert not any(words.startswith("run 0") for words in app.selectbox(key=key).options)
    seen.send(app, key, place)
    assert app.query_params["run"] == runs[0].id


@pytest.mark.parametrize(("script", "key"), [("pages/export.py", "run_choice"), ("app.py", "explore_run")])
def test_what_a_browser_asked_before_it_knew_that_the_run_of_the_address_ended_is_no_choice(
    page, opened, store, script, key
):
    of_corpus = (store, opened.corpus, opened.config, opened.corpus.quality)
    older = finish_run(*of_corpus, name="older")
    run = store.create(RunConfig(opened.config, SelectionConfig.from_options(), "newer"))
    app = page(script, corpus=opened.key, run=run.id)
    assert app.selectbox(key=key).value == older.id
    finish_run(*of_corpus, run=run)
    # as a browser does that was told nothing of it yet, AppTest sends along what the menu stood at
    before = app._tree.get_widget_states()
    app.run()
    assert app.query_params["run"] == run.id and app.selectbox(key=f"{key}_1").value == run.id
    for _ in range(3):
        # and goes on to until it has drawn the answer
        app._run(before)
        assert app.query_params["run"] == run.id and app.selectbox(key=f"{key}_1").value == run.id
    app.run()
    assert app.query_params["run"] == run.id
    app.selectbox(key=f"{key}_1").select(older.id).run()
    assert app.query_params["run"] == older.id and app.selectbox(key=f"{key}_1").value == older.id


@pytest.mark.parametrize(("script", "key"), [("pages/export.py", "run_choice"), ("app.py", "explore_run")])
def test_a_choice_that_meets_the_move_is_kept(page, opened, store, script, key):
    of_corpus = (store, opened.corpus, opened.config, opened.corpus.quality)
    oldest, _ = finish_run(*of_corpus, name="oldest"), finish_run(*of_corpus, name="older")
    run = store.create(RunConfig(opened.config, SelectionConfig.from_options(), "newer"))
    app = page(script, corpus=opened.key, run=run.id)
    finish_run(*of_corpus, run=run)
    app.selectbox(key=key).select(oldest.id)
    chosen = app._tree.get_widget_states()
    app._run()  # another drawing moves the menu
    app._run(chosen)
    assert app.query_params["run"] == oldest.id
    shown = [box.value for box in app.selectbox if (box.key or "").startswith(key)]
    assert shown == [oldest.id]


def test_where_the_run_of_the_map_is_put_away_a_browser_that_does_not_know_brings_it_not_back(page, opened, store):
    of_corpus = (store, opened.corpus, opened.config, opened.corpus.quality)
    older, run = finish_run(*of_corpus, name="older"), finish_run(*of_corpus, name="newer")
    app = page(corpus=opened.key)
    assert app.selectbox(key="explore_run").value == run.id
    run.relabel(archived=True)
    before = app._tree.get_widget_states()
    app.run()
    assert app.selectbox(key="explore_run_1").value == older.id
    app._run(before)
    assert "run" not in app.query_params and app.selectbox(key="explore_run_1").value == older.id


def test_words_that_were_never_in_the_menu_change_nothing(page, opened, store):
    run = finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name="mine")
    app = page("pages/export.py", corpus=opened.key, run=run.id)
    seen = Seen(app, "run_choice")
    seen.words[0] = "<b>anything</b>"
    seen.send(app, "run_choice", 0)
    assert app.query_params["run"] == run.id


def test_the_run_that_is_described_stays_the_same_when_its_name_changes(page, opened, store):
    runs = [finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=f"run {k}") for k in range(2)]
    app = page("pages/compare.py", corpus=opened.key, runs=",".join(run.id for run in runs))
    app.selectbox(key="compare_edit").set_value(runs[1].id).run()
    seen = Seen(app, "compare_edit")
    place = seen.words.index("run 1")
    runs[1].relabel("another name")
    app.run()
    seen.send(app, "compare_edit", place)
    assert app.selectbox(key="compare_edit").value == runs[1].id and app.text_input(key=f"name_{runs[1].id}")


def test_a_point_stays_on_its_curve_when_another_run_gives_the_curve_more_words(page, opened, store):
    of_corpus = (store, opened.corpus, opened.config, opened.corpus.quality)

    def curve(objective: str, estimator: str) -> None:
        for lamb in (0.2, 0.8):
            finish_run(*of_corpus, lamb=lamb, objective=objective, estimator=estimator)

    curve("pairwise", "relaxed")
    curve("disf", "counterfactual")
    app = page("pages/frontier.py", corpus=opened.key)
    app.get_by_key("frontier_how").set_value("λ").run()
    seen = Seen(app, "frontier_on")
    place = next(place for place, words in enumerate(seen.words) if words.startswith("Pair-wise"))
    seen.send(app, "frontier_on", place)
    chosen = app.selectbox(key="frontier_on").value
    curve("pairwise", "counterfactual")
    app.run()
    assert seen.words[place] not in app.selectbox(key="frontier_on").options
    seen.send(app, "frontier_on", place)
    assert app.selectbox(key="frontier_on").value == chosen


def test_what_a_session_remembers_is_bounded_and_holds_what_is_drawn_now():
    def script():
        import streamlit as st

        from datamask.dashboard.shell import menus

        turn = st.session_state.setdefault("turn", 0)
        st.session_state["turn"] = turn + 1
        names = {"same": "always the same", **{str(k): f"{k} in turn {turn}" for k in range(600)}}
        menus.settle("menu", names)
        st.selectbox("Menu", list(names), format_func=names.get, key="menu")

    app = AppTest.from_function(script, default_timeout=240).run()
    for _ in range(3):
        app.run()
        assert not app.exception and len(app.session_state["menu_words"]) <= REMEMBERED
        assert app.session_state["menu_words"]["always the same"] == "same"
