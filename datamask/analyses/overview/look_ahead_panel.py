"""The first look at the corpus that the form names, next to the form: nothing here acts on the corpus that is open."""

from __future__ import annotations

import streamlit as st

from datamask.analyses.overview import first_look_panel
from datamask.config import CorpusConfig
from datamask.dashboard.data.looks_ahead import LookAhead, look_ahead
from datamask.dashboard.data.openings import title_of
from datamask.dashboard.drawing import words


def show(config: CorpusConfig, readable: bool) -> None:
    """Draw what is known of a corpus before it is opened.

    Args:
        readable: whether it opens as the form names it; else the form says why not.
    """
    st.subheader(words.plain(title_of(config)), anchor=False)
    if not readable:
        st.caption("Not open yet. The form says what is missing.")
        return
    look = look_ahead(config)
    st.caption("Not open yet. Press *Open* in the form to read all rows.")
    if look.under_way:
        st.fragment(_progress, run_every=0.5)(look, look.parts)
    if look.job.state == "failed":
        st.caption(f"No first look: {words.sentence(look.job.error)}")
    if look.picture is not None:
        first_look_panel.draw(look.picture)


def _progress(look: LookAhead, drawn: int) -> None:
    if look.parts != drawn or not look.under_way:
        st.rerun()
    if look.picture is None:
        st.progress(min(max(look.job.share, 0.0), 1.0), text="Reading the first rows")
