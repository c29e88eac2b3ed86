"""The trade-off at the top of the left column: λ as a dot that is dragged toward quality or diversity."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.components import component
from datamask.dashboard.tradeoff import answers
from datamask.dashboard.workspace.current import Current
from datamask.pages.map import instrument


def show(current: Current) -> None:
    """Draw it, under a link to the Frontier page. The map's slider tells it the solved λ and takes what is dragged."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", wrap=False):
        views.page_link("pages/frontier.py", "Trade-off", ":material/show_chart:", width="content")
        instrument.fold_button()
    component("tradeoff", ("store", "tradeoff"))(key="map_tradeoff", data={"ticks": answers.ticks(current.units)})
