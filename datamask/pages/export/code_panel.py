"""Code on the Export page: the command that repeats a run, and what joins its ids back to the shards."""

from __future__ import annotations

import streamlit as st

from datamask.dashboard.runs import provenance
from datamask.pages.export.join_code import join_code
from datamask.runs.store import Run


def show(run: Run) -> None:
    """Draw both; ids that were made of file and row are in no column to join by."""
    st.markdown("**Repeat this run**")
    # without a language: its colors are too pale to read
    st.code(provenance.command(run), language=None, wrap_lines=True)
    if provenance.has_made_ids(run):
        return
    ids = f"{run.id}.parquet"
    if code := join_code(provenance.id_column(run), ids, provenance.source_files(run)):
        st.markdown("**Join the ids back**", help=f"Reads the downloaded {ids} and the shards.")
        for tab, text in zip(st.tabs(list(code)), code.values(), strict=True):
            tab.code(text, language=None, wrap_lines=True)
