"""Tabs that the program opens too: by a click elsewhere on the page, or by an address.

Which tab is open is the browser's affair, and a slow answer must not meddle with it. Streamlit's own tabs follow every
answer, also one to a key pressed long before, and are disabled while an answer is only half there, which takes the
keyboard's focus from them: on a slow server tabs spring back, and arrow keys go nowhere. These are therefore a
component of our own. The server says which tab is open once, and again only where the program opens another one: that
is a new round, and what a browser still says of an earlier round is not heard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.dashboard.shell.components import component


@dataclass(frozen=True)
class Tab:
    """One of some tabs. ``with tab:`` draws into its panel.

    Attributes:
        open: whether it is the open one.
        panel: the place of its content; of a closed one nobody sees it.
    """

    open: bool
    panel: DeltaGenerator

    def __enter__(self) -> Tab:
        self.panel.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.panel.__exit__(kind, error, trace)


def tabs(names: Sequence[str], key: str) -> Sequence[Tab]:
    """Tabs of which one is open, the one that the session state names.

    Args:
        names: of the tabs; the first is open where the session state names none of them.
        key: of the open one's name in the session state. Anybody may write it, at any time before the tabs are drawn.

    Returns:
        The tabs in the order of their names.
    """
    name = st.session_state.get(key)
    if name not in names:
        name = names[0]
    rounds = st.session_state.setdefault(f"{key}_rounds", 0)
    if st.session_state.get(f"{key}_known") != name:
        # the browser has not opened it, or has opened one that is there no more
        rounds = st.session_state[f"{key}_rounds"] = rounds + 1
    st.session_state[key] = st.session_state[f"{key}_known"] = name
    with st.container(key=f"{key}_all"):
        component("tabs", ("elements", "tabs"))(
            key=f"{key}_bar",
            on_open_change=lambda: _take(key, names),
            data={"key": key, "names": list(names), "open": name, "rounds": rounds},
        )
        return [Tab(other == name, st.container(key=f"{key}_panel_{place}")) for place, other in enumerate(names)]


def _take(key: str, names: Sequence[str]) -> None:
    answer = st.session_state[f"{key}_bar"].get("open")
    # of the tabs that are drawn now: of an earlier round the browser says what it showed before the program chose
    if isinstance(answer, Mapping) and answer.get("rounds") == st.session_state[f"{key}_rounds"]:
        name = answer.get("name")
        if name in names:
            st.session_state[key] = st.session_state[f"{key}_known"] = name
