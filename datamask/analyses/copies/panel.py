"""Semantic duplicates over the size of the corpus, on the Data page: counted within it, projected beyond."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.copies import tables
from datamask.analyses.copies.chart import copies
from datamask.corpus.copy_growth import FARTHEST, CopyGrowth
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.plots import plot

ABOUT = (
    "Solid: counted, the mean over random subsamples of each size. Dashed: projected by a negative binomial model, "
    "with a 90 % band."
)


def show(opening: Opening) -> None:
    """The chart and what follows for the collapse cosine; nothing before near-copies are counted.

    Args:
        opening: of the corpus, with its counts.
    """
    growth = opening.copies.growth
    if growth is None:
        return
    with st.expander("How many duplicates would a larger corpus have?"):
        _draw(growth)


def _draw(growth: CopyGrowth) -> None:
    if not growth.held[1:].any():
        st.caption(f"No row has another at cosine {growth.cosine:g} or more, so there is nothing to project.")
        return
    picture, beside = st.columns([1.7, 1], gap="large", vertical_alignment="center")
    with picture:
        plot(
            copies(tables.copy_curve(growth), dark=session.dark()),
            key="copies_growth",
            alt=(f"Rows with a semantic duplicate against corpus size, up to {FARTHEST:g} times as many rows"),
        )
    with beside:
        _words(growth)


def _words(growth: CopyGrowth) -> None:
    """What the chart says, for how large a corpus, and what speaks against it."""
    value, low, high = growth.beyond(FARTHEST)
    cosine = growth.suggested(FARTHEST)
    st.markdown(
        f"{words.percent(growth.now, 1)} of {growth.n:,} rows have a semantic duplicate (cosine at least "
        f"{growth.cosine:g}). Projected for {FARTHEST:g} times as many rows: **{words.percent(value, 1)}** "
        f"({words.percent(low, 1)} to {words.percent(high, 1)})."
    )
    st.markdown(
        f"At that size, a cosine of **{cosine:.3f}** instead of {growth.cosine:g} would keep the share at "
        f"{words.percent(growth.now, 1)}."
        if cosine is not None
        else "At that size, remove exact duplicates only."
    )
    doubts = growth.doubts(FARTHEST)
    if doubts:
        st.caption(f"Unreliable: {'; '.join(doubts)}.")
    projected = words.percent(growth.foretold, 1)
    st.caption(
        f"Check: {projected} projected from half of the rows, {words.percent(growth.now, 1)} counted.",
        help=ABOUT,
    )
