"""Run: how does the learner choose? Controls on the left, the run and its curve on the right."""

import streamlit as st

from datamask.config import RunConfig
from datamask.dashboard import words
from datamask.dashboard.ui import forms, run_panel, session
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import cost, listing, outcome, overview
from datamask.errors import DatamaskError

frame("Run", "How does the learner choose?")

opening = session.current_opening()
run = session.current_run()
if opening is None and run is None:
    session.open_corpus_or_stop()

store = session.store()
corpus = opening.corpus if opening is not None else None
runs = listing.runs_on(store, opening)
if run is None and runs:
    run = runs[0]

controls, picture = st.columns([1, 2.6], gap="large")

with controls:
    if corpus is None:
        session.draw_opening(opening)
    else:
        tokens = overview.token_total(corpus)
        defaults = {"collapse": "exact"} if opening.sample else {}
        settings, name = forms.run_form(len(corpus), defaults)
        if settings is not None:
            try:
                price = cost.estimate(settings, len(corpus), corpus.dim, corpus.fingerprint, runs, tokens)
            except DatamaskError as error:
                st.error(words.plain(error, 400), icon=":material/error:")
            else:
                st.markdown(cost.sentence(price, len(corpus)), help=cost.details(price))
                if st.button("Start", type="primary", icon=":material/play_arrow:", width="stretch", key="start",
                             help="Learns in the background. You can leave this page, or close the browser."):
                    name = name or outcome.proposed_name(settings.objective, settings.lamb, settings.select_ratio,
                                                         settings.estimator)
                    try:
                        started = store.create(RunConfig(opening.config, settings, name))
                        session.office().submit(started.id)
                    except DatamaskError as error:
                        st.error(words.plain(error, 400), icon=":material/error:")
                    else:
                        session.choose_run(started.id)
                        st.rerun()

with picture:
    run_panel.choose(runs, run)
    if run is None:
        run_panel.nothing_yet()
    else:
        run_panel.show(run)
