"""What a copied address brings back besides the view: the regions drawn on the map, and where the map was moved to.

The first request of a session takes them from the URL; from then on the URL follows the controls. Only what differs
from its default stands there, so that a plain view has a plain address. What the URL says is checked: anybody may edit
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from datamask.dashboard.linked import brushing
from datamask.dashboard.map import canvas_map, shared_view

_TAKEN = "address_taken"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Part(Generic[Value]):
    """One control.

    Attributes:
        key: of the control in the session state.
        read: makes the control's value of the URL's text; ValueError where it is none.
        write: the way back; what is written as nothing does not stand in the address.
        beside: key of what the control's value was chosen beside, and is let go of with; forgotten where the address
            brings a value, which is for what the address brings too.
    """

    key: str
    read: Callable[[str], Value]
    write: Callable[[Value], str] = str
    beside: str | None = None


def _sight(text: str) -> str:
    shared_view.sight_of(text)
    return text


EVERYWHERE: dict[str, Part[Any]] = {
    "region": Part(
        f"{brushing.MAP}_memory",
        lambda text: canvas_map.awaiting(*shared_view.regions_of(text)),
        lambda memory: shared_view.region_text(memory.kind, memory.regions),
    ),
}
"""What stands in the address of every page; a page's own part of the same name goes before."""

PARTS: dict[str, dict[str, Part[Any]]] = {
    "Map": {"at": Part("explore_map_sight", _sight, beside="explore_map_sight_of")},
}
"""By page what stands in its address and which control it is."""


def follow(page: str) -> None:
    """Bring the controls of a page to what the address says, once a session; else the address to the controls.

    Args:
        page: its title. Call it before the controls are drawn, and again wherever one of them is drawn in a fragment.
    """
    parts = {**EVERYWHERE, **PARTS.get(page, {})}
    if _TAKEN not in st.session_state:
        st.session_state[_TAKEN] = True
        for name, part in parts.items():
            if name in st.query_params:
                _take(name, part)
        return
    for name, part in parts.items():
        value = st.session_state.get(part.key)
        text = "" if value is None else part.write(value)
        if not text:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != text:
            st.query_params[name] = text


def _take(name: str, part: Part[Any]) -> None:
    try:
        st.session_state[part.key] = part.read(st.query_params[name])
    except ValueError:
        del st.query_params[name]
        return
    if part.beside is not None:
        st.session_state.pop(part.beside, None)
