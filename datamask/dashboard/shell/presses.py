"""Buttons whose press is heard, also where the page is drawn anew before its script comes to them."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from datamask.dashboard.shell.session import SHOWN

WAITS_SECONDS = 30.0
"""How long a press waits for its button to be drawn: many drawings of a page, and not a coffee break."""

_WAITING = "presses_waiting"
"""Of the session: by key of a button that was pressed the page it stood on, and when."""


def pressed(label: str, key: str, **options: Any) -> bool:
    """Draw a button; true once for every press.

    `st.button` answers in one drawing alone. Where that one is given up before it comes to the button, because a job
    has ended or the browser had something else to say, nobody would hear of the press. Unlike a callback's, what
    follows here is given what the controls hold now.

    Args:
        options: of `st.button`, but for its callback.
    """
    st.button(label, key=key, on_click=_note, args=(key,), **options)
    page, since = st.session_state.get(_WAITING, {}).pop(key, (None, 0.0))
    heard = page is not None and page == st.session_state.get(SHOWN) and time.monotonic() - since < WAITS_SECONDS
    return heard and not options.get("disabled", False)


def _note(key: str) -> None:
    st.session_state.setdefault(_WAITING, {})[key] = st.session_state.get(SHOWN, ""), time.monotonic()
