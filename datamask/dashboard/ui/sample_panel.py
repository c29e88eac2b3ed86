"""The chosen sample: what it is, how good, whether it was selected, and its whole text."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import words
from datamask.dashboard.ui import chosen, scene

LETTERS = 6000
"""Of a text that are shown; more would slow the page down."""


def show(corpus: Corpus, row: int, selected: np.ndarray | None) -> None:
    """One sample in a box.

    Args:
        selected: bool ``(N,)`` of the run in question, or None.
    """
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{words.plain(corpus.ids[row].as_py(), 80)}**", width="stretch")
            st.button(
                "Close",
                key="sample_close",
                type="tertiary",
                icon=":material/close:",
                on_click=chosen.choose,
                args=(corpus, None),
                help="Forget the chosen sample.",
            )
        st.caption(" · ".join(facts(corpus, row, selected)))
        texts = scene.texts_of(corpus)
        if texts is None:
            st.caption("This corpus has no texts.")
            return
        text = texts[row].as_py() or ""
        with st.container(height=170, border=False):
            st.code(text[:LETTERS] + ("…" if len(text) > LETTERS else ""), language=None, wrap_lines=True)


def facts(corpus: Corpus, row: int, selected: np.ndarray | None) -> list[str]:
    """What there is to say about a sample in few words each."""
    quality = float(corpus.quality[row])
    below = float((corpus.quality < quality).sum() / max(1, len(corpus) - 1))
    share = f"in the best 1{words.GAP}%" if below >= 0.995 else f"better than {words.percent(below)} of the others"
    said = [f"quality {words.value(quality)}, {share}"]
    if selected is not None:
        said.insert(0, "selected" if selected[row] else "not selected")
    if corpus.lengths is not None:
        said.append(f"{words.count(corpus.lengths[row])} tokens")
    for column in corpus.metadata_columns.values():
        if column.kind == "class":
            said.append(words.plain(f"{column.name} {corpus.metadata[column.name][row].as_py()}", 60))
    return said[:7]
