"""A tab that the program opens while requests of the page are under way, in a real browser."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.e2e.serving import STILL, served
from tests.e2e.test_walk import browser_page  # noqa: F401 - a fixture

PAGE = """
import streamlit as st
from datamask.dashboard.ui.tabs import tabs

def opens():
    st.session_state["opened"] = "first"
    st.session_state["turns"] = 0

first, second = tabs(["first", "second"], "opened")
with first:
    st.write("the first is open" if first.open else "")
with second:
    st.button("open the first", on_click=opens)

def progress():
    if "turns" in st.session_state:
        st.session_state["turns"] += 1
        if st.session_state["turns"] == 3:
            st.rerun()

if st.session_state.get("turns", 0) < 3:
    st.fragment(progress, run_every=0.3)()
st.write(f"open by the state: {st.session_state['opened']}, turns: {st.session_state.get('turns', 0)}")
"""
"""A fragment that draws itself, and in the end the page anew, beside tabs; as work under way does on Explore."""


@dataclass
class Line:
    """The line between browser and server; what the server says can be held up on it.

    Attributes:
        held: whether it is held up now.
        waiting: what waits, in order.
        requests: so many messages the browser has sent.
    """

    held: bool = False
    waiting: list = field(default_factory=list)
    requests: int = 0

    def join(self, browser: WebSocketRoute) -> None:
        """Put the line between a page and its server."""
        server = browser.connect_to_server()

        def ask(message: str | bytes) -> None:
            self.requests += 1
            server.send(message)

        def answer(message: str | bytes) -> None:
            if self.held:
                self.waiting.append((browser, message))
            else:
                browser.send(message)

        browser.on_message(ask)
        server.on_message(answer)

    def release(self) -> None:
        """Let through what waits, and all that comes."""
        self.held = False
        for browser, message in self.waiting:
            browser.send(message)


@pytest.mark.timeout(600)
def test_a_tab_that_the_program_opens_stays_open_though_older_requests_arrive(tmp_path, browser_page: Page):  # noqa: F811
    (tmp_path / "page.py").write_text(PAGE)
    line, page = Line(), browser_page
    page.route_web_socket("**/_stcore/stream", line.join)
    with served(tmp_path, script=tmp_path / "page.py") as address:
        page.goto(address)
        page.get_by_role("tab", name="second").click()
        expect(page.get_by_text("open by the state: second")).to_be_visible()
        page.wait_for_function(STILL)
        before, line.held = line.requests, True
        page.get_by_role("button", name="open the first").click()
        # the click, and the fragment as often as it takes to draw the page anew, with the tab that the browser knows of
        while line.requests < before + 4:
            page.evaluate("() => new Promise(requestAnimationFrame)")
        line.release()
        expect(page.get_by_text("turns: 3")).to_be_visible()
        page.wait_for_function(STILL)
        expect(page.get_by_text("open by the state: first")).to_be_visible()
        expect(page.get_by_text("the first is open")).to_be_visible()
        # and the user's own click goes back
        page.get_by_role("tab", name="second").click()
        expect(page.get_by_text("open by the state: second")).to_be_visible()
        expect(page.get_by_role("button", name="open the first")).to_be_visible()
