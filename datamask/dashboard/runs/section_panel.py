"""All runs: controls on the left; the table of runs, and those ticked, on the right."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.analyses.comparison import candidates
from datamask.dashboard.analyses.overview import tables as overview
from datamask.dashboard.analyses.run_lines import panel as lines_panel
from datamask.dashboard.runs import form_panel, listing, run_panel, runs_panel, start_panel
from datamask.dashboard.shell import session

FORM_WIDTH = 292
"""Pixels: two buttons and two number fields fit beside each other, and the rest is for table and curves."""


def show() -> None:
    """Draw the form, the table and what is ticked in it."""
    opening = session.current_opening()
    run = session.current_run()
    if opening is None and run is None:
        session.open_corpus_or_stop()

    runs = listing.runs_on(session.store(), opening)
    if run is None and runs:
        corpus = None if opening is None else opening.corpus
        finished, _ = candidates.candidates(runs, None if corpus is None else corpus.fingerprint)
        run = session.run_to_open(finished) or runs[0]

    with st.container(horizontal=True, gap="large"):
        controls, picture = st.container(width=FORM_WIDTH), st.container(width="stretch")

    with controls:
        if opening is None:
            if run is not None:
                run_panel.no_corpus(run)
        elif (opened := opening.opened) is None:
            session.draw_opening(opening)
        else:
            columns = opened.corpus.provenance.columns.get("quality") or ()
            form = form_panel.run_form(
                {"collapse": "exact"} if opened.sample else {}, columns, overview.token_total(opened.corpus)
            )
            with form.place:
                start_panel.start(opened, runs, form)

    with picture:
        shown = runs_panel.choose(runs, run, opening)
        if len(shown) > 1:
            lines_panel.show(shown)
        elif not shown:
            run_panel.nothing_yet()
        else:
            if not listing.is_on(shown[0], opening):
                run_panel.other_corpus(shown[0])
            run_panel.show(shown[0])
        st.page_link(
            "pages/lab.py",
            label="What does each objective see?",
            icon=":material/help:",
            query_params=session.link_parameters(),
            width="content",
        )
