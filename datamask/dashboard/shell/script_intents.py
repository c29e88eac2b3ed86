"""Whoever draws for a visitor draws the page that was asked of it.

When a browser asks for another page, Streamlit begins in another thread while the thread before goes on to its next
call of Streamlit. Which page is wanted is noted once per session (in Streamlit 1.67) and looked up later: where the
thread before begins anew in between, as after `st.rerun`, it notes its own page over it, and a click on a link has no
effect.
"""

from __future__ import annotations

import functools
import threading
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.pages_manager import PagesManager


def keep_apart() -> None:
    """From now on every thread looks up the page that it has noted itself; calling it twice changes nothing."""
    # another version of Streamlit may keep it elsewhere
    noting, looking_up = (getattr(PagesManager, name, None) for name in ("set_script_intent", "set_pages_and_resolve"))
    if noting is None or looking_up is None or hasattr(noting, "__wrapped__"):
        return
    turn, thread = threading.Lock(), threading.local()

    @functools.wraps(noting)
    def set_script_intent(self: PagesManager, *intent: Any) -> None:
        if not hasattr(thread, "intents"):
            thread.intents = WeakKeyDictionary()
        thread.intents[self] = intent
        with turn:
            noting(self, *intent)

    @functools.wraps(looking_up)
    def set_pages_and_resolve(self: PagesManager, *args: Any, **kwargs: Any) -> Any:
        intent = getattr(thread, "intents", {}).get(self)
        with turn:
            if intent is not None:
                noting(self, *intent)
            return looking_up(self, *args, **kwargs)

    PagesManager.set_script_intent = set_script_intent  # type: ignore[assignment, method-assign]
    PagesManager.set_pages_and_resolve = set_pages_and_resolve  # type: ignore[method-assign]
