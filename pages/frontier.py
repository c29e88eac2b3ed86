"""Frontier: quality against diversity along λ, every point a stored run; or the chart of another setting."""

import streamlit as st

from datamask.analyses.frontier import form_panel, kinds, panel
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.runs import listing
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
    asked = form_panel.form(opened, current, word)
    form_panel.start(opened, listing.runs_on(session.store(), opened), asked)
with place:
    panel.show(opened, asked, current)
