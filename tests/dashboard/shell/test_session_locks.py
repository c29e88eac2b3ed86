"""Threads that draw for one session take turns at its state."""

from __future__ import annotations

import gc
import inspect
import threading

import pytest
from streamlit.runtime.state import SafeSessionState, SessionState

from datamask.dashboard.shell import session_locks


@pytest.fixture(autouse=True)
def own_locks(monkeypatch):
    """As Streamlit has it, whatever a test before has left."""
    monkeypatch.setattr(SafeSessionState, "__init__", inspect.unwrap(SafeSessionState.__init__))


@pytest.fixture
def shared(own_locks):
    """The locks are shared until the test is over."""
    session_locks.share()


def drawn_by(state: SessionState) -> SafeSessionState:
    return SafeSessionState(state, lambda: None)


def write_while_it_is_read(monkeypatch) -> SafeSessionState:
    """One thread reads the state of a session, another writes to it as soon as the first has begun.

    Raises:
        RuntimeError: reading did not survive that.
    """
    state = SessionState()
    reader, writer = drawn_by(state), drawn_by(state)
    reader["kept"] = 1
    reader["too"] = 2
    written = threading.Event()
    widget_id = SessionState._get_widget_id

    def write() -> None:
        writer["late"] = 3
        written.set()

    thread = threading.Thread(target=write)

    def asked_in_the_middle(self: SessionState, key: str) -> str:
        if not thread.ident and threading.current_thread() is threading.main_thread():
            thread.start()
            # who waits for its turn does not come before the reader has done
            written.wait(1)
        return widget_id(self, key)

    monkeypatch.setattr(SessionState, "_get_widget_id", asked_in_the_middle)
    assert reader.filtered_state.keys() >= {"kept", "too"}
    assert written.wait(100)
    thread.join()
    return reader


def test_streamlit_itself_lets_two_threads_of_a_session_collide(monkeypatch):
    """When this fails, Streamlit has mended it: `session_locks` can go for the versions that have."""
    with pytest.raises(RuntimeError, match="changed size during iteration"):
        write_while_it_is_read(monkeypatch)


@pytest.mark.usefixtures("shared")
def test_with_one_lock_they_take_turns_and_nothing_is_lost(monkeypatch):
    assert write_while_it_is_read(monkeypatch)["late"] == 3


@pytest.mark.usefixtures("shared")
def test_a_lock_is_that_of_one_session_and_goes_with_it():
    state, other = SessionState(), SessionState()
    first, second, elsewhere = drawn_by(state), drawn_by(state), drawn_by(other)
    assert first._lock is second._lock is not elsewhere._lock
    # who comes when all before have gone gets a lock all the same
    del first, second
    gc.collect()
    assert drawn_by(state)._lock is not elsewhere._lock


@pytest.mark.usefixtures("shared")
def test_to_share_them_twice_changes_nothing():
    once = SafeSessionState.__init__
    session_locks.share()
    assert SafeSessionState.__init__ is once
