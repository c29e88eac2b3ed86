"""The samples that are shown: how many, how many of them selected, a page of them, and their downloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.map import scene
from datamask.dashboard.map.places import cut
from datamask.dashboard.shell import chosen, downloads, ordering
from datamask.dashboard.shell import view as views

PAGE = 100
FIRST, TICK, NUMBER = 158, 66, 96
"""Pixels of the columns beside the map, where all three are in view: a text, whether it is selected, and a number."""

ROW_HEIGHT, LETTERS = 65, 46
"""Pixels of a row, for Streamlit wraps a text only in those of more than 64; letters of two lines."""

WHICH = ("all", "selected", "not selected")
ABOUT = (
    "Draw a lasso or a box on the map, search the texts, or choose a range or a group to filter the rows. Click a row, "
    "or a point on the map, to read it."
)


@dataclass(frozen=True)
class Listing:
    """The samples that are listed, page by page, and read one after the other.

    Attributes:
        name: of what is listed, for the controls' keys.
        corpus: whose samples.
        selected: bool ``(N,)`` of the run in question, or None.
        rows: int64 ``(n,)`` in the order of the list: those of the samples shown that were asked for.
        shown: how many samples are shown, whether selected or not.
        orders: that can be chosen.
    """

    name: str
    corpus: Corpus
    selected: np.ndarray | None
    rows: np.ndarray
    shown: int
    orders: tuple[str, ...]


def _which(selected: np.ndarray | None) -> str:
    """Which of the rows the view lists."""
    show = views.now().show
    return show if selected is not None and show in WHICH else WHICH[0]


def _take_which(key: str) -> None:
    which = st.session_state[key]
    views.change(show="" if which == WHICH[0] else which)


def listing(
    name: str,
    corpus: Corpus,
    passing: np.ndarray,
    selected: np.ndarray | None,
    closest: np.ndarray | None = None,
) -> Listing:
    """The list of the samples shown, as its controls stand.

    Args:
        name: of what is listed. passing: bool ``(N,)``, what is shown. selected: bool ``(N,)`` of the run, or None.
        closest: all rows by `ordering.closest_to_cut`; None: this order is not offered.
    """
    which, listed = _which(selected), passing
    if selected is not None and which != WHICH[0]:
        listed = passing & (selected == (which == WHICH[1]))
    orders = ordering.ORDERS if closest is None else (*ordering.ORDERS, ordering.CLOSEST)
    order = st.session_state.get(f"{name}_order", orders[0])
    rows = ordering.in_order(corpus, np.flatnonzero(listed), order, closest)
    return Listing(name, corpus, selected, rows, int(passing.sum()), orders)


def headline(corpus: Corpus, passing: np.ndarray, selected: np.ndarray | None) -> str:
    """The samples shown in a sentence: how many, their tokens, how many of them selected and how many one would expect.

    Args:
        passing: bool ``(N,)``, what is shown. selected: bool ``(N,)`` of the run in question, or None.
    """
    count = int(passing.sum())
    sentence = f"**{count:,}** of {len(corpus):,} rows shown"
    if corpus.lengths is not None and count:
        sentence += f", {words.count(corpus.lengths[passing].sum())} tokens"
    if selected is not None and count:
        inside = int((selected & passing).sum())
        sentence += f" · **{inside:,}** selected, {words.percent(inside / count)}"
        sentence += f" (all rows: {words.percent(float(selected.mean()))})"
    return sentence


def show(
    listing: Listing, extra: Mapping[str, str] | None = None, height: int | Literal["stretch"] = "stretch"
) -> None:
    """The list, with what chooses and sorts it.

    Args:
        extra: metadata columns to list beside id, quality and text: what each is called, and its name in the shards.
        height: of the table in pixels, or what is left of the reader.
    """
    name, corpus, selected = listing.name, listing.corpus, listing.selected
    key, standing = f"{name}_which", _which(selected)
    st.session_state[key] = standing
    # also before there is a selection: the list must not move under the hand when one comes
    st.segmented_control(
        "Show",
        WHICH,
        default=standing,
        required=True,
        key=key,
        on_change=_take_which,
        args=(key,),
        disabled=selected is None,
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            "Order",
            listing.orders,
            key=f"{name}_order",
            persist_state="session",
            width="stretch",
            help="Closest to the cut: rows that the run barely selected or barely missed.",
        )
        pages = max(1, -(-len(listing.rows) // PAGE))
        page = st.number_input(
            "Page",
            1,
            pages,
            1,
            key=f"{name}_page_{pages}",
            persist_state="session",  # whoever reads a sample comes back to the page it stood on
            width=115,
        )
    if not listing.shown:
        st.caption("No row meets all conditions. Remove one of them below the map.")
        return
    if not len(listing.rows):
        st.caption("No shown row is in this list. Set *Show* to all.")
        return
    page_rows = listing.rows[(page - 1) * PAGE : page * PAGE]
    table = scene.sample_table(corpus, page_rows, extra)
    texts = "text" in table.column_names
    if texts:
        lines = [cut(text or "", LETTERS) for text in table["text"].to_pylist()]
        table = table.set_column(table.column_names.index("text"), "text", pa.array(lines))
    config = {
        "text": st.column_config.TextColumn("text", width=FIRST),
        # without texts it stands in their place
        str(corpus.provenance.columns.get("id", "id")): st.column_config.Column(width=215 if texts else FIRST),
        "quality": st.column_config.NumberColumn("quality score", format="%.4g", width=NUMBER),
    }
    order = ["text", "quality"] if texts else []
    if selected is not None:
        table = table.add_column(0, "selected", pa.array(selected[page_rows]))
        config["selected"] = st.column_config.CheckboxColumn(width=TICK)
        order.insert(0, "selected")
    # a selection is a position in the list: another list must not inherit it
    key = f"{name}_table_{hash(page_rows.tobytes()):x}"
    st.dataframe(
        table,
        hide_index=True,
        lazy=False,
        height=height,
        row_height=ROW_HEIGHT if texts else None,
        column_order=[*order, *(column for column in table.column_names if column not in order)],
        column_config=config,
        key=key,
        on_select=lambda: _take(corpus, page_rows, key),
        selection_mode="single-cell",
        alt="Rows shown by the filter",
    )


def download(listing: Listing) -> None:
    """Buttons that give the listed samples as a file."""
    rows = listing.rows
    for kind, mime in (("CSV", "text/csv"), ("Parquet", "application/vnd.apache.parquet")):
        st.download_button(
            f"Download {len(rows):,} ids ({kind})",
            downloads.of_rows(
                len(rows),
                partial(scene.id_file, listing.corpus, np.sort(rows), f".{kind.lower()}", listing.selected),
            ),
            file_name=f"samples.{kind.lower()}",
            mime=mime,
            key=f"{listing.name}_{kind}",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
            disabled=not len(rows),
        )


def _take(corpus: Corpus, rows: np.ndarray, key: str) -> None:
    cells = st.session_state[key].selection.cells
    if cells:
        chosen.choose(corpus, int(rows[cells[0][0]]))
