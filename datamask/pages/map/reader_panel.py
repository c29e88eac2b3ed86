"""What one reads beside the map: the list of rows, and the marked row with the reasons for it."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.explanation import panel as why_panel
from datamask.analyses.samples import extremes_panel, sample_panel, texts_panel
from datamask.dashboard.drawing import words
from datamask.dashboard.linked import brushing, columns
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import chosen, ordering
from datamask.pages.map import compared_panel
from datamask.pages.map.rail_panel import Look
from datamask.pages.map.shown import Linked, Shown

LIST_HEIGHT = 420
"""Pixels of the list below rows that are worth a look, which leave it no room of its own."""


def show(shown: Shown, look: Look, linked: Linked, listed: texts_panel.Listing) -> None:
    """The marked row with the reasons for it; else the list, below what is compared or what is worth a look."""
    corpus, sample = shown.corpus, chosen.chosen(shown.corpus)
    if sample is None:
        # a place of its own: a list that moves is drawn anew, and loses what is being typed
        with st.container():
            if shown.against is not None:
                compared_panel.show(shown.against)
            before = shown.against is None and not linked.view.filters and extremes_panel.show(shown.current)
        texts_panel.show(listed, columns.columns_shown(corpus, look.colours), LIST_HEIGHT if before else "stretch")
        return
    sample_panel.show(corpus, sample, listed)
    reasons, nearest, behind = st.container(), st.container(), st.container()
    with nearest:
        sample_panel.neighbours(corpus, sample, shown.selected)
    if (scored := shown.scored) is not None:
        with reasons:
            if not shown.own:
                st.caption(
                    f"Scores of run **{words.named(listing.name_of(scored), 60)}** "
                    f"(λ {scored.config.selection.lamb:g}). "
                    "The current selection has no scores. Press *Keep as run* to get them."
                )
            why_panel.show(scored, shown.current.workspace.runs, corpus, sample, behind)


def listing_of(shown: Shown, linked: Linked) -> texts_panel.Listing:
    """The rows that are listed beside the map."""
    closest, run, scored = None, shown.scores, shown.scored
    if run is not None and scored is not None and shown.own:
        settings = scored.config.selection
        # pins, quotas and tokens decide besides the score, so that there is no one cut
        if not settings.ruled and settings.budget is None:
            closest = ordering.closest_to_cut(scored.id, run.score, run.selected, run.eligible)
    return texts_panel.listing(brushing.MAP, shown.corpus, linked.passing, shown.selected, closest)


def download(listed: texts_panel.Listing) -> None:
    """The buttons that give the listed rows as a file, where these are not all of the corpus."""
    if len(listed.rows) < len(listed.corpus):
        with st.container(key="explore_listed", horizontal=True, width="content"):
            texts_panel.download(listed)
