"""Frontier: what does lambda cost? Sweeps as curves of quality against diversity; every point is a stored run."""

import streamlit as st

from datamask.dashboard import words
from datamask.dashboard.ui import frontier_form, frontier_live, frontier_picture, frontier_sweeps, session, theme
from datamask.dashboard.ui.frame import frame
from datamask.dashboard.views import listing
from datamask.errors import DatamaskError

FRONTIER, LIVE, RATIO, GROUP, TRANSFER = VIEWS = ("Frontier", "Live λ", "Ratio", "Group size", "Transfer")

frame("Frontier", "What does lambda cost?")

opened = session.opened_or_stop()
runs = listing.runs_on(session.store(), opened)
view = st.segmented_control(
    "View",
    VIEWS,
    default=FRONTIER,
    required=True,
    key="frontier_view",
    persist_state="session",
    label_visibility="collapsed",
    help="Frontier: quality against diversity over λ. Live λ: a slider with its map. Ratio and Group size: sweeps over "
    "these. Transfer: does a part of the corpus tell the same frontier?",
)
controls, place = st.columns([1, 3.6], gap="large")

with controls:
    settings = frontier_form.shared(
        opened, view in (FRONTIER, RATIO), frontier_live.OFFERED if view == LIVE else None, ratio=view != RATIO
    )
    try:
        plans = []
        if view == FRONTIER:
            plans = frontier_form.plan_of(opened, frontier_form.lambda_points(settings))
        elif view == RATIO:
            plans = frontier_form.plan_of(opened, frontier_form.ratio_points(settings))
        elif view == GROUP:
            plans = frontier_form.plan_of(opened, frontier_form.group_points(settings))
        elif view == TRANSFER:
            plans = frontier_form.transfer_plans(opened, frontier_form.lambda_points(settings))
    except DatamaskError as error:
        st.error(words.sentence(error), icon=":material/error:")
    if view != LIVE:
        frontier_form.start(opened, runs, plans, "Start the check" if view == TRANSFER else "Start the sweep")
    if view == FRONTIER:
        frontier_form.baselines(opened, frontier_picture.survey(opened), settings)

with place:
    if view == FRONTIER:
        frontier_picture.picture(opened, plans)
    elif view == LIVE:
        frontier_live.show(opened, settings)
    elif view == RATIO:
        frontier_sweeps.ratio(opened)
    elif view == GROUP:
        frontier_sweeps.group(opened)
    else:
        frontier_sweeps.transfer(opened, settings)

theme.follow()
