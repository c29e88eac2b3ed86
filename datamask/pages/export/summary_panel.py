"""The summary at the end of the Export page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from datamask.analyses.report.summary import Kept, summary
from datamask.dashboard.drawing import words
from datamask.runs.ablation_results import results


def show(kept: Kept, fingerprint: str, cache_dir: Path) -> None:
    """Draw the sentences but the first, which counts the rows: the answer bar has these numbers.

    Args:
        fingerprint: of the corpus; "": not known. cache_dir: where its ablations are kept.
    """
    st.markdown("**Summary**")
    stored = results(cache_dir, fingerprint) if fingerprint else []
    st.markdown("\n".join(f"- {words.coded(sentence, 2000)}" for sentence in summary(kept, stored)[1:]))
