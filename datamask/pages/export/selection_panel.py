"""Export of a current selection that is no run: its ids and a report; the rest once it is kept as a run."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from datamask import catalogue, repeat_counts
from datamask.analyses.report.current import kept, report_of
from datamask.config import SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.map import scene
from datamask.dashboard.shell import downloads, session
from datamask.dashboard.workspace import files
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import Workspace
from datamask.pages.export import summary_panel
from datamask.runs.export_table import ESCAPED


def show(workspace: Workspace, selection: Selection) -> None:
    """Two cards: the ids, and the report; then the summary."""
    opened, corpus = workspace.opened, workspace.corpus
    name, stem = words.plain(selection.name), files.name(selection).removesuffix(".parquet")
    ids, report = st.columns(2, gap="medium")
    with ids, st.container(border=True, height="stretch"):
        st.markdown(
            f"**Ids of the selection at {name}**",
            help=f"*CSV*: {ESCAPED}",
        )
        st.caption(
            f"{selection.count:,} ids with quality and their place in the shards. Press *Keep as run* above to "
            f"also export {_kept_only(selection.settings)}."
        )
        st.space("stretch")
        with st.container(horizontal=True):
            st.download_button(
                f"Download {selection.count:,} ids (Parquet)",
                files.content(corpus, selection),
                on_click="ignore",
                file_name=f"{stem}.parquet",
                mime="application/vnd.apache.parquet",
                key=f"selection_parquet_{selection.key}",
                icon=":material/download:",
            )
            st.download_button(
                f"Download {selection.count:,} ids (CSV)",
                downloads.of_rows(
                    selection.count, partial(scene.id_file, corpus, np.flatnonzero(selection.mask), ".csv")
                ),
                on_click="ignore",
                file_name=f"{stem}.csv",
                mime="text/csv",
                key=f"selection_csv_{selection.key}",
                icon=":material/download:",
            )
    with report, st.container(border=True, height="stretch"):
        st.markdown("**Report**")
        st.caption("One HTML page. It contains texts of your corpus, so check them before you share it.")
        st.space("stretch")
        st.download_button(
            "Download report (HTML)",
            lambda: report_of(selection, opened, session.store().cache_dir).encode(),
            on_click="ignore",
            file_name=f"{stem}-report.html",
            mime="text/html",
            icon=":material/description:",
            key=f"selection_report_{selection.key}",
        )
    summary_panel.show(kept(selection, corpus), corpus.fingerprint, session.store().cache_dir)


def _kept_only(settings: SelectionConfig) -> str:
    """What a run of these settings gives beside its ids, for a sentence."""
    *first, last = [
        "rows",
        "masks",
        *([] if repeat_counts.refusal(settings) else ["repeat weights"]),
        *(["a recipe (per-row rule)"] if all(name in catalogue.RULED for name, _ in settings.terms) else []),
    ]
    return f"ranks, {', '.join(first)} and {last}"
