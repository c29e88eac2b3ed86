"""Menus of runs: a run is its id, under whatever words a browser last saw it."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

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


@pytest.mark.parametrize(("script", "key"), [("pages/export.py", "run_choice"), ("app.py", "explore_run")])
def test_a_name_that_a_run_no_longer_has_chooses_none(page, opened, store, script, key):
    runs = [finish_run(store, opened.corpus, opened.config, opened.corpus.quality, name=f"run {k}") for k in range(2)]
    app = page(script, corpus=opened.key, run=runs[1].id)
    seen = Seen(app, key)
    runs[0].relabel("another name")
    app.run()
    seen.send(app, key, 1)
    assert app.query_params["run"] == runs[1].id


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
