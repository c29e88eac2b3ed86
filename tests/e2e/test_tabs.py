"""Tabs in a real browser while answers are under way: opened by the program, by the mouse and by the keyboard."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.e2e.serving import STILL, served

PAGE = """
import streamlit as st
from datamask.dashboard.shell.tabs import tabs

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
    st.fragment(progress, run_every=2)()
st.write(f"open by the state: {st.session_state['opened']}, turns: {st.session_state.get('turns', 0)}")
"""
"""A fragment that draws itself, and in the end the page anew, beside tabs; as work under way does on the Map."""

FOUR = """
import streamlit as st
from datamask.dashboard.shell.tabs import tabs

names = ["first", "second", "third", "fourth"]
for name, tab in zip(names, tabs(names, "opened")):
    with tab:
        if tab.open:
            st.write(f"the {name} is open")
st.write(f"open by the state: {st.session_state['opened']}")
"""

FOCUSED = """() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    return element.innerText;
}"""
"""Whose element has the keyboard, in whatever shadow."""


@dataclass
class Line:
    """The line between browser and server; what the server says can be held up on it.

    Of a click in the same milliseconds as a fragment's timer Streamlit 1.67 loses what stands below the fragment, or
    the click itself (its issue 16708 is one of a kind), and this is a test of the tabs: a timer that is not wanted is
    not heard.

    Attributes:
        timers: whether the server hears of fragments' timers.
        held: whether what the server says is held up now.
        waiting: what waits, in order.
        requests: so many messages of the browser have reached the server.
    """

    timers: bool = True
    held: bool = False
    waiting: list = field(default_factory=list)
    requests: int = 0

    def join(self, browser: WebSocketRoute) -> None:
        """Put the line between a page and its server."""
        server = browser.connect_to_server()

        def ask(message: str | bytes) -> None:
            assert isinstance(message, bytes)
            if self.timers or not BackMsg.FromString(message).rerun_script.is_auto_rerun:
                self.requests += 1
                server.send(message)

        def answer(message: str | bytes) -> None:
            if self.held:
                self.waiting.append((browser, message))
            else:
                browser.send(message)

        browser.on_message(ask)
        server.on_message(answer)

    def answered(self) -> bool:
        """Whether a whole answer waits: to the end of what the server's script has drawn."""
        return any(ForwardMsg.FromString(message).HasField("script_finished") for _, message in self.waiting)

    def let_through(self) -> None:
        """Let through the first message that waits."""
        browser, message = self.waiting.pop(0)
        browser.send(message)

    def release(self) -> None:
        """Let through what waits, and all that comes."""
        self.held = False
        while self.waiting:
            self.let_through()


@pytest.mark.timeout(600)
def test_a_tab_that_the_program_opens_stays_open_though_older_requests_arrive(tmp_path, browser_page: Page):
    (tmp_path / "page.py").write_text(PAGE)
    line, page = Line(timers=False), browser_page
    page.route_web_socket("**/_stcore/stream", line.join)
    with served(tmp_path, script=tmp_path / "page.py") as address:
        page.goto(address)
        page.get_by_role("tab", name="second").click()
        expect(page.get_by_text("open by the state: second")).to_be_visible()
        page.wait_for_function(STILL)
        before, line.held = line.requests, True
        page.get_by_role("button", name="open the first").click()
        while not line.answered():
            painted(page)
        # the fragment as often as it takes to draw the page anew, with the tab that the browser knows of
        line.timers = True
        while line.requests < before + 4:
            painted(page)
        line.timers = False
        line.release()
        expect(page.get_by_text("turns: 3")).to_be_visible()
        page.wait_for_function(STILL)
        # of a drawing that is being replaced both may be there for a moment
        expect(page.get_by_text("open by the state: first").first).to_be_visible()
        expect(page.get_by_text("the first is open")).to_be_visible()
        # and the user's own click goes back
        page.get_by_role("tab", name="second").click()
        expect(page.get_by_text("open by the state: second")).to_be_visible()
        expect(page.get_by_role("button", name="open the first")).to_be_visible()


def painted(page: Page) -> None:
    """Wait until all that has come is painted; messages are passed on meanwhile."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def opened_by_keyboard(page: Page, address: str) -> None:
    """Open the page with four tabs, and put the focus on the first of them."""
    page.goto(address)
    expect(page.get_by_text("the first is open")).to_be_visible()
    page.wait_for_function(STILL)
    page.get_by_role("tab", name="first").focus()


@pytest.fixture(scope="module")
def four_tabs(tmp_path_factory):
    """The address of the page with four tabs."""
    folder = tmp_path_factory.mktemp("four")
    (folder / "page.py").write_text(FOUR)
    with served(folder, script=folder / "page.py") as address:
        yield address


@pytest.mark.timeout(600)
def test_arrow_keys_lose_no_focus_while_an_answer_is_half_there(four_tabs, browser_page: Page):
    line, page = Line(), browser_page
    page.route_web_socket("**/_stcore/stream", line.join)
    opened_by_keyboard(page, four_tabs)
    line.held = True
    page.keyboard.press("ArrowRight")
    # the answer word by word: as a busy server sends it, and a busy browser paints it
    let_through = 0
    while page.get_by_text("open by the state: second").count() == 0:
        painted(page)
        if line.waiting:
            line.let_through()
            let_through += 1
            painted(page)
            assert page.evaluate(FOCUSED).strip() == "second"
    assert let_through > 5
    page.keyboard.press("ArrowRight")
    line.release()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("open by the state: fourth")).to_be_visible()
    expect(page.get_by_text("the fourth is open")).to_be_visible()


@pytest.mark.timeout(600)
def test_a_late_answer_does_not_take_the_keyboard_back(four_tabs, browser_page: Page):
    line, page = Line(), browser_page
    page.route_web_socket("**/_stcore/stream", line.join)
    opened_by_keyboard(page, four_tabs)
    line.held = True
    before = line.requests
    page.keyboard.press("ArrowRight")
    while line.requests == before or not any(b"open by the state: second" in message for _, message in line.waiting):
        painted(page)
    page.keyboard.press("ArrowRight")
    # the whole answer to the first key, after the second key
    line.release()
    painted(page)
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("open by the state: fourth")).to_be_visible()
    expect(page.get_by_role("tab", name="fourth")).to_have_attribute("aria-selected", "true")
    assert page.evaluate(FOCUSED).strip() == "fourth"
    # the panel of the open tab, and no other
    expect(page.get_by_role("tabpanel")).to_have_count(1)
    expect(page.get_by_role("tabpanel", name="fourth")).to_contain_text("the fourth is open")
