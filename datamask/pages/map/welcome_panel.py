"""The Map before a corpus is open: the demo at one press, the way to people's own shards, what a corpus is."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.overview import panel as corpus_panel
from datamask.dashboard.data import form_panel


def show() -> None:
    """Two ways to a corpus, and those opened before."""
    start, about = st.columns([1, 2.6], gap="large")
    with start:
        st.markdown("**Open a corpus to see which rows are kept.**")
        form_panel.offer_sample("primary")
        st.page_link(
            "pages/data.py",
            label="Open your own shards",
            icon=":material/arrow_forward:",
        )
        form_panel.offer_recent(None)
    with about:
        corpus_panel.nothing_open()
