"""From a method of an ablation to its selection on the Map, and what else to do after a result."""

from __future__ import annotations

import streamlit as st

from datamask.ablation.methods import settings_of
from datamask.ablation.result import AblationResult
from datamask.analyses.ablation import form_panel, tables
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.workspace import method_panel
from datamask.dashboard.workspace.workspace import pose, read
from datamask.runs.rule_book import RuleBook

ASKED, MENU, MAP = "ablation_asked", "ablation_method", "ablation_heat_map"
"""In the session: the method that was asked for last, and whether a run may be started for it; the menu of methods; the
heat map."""


def actions(result: AblationResult) -> None:
    """Draw what to do next: take the method that is never far behind, bring more rows, or show examples."""
    safest = result.safest
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if safest is not None:
            st.button(
                f"Take {words.plain(safest.method.label, 60)} at {words.percent(result.question.ratio)}",
                key="ablation_take",
                icon=":material/scatter_plot:",
                on_click=_ask,
                args=(safest.method.name, True),
            )
        views.page_link("pages/data.py", "Bring more rows", ":material/database:", width="content")
        st.button(
            "Show examples of your target",
            key="ablation_show_examples",
            icon=":material/format_quote:",
            type="tertiary",
            on_click=form_panel.choose_examples,
        )
    if safest is not None:
        st.caption(
            f"*Take*: at most {safest.regret:.3f} behind the best.",
            help=f"In {result.unit}. Its largest regret, behind the best method of a target, is the smallest that was "
            "measured here. Opens its selection on the Map.",
        )


def cell_pressed() -> None:
    """Note the cell of the heat map that was pressed. For the figure's `on_select`."""
    event = st.session_state.get(MAP)
    points = event.selection.points if event else []
    if points:
        _ask(points[0]["customdata"][0])


def menu(result: AblationResult) -> None:
    """Draw the menu that opens a method without a pointer."""
    labels = {result.methods[place].name: result.methods[place].label for place in tables.order(result)}
    st.selectbox(
        "Open on the Map",
        list(labels),
        None,
        key=MENU,
        format_func=labels.__getitem__,
        placeholder="choose a method or press a cell",
        on_change=_chosen,
        width=320,
        help="Selects by this method from the whole corpus, at this select ratio, and shows the result on the Map.",
    )


def follow(result: AblationResult) -> None:
    """Go to the Map with what was asked for last: at once where a solver finds it, by a button elsewhere."""
    name, begin = st.session_state.get(ASKED, ("", False))
    method = next((method for method in result.methods if method.name == name), None)
    if method is None:
        return
    workspace = read(session.opened_or_stop())
    ratio = result.question.ratio
    settings = settings_of(method, ratio, len(workspace.corpus))
    stored = method_panel.stored_run(workspace.runs, settings)
    if stored is not None:
        views.choose_run(stored.id)
    elif method.along_lambda:
        pose(settings, RuleBook(workspace.corpus.fingerprint))
        if lambda_points.refusal(settings):  # nothing solves it at once
            method_panel.open_method(workspace, method, ratio)
    elif begin:
        method_panel.open_method(workspace, method, ratio)
    else:
        st.button(
            f"Run {words.plain(method.label, 60)}",
            key="ablation_run_method",
            icon=":material/play_arrow:",
            on_click=_ask,
            args=(name, True),
        )
        return
    del st.session_state[ASKED]
    st.switch_page("app.py", query_params=views.now().address)


def _ask(name: str, begin: bool = False) -> None:
    st.session_state[ASKED] = (name, begin)


def _chosen() -> None:
    name = st.session_state.get(MENU)
    if name is not None:
        _ask(name)
        st.session_state[MENU] = None
