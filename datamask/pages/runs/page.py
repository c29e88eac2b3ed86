"""Runs: controls on the left; the table of runs, and those ticked, on the right."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.curves import panel as lines_panel
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, form_panel, listing
from datamask.dashboard.shell import session
from datamask.dashboard.shell import view as views
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.workspace.current import Current
from datamask.dashboard.workspace.workspace import pose
from datamask.pages.runs import run_panel, runs_panel, start_panel
from datamask.runs.store import Run

FORM_WIDTH = 292
"""Pixels: two buttons and two number fields fit beside each other, and the rest is for table and curves."""

PHONE = """<style>
@media (max-width: 700px) {
div:has(> .st-key-runs_controls) {order: 1; width: 100%; min-width: 100%}
div:has(> .st-key-runs_picture) {min-width: 100%}
}
</style>"""
"""In a window with room for one of the two the result comes first, and the form for the next run below it."""


def show(current: Current | None) -> None:
    """Draw the form, the table and what is ticked in it.

    Args:
        current: what the page shows.
    """
    opening = session.current_opening()
    run = session.existing_run(views.now().watched) or _at_lambda(current) or session.current_run()
    if opening is None and run is None:
        session.open_corpus_or_stop()

    runs = listing.runs_on(session.store(), opening)
    if run is None and runs:
        run = runs[0]

    st.html(PHONE)
    with st.container(horizontal=True, gap="large"):
        controls = st.container(key="runs_controls", width=FORM_WIDTH)
        picture = st.container(key="runs_picture", width="stretch")

    with controls:
        if opening is None:
            if run is not None:
                run_panel.no_corpus(run)
        elif (opened := opening.opened) is None or current is None:
            session.draw_opening(opening)
        else:
            named = opened.corpus.provenance.columns
            workspace = current.workspace
            form = form_panel.run_form(
                workspace.asked,
                lambda problem: pose(problem, workspace.renewed().rules),
                named.get("quality") or (),
                cost.token_total(opened.corpus),
                [name for name in opened.corpus.metadata.column_names if name != named.get("text")],
            )
            with form.place:
                start_panel.start(current, runs, form)

    with picture:
        shown = runs_panel.choose(runs, run, opening)
        if len(shown) > 1:
            lines_panel.show(shown)
        elif not shown:
            run_panel.nothing_yet()
        else:
            if not listing.is_on(shown[0], opening):
                run_panel.other_corpus(shown[0])
            _another(shown[0], current)
            run_panel.show(shown[0])


def _at_lambda(current: Current | None) -> Run | None:
    """The newest run of the current selection's problem and lambda, by whatever method; None: there is none, or the
    selection is the shown run's own.
    """
    if current is None or current.selection is None or current.workspace.lamb is None:
        return None
    problem, lamb = current.workspace.settings, current.selection.lamb
    for run in current.workspace.runs:
        settings = run.config.selection
        if settings.lamb == lamb and lambda_points.settings_of(settings) == problem:
            return run
    return None


def _another(run: Run, current: Current | None) -> None:
    """Said over a run that is not the current selection."""
    selection = None if current is None else current.selection
    if selection is None or not listing.is_on(run, current.workspace.opened if current is not None else None):
        return
    if selection.run is not None and selection.run.id == run.id:
        return
    if run.has_selection:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(
                f"Run **{words.named(listing.name_of(run), 60)}** is not the current selection, "
                f"**{words.named(selection.name, 60)}**.",
                width="content",
            )
            st.page_link("app.py", label="Show on the map", query_params=views.address_of_run(run.id), width="content")
