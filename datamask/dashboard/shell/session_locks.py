"""One lock for all that draw for one visitor.

When a browser asks for a page anew, Streamlit begins in another thread while the thread before goes on to its next call
of Streamlit. Both read and write the state of the same session, and Streamlit 1.67 gives each a lock of its own for it:
the page fails with "dictionary changed size during iteration", or what one of them has just written is lost.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

from streamlit.runtime.state import SafeSessionState, SessionState


def share() -> None:
    """From now on whoever is given the state of a session shares its lock; calling it twice changes nothing."""
    own_lock = SafeSessionState.__init__
    if hasattr(own_lock, "__wrapped__"):
        return
    # by the state's id: it lives as long as one of those that were given it, and those keep its lock
    locks: WeakValueDictionary[int, threading.RLock] = WeakValueDictionary()

    @functools.wraps(own_lock)
    def shared_lock(self: SafeSessionState, state: SessionState, yield_callback: Callable[[], None]) -> None:
        own_lock(self, state, yield_callback)
        # as the class does itself: to set an attribute is to write into the session
        object.__setattr__(self, "_lock", locks.setdefault(id(state), self._lock))

    SafeSessionState.__init__ = shared_lock  # type: ignore[method-assign]
