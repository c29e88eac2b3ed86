"""The rail beside the map: trade-off, run, colors and layout."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from datamask.dashboard.drawing import words
from datamask.dashboard.linked import best_rows, columns, settled_rows
from datamask.dashboard.map import preparing_panel as layout_panel
from datamask.dashboard.map.places import MAX_POINTS
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.pages.map import tradeoff_panel
from datamask.pages.map.shown import Shown

RUN = "explore_run"
MAPS = ("1", "2", "3")

MENUS = (("Color by", "colour"), ("Second map", "second"), ("Third map", "third"))
"""What each map is colored by: the menu's label and key."""

ABOUT = (
    "*Similarity to neighbors*: mean cosine to the 15 nearest rows of the corpus. "
    f"{best_rows.ABOUT} "
    "*Score in this run*: what the row adds to the joint value of the run. "
    "*Marginal diversity*: what it adds to the diversity. "
    + " ".join(settled_rows.about(name) for name in (settled_rows.BY_PROOF, settled_rows.BY_PARTS))
)

MARKS = (
    f"A point is a row (at most {MAX_POINTS:,}, at random). A hexagon shows the selected share or the mean value of "
    "its rows."
)


@dataclass(frozen=True)
class Look:
    """What the rail was asked for.

    Attributes:
        colours: what each map is colored by. projection, hexagons: how rows are drawn.
        search, strips: places of the rail that are drawn after the map.
    """

    colours: Sequence[str]
    projection: str
    hexagons: bool
    search: DeltaGenerator
    strips: DeltaGenerator


def show(shown: Shown) -> Look:
    """Run, colors and look; its search and strips are drawn once the map is."""
    choices = columns.choices(shown.rows)
    for key, known in (*((key, choices) for _, key in MENUS), ("group", shown.rows.classes)):
        if st.session_state.get(key) not in known:  # remembered from another corpus, which had other columns
            st.session_state.pop(key, None)
    tradeoff_panel.show(shown.current)
    _selected_by(shown)
    # a place of its own: a control that moves is drawn anew, and loses the focus and what is being typed
    with st.container():
        _without_selection(shown)
    with st.container(key="explore_switch"):
        _switch(choices)
    others = st.container()
    search = st.container()
    with st.popover("More colors, maps, layout", icon=":material/tune:", width="stretch", key="explore_look"):
        more = st.container()
        count = one_of("Maps side by side", MAPS, "maps", **KEPT)
        colours = [
            (others if place else more).selectbox(
                label,
                choices,
                index=min(place, len(choices) - 1),
                key=key,
                help=None if place else ABOUT,
                format_func=columns.spoken_of,
                **KEPT,
            )
            for place, (label, key) in enumerate(MENUS[: int(count)])
        ]
        projection, hexagons = layout_panel.layout_control(), layout_panel.marks_control(shown.corpus, MARKS)
    return Look(colours, projection, hexagons, search, st.container(key="explore_figures"))


def _switch(choices: Sequence[str]) -> None:
    """What the first map is mostly colored by, at one press; its menu has these and all others."""
    key, (_, colour) = "explore_colour", MENUS[0]
    diversity = columns.MARGINAL if columns.MARGINAL in choices else columns.CROWDING
    names = {columns.SELECTED: "Selection", columns.QUALITY: "Quality", diversity: "Diversity"}
    shown = st.session_state.get(colour, choices[0])
    st.session_state[key] = shown if shown in names else None
    st.segmented_control(
        "Color of the map",
        list(names),
        key=key,
        format_func=names.__getitem__,
        # pressed again, what is on stays on
        on_change=lambda: st.session_state.update({colour: st.session_state[key] or shown}),
        label_visibility="collapsed",
    )


def _selected_by(shown: Shown) -> None:
    """The menu of runs. A selection along λ that is no run was selected by none of them."""
    workspace, selection = shown.current.workspace, shown.current.selection
    names = workspace.names
    standing = workspace.run.id if workspace.run is not None and (shown.own or selection is None) else ""
    # of its own where none of them stands: the browser would still send the name that stood here before
    key = RUN if standing else f"{RUN}_none"
    if standing:
        st.session_state[key] = standing
    st.selectbox(
        "Selected by",
        list(names),
        list(names).index(standing) if standing else None,
        key=key,
        placeholder=f"{selection.name} (not a stored run)"
        if selection is not None and names
        else "no finished run yet",
        format_func=names.__getitem__,
        disabled=not names,
        on_change=_take_run,
        args=(key, names, standing),
    )


def _take_run(key: str, offered: Container[str], standing: str) -> None:
    """Make the run chosen in the menu the current one; a browser may still send the old name of one.

    Args:
        standing: the run that stood there as the menu was drawn, or nothing.
    """
    run_id = st.session_state.get(key, "")
    # what stands there is no choice: a browser that has not heard of another λ or amount says so
    if run_id and run_id in offered and not (key == RUN and run_id == (views.now().run or standing)):
        views.choose_run(run_id)


def _without_selection(shown: Shown) -> None:
    """The way to a run where nothing is selected, and why the run of the address is not shown."""
    current, workspace = shown.current, shown.current.workspace
    if shown.selected is None and not (current.waits or current.under_way):
        views.page_link("pages/runs.py", "Start a run to see its selection")
    for refusal in workspace.refused:
        instead = workspace.run and f" Shown instead: **{words.named(workspace.names[workspace.run.id], 60)}**."
        st.caption(
            f"**{words.named(refusal.name, 60)}** is not shown: {words.plain(refusal.reason, 300)}.{instead or ''}"
        )
