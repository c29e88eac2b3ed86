"""Cross-entropy of held-out text under a small model of the selection: does it teach what the corpus is like?

Rows are held out by hash, the same for every selection and run, and leave the training text together with their
near-copies. Every selection trains on the same number of words, drawn at random from its texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from datamask.corpus import row_hash
from datamask.corpus.copies import ROUNDING, may_hide
from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import NeighborGraph
from datamask.evaluation.measures.copies import NEAR, ROWS_AT_ONCE, nearest_cosine
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.ngrams import Bigrams
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

FOLDS, SPLITS = 20, 5
"""Split j holds out the rows with ``row_hash(ids, 0) % 20 == j``, for j from 0 to 4."""

TRAINING_WORDS = 250_000
LEAST_WORDS = 1_000
"""Fewer words than this to train on teach nothing: no value."""

HELD_OUT_WORDS = 200_000
BEST_SHARE = 0.25
"""The best quarter of the held-out rows by quality are a target of their own."""


@dataclass(frozen=True)
class Split:
    """One hold-out.

    Attributes:
        held_out: int64 rows to predict; leaking: bool ``(N,)``, rows that may not be trained on.
        order: int64 ``(N,)``, random places: where two selections share a row, both train on it early or late.
    """

    held_out: np.ndarray
    leaking: np.ndarray
    order: np.ndarray


def cross_entropy(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Nats per word of held-out text, for a random hold-out, its best quarter by quality, and the ground's targets."""
    words = ground.words()
    if words is None:
        return entry.unavailable(selections, "the corpus has no text column")
    folds = splits(ground.corpus, words, ground.graph(), ground.poll)
    lengths = words.lengths
    available = {
        name: min(int(lengths[rows[~split.leaking[rows]]].sum()) for split in folds)
        for name, rows in selections.items()
    }
    budget = min(TRAINING_WORDS, *available.values())
    if budget < LEAST_WORDS:
        least = min(available, key=available.__getitem__)
        return entry.unavailable(
            selections, f"{available[least]:,} words of {least} are left to train on, {LEAST_WORDS:,} are needed"
        )
    targets = _targets(ground)
    values = {name: np.full((len(targets), SPLITS), np.nan) for name in selections}
    for j, split in enumerate(folds):
        tokens, owner = words.of(_within(split.held_out, lengths, HELD_OUT_WORDS))
        asked_rows = split.held_out[owner]
        for name, rows in selections.items():
            ground.poll()
            nats = Bigrams(*_training(words, rows, split, budget), words.vocabulary).nats(tokens, owner)
            for t, target in enumerate(targets.values()):
                if (chosen := target[asked_rows]).any():
                    values[name][t, j] = nats[chosen].mean()
    note = f"trained on {budget:,} words"
    return [
        _measured(entry, target, {name: values[name][t] for name in selections}, note)
        for t, target in enumerate(targets)
    ]


def splits(corpus: Corpus, words: Words, graph: NeighborGraph, poll: Poll = no_poll) -> list[Split]:
    """The five hold-outs, each with the rows that would give it away: itself, semantic duplicates and equal texts.

    Duplicates are those that either of two rows lists; rows whose lists may end before one are compared all with all.
    """
    ids, features = corpus.ids, corpus.features
    fold = (row_hash(ids, 0) % np.uint64(FOLDS)).astype(np.int64)
    first, second = _near_pairs(graph, poll)
    full = np.flatnonzero(may_hide(graph, NEAR, corpus.dim))
    folds = []
    for j in range(SPLITS):
        poll()
        held = fold == j
        leaking = held | np.isin(words.text_of, words.text_of[held])
        leaking[first[held[second]]] = True
        leaking[second[held[first]]] = True
        if len(asked := full[held[full]]):
            leaking[full] |= nearest_cosine(features[full], features[asked], poll) >= NEAR - ROUNDING
        order = row_hash(ids, j + 1)
        rows = np.flatnonzero(held)
        folds.append(Split(rows[np.argsort(order[rows], kind="stable")], leaking, order))
    return folds


def _near_pairs(graph: NeighborGraph, poll: Poll) -> tuple[np.ndarray, np.ndarray]:
    firsts, seconds = [], []
    for low in range(0, len(graph.indices), ROWS_AT_ONCE):
        poll()
        row, place = np.nonzero(graph.similarities[low : low + ROWS_AT_ONCE, 1:] >= NEAR - ROUNDING)
        firsts.append(row + low)
        seconds.append(graph.indices[row + low, place + 1])
    return np.concatenate(firsts), np.concatenate(seconds)


def _targets(ground: Ground) -> Mapping[str, np.ndarray]:
    """Target -> bool ``(N,)``; the first, without a name, is everything."""
    quality = ground.corpus.quality
    targets = {"": np.ones(len(quality), bool)}
    if quality.max() > quality.min():
        targets["quality"] = quality >= np.quantile(quality, 1 - BEST_SHARE)
    return targets | {name: np.asarray(target, bool) for name, target in ground.targets.items()}


def _within(rows: np.ndarray, lengths: np.ndarray, most: int) -> np.ndarray:
    """The first of these rows, in their order, that hold at most so many words, and at least one row."""
    return rows[: max(1, int(np.searchsorted(np.cumsum(lengths[rows]), most, side="right")))]


def _training(words: Words, rows: np.ndarray, split: Split, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """Exactly `budget` words of the selection's texts in random order, and the text each belongs to."""
    rows = rows[~split.leaking[rows]]
    rows = rows[np.argsort(split.order[rows], kind="stable")]
    rows = rows[: int(np.searchsorted(np.cumsum(words.lengths[rows]), budget)) + 1]
    tokens, owner = words.of(rows)
    return tokens[:budget], owner[:budget]


def _measured(entry: MeasureEntry, target: str, values: Mapping[str, np.ndarray], note: str) -> Measured:
    readings = {
        name: Reading(None, note="no held-out text of this kind")
        if np.isnan(draws).any()
        else Reading(float(draws.mean()), draws, "splits", note)
        for name, draws in values.items()
    }
    if not target:
        return entry.measured(readings)
    if target == "quality":
        return entry.measured(
            readings,
            column=target,
            label=f"{entry.label}, best by quality",
            circular=("quality",),
            says="The same on the quarter of the held-out texts with the best quality scores. It is circular "
            "for a selection by quality.",
        )
    return entry.measured(readings, column=target, label=f"{entry.label}: {target}")
