"""The samples that are shown: how many, how many of them selected, a page of them, downloads, and the chosen one."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import words
from datamask.dashboard.ui import chosen, downloads, ordering, sample_panel, scene
from datamask.runs.exports import table_csv

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PAGE = 100
ID_WIDTH = 240
"""Pixels: long ids are cut, so that the texts can be read beside them."""


def show(
    name: str,
    corpus: Corpus,
    rows: np.ndarray,
    selected: np.ndarray | None,
    extra: Mapping[str, str] | None = None,
    why: Callable[[int, DeltaGenerator], None] = lambda row, below: None,
) -> None:
    """Everything about the rows that are shown.

    Args:
        name: of what is listed, for the controls' keys.
        rows: ascending int64 ``(n,)``.
        selected: bool ``(N,)`` of the run in question, or None.
        extra: metadata columns to list beside id, quality and text: what each is called, and its name in the shards.
        why: draws what there is to say about the chosen row, below it; it is given the place below the list as well.
    """
    st.markdown(headline(corpus, rows, selected))
    if not len(rows):
        st.caption("No sample meets all conditions. Let go of one of them on the left.")
        return
    row = chosen.chosen(corpus)
    if row is None:
        _list(name, corpus, rows, selected, extra)
        return
    listed, reading = st.columns([1.7, 1], gap="medium")
    with listed:
        _list(name, corpus, rows, selected, extra)
        below = st.container()
    with reading:
        sample_panel.show(corpus, row, selected)
        why(row, below)


def headline(corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None) -> str:
    """The rows in a sentence: how many, their tokens, how many of them selected and how many one would expect."""
    sentence = f"**{len(rows):,}** of {len(corpus):,} samples shown"
    if corpus.lengths is not None and len(rows):
        sentence += f", {words.count(corpus.lengths[rows].sum())} tokens"
    if selected is not None and len(rows):
        inside = int(selected[rows].sum())
        sentence += f" · **{inside:,}** of them selected, {words.percent(inside / len(rows))}"
        if len(rows) < len(corpus):
            sentence += f" against {words.percent(float(selected.mean()))} everywhere"
    return sentence


def _list(
    name: str, corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None, extra: Mapping[str, str] | None
) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        listed = rows
        if selected is not None:
            which = st.segmented_control(
                "Show",
                ("all", "selected", "not selected"),
                default="all",
                required=True,
                key=f"{name}_which",
                help="Which samples to list and download.",
            )
            if which != "all":
                listed = rows[selected[rows] == (which == "selected")]
        order = st.selectbox(
            "Order",
            ordering.ORDERS,
            key=f"{name}_order",
            width=140,
            help="By which the list below is sorted; equal ones stay in input order.",
        )
        pages = max(1, -(-len(listed) // PAGE))
        page = st.number_input(
            "Page", 1, pages, 1, key=f"{name}_page_{pages}", width=105, help=f"{PAGE} samples a page, {pages:,} pages."
        )
        with st.container(horizontal=True, width="content"):  # they wrap together
            for kind, mime in (("CSV", "text/csv"), ("Parquet", "application/vnd.apache.parquet")):
                label = f"CSV, {len(listed):,} ids" if kind == "CSV" else kind
                st.download_button(
                    label,
                    downloads.of_rows(len(listed), partial(file_of, corpus, listed, selected, kind)),
                    file_name=f"samples.{kind.lower()}",
                    mime=mime,
                    key=f"{name}_{kind}",
                    on_click="ignore",
                    icon=":material/download:",
                    disabled=not len(listed),
                    help="Id, quality, whether selected, and where in the input each sample of the list stands.",
                )
    if not len(listed):
        st.caption("No sample shown is of that kind.")
        return
    page_rows = ordering.in_order(corpus, listed, order)[(page - 1) * PAGE : page * PAGE]
    table = scene.sample_table(corpus, page_rows, extra)
    config = {
        "text": st.column_config.TextColumn("text", width=760),
        str(corpus.provenance.columns.get("id", "id")): st.column_config.Column(width=ID_WIDTH),
        "quality": st.column_config.NumberColumn(format="%.4g", width="small"),
    }
    if selected is not None:
        table = table.add_column(0, "selected", pa.array(selected[page_rows]))
        config["selected"] = st.column_config.CheckboxColumn(width="small")
    # a selection is a position in the list: another list must not inherit it
    key = f"{name}_table_{hash(page_rows.tobytes()):x}"
    st.dataframe(
        table,
        hide_index=True,
        lazy=False,
        height=380,
        column_config=config,
        key=key,
        on_select=lambda: _take(corpus, page_rows, key),
        selection_mode="single-row",
        alt="Samples shown, one per row",
    )


def _take(corpus: Corpus, page_rows: np.ndarray, key: str) -> None:
    marked = st.session_state[key].selection.rows
    chosen.choose(corpus, int(page_rows[marked[0]]) if marked else None)


def file_of(corpus: Corpus, rows: np.ndarray, selected: np.ndarray | None, kind: str) -> bytes:
    """Ids with what is needed to find them again, as CSV or parquet."""
    table = scene.id_table(corpus, rows, selected)
    if kind == "CSV":
        return table_csv(table)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()
