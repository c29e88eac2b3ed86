"""From a method of an ablation to its selection on the Map: at once where a solver finds it, by a button elsewhere."""

from __future__ import annotations

import streamlit as st

from datamask.ablation.methods import settings_of
from datamask.ablation.result import AblationResult
from datamask.analyses.ablation import tables
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.workspace import method_panel
from datamask.dashboard.workspace.workspace import pose, read
from datamask.runs.rule_book import RuleBook

CELL, MENU, MAP = "ablation_cell", "ablation_method", "ablation_heat_map"
"""In the session: the method that was asked for last; the menu of methods; the heat map."""


def cell_pressed() -> None:
    """Note the cell of the heat map that was pressed. For the figure's `on_select`."""
    event = st.session_state.get(MAP)
    points = event.selection.points if event else []
    if points:
        st.session_state[CELL] = points[0]["customdata"][0]


def controls(result: AblationResult) -> None:
    """Draw the menu that opens a method without a pointer, and what was asked for last."""
    labels = {result.methods[place].name: result.methods[place].label for place in tables.order(result)}
    st.selectbox(
        "Open on the Map",
        list(labels),
        None,
        key=MENU,
        format_func=labels.__getitem__,
        placeholder="choose a method or press a cell",
        on_change=_method_chosen,
        width=320,
        help="Selects by this method from the whole corpus, at this select ratio, and shows the result on the Map.",
    )
    name = st.session_state.get(CELL)
    method = next((method for method in result.methods if method.name == name), None)
    if method is None:
        return
    workspace = read(session.opened_or_stop())
    ratio = result.question.ratio
    settings = settings_of(method, ratio, len(workspace.corpus))
    stored = method_panel.stored_run(workspace.runs, settings)
    if stored is not None:
        views.choose_run(stored.id)
        _go()
    elif method.along_lambda:
        pose(settings, RuleBook(workspace.corpus.fingerprint))
        if lambda_points.refusal(settings):  # nothing solves it at once
            method_panel.open_method(workspace, method, ratio)
        _go()
    else:
        st.button(
            f"Run {method.label}",
            key="ablation_run_method",
            icon=":material/play_arrow:",
            on_click=method_panel.open_method,
            args=(workspace, method, ratio),
        )


def _method_chosen() -> None:
    name = st.session_state.get(MENU)
    if name is not None:
        st.session_state[CELL] = name
        st.session_state[MENU] = None


def _go() -> None:
    del st.session_state[CELL]
    st.switch_page("app.py", query_params=views.now().address)
