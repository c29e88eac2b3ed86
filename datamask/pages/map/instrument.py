"""The places of the page one works on: rail, map and reader side by side, and a foot below them.

The map takes what the other two leave. All three are as high as the window allows, so that what a click asks for is
answered beside the map; what does not fit into rail or reader scrolls there. The rail folds by its button; in a narrow
window it is folded until somebody opens it, and on a phone the three lie below each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

STATE = "explore_rail"
"""Of the session state: ``open`` or ``folded`` where somebody pressed the button; without one the window decides."""

RAIL, READER = 228, 344
"""Their widths in pixels, room for a scroll bar included."""

FOLLOWING = ("explore_reader", "explore_headline", "explore_listed", "explore_tab_panel")
"""Keys, or how they begin, of the places that follow λ once it is let go. The slider marks the page while it draws
another selection than they show, and they are dimmed."""

COUNTED = "explore_figures"
"""Key of the place that follows also while λ moves, where its counts were sent."""

NARROW, PHONE = 1150, 700
"""Windows of at most so many pixels have no room for all three, and for no two of them."""

MAP_HEIGHT = "max(24rem, calc(100vh - 234px))"
"""All of the window but the menu, the answer bar, the map's caption and the two lines of the foot."""


@dataclass(frozen=True)
class Page:
    """Where things are drawn.

    Attributes:
        summary, drawn, conditions: on the first line of the foot, from the left: what is shown and what to do with it,
            the selection that the map draws, and the filter. foot: the lines below.
    """

    rail: DeltaGenerator
    map: DeltaGenerator
    reader: DeltaGenerator
    summary: DeltaGenerator
    drawn: DeltaGenerator
    conditions: DeltaGenerator
    foot: DeltaGenerator


def lay_out() -> Page:
    """Draw the places, each empty."""
    st.html(_style(st.session_state.get(STATE)))
    around = st.container(gap="xxsmall")
    with around.container(horizontal=True, wrap=False, gap="xsmall", key="explore_body"):
        with st.container(key="explore_unfold", width=30):
            st.button(
                "Colors and filters",
                key="explore_unfold_button",
                type="tertiary",
                on_click=_keep,
                args=("open",),
            )
        rail = st.container(key="explore_rail", width=RAIL, gap="xsmall")
        middle = st.container(key="explore_middle", width="stretch", gap="xxsmall")
        reader = st.container(key="explore_reader", width=READER, gap="small")
    foot = around.container(key="explore_foot", gap="xxsmall")
    line = foot.container(horizontal=True, vertical_alignment="center", gap="xsmall")
    summary = line.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
    drawn = line.container(gap=None, width="content")
    conditions = line.container(horizontal=True, vertical_alignment="center", gap="small", width="content")
    return Page(rail, middle, reader, summary, drawn, conditions, foot)


def fold_button() -> None:
    """The button that folds the rail: an icon, for its name is longer than its line."""
    name, icon = "Hide colors and filters", ":material/left_panel_close:"
    key = "explore_fold_button"
    st.button(name, key=key, icon=icon, type="tertiary", on_click=_keep, args=("folded",))


def _keep(state: str) -> None:
    st.session_state[STATE] = state


def _style(state: str | None) -> str:
    """The rail is hidden, not left out: what stands in its menus must not be forgotten meanwhile. The reader's room is
    kept free until it shows something: a map that shrinks under the hand loses what is drawn on it.
    """
    hidden = {"folded": "rail", "open": "unfold"}.get(str(state), "unfold")
    narrow = (
        ""
        if state
        else f"""
@media (max-width: {NARROW}px) {{{_place("unfold")} {{display: flex}} {_place("rail")} {{display: none}}}}"""
    )
    return f"""<style>
.st-key-explore_body {{margin-top: -15px}}
.st-key-explore_rail, .st-key-explore_reader {{flex: none; height: {MAP_HEIGHT}; overflow-y: auto; overflow-x: hidden;
scrollbar-width: thin; padding: 0 9px 0 2px;
background: linear-gradient(transparent, light-dark(#FFFFFF, #12171C) 60%) bottom / 100% 40px no-repeat local,
linear-gradient(transparent, light-dark(#0003, #0009)) bottom / 100% 14px no-repeat scroll}}
.st-key-explore_switch [role="radio"], .st-key-explore_switch button {{padding-left: 0.5rem; padding-right: 0.5rem}}
:is(.st-key-explore_about, .st-key-explore_fold_button) button {{min-height: 0; padding: 0}}
.st-key-explore_foot button {{min-height: 2rem; padding-top: 0.1rem; padding-bottom: 0.1rem}}
{_place(hidden)} {{display: none}}{narrow}
:root[data-lambda-moved] :is({", ".join(f'[class*="st-key-{key}"]' for key in FOLLOWING)}) {{opacity: 0.4}}
:root[data-lambda-moved]:not([data-lambda-counted]) .st-key-{COUNTED} {{opacity: 0.4}}
.st-key-explore_unfold_button button {{writing-mode: vertical-rl; padding: 0.7rem 0.2rem}}
[class*="st-key-explore_extremes"] button {{min-height: 0; padding: 3px 0; text-align: left; justify-content: start}}
[class*="st-key-explore_extremes"] p {{display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
overflow: hidden; line-height: 1.35}}
.st-key-explore_foot [data-testid="stPageLink"] p {{white-space: normal}}
.st-key-explore_fold_button p {{position: absolute; width: 1px; height: 1px; clip-path: inset(50%)}}
@media (min-width: {PHONE + 1}px) {{
.st-key-explore_body:not(:has(.st-key-explore_reader))::after {{content: ""; flex: none; width: {READER}px}}
}}
@media (max-width: {PHONE}px) {{
.st-key-explore_body {{flex-wrap: wrap}}
.st-key-explore_unfold_button button {{writing-mode: horizontal-tb}}
{_place("unfold")}, {_place("rail")}, {_place("middle")}, {_place("reader")} {{width: 100%; min-width: 100%}}
}}
</style>"""


def _place(name: str) -> str:
    """What holds the container of that name in its row."""
    return f"div:has(> .st-key-explore_{name})"
