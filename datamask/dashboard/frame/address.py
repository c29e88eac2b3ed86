"""What a copied address brings back besides corpus and run: tab, layout, filters, lambda and the like of each page.

The first request of a session takes them from the URL; from then on the URL follows the controls. Only what differs
from its default stands there, so that a plain view has a plain address. What the URL says is checked: anybody may edit
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

from datamask.corpus.projections import DEFAULT, PROJECTIONS
from datamask.dashboard.linked import brushing, columns, names_panel
from datamask.dashboard.map import canvas_map, shared_view
from datamask.dashboard.map.filters import Filters
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.dashboard.shell import session
from datamask.runs.folders import RUN_ID

_TAKEN = "address_taken"
_LONGEST = 200

Value = TypeVar("Value")


@dataclass(frozen=True)
class Part(Generic[Value]):
    """One control.

    Attributes:
        key: of the control in the session state.
        default: the value that is not written; None: every value is.
        read: makes the control's value of the URL's text; ValueError where it is none.
        write: the way back; what is written as nothing does not stand in the address.
        join: puts together what is kept under the key already, or None, and what was read.
        beside: key of what the control's value was chosen beside, and is let go of with; forgotten where the address
            brings a value, which is for what the address brings too.
    """

    key: str
    default: Value | None
    read: Callable[[str], Value]
    write: Callable[[Value], str] = str
    join: Callable[[Value | None, Value], Value] = lambda before, read: read
    beside: str | None = None


def _one_of(key: str, names: Sequence[str], default: str | None = None) -> Part[str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(text)
        return text

    return Part(key, default, read)


def _text(key: str, default: str) -> Part[str]:
    # the page itself knows which columns there are, and lets go of others
    return Part(key, default, lambda text: text[:_LONGEST])


def _number(key: str, default: float | None, low: float, high: float) -> Part[float]:
    def read(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(text)
        return value

    return Part(key, default, read, "{:g}".format)


def _filters(read: Callable[[str], Filters], write: Callable[[Filters], str]) -> Part[Any]:
    """Conditions on the rows, of the kinds that these read and write; those of several parts hold together."""
    return Part(brushing.FILTERS, None, lambda text: (None, read(text)), lambda held: write(held[1]), brushing.joined)


def _runs(text: str) -> list[str]:
    names = text.split(",")
    if len(names) > 4 or not all(RUN_ID.fullmatch(name) for name in names):
        raise ValueError(text)
    return names


def _sight(text: str) -> str:
    shared_view.sight_of(text)
    return text


def _run(text: str) -> str:
    if not RUN_ID.fullmatch(text):
        raise ValueError(text)
    return text


RUNS = Part("compare", None, _runs, ",".join)
RATIO = _number("frontier_ratio", 0.3, 0.0001, 0.9999)
LAYOUTS, MARKS, MAPS = tuple(PROJECTIONS), ("points", "hexagons"), ("1", "2", "3")

EVERYWHERE: dict[str, Part[Any]] = {
    "search": _filters(shared_view.search_of, shared_view.search_text),
    "where": _filters(shared_view.where_of, shared_view.where_text),
    "region": Part(
        f"{brushing.MAP}_memory",
        None,
        lambda text: canvas_map.awaiting(*shared_view.regions_of(text)),
        lambda memory: shared_view.region_text(memory.kind, memory.regions),
    ),
}
"""What stands in the address of every page; a page's own part of the same name goes before."""

# controls of all kinds: what one holds is between its own `read`, `write` and `join`
PARTS: dict[str, dict[str, Part[Any]]] = {
    "Map": {
        "maps": _one_of("explore_maps", MAPS, MAPS[0]),
        "colour": _text("explore_colour", columns.SELECTED),
        "second": _text("explore_second", columns.QUALITY),
        "third": _text("explore_third", columns.CROWDING),
        "against": Part(session.AGAINST, None, _run),
        "rail": _one_of("explore_rail", ("open", "folded")),
        "layout": _one_of("explore_layout", LAYOUTS, DEFAULT),
        "marks": _one_of("explore_marks", MARKS),
        "names": _text(names_panel.BY, names_panel.WORDS),
        "tab": _text("explore_tab", "Distributions"),
        "group": _text("explore_group_by", ""),
        "show": _one_of("explore_map_which", ("all", "selected", "not selected"), "all"),
        "at": Part("explore_map_sight", None, _sight, beside="explore_map_sight_of"),
    },
    "Frontier": {"vary": _one_of("frontier_vary", tuple(kinds.LABELS), kinds.LAMBDA), "ratio": RATIO},
    "Compare": {
        "runs": RUNS,
        "draw": _one_of("compare_panels", ("changes", "selected", "agreement"), "changes"),
        "layout": _one_of("compare_layout", LAYOUTS, DEFAULT),
        "marks": _one_of("compare_marks", MARKS),
        "tab": _text("compare_tab", "Texts"),
    },
    "Evidence": {"runs": RUNS, "tab": _text("evidence_tab", "What helps")},
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
        text = "" if value is None or value == part.default or value == [] else part.write(value)
        if not text:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != text:
            st.query_params[name] = text


def take_again() -> None:
    """The next page takes its controls from its address again, as the first of a session does. For links to a view."""
    st.session_state.pop(_TAKEN, None)


def _take(name: str, part: Part[Any]) -> None:
    try:
        st.session_state[part.key] = part.join(st.session_state.get(part.key), part.read(st.query_params[name]))
    except ValueError:
        del st.query_params[name]
        return
    if part.beside is not None:
        st.session_state.pop(part.beside, None)
