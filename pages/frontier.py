"""Frontier: quality against diversity along λ, every point a stored run; or the chart of another setting."""

import streamlit as st

from datamask.analyses.frontier import form_panel, picture_panel
from datamask.analyses.sweeps import form_panel as sweep_form
from datamask.analyses.sweeps import panel as sweep_panel
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import listing
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.dashboard.shell import session

current = frame("Frontier", "How do quality and diversity change with λ, the ratio or another setting?")

opened = session.opened_or_stop()
controls, place = st.columns([1, 3.2], gap="large")
with controls, st.container(key="below_frontier"):
    word = st.selectbox(
        "Vary",
        list(kinds.LABELS),
        format_func=kinds.LABELS.__getitem__,
        key="vary",
        bind="query-params",
        persist_state="session",
        help="Entries with *Paper* reproduce a figure of the paper.",
    )
    runs = listing.runs_on(session.store(), opened)
    if word == kinds.LAMBDA:
        settings = form_panel.shared(opened, True, current)
        plans = form_panel.planned(lambda: form_panel.plan_of(opened, form_panel.lambda_points(settings)))
        form_panel.start(opened, runs, plans, word)
        form_panel.baselines(opened, picture_panel.survey(opened), settings)
    else:
        asked = sweep_form.form(opened, current, word)
        form_panel.start(opened, runs, asked.plans, word)
with place:
    if word == kinds.LAMBDA:
        picture_panel.picture(opened, plans, current)
    else:
        sweep_panel.show(opened, asked)
