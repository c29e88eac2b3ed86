"""Held-out text: which rows and texts a target asks for, and which rows must leave because they repeat them.

Whatever is held out, and every near-copy of it, leaves the corpus before anything is selected: the selection is the one
that a corpus without that text would get. To select first and drop afterwards would be unfair in another way: a
selection that keeps one member of each family would lose whole families, one that keeps them all would not.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config.target import LEAST_TEXTS, Target
from datamask.corpus import row_hash
from datamask.corpus.copies import ROUNDING, near_families
from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import NeighborGraph
from datamask.corpus.text_file import filtered
from datamask.errors import InputError, OptionError
from datamask.evaluation.meaning import Meaning
from datamask.evaluation.measures.copies import NEAR, nearest_cosine
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

LEAST_REMAINING = 0.25
"""Share of the rows that must be left to select from."""

LONGEST_CHAIN = 50
BEST_SHARE = 0.25


def subset(corpus: Corpus, rows: np.ndarray) -> Corpus:
    """Some rows of a corpus, in rising order, as a corpus."""
    rows = np.sort(rows)
    named = hashlib.sha256(corpus.fingerprint.encode() + rows.astype("<i8").tobytes()).hexdigest()
    take, kept = pa.array(rows), np.isin(np.arange(len(corpus)), rows)
    lengths = None if corpus.lengths is None else corpus.lengths[rows]
    return replace(
        corpus,
        ids=corpus.ids.take(take),
        quality=corpus.quality[rows],
        features=corpus.features[rows],
        lengths=lengths,
        metadata=filtered(corpus.metadata, corpus.provenance.columns.get("text"), pa.array(kept)),
        source_file=corpus.source_file[rows],
        source_row=corpus.source_row[rows],
        fingerprint=named,
        norms=None if corpus.norms is None else corpus.norms[rows],
    )


def target_rows(corpus: Corpus, target: Target) -> np.ndarray:
    """bool ``(N,)``: the rows that are of the target's kind (before any are held out).

    Raises:
        OptionError: no such column, or one without numbers.
    """
    if target.kind == "quality":
        best: np.ndarray = corpus.quality >= np.quantile(corpus.quality, 1 - BEST_SHARE)
        return best
    if target.kind in ("column", "score"):
        if target.column in _quality_columns(corpus) and target.column not in corpus.metadata.column_names:
            raise OptionError(
                f"--target: {target.column!r} is the corpus's quality column; use --target quality for its best rows"
            )
        if target.column not in corpus.metadata.column_names:
            raise OptionError(
                f"--target: the corpus has no column {target.column!r}; it has "
                f"{', '.join(corpus.metadata.column_names) or 'no metadata columns'}"
            )
        if target.kind == "score":
            return _high(corpus, target.column)
        equal = pc.equal(corpus.metadata[target.column].cast(pa.string()), target.value)
        of_value: np.ndarray = pc.fill_null(equal, False).to_numpy().astype(bool)
        return of_value
    return np.ones(len(corpus), bool)


def _quality_columns(corpus: Corpus) -> tuple[str, ...]:
    names = corpus.provenance.columns.get("quality") or ()
    return (names,) if isinstance(names, str) else tuple(names)


def _high(corpus: Corpus, column: str) -> np.ndarray:
    """bool ``(N,)``: the best quarter by a column of numbers; rows without one are not in it."""
    if not corpus.metadata_columns[column].has_numbers:
        raise OptionError(f"--target high:{column} needs a column of numbers, and the values of {column!r} are none")
    scores = pc.cast(corpus.metadata[column], pa.float64()).to_numpy().astype(float)
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    known = np.isfinite(scores)
    best: np.ndarray = known & (scores >= np.quantile(scores[known], 1 - BEST_SHARE)) if known.any() else known
    return best


def units_of(graph: NeighborGraph, words: Words) -> np.ndarray:
    """A number for each row, equal for rows that say nearly the same: int64 ``(N,)``.

    Families of near-copies, but a chain of more than `LONGEST_CHAIN` of them says little about its ends: there, rows
    with the same text.
    """
    family = near_families(graph, NEAR)
    first = np.unique(words.text_of[: len(family)], return_index=True, return_inverse=True)
    same_text = first[1][first[2]]
    sizes = np.bincount(family)
    # numbers of families come first, those of texts after them
    return np.where(sizes[family] <= LONGEST_CHAIN, family, len(family) + same_text)


def near_rows(features: np.ndarray, held: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """The rows of `held`, and those at cosine `NEAR` or above to one of them, of all rows: bool ``(N,)``."""
    if not held.any():
        return held
    near: np.ndarray = held | (nearest_cosine(features, features[held], poll) >= NEAR - ROUNDING)
    return near


def own_texts(n: int, words: Words, meaning: Meaning, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """The person's own texts that can be asked, numbered after the n rows of the corpus, and the rows that repeat them.

    Returns:
        int64, text numbers; bool ``(n,)``.

    Raises:
        InputError: too few texts with words in them.
    """
    texts = np.arange(n, len(words))
    texts = texts[words.lengths[texts] > 0]
    _, first = np.unique(words.text_of[texts], return_index=True)
    texts = texts[np.sort(first)]
    if len(texts) < LEAST_TEXTS:
        raise InputError(
            f"--target: {len(texts):,} different texts have words in them; at least {LEAST_TEXTS} are "
            "needed to tell selections apart"
        )
    leaving = np.isin(words.text_of[:n], words.text_of[texts]) | (meaning.nearest(np.arange(n), texts, poll) >= NEAR)
    return texts, leaving


def hashed(numbers: np.ndarray, seed: int) -> np.ndarray:
    """uint64: a hash of whole numbers."""
    return row_hash(pa.array(np.asarray(numbers, np.int64)), seed)
