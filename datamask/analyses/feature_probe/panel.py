"""What the features of the open corpus can do, on the Data page: a linear probe, and labels of the nearest rows."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.feature_probe import probing
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import asking

ABOUT = (
    "A ridge regression predicts the rank of quality from the features; near 0 the features do not predict "
    "quality. The share of nearest rows with the same label tests whether similar features mean similar text."
)


def show(corpus: Corpus) -> None:
    """Both numbers once they are there, with the same for shuffled labels; before that their progress."""
    st.markdown("**Do the features predict quality?**", help=ABOUT)
    job = probing.ask(corpus)
    if not asking.settled(job, "features"):
        return
    for sentence in job.result.sentences():
        st.markdown(words.plain(sentence, 400))
    st.caption(
        f"Measured on {words.of_total(job.result.rows, len(corpus))}.", help="Rows with equal features count once."
    )
