"""The frontier: sweeps as curves of quality against diversity, every point a stored run."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.frontier import form_panel, picture_panel
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session
from datamask.dashboard.workspace.current import Current


def show(current: Current | None) -> None:
    """What to sweep on the left, the picture on the right.

    Args:
        current: what the page shows.
    """
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.2], gap="large")
    with controls, st.container(key="below_frontier"):
        settings = form_panel.shared(opened, True, current)
        plans = form_panel.planned(lambda: form_panel.plan_of(opened, form_panel.lambda_points(settings)))
        form_panel.start(opened, listing.runs_on(session.store(), opened), plans)
        form_panel.baselines(opened, picture_panel.survey(opened), settings)
    with place:
        picture_panel.picture(opened, plans, current)
