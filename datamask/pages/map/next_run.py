"""The next run, started where one works: on the Map, without a way to another page.

It is the problem of the shown run, solved at the λ of the slider and under the rules made on the map; beside no run,
what the form of Runs was left with. Once it has ended, the map shows it.
"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from datamask import catalogue
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.steering import panel as steering_panel
from datamask.config import SelectionConfig
from datamask.dashboard.data.openings import OpenCorpus
from datamask.dashboard.runs import form_panel
from datamask.dashboard.shell import background
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.workspace import keeping
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import Workspace
from datamask.errors import DatamaskError, OptionError
from datamask.runs import run_queue
from datamask.runs.store import Run


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


def _start(workspace: Workspace, name: str) -> None:
    opened = workspace.opened
    try:
        settings, reason = steering_panel.applied(_settings(opened, workspace.run, name), opened.corpus)
        if reason:
            st.session_state["trouble"] = f"No selection satisfies these rules. {reason}"
            return
        rules = len(steering_panel.book(opened.corpus).rules)
    except DatamaskError as error:
        st.session_state["trouble"] = str(error)
        return
    keeping.start(opened, workspace.runs, settings, rules)


def _settings(opened: OpenCorpus, run: Run | None, name: str) -> SelectionConfig:
    """What the press asks for, by what stands on the page then: the slider is let go without a drawing of the page.

    Raises:
        OptionError: what the form was left with contradicts itself; or nothing was searched for in the shown run.
    """
    moved = lambda_slider.chosen(name)
    if run is not None:
        entry = catalogue.estimator(run.config.selection.estimator)
        if not entry.learns:
            raise OptionError(
                f"{entry.label} selected the rows of the shown run without λ. Show a solved or learned run, or "
                "press Solve on the Runs page"
            )
        settings = lambda_points.settings_of(run.config.selection)
        return replace(settings, lamb=run.config.selection.lamb if moved is None else moved)
    settings = form_panel.remembered(form_panel.SOLVE)
    return settings if moved is None else replace(settings, lamb=moved)
