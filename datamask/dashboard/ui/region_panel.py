"""The samples inside a region drawn on the map: how many, how many of them selected, a page of them, and downloads."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import words
from datamask.dashboard.ui import canvas_map, scene
from datamask.runs.exports import table_csv

PAGE = 100
ORDERS = ("best quality", "worst quality", "input order")


def hint() -> None:
    """What stands here before anything is drawn."""
    st.caption("Draw around samples with the lasso or the box (top right of the map) to list and download them. All "
               "samples inside count, not only the drawn ones. Hold Shift to add a region.")


def show(name: str, corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None, extra: Sequence[str] = ()) -> None:
    """Everything about the rows of a region.

    Args:
        name: of the map, whose regions the Clear button forgets.
        rows: ascending int64 ``(n,)``.
        selected: bool ``(N,)`` of the run in question, or None.
        extra: metadata columns to list beside id, quality and text.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_headline(corpus, rows, selected), width="content")
        st.button("Clear", key=f"{name}_clear", type="tertiary", icon=":material/close:",
                  on_click=canvas_map.clear, args=(name,), help="Forget the region.")
    if len(rows):
        st.fragment(_list)(name, corpus, rows, selected, tuple(extra))


def _headline(corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None) -> str:
    said = f"**{len(rows):,}** of {len(corpus):,} samples in the region"
    if corpus.lengths is not None and len(rows):
        said += f", {words.count(corpus.lengths[rows].sum())} tokens"
    if selected is not None and len(rows):
        inside = int(selected[rows].sum())
        said += (f" · **{inside:,}** of them selected, {words.percent(inside / len(rows))} against "
                 f"{words.percent(float(selected.mean()))} everywhere")
    return said


def _list(name: str, corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None, extra: tuple[str, ...]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kept = rows
        if selected is not None:
            which = st.segmented_control("Show", ("all", "selected", "not selected"), default="all", required=True,
                                         key=f"{name}_which", help="Which samples to list and download.")
            if which != "all":
                kept = rows[selected[rows] == (which == "selected")]
        order = st.selectbox("Order", ORDERS, key=f"{name}_order", width=160,
                             help="By which the list below is sorted; equal ones stay in input order.")
        pages = max(1, -(-len(kept) // PAGE))
        page = st.number_input("Page", 1, pages, 1, key=f"{name}_page_{pages}", width=120,
                               help=f"{PAGE} samples a page, {pages:,} pages.")
        for kind, mime in (("CSV", "text/csv"), ("Parquet", "application/vnd.apache.parquet")):
            st.download_button(
                f"{kind}, {len(kept):,} ids", lambda kind=kind: file_of(corpus, kept, selected, kind),
                file_name=f"region.{kind.lower()}", mime=mime, key=f"{name}_{kind}", on_click="ignore",
                icon=":material/download:", disabled=not len(kept),
                help="Id, quality, whether selected, and where in the input each sample of the list stands.")
    if not len(kept):
        st.caption("No sample of the region is of that kind.")
        return
    if order != "input order":
        sign = -1 if order == "best quality" else 1
        kept = kept[np.argsort(sign * corpus.quality[kept], kind="stable")]
    shown = kept[(page - 1) * PAGE:page * PAGE]
    table = scene.sample_table(corpus, shown, extra)
    config = {"text": st.column_config.TextColumn("text", width=760),
              "quality": st.column_config.NumberColumn(format="%.4g", width="small")}
    if selected is not None:
        table = table.add_column(0, "selected", pa.array(selected[shown]))
        config["selected"] = st.column_config.CheckboxColumn(width="small")
    st.dataframe(table, hide_index=True, lazy=False, height=380, column_config=config,
                 alt="Samples of the region, one per row")


def file_of(corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None, kind: str) -> bytes:
    """Ids with what is needed to find them again, as CSV or parquet."""
    table = scene.id_table(corpus, rows, selected)
    if kind == "CSV":
        return table_csv(table)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
