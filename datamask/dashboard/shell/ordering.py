"""Lists of samples in an order that people choose. The corpus is sorted once; every list is a part of that."""

from __future__ import annotations

import numpy as np
import streamlit as st

from datamask.corpus import Corpus

BEST, WORST, INPUT = ORDERS = ("best quality", "worst quality", "input order")


def in_order(corpus: Corpus, rows: np.ndarray, order: str) -> np.ndarray:
    """Rows of the corpus in one of `ORDERS`; those of equal quality stay in input order.

    Args:
        rows: ascending int64 ``(n,)``.

    Returns:
        int64 ``(n,)``.
    """
    if order == INPUT:
        return rows
    ranked = _ranked(corpus.identity, order == BEST, corpus)
    listed = np.zeros(len(corpus), bool)
    listed[rows] = True
    return ranked[listed[ranked]].astype(np.int64)


@st.cache_resource(max_entries=4, show_spinner=False)
def _ranked(identity: str, best: bool, _corpus: Corpus) -> np.ndarray:
    """All rows by quality, int32 ``(N,)``."""
    ranked = np.argsort(-_corpus.quality if best else _corpus.quality, kind="stable").astype(np.int32)
    ranked.flags.writeable = False
    return ranked
