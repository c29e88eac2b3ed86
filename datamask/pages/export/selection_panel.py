"""Export of a current selection that is no run: its ids and a report; the rest once it is kept as a run."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from datamask import catalogue, repeat_counts
from datamask.analyses.report.current import kept, report_of
from datamask.config import SelectionConfig
from datamask.dashboard.map import scene
from datamask.dashboard.shell import downloads, session
from datamask.dashboard.workspace import files
from datamask.dashboard.workspace.selection import Selection
from datamask.dashboard.workspace.workspace import Workspace
from datamask.pages.export import lines_panel, report_panel, summary_panel
from datamask.pages.export.lines_panel import File
from datamask.runs.export_table import ESCAPED, MEDIA_TYPES


def show(workspace: Workspace, selection: Selection) -> None:
    """The ids and the report; then the summary."""
    opened, corpus, cache_dir = workspace.opened, workspace.corpus, session.store().cache_dir
    stem, count = files.name(selection).removesuffix(".parquet"), selection.count
    csv = partial(scene.id_file, corpus, np.flatnonzero(selection.mask), ".csv")
    lines_panel.line(
        "ids",
        "Selected ids",
        "The ids with quality and their place in the shards.",
        f"{count:,} rows",
        [
            File("Parquet", f"{stem}.parquet", MEDIA_TYPES[".parquet"], files.content(corpus, selection)),
            File("CSV", f"{stem}.csv", MEDIA_TYPES[".csv"], downloads.of_rows(count, csv), ESCAPED),
        ],
    )
    report_panel.draw(
        f"{stem}-report.html",
        "texts, groups and the map",
        lambda: report_of(selection, opened, cache_dir).encode(),
    )
    st.caption(f"*Keep as run* also gives {_kept_only(selection.settings)}.")
    summary_panel.show(kept(selection, corpus), corpus.fingerprint, cache_dir)


def _kept_only(settings: SelectionConfig) -> str:
    """What a run of these settings gives beside its ids, for a sentence."""
    *first, last = [
        "rows",
        "masks",
        *([] if repeat_counts.refusal(settings) else ["repeat weights"]),
        *(["a recipe (per-row rule)"] if all(name in catalogue.RULED for name, _ in settings.terms) else []),
    ]
    return f"ranks, {', '.join(first)} and {last}"
