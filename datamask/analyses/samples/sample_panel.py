"""The chosen sample, beside the map: what it is, how good, whether selected, its text, and what lies nearest to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from datamask.analyses.samples import nearest
from datamask.analyses.samples.texts_panel import Listing
from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.dashboard.drawing import words
from datamask.dashboard.shell import chosen
from datamask.dashboard.shell.components import component

KEYS = ("turn", "reader")
"""The scripts of what hears the reader's arrow keys."""

LETTERS = 6000
"""Of a text that are shown; more would slow the page down."""

NEIGHBOURS = 8

READER = "explore_reader"
"""Key of the place it stands in, where arrow keys turn to the previous and the next sample."""


def show(corpus: Corpus, row: int, listing: Listing) -> None:
    """The chosen sample, with the way to the one before and after it in the list.

    Args:
        listing: the samples shown; the chosen one need not be among them.
    """
    with st.container(gap=None):  # what hears the keys shows nothing and takes no room
        _turn(corpus, row, listing)
        begin_reading(str(row))
    st.markdown(f"**{words.plain(corpus.ids[row].as_py(), 80)}**")
    st.caption(" · ".join(facts(corpus, row, listing.selected)))
    texts = corpus.texts
    if texts is None:
        st.caption("This corpus has no texts.")
        return
    text = texts[row].as_py() or ""
    with st.container(height=190 if len(text) > 300 else "content", border=False, key="sample_text"):
        st.code(text[:LETTERS] + ("…" if len(text) > LETTERS else ""), language=None, wrap_lines=True)


def begin_reading(shows: str) -> None:
    """Have the reader begin at its top where it shows something new, and hear the arrow keys.

    Args:
        shows: names what it shows.
    """
    component("reader", KEYS)(key="sample_keys", data={"around": READER, "shows": shows})


def _turn(corpus: Corpus, row: int, listing: Listing) -> None:
    """Previous, next, and back to the list."""
    rows = listing.rows
    places = np.flatnonzero(rows == row)
    place = int(places[0]) if len(places) else None
    before = None if place in (None, 0) else int(rows[place - 1])
    # of a sample that is not listed the list itself comes next
    after_place = 0 if place is None else place + 1
    after = int(rows[after_place]) if after_place < len(rows) else None
    with st.container(horizontal=True, vertical_alignment="center", wrap=False, gap="xsmall"):
        for label, icon, target, key in (
            ("Previous", ":material/arrow_back:", before, "sample_previous"),
            ("Next", ":material/arrow_forward:", after, "sample_next"),
        ):
            st.button(
                label,
                key=key,
                icon=icon,
                type="tertiary",
                disabled=target is None,
                on_click=chosen.choose,
                args=(corpus, target),
            )
        where = f"{place + 1:,} of {len(rows):,}" if place is not None else "not in the list"
        st.caption(where, width="stretch", text_alignment="center")
        st.button(
            "Close",
            key="sample_close",
            type="tertiary",
            icon=":material/close:",
            on_click=chosen.choose,
            args=(corpus, None),
        )


def neighbours(corpus: Corpus, row: int, selected: np.ndarray | None) -> None:
    """The samples most similar to the chosen one, whether each is selected; pressing one makes it the chosen one.

    Args:
        selected: bool ``(N,)`` of the run in question, or None.
    """
    rows, cosines = _nearest(corpus.identity, row, corpus)
    if not len(rows):
        return
    inside = "" if selected is None else f", {int(selected[rows].sum())} of {len(rows)} selected"
    st.markdown(
        f"**Nearest rows**{inside}",
        help="Nearest rows of the whole corpus by cosine. Press one to read it.",
    )
    taken = pa.array(rows)
    texts = corpus.texts
    ids = corpus.ids.take(taken).to_pylist()
    lines = ids if texts is None else beginnings(texts, np.asarray(rows), 80).to_pylist()
    with st.container(gap=None):
        for other, cosine, name, line in zip(rows, cosines, ids, lines, strict=True):
            state = "" if selected is None else "selected · " if selected[other] else "not selected · "
            st.button(
                f"{cosine:.3f} · {state}{words.plain(line or name, 34)}",
                key=f"nearest_{other}",
                type="tertiary",
                on_click=chosen.choose,
                args=(corpus, int(other)),
            )


@st.cache_data(max_entries=256, show_spinner="Comparing with all rows")
def _nearest(identity: str, row: int, _corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    return nearest.nearest(_corpus.features, row, NEIGHBOURS)


def facts(corpus: Corpus, row: int, selected: np.ndarray | None) -> list[str]:
    """What there is to say about a sample in few words each."""
    quality = float(corpus.quality[row])
    below = float((corpus.quality < quality).sum() / max(1, len(corpus) - 1))
    share = f"in the best 1{words.GAP}%" if below >= 0.995 else f"better than {words.percent(below)} of all rows"
    facts_shown = [f"quality score {words.value(quality)}, {share}"]
    if selected is not None:
        facts_shown.insert(0, "selected" if selected[row] else "not selected")
    if corpus.lengths is not None:
        facts_shown.append(f"{words.count(corpus.lengths[row])} tokens")
    for column in corpus.metadata_columns.values():
        if column.kind == "class":
            facts_shown.append(words.plain(f"{column.name} {corpus.metadata[column.name][row].as_py()}", 60))
    return facts_shown[:7]
