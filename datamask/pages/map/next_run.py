"""The next run, started where one works: on the Map, without a way to another page.

It is the problem of the view, at the λ of the slider and under the rules that the page lists. Once it has ended, the
map shows it.
"""

from __future__ import annotations

import streamlit as st

from datamask import catalogue
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.dashboard.shell import background
from datamask.dashboard.workspace import keeping
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import Workspace
from datamask.runs import run_queue


def offer(current: Current, name: str) -> None:
    """The button that solves, or how far it is.

    Args:
        current: what the page shows. name: of the map that the slider stands on.
    """
    if not _at_work():
        _solve(current.workspace, name)


def _at_work() -> bool:
    """Draw how far the run is that was started here; whether it is under way."""
    begun = keeping.started()
    look = background.Look(place="next_run_live", stop_key="stop_next_run")
    return begun is not None and background.under_way(run_queue.key_of(begun), look)


def _solve(workspace: Workspace, name: str) -> None:
    st.button(
        "Solve",
        key="map_solve",
        icon=":material/bolt:",
        type="primary",
        on_click=_start,
        args=(workspace, name),
    )


def _start(drawn: Workspace, name: str) -> None:
    """Solve what stands on the page at the press: the slider may have been let go since it was drawn."""
    lambda_slider.take(name, drawn)
    workspace = drawn.renewed()
    if workspace.reason:
        st.session_state["trouble"] = f"No selection satisfies these rules. {workspace.reason}"
        return
    run = workspace.run
    if run is not None and not (entry := catalogue.estimator(run.config.selection.estimator)).learns:
        st.session_state["trouble"] = (
            f"{entry.label} selected the rows of the shown run without λ. Show a solved or learned run, or press Solve "
            "on the Runs page"
        )
        return
    keeping.start(workspace, workspace.asked)
