"""The Map: which samples are kept, and where do they lie? A map, what filters it, and what one reads beside it.

It stands in a module of its own, because app.py, whose page it is, is also what the web server imports.
"""

from __future__ import annotations

import streamlit as st

from datamask.analyses.ablation import link_panel
from datamask.analyses.lambda_slider import panel as lambda_slider
from datamask.analyses.overview import first_look_panel
from datamask.analyses.samples import more_like_panel, texts_panel
from datamask.analyses.steering import panel as steering_panel
from datamask.dashboard.frame.frame import frame
from datamask.dashboard.linked import distribution_panel, filter_panel, groups_panel
from datamask.dashboard.shell import session
from datamask.dashboard.shell.option_control import KEPT, one_of
from datamask.dashboard.workspace.current import Current
from datamask.pages.map import compared_panel, instrument, maps_panel, rail_panel, reader_panel
from datamask.pages.map.shown import Linked, Shown

TAB, DISTRIBUTIONS, GROUPS = "tab", "Distributions", "Under- and over-represented"

WELCOME = (
    "Choose which rows of a training corpus to keep. Drag the dot: right for better scores, up for more variety. "
    "Click a mark to see why it is selected."
)


def show() -> None:
    """Draw the page: the map of the open corpus; before there is one, the way to it."""
    current = frame("Map", "Which rows are selected, and where are they on the map?", texts_panel.ABOUT, WELCOME)
    opening = session.current_opening()
    if opening is not None and opening.under_way:
        session.draw_opening(opening, follow=True)
        first_look_panel.show(opening)
    elif current is None:
        session.opened_or_stop()
    else:
        _draw(current)


def _draw(current: Current) -> None:
    shown = Shown.of(current)
    page = instrument.lay_out()
    with page.rail:
        look = rail_panel.show(shown)
    with page.map:
        linked = maps_panel.show(shown, look)
    with page.drawn:
        lambda_slider.follow(current)
    with look.search:
        filter_panel.search(linked.view)
    with look.strips:
        _strips(shown, linked)
    listed = reader_panel.listing_of(shown, linked)
    with page.reader:
        reader_panel.show(shown, look, linked, listed)
    with page.summary:
        _summary(shown, linked)
    with page.conditions:
        filter_panel.conditions(linked.view)
    with page.foot:
        steering_panel.offer(
            current.workspace, linked.view, linked.passing, shown.selected, lambda: _beside_rules(linked, listed)
        )
    _below(shown, linked)


def _strips(shown: Shown, linked: Linked) -> None:
    distribution_panel.show(linked.view, linked.few, shown.selected, "explore_few", small=True)
    if shown.selected is not None:
        groups_panel.show_few(linked.view, shown.selected)


def _beside_rules(linked: Linked, listed: texts_panel.Listing) -> None:
    """What else there is to do with the rows that are shown."""
    more_like_panel.offer(linked.view, linked.ground)
    reader_panel.download(listed)


def _summary(shown: Shown, linked: Linked) -> None:
    if not linked.passing.all():
        st.container(key="explore_headline", width="content").markdown(
            texts_panel.headline(shown.corpus, linked.passing, shown.selected), width="content"
        )
    compared_panel.offer(shown.current, shown.against)
    link_panel.show(shown.current.workspace)


def _below(shown: Shown, linked: Linked) -> None:
    """The other distributions, or the groups."""
    tabs = [*([DISTRIBUTIONS] if linked.others else []), *([GROUPS] if shown.selected is not None else [])]
    if not tabs:
        return
    tab = one_of("Below the map", tabs, TAB, label_visibility="collapsed", **KEPT)
    with st.container(key="explore_tab_panel"):
        if tab == GROUPS and shown.selected is not None:
            groups_panel.show(linked.view, shown.selected, session.store().cache_dir)
        else:
            distribution_panel.show(linked.view, linked.others, shown.selected)
