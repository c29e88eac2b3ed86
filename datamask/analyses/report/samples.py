"""A few texts of a run for its report: the last ones kept, the first ones left out, and some kept at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from datamask.corpus import Corpus
from datamask.corpus.beginnings import beginnings
from datamask.runs.store import Run

EACH = 8
LETTERS = 320
"""Characters of a text that are shown."""


@dataclass(frozen=True)
class Sample:
    """One row: its id, quality, and the beginning of its text; None where the corpus has no texts."""

    id: str
    quality: float
    text: str | None


def samples(run: Run, corpus: Corpus) -> dict[str, list[Sample]]:
    """By heading. Where a run has no scores (an imported list), only those at random.

    Args:
        corpus: the one the run was learned on, row for row.
    """
    table = run.rows(("selected", "eligible", "score"))
    selected = table["selected"].to_numpy(zero_copy_only=False).astype(bool)
    eligible = table["eligible"].to_numpy(zero_copy_only=False).astype(bool)
    score = table["score"].cast(pa.float64()).to_numpy()
    kept, out = np.flatnonzero(selected & np.isfinite(score)), np.flatnonzero(~selected & eligible & np.isfinite(score))
    picked = {}
    if len(np.unique(score[kept])) > 1:
        picked["Selected, nearest to the threshold"] = kept[np.argsort(score[kept], kind="stable")][:EACH]
        picked["Not selected, nearest to the threshold"] = out[np.argsort(-score[out], kind="stable")][:EACH]
    return {**{heading: _read(corpus, rows) for heading, rows in picked.items()}, **at_random(selected, corpus)}


def at_random(selected: np.ndarray, corpus: Corpus) -> dict[str, list[Sample]]:
    """Some of the selected rows, drawn by a hash of their ids, by heading.

    Args:
        selected: bool ``(N,)``.
    """
    members = np.flatnonzero(selected)
    drawn = members[np.argsort(corpus.hashes()[members], kind="stable")][:EACH]
    return {"Selected, at random": _read(corpus, drawn)}


def _read(corpus: Corpus, rows: np.ndarray) -> list[Sample]:
    taken = pa.array(rows)
    texts: list[str | None] = [None] * len(rows)
    if corpus.texts is not None:
        texts = beginnings(corpus.texts, rows, 2 * LETTERS).to_pylist()
    ids = corpus.ids.take(taken).to_pylist()
    return [
        Sample(str(i), float(corpus.quality[row]), None if text is None else _cut(text))
        for i, row, text in zip(ids, rows, texts, strict=True)
    ]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LETTERS else line[: LETTERS - 1] + "…"
