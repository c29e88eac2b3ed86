"""One lock for all that draw for one visitor.

When a browser asks for a page anew, Streamlit begins in another thread while the thread before goes on to its next call
of Streamlit. Both read and write the state of the same session, and Streamlit 1.67 gives each a lock of its own for it:
the page fails with "dictionary changed size during iteration", or what one of them has just written is lost.
"""

from __future__ import annotations

import functools
import threading
from typing import Any
from weakref import WeakValueDictionary

from streamlit.runtime.state import SafeSessionState, SessionState


def share() -> None:
    """From now on whoever is given the state of a session shares its lock; calling it twice changes nothing.

    Callbacks of widgets run with the lock held, as they do in Streamlit itself: who draws besides waits for them.
    """
    original = SafeSessionState.__init__
    if hasattr(original, "__wrapped__"):
        return
    # by the state's id: it lives as long as one of those that were given it, and those keep its lock
    locks: WeakValueDictionary[int, threading.RLock] = WeakValueDictionary()
    giving = threading.Lock()

    @functools.wraps(original)
    def init(self: SafeSessionState, state: SessionState, *args: Any, **kwargs: Any) -> None:
        original(self, state, *args, **kwargs)
        # not by getattr, which asks the session; another version of Streamlit may keep its lock elsewhere
        own = vars(self).get("_lock")
        if own is not None:
            with giving:
                # as the class does itself: to set an attribute is to write into the session
                object.__setattr__(self, "_lock", locks.setdefault(id(state), own))

    SafeSessionState.__init__ = init  # type: ignore[method-assign]
