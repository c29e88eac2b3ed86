"""Lists of samples in an order that people choose. All rows are sorted once; every list is a part of that."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.corpus import Corpus

BEST, WORST, INPUT = ORDERS = ("best quality", "worst quality", "input order")
CLOSEST = "closest to the cut"
"""Of a run: rows that were barely selected or barely missed come first."""


def in_order(corpus: Corpus, rows: np.ndarray, order: str, closest: np.ndarray | None = None) -> np.ndarray:
    """Rows of the corpus in one of `ORDERS`, or `CLOSEST`; equal ones stay in input order.

    Args:
        rows: ascending int64 ``(n,)``. closest: all rows by `closest_to_cut`; None: there is no run to follow.

    Returns:
        int64 ``(n,)``.
    """
    if order == INPUT:
        return rows
    if order == CLOSEST and closest is not None:
        ranked = closest
    else:
        ranked = _ranked(corpus.identity, order != WORST, corpus)
    listed = np.zeros(len(corpus), bool)
    listed[rows] = True
    return ranked[listed[ranked]].astype(np.int64)


@st.cache_resource(max_entries=4, show_spinner=False)
def closest_to_cut(run_id: str, _score: np.ndarray, _selected: np.ndarray, _eligible: np.ndarray) -> np.ndarray:
    """All rows by how far their score is from the cut, int32 ``(N,)``; those that could not be selected come last.

    The cut is half-way between the S-th best score and the next, as in why a row is selected.

    Args:
        _score, _selected, _eligible: of the run, ``(N,)``. Rules and a token budget have other cuts.
    """
    falling = np.sort(_score[_eligible].astype(float))[::-1]
    size = int((_selected & _eligible).sum())
    around = falling[max(size - 1, 0) : size + 1]
    distance = np.abs(_score - (around.mean() if len(around) else 0.0))
    ranked = np.argsort(np.where(_eligible, distance, np.inf), kind="stable").astype(np.int32)
    ranked.flags.writeable = False
    return ranked


@st.cache_resource(max_entries=4, show_spinner=False)
def _ranked(identity: str, best: bool, _corpus: Corpus) -> np.ndarray:
    """All rows by quality, int32 ``(N,)``."""
    ranked = np.argsort(-_corpus.quality if best else _corpus.quality, kind="stable").astype(np.int32)
    ranked.flags.writeable = False
    return ranked
