"""What the features of the open corpus can do, on the Data page: a linear probe, and labels of the nearest rows."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.feature_probe import probing
from datamask.corpus import Corpus
from datamask.corpus.feature_probe import FeatureProbe
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import background

ABOUT = (
    "A rank correlation near 0: the features do not predict the score. A share above the shuffled one: rows "
    "with similar features often have the same label."
)


def show(corpus: Corpus) -> None:
    """Both numbers once they are there, with the same for shuffled labels; before that their progress."""
    st.markdown("**Do the features predict quality scores?**", help=ABOUT)
    found = background.answer(probing.ask(corpus), "features")
    if found is None:
        return
    for sentence in found.sentences():
        st.markdown(words.plain(sentence, 400))
    st.caption(measured_on(found, len(corpus)))


def measured_on(found: FeatureProbe, n: int) -> str:
    """Return which rows of a corpus of n were looked at, in a sentence."""
    return f"Measured on {words.count(found.rows)} {'random' if found.sampled < n else 'different'} rows."
