"""A menu of the finished runs, where one of them is needed and the table of runs is elsewhere: on the Export page."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from datamask.dashboard.drawing import words
from datamask.dashboard.runs import label_panel, listing
from datamask.dashboard.shell import menus, session
from datamask.runs.store import Run

LISTED = 200
"""Runs offered in the list; a browser's menu of more than that is of no use."""

CHOICE = "run_choice"
"""Key of the list of runs, until the program moves it."""


def choose(runs: Sequence[Run], run: Run | None) -> None:
    """The list of runs, newest first, and the present one's name and notes."""
    offered = {r.id: r for r in runs[:LISTED]}
    if run is not None:
        offered.setdefault(run.id, run)
    if not offered:
        return
    # the words are made once: a run may change its state while the list is being drawn, or before one is chosen
    lines = listing.unlike({run_id: _line(listed) for run_id, listed in offered.items()})
    key = menus.moved_to(CHOICE, run.id if run is not None else None, lines)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Run",
            list(offered),
            key=key,
            format_func=lines.__getitem__,
            on_change=_chosen,
            args=(key,),
            label_visibility="collapsed",
            placeholder="Choose a run",
        )
        if run is not None:
            with st.popover("Name and notes", icon=":material/edit:"):
                label_panel.edit(run, listing.tags_of(runs))


def _line(run: Run) -> str:
    status = run.status()
    return f"{listing.name_of(run)}  ·  {status.state}, {words.ago(status.created)}"


def _chosen(key: str) -> None:
    """Take the chosen run, by whatever words the browser saw it under; what was never in the menu changes nothing."""
    run_id = menus.chosen_in(CHOICE, key)
    if run_id is not None:
        session.choose_run(run_id)
