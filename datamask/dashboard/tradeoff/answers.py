"""A selection in the numbers of the answer bar, in words: how large, how good, how far proved. Pure; no streamlit."""

from __future__ import annotations

from typing import Any

import numpy as np

from datamask.corpus import Corpus
from datamask.dashboard.drawing import words

PROVED_WITHIN = 1.0
"""Percent of the attainable gain: a larger gap is said as a number, because it proves little."""


def answer(
    corpus: Corpus,
    mask: np.ndarray,
    name: str,
    *,
    quality: float | None,
    diversity: float | None,
    exact: bool = True,
    gap: float | None = None,
    final: bool = True,
    note: str = "",
) -> dict[str, Any]:
    """Return what the bar says of one selection.

    Args:
        mask: bool ``(N,)``, its rows. name: its λ, or its method.
        quality, diversity: shares of the attainable gain; None where they were not measured on that scale.
        exact: whether diversity is the objective's value; else it is measured on lists and at least that.
        gap, final: how far it is proved, and whether the proof is complete.
        note: what else is said next to the name, such as the run.
    """
    proof, gap_text = proof_words(gap, final)
    return {
        "name": name,
        "note": note,
        "size": size_words(corpus, mask),
        "meters": [_meter("Quality", quality, ""), _meter("Diversity", diversity, "" if exact else "≥ ")],
        "proof": proof,
        "gap": gap_text,
    }


def size_words(corpus: Corpus, mask: np.ndarray) -> str:
    """``1,796 of 5,988 rows · 270 k tokens``, without tokens where the corpus has no lengths."""
    rows = f"{int(mask.sum()):,} of {len(corpus):,} rows"
    return rows if corpus.lengths is None else f"{rows} · {words.short(float(corpus.lengths[mask].sum()))} tokens"


def proof_words(gap: float | None, final: bool) -> tuple[str, str]:
    """How near the best possible in two words, and the gap; empty where nothing will be proved.

    Args:
        final: whether the proof is complete: until then a gap says how far it is, not how good the selection is.
    """
    if gap is None:
        return "", ""
    if not final:
        return "not proved yet", ""
    percent = words.gap_percent(gap)
    text = f"gap {percent:.2f}{words.GAP}%"
    return "proved ✓" if percent <= PROVED_WITHIN else text, text


def _meter(term: str, share: float | None, least: str) -> dict[str, Any]:
    return {
        "term": term,
        "share": share,
        "words": least + words.percent(share),
        "finer": least + words.percent(share, 1),
    }
