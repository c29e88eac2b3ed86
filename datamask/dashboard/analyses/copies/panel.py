"""Near-copies against the size of the corpus, on the Data page: counted within it, foretold beyond."""

from __future__ import annotations

import streamlit as st

from datamask.corpus.copy_growth import FARTHEST, CopyGrowth
from datamask.dashboard.analyses.copies.chart import copies
from datamask.dashboard.analyses.overview import tables as overview
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import session
from datamask.dashboard.shell.plots import plot

ABOUT = (
    "Counted: the mean rate of all uniform subsamples of that size, exact by the neighbour graph. Foretold: what "
    "a corpus so much larger would have if this one were a uniform sample of it, by a law in which each row finds "
    "near-copies at a rate of its own, gamma distributed (so that counts are negative binomial), fitted to the "
    "rows with no, one and two of them. The band is 90 % over draws of families, of any corpus drawn as this one "
    "was, if the law holds. It foretells too much where some rows never have a copy, and says nothing of a corpus "
    "from other sources, or from which copies were taken out before."
)


def show(opening: Opening) -> None:
    """The chart and what follows for the collapse cosine; nothing before near-copies are counted.

    Args:
        opening: of the corpus, with its counts.
    """
    growth = opening.copies.growth
    if growth is None:
        return
    st.markdown("**How many near-copies would more of it have?**", help=ABOUT)
    if not growth.held[1:].any():
        st.caption(
            f"No row has another at cosine {growth.cosine:g} or more, so nothing can be said about more of them."
        )
        return
    picture, beside = st.columns([1.7, 1], gap="large", vertical_alignment="center")
    with picture:
        plot(
            copies(overview.copy_curve(growth), dark=session.dark()),
            key="copies_growth",
            alt=f"Rows with a near-copy against the rows of the corpus, up to {overview.COPY_TIMES:g} times as many",
        )
    with beside:
        _words(growth)


def _words(growth: CopyGrowth) -> None:
    """What the chart says, for how large a corpus, and what speaks against it."""
    value, low, high = growth.beyond(FARTHEST)
    cosine = growth.suggested(FARTHEST)
    st.markdown(
        f"{words.percent(growth.now, 1)} of {growth.n:,} rows have another at cosine {growth.cosine:g} or more. Of "
        f"{FARTHEST:g} times as many it would be **{words.percent(value, 1)}** ({words.percent(low, 1)} to "
        f"{words.percent(high, 1)})."
    )
    st.markdown(
        f"To collapse no larger a share of those than of these, use a cosine of about **{cosine:.3f}**."
        if cosine is not None
        else "No cosine up to 0.99 would collapse as small a share of those: keep to exact copies."
    )
    doubts = growth.doubts(FARTHEST)
    if doubts:
        st.caption(f"Not to be trusted: {'; '.join(doubts)}.")
    foretold = words.percent(growth.foretold, 1)
    st.caption(f"Beyond {FARTHEST:g} times the law is a guess. From half of these rows it foretold {foretold} for all.")
