"""Buttons whose press is heard, also where the page is drawn anew before its script comes to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from datamask.dashboard.shell.session import SHOWN

_WAITING = "presses_waiting"
"""Of the session: by key of a button that was pressed the page that it stood on."""


def pressed(label: str, key: str, on_click: Callable[[], None] | None = None, **options: Any) -> bool:
    """Draw a button; true once for a press.

    `st.button` answers in one drawing alone. Where that one is given up before it comes to the button, because a job
    has ended or the browser had something else to say, nobody would hear of the press. So a press waits for the next
    drawing of its page. One that comes to its end without the button ends the waiting: then there was nothing to press.

    Args:
        on_click: called at the press, before anything is drawn.
        options: of `st.button`, but for the arguments of its callback.
    """
    waiting, page = st.session_state.setdefault(_WAITING, {}), st.session_state.get(SHOWN, "")
    # Streamlit forgets a button that a whole drawing of the page has done without
    drawn_before = key in st.session_state
    now = st.button(label, key=key, on_click=_note, args=(waiting, key, page, on_click), **options)
    waited = drawn_before and waiting.get(key) == page
    waiting.pop(key, None)
    return (now or waited) and not options.get("disabled", False)


def _note(waiting: dict[str, str], key: str, page: str, on_click: Callable[[], None] | None) -> None:
    # first, and without the session's state: to ask for that is where Streamlit gives up even a callback
    waiting[key] = page
    if on_click is not None:
        on_click()
