"""Whoever draws for a visitor draws the page that was asked of it.

Two threads may draw for one session at a time (see `session_locks`). In Streamlit 1.67 they share what a thread notes
when it begins: which page is wanted, and then which is drawn. Where the thread before begins anew just after a click on
a link, as it does after `st.rerun`, it overwrites both with its own page: the click has no effect, or the clicked page
leads back when it is drawn again.
"""

from __future__ import annotations

import functools
import threading
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

_MARK = "datamask_keeps_threads_apart"


class _Notes(threading.local):
    """By session what this thread has noted itself: the arguments of its intent, and the page that it draws."""

    def __init__(self) -> None:
        self.intents: WeakKeyDictionary[PagesManager, tuple[tuple[Any, ...], dict[str, Any]]] = WeakKeyDictionary()
        self.pages: WeakKeyDictionary[PagesManager, str] = WeakKeyDictionary()


def keep_apart() -> None:
    """From now on every thread looks up the page that it has noted itself; calling it twice changes nothing."""
    names = ("set_script_intent", "set_pages_and_resolve", "set_current_page_script_hash")
    set_intent, resolve, set_page = (getattr(PagesManager, name, None) for name in names)
    page = getattr(vars(ScriptRunContext).get("page_script_hash"), "fget", None)
    # another version of Streamlit may keep it elsewhere
    if set_intent is None or resolve is None or set_page is None or page is None:
        return
    if hasattr(set_intent, _MARK):
        return
    notes, intent_lock = _Notes(), threading.RLock()

    @functools.wraps(set_intent)
    def set_script_intent(self: PagesManager, *args: Any, **kwargs: Any) -> None:
        notes.intents[self] = args, kwargs
        with intent_lock:
            set_intent(self, *args, **kwargs)

    @functools.wraps(resolve)
    def set_pages_and_resolve(self: PagesManager, *args: Any, **kwargs: Any) -> Any:
        intent = notes.intents.get(self)
        with intent_lock:
            if intent is not None:
                set_intent(self, *intent[0], **intent[1])
            return resolve(self, *args, **kwargs)

    @functools.wraps(set_page)
    def set_current_page_script_hash(self: PagesManager, page_script_hash: str) -> None:
        notes.pages[self] = page_script_hash
        set_page(self, page_script_hash)

    @functools.wraps(page)
    def page_script_hash(self: ScriptRunContext) -> Any:
        own = notes.pages.get(self.pages_manager)
        return page(self) if own is None else own

    setattr(set_script_intent, _MARK, True)
    for function in (set_script_intent, set_pages_and_resolve, set_current_page_script_hash):
        setattr(PagesManager, function.__name__, function)
    ScriptRunContext.page_script_hash = property(page_script_hash)  # type: ignore[method-assign, assignment]
