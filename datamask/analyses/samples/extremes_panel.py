"""Rows that are worth a look before one is marked: the most valuable ones left out, and the weakest selected ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import streamlit as st

from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.dashboard.drawing import words
from datamask.dashboard.map.places import cut
from datamask.dashboard.shell import chosen
from datamask.dashboard.workspace.current import Current

EACH = 5
HEADINGS = ("Most valuable rows left out", "Weakest rows selected")
ABOUT = (
    "A row is as valuable as its score: λ · its quality + (1 − λ) · what it adds to the diversity of this selection. "
    "Click a row to see why it is on its side."
)
LETTERS = 110
"""Of a text: two lines of the reader."""

PLACE = "explore_extremes"
"""How the keys of their places begin."""


def show(current: Current) -> bool:
    """Draw the rows at both ends of the selection; return whether their scores are known."""
    selection, scores = current.selection, current.row_scores()
    if selection is None or scores is None:
        return False
    corpus = current.workspace.corpus
    sides = extremes(scores, selection.mask)
    for heading, rows in zip(HEADINGS, sides, strict=True):
        if not len(rows):
            continue
        st.markdown(f"**{heading}**", help=ABOUT if heading == HEADINGS[0] else None)
        with st.container(gap=None, key=f"{PLACE}_{HEADINGS.index(heading)}"):
            for row, line in zip(rows, _lines(corpus, rows), strict=True):
                key = f"extreme_{row}"
                st.button(line, key=key, type="tertiary", on_click=chosen.choose, args=(corpus, int(row)))
    return any(map(len, sides))


def extremes(scores: np.ndarray, selected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows left out with the highest scores, and the selected ones with the lowest; none where all are equal.

    Args:
        scores: float64 ``(N,)``, NaN where a row may not be selected. selected: bool ``(N,)``.

    Returns:
        int64, at most `EACH` of either, the first of them farthest on the other side; equal ones in input order.
    """
    known = np.isfinite(scores)
    if not known.any() or np.ptp(scores[known]) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    out, inside = np.flatnonzero(known & ~selected), np.flatnonzero(known & selected)
    return _lowest(-scores, out), _lowest(scores, inside)


def _lowest(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Those of some rows with the lowest values, rising."""
    if len(rows) > EACH:  # a partition of a million takes a fifth of a sort
        rows = rows[values[rows] <= np.partition(values[rows], EACH - 1)[EACH - 1]]
    return rows[np.argsort(values[rows], kind="stable")][:EACH]


def _lines(corpus: Corpus, rows: np.ndarray) -> list[str]:
    """The quality score of each of these rows, and the beginning of its text; of a row without one its id."""
    ids = corpus.ids.take(pa.array(rows)).to_pylist()
    texts = [None] * len(rows) if corpus.texts is None else beginnings(corpus.texts, rows, 2 * LETTERS).to_pylist()
    scores = corpus.quality[rows]
    return [
        f":gray[score {words.value(score, 3)}] {words.plain(cut(text or f'id {name}', LETTERS), LETTERS)}"
        for score, text, name in zip(scores, texts, ids, strict=True)
    ]
