"""Run: how does the learner choose? Controls on the left, the run and its curve on the right."""

import streamlit as st

from datamask.dashboard.ui import forms, run_panel, session, start_panel, toy_panel
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing, overview

frame("Run", "How does the learner choose?")

opening = session.current_opening()
run = session.current_run()
if opening is None and run is None:
    session.open_corpus_or_stop()

runs = listing.runs_on(session.store(), opening)
if run is None and runs:
    run = runs[0]

controls, picture = st.columns([1, 2.6], gap="large")

with controls:
    if opening is None:
        if run is not None:
            run_panel.no_corpus(run)
    elif (opened := opening.opened) is None:
        session.draw_opening(opening)
    else:
        columns = opened.corpus.provenance.columns.get("quality") or ()
        settings, name, place = forms.run_form(
            {"collapse": "exact"} if opened.sample else {}, columns, overview.token_total(opened.corpus)
        )
        if settings is not None:
            with place:
                start_panel.start(opened, runs, settings, name)

with picture:
    run_panel.choose(runs, run)
    if run is not None and not listing.is_on(run, opening):
        run_panel.other_corpus(run)
    if run is None:
        run_panel.nothing_yet()
    else:
        run_panel.show(run)
    toy_panel.show()
