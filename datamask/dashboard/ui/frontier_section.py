"""The frontier: sweeps as curves of quality against diversity, every point a stored run; and the live λ on the map."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.ui import frontier_form, frontier_live, frontier_picture, session, theme
from datamask.dashboard.views import listing


def show() -> None:
    """What to sweep on the left, the picture on the right."""
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.6], gap="large")
    with controls:
        settings = frontier_form.shared(opened, True)
        plans = frontier_form.planned(lambda: frontier_form.plan_of(opened, frontier_form.lambda_points(settings)))
        frontier_form.start(opened, listing.runs_on(session.store(), opened), plans)
        frontier_form.baselines(opened, frontier_picture.survey(opened), settings)
    with place:
        frontier_picture.picture(opened, plans)
    theme.follow()


def live() -> None:
    """A slider with its map."""
    opened = session.opened_or_stop()
    controls, place = st.columns([1, 3.6], gap="large")
    with controls:
        settings = frontier_form.shared(opened, False, frontier_live.OFFERED)
    with place:
        frontier_live.show(opened, settings)
