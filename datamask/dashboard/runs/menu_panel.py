"""A menu of the finished runs, where one of them is needed and the table of runs is elsewhere: on the Export page."""

from __future__ import annotations

from collections.abc import Container, Sequence

import streamlit as st

from datamask.dashboard.runs import label_panel, listing
from datamask.dashboard.shell import view as views
from datamask.runs.store import Run

LISTED = 200
"""Runs offered in the list; a browser's menu of more than that is of no use."""

CHOICE = "run_choice"
"""Key of the list of runs."""


def choose(runs: Sequence[Run], run: Run | None) -> None:
    """The list of runs, newest first, and the present one's name and notes."""
    offered = {r.id: r for r in runs[:LISTED]}
    if run is not None:
        offered.setdefault(run.id, run)
    if not offered:
        return
    names = listing.unlike({run_id: listing.name_of(listed) for run_id, listed in offered.items()})
    st.session_state[CHOICE] = None if run is None else run.id
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Run",
            list(offered),
            None if run is None else list(offered).index(run.id),
            key=CHOICE,
            format_func=names.__getitem__,
            on_change=_chosen,
            args=(offered,),
            label_visibility="collapsed",
            placeholder="Choose a run",
        )
        if run is not None:
            with st.popover("Name and notes", icon=":material/edit:"):
                label_panel.edit(run, listing.tags_of(runs))


def _chosen(offered: Container[str]) -> None:
    """Take the chosen run; a browser may still send the old name of one."""
    run_id = st.session_state.get(CHOICE)
    if run_id is not None and run_id in offered:
        views.choose_run(run_id)
