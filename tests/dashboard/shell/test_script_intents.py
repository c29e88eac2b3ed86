"""A thread that begins a page anew does not change which page another thread of the session draws."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from datamask.dashboard.shell import script_intents

METHODS = ("set_script_intent", "set_pages_and_resolve", "set_current_page_script_hash")
PAGES = {name: {"page_script_hash": name, "script_path": name, "url_pathname": name} for name in ("left", "asked for")}


@pytest.fixture(autouse=True)
def as_streamlit_has_it(monkeypatch):
    """Whatever a test before has left."""
    for name in METHODS:
        monkeypatch.setattr(PagesManager, name, inspect.unwrap(getattr(PagesManager, name)))
    page = inspect.unwrap(ScriptRunContext.page_script_hash.fget)
    monkeypatch.setattr(ScriptRunContext, "page_script_hash", property(page))


@pytest.fixture
def apart(as_streamlit_has_it):
    """Threads are kept apart until the test is over."""
    script_intents.keep_apart()


@pytest.fixture
def manager(tmp_path) -> PagesManager:
    """The pages of a session."""
    return PagesManager(str(tmp_path))


def elsewhere(action: Callable, *arguments: str) -> None:
    """Do it in another thread, to its end."""
    thread = threading.Thread(target=action, args=arguments)
    thread.start()
    thread.join()


def resolved(manager: PagesManager, page_hash: str, page_name: str = "") -> str:
    """The page that a thread comes to draw, asked for by hash or name, while another begins with the page before."""
    manager.set_script_intent(page_hash, page_name)
    elsewhere(manager.set_script_intent, "left", "")
    return manager.set_pages_and_resolve(PAGES, "")["page_script_hash"]


def drawn(manager: PagesManager) -> str:
    """The page that a thread draws by its own account, while another has begun to draw the page before."""
    manager.set_current_page_script_hash("asked for")
    elsewhere(manager.set_current_page_script_hash, "left")
    # all of a context that is asked for
    return ScriptRunContext.page_script_hash.fget(SimpleNamespace(pages_manager=manager))


def test_streamlit_itself_lets_the_thread_before_decide(manager):
    """When this fails, Streamlit has mended it: `script_intents` can go for the versions that have."""
    assert resolved(manager, "asked for") == "left" and drawn(manager) == "left"


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("intent", [("asked for", ""), ("", "asked for")])
def test_each_thread_draws_what_it_was_asked_for(manager, intent):
    assert resolved(manager, *intent) == "asked for"


@pytest.mark.usefixtures("apart")
def test_what_a_thread_draws_anew_is_its_own_page(manager, tmp_path):
    assert drawn(manager) == "asked for"
    # a thread that draws nothing, and another session, know what Streamlit knows
    assert manager.current_page_script_hash == "left"
    context = SimpleNamespace(pages_manager=PagesManager(str(tmp_path)))
    assert ScriptRunContext.page_script_hash.fget(context) == ""


@pytest.mark.usefixtures("apart")
def test_nobody_notes_another_page_while_one_is_looked_up(manager, monkeypatch):
    overtaking = threading.Thread(target=manager.set_script_intent, args=("left", ""))

    def overtaken(self: PagesManager) -> str | None:
        if not overtaking.ident:
            overtaking.start()
            # who waits for its turn is not done before this has answered
            overtaking.join(1.0)
        return self._intended_page_script_hash

    manager.set_script_intent("asked for", "")
    monkeypatch.setattr(PagesManager, "intended_page_script_hash", property(overtaken))
    assert manager.set_pages_and_resolve(PAGES, "")["page_script_hash"] == "asked for"
    overtaking.join()


@pytest.mark.usefixtures("apart")
def test_sessions_and_later_requests_of_a_thread_are_their_own(manager, tmp_path):
    assert resolved(manager, "left") == "left" and resolved(manager, "asked for") == "asked for"
    PagesManager(str(tmp_path)).set_script_intent("left", "")
    assert manager.set_pages_and_resolve(PAGES, "")["page_script_hash"] == "asked for"


@pytest.mark.usefixtures("apart")
def test_a_thread_that_noted_nothing_looks_up_what_is_noted(manager):
    pages: list[dict] = []
    manager.set_script_intent(page_script_hash="asked for", page_name="")
    elsewhere(lambda: pages.append(manager.set_pages_and_resolve(PAGES, "left")))
    assert pages[0]["page_script_hash"] == "asked for"


@pytest.mark.usefixtures("apart")
def test_to_keep_them_apart_twice_changes_nothing():
    patched = [getattr(PagesManager, name) for name in METHODS]
    script_intents.keep_apart()
    assert [getattr(PagesManager, name) for name in METHODS] == patched


@pytest.mark.parametrize("missing", METHODS)
def test_a_streamlit_that_notes_it_otherwise_is_left_alone(monkeypatch, missing):
    monkeypatch.delattr(PagesManager, missing)
    own = [getattr(PagesManager, name, None) for name in METHODS]
    script_intents.keep_apart()
    assert [getattr(PagesManager, name, None) for name in METHODS] == own
