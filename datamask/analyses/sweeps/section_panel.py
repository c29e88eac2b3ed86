"""The section Sweep of the Runs page: the form on the left, the chart of what is stored on the right."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.frontier import form_panel as frontier_form
from datamask.analyses.sweeps import form_panel, panel
from datamask.dashboard.frame import sections
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.workspace.current import Current


def show(current: Current | None) -> None:
    """Draw form and chart.

    Args:
        current: what the page shows.
    """
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.2], gap="large")
    with controls, st.container(key="below_sweep"):
        asked = form_panel.form(opened, current)
        watched = ("pages/runs.py", {**sections.remembered("Runs"), "vary": asked.word})
        frontier_form.start(opened, listing.runs_on(session.store(), opened), asked.plans, watched=watched)
    with place:
        panel.show(opened, asked)
