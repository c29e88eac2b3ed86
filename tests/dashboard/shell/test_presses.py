"""A press is heard once, also where the page is drawn anew before its script comes to the button."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def _page() -> None:
    import streamlit as st

    from datamask.dashboard.shell.presses import pressed
    from datamask.dashboard.shell.session import SHOWN

    state = st.session_state
    state[SHOWN] = state.get("title", "Runs")
    state.setdefault("heard", [])
    amount = st.number_input("Amount", 0, 9, 1, key="amount")
    if state.pop("leaves", False):
        state["title"] = "Map"
        st.rerun()
    if state.pop("job_ended", False):
        st.rerun()
    if state.get("elsewhere", False):
        return
    if st.button("Plain", key="plain"):
        state["plainly"] = state.get("plainly", 0) + 1
    if pressed("Go", "go", lambda: state.update(noted=state.get("noted", 0) + 1), disabled=amount == 0):
        state["heard"].append(amount)


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(_page).run()


def heard(app: AppTest) -> list[int]:
    assert not app.exception
    return app.session_state["heard"]


def test_a_press_is_heard_once(app):
    app.button(key="go").click().run()
    assert heard(app) == [1] and heard(app.run()) == [1]
    assert heard(app.button(key="go").click().run()) == [1, 1]


def test_a_press_whose_drawing_is_given_up_is_heard_in_the_next(app):
    app.session_state["job_ended"] = True
    assert heard(app.button(key="go").click().run()) == [1]
    assert heard(app.run()) == [1]
    # as Streamlit's own is not, which is why there is ours
    app.session_state["job_ended"] = True
    app.button(key="plain").click().run()
    assert "plainly" not in app.session_state


def test_what_the_controls_hold_by_then_counts(app):
    app.number_input(key="amount").set_value(5)
    assert heard(app.button(key="go").click().run()) == [5]
    app.number_input(key="amount").set_value(0)
    assert heard(app.button(key="go").click().run()) == [5]
    app.number_input(key="amount").set_value(6)
    assert heard(app.run()) == [5], "a press on a button that could not be pressed by then is over"


@pytest.mark.parametrize("title", ["Runs", "Map"])
def test_a_page_that_was_drawn_without_the_button_ends_the_waiting(app, title):
    app.session_state["elsewhere"] = True
    app.session_state["title"] = title
    app.button(key="go").click().run()
    app.session_state["elsewhere"] = False
    assert heard(app.run()) == []
    app.session_state["title"] = "Runs"
    assert heard(app.run()) == []


def test_a_press_is_of_the_page_that_it_was_made_on(app):
    app.session_state["leaves"] = True
    app.button(key="go").click().run()
    assert app.session_state["title"] == "Map" and heard(app) == []


def test_what_is_called_at_the_press_is_called_once(app):
    app.session_state["job_ended"] = True
    app.button(key="go").click().run()
    assert heard(app) == [1] and app.run().session_state["noted"] == 1
