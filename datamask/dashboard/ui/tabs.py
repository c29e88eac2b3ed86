"""Tabs that the program opens too: by a click elsewhere on the page, or by an address.

A browser sends the open tab with every request. Where the program has opened another one and a request was under way
already, such as that of a fragment that draws itself every second, Streamlit takes the browser's tab, and the page
falls back. Tabs that the program opens are therefore drawn under a new widget key, of which no browser knows anything.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.elements.lib.mutable_tab_container import TabContainer


def tabs(names: Sequence[str], key: str) -> Sequence[TabContainer]:
    """Tabs of which one is open, the one that the session state names.

    Args:
        names: of the tabs; the first is open where the session state names none of them.
        key: of the open one's name in the session state. Anybody may write it, at any time before the tabs are drawn.

    Returns:
        The tabs in the order of their names, with `.open`.
    """
    name = st.session_state.get(key)
    if name not in names:
        name = names[0]
    rounds = st.session_state.setdefault(f"{key}_rounds", 0)
    if st.session_state.get(_widget(key, rounds)) != name:
        rounds = st.session_state[f"{key}_rounds"] = rounds + 1
        st.session_state[_widget(key, rounds)] = name
    drawn = st.tabs(list(names), key=_widget(key, rounds), on_change=_take, args=(key, rounds))
    st.session_state[key] = name
    return drawn


def _widget(key: str, rounds: int) -> str:
    return f"{key}_{rounds}"


def _take(key: str, rounds: int) -> None:
    # of the tabs that are drawn now: an earlier round's are gone from the screen
    if rounds == st.session_state[f"{key}_rounds"]:
        st.session_state[key] = st.session_state[_widget(key, rounds)]
