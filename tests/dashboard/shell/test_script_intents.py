"""A thread that begins a page anew does not change which page another thread of the session draws."""

from __future__ import annotations

import inspect
import threading

import pytest
from streamlit.runtime.pages_manager import PagesManager

from datamask.dashboard.shell import script_intents

PAGES = {name: {"page_script_hash": name, "script_path": name, "url_pathname": name} for name in ("left", "asked for")}


@pytest.fixture(autouse=True)
def own_intents(monkeypatch):
    """As Streamlit has it, whatever a test before has left."""
    for name in ("set_script_intent", "set_pages_and_resolve"):
        monkeypatch.setattr(PagesManager, name, inspect.unwrap(getattr(PagesManager, name)))


@pytest.fixture
def apart(own_intents):
    """Threads are kept apart until the test is over."""
    script_intents.keep_apart()


def drawn(manager: PagesManager, page_hash: str, page_name: str = "") -> str | None:
    """The page that a thread comes to draw, asked for by hash or name, while another begins with the page before."""
    manager.set_script_intent(page_hash, page_name)
    before = threading.Thread(target=manager.set_script_intent, args=("left", ""))
    before.start()
    before.join()
    page = manager.set_pages_and_resolve(PAGES, "")
    return None if page is None else page["page_script_hash"]


def test_streamlit_itself_lets_the_thread_before_decide(tmp_path):
    """When this fails, Streamlit has mended it: `script_intents` can go for the versions that have."""
    assert drawn(PagesManager(str(tmp_path)), "asked for") == "left"


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("intent", [("asked for", ""), ("", "asked for")])
def test_each_thread_draws_what_it_was_asked_for(tmp_path, intent):
    assert drawn(PagesManager(str(tmp_path)), *intent) == "asked for"


@pytest.mark.usefixtures("apart")
def test_sessions_and_later_requests_of_a_thread_are_their_own(tmp_path):
    manager, other = PagesManager(str(tmp_path)), PagesManager(str(tmp_path))
    assert drawn(manager, "left") == "left" and drawn(manager, "asked for") == "asked for"
    other.set_script_intent("left", "")
    assert manager.set_pages_and_resolve(PAGES, "")["page_script_hash"] == "asked for"


@pytest.mark.usefixtures("apart")
def test_a_thread_that_noted_nothing_looks_up_what_was_noted_last(tmp_path):
    manager, pages = PagesManager(str(tmp_path)), []
    manager.set_script_intent("asked for", "")
    thread = threading.Thread(target=lambda: pages.append(manager.set_pages_and_resolve(PAGES, "left")))
    thread.start()
    thread.join()
    assert pages[0]["page_script_hash"] == "asked for"


@pytest.mark.usefixtures("apart")
def test_to_keep_them_apart_twice_changes_nothing():
    once = PagesManager.set_script_intent, PagesManager.set_pages_and_resolve
    script_intents.keep_apart()
    assert (PagesManager.set_script_intent, PagesManager.set_pages_and_resolve) == once


def test_a_streamlit_that_notes_it_otherwise_is_left_alone(monkeypatch):
    monkeypatch.delattr(PagesManager, "set_pages_and_resolve")
    once = PagesManager.set_script_intent
    script_intents.keep_apart()
    assert PagesManager.set_script_intent is once
