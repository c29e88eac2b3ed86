"""What the features of the open corpus can do, on the Data page: a linear probe, and labels of the nearest rows."""

from __future__ import annotations

import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.feature_probe import probing
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import asking

ABOUT = (
    "The probe is a ridge regression of the quality's rank on the features; near zero, the features do not know the "
    "quality. Labels of the nearest rows show whether similar features mean the same kind of text, which every "
    "diversity objective assumes."
)


def show(corpus: Corpus) -> None:
    """Both numbers once they are there, with the same for shuffled labels; before that their progress."""
    st.markdown("**What do the features tell?**", help=ABOUT)
    job = probing.ask(corpus)
    if not asking.settled(job, "features"):
        return
    for sentence in job.result.sentences():
        st.markdown(words.plain(sentence, 400))
    st.caption(f"By {words.of_total(job.result.rows, len(corpus))}; rows with the same features count once.")
