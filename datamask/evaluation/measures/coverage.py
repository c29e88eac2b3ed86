"""Coverage seen through a second representation: TF-IDF of the text, which no selection by features was made on."""

from __future__ import annotations

import numpy as np

from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

QUERIES = 4_000
QUERIES_AT_ONCE = 128
PAIRS = 20_000


def nearest_selected(words: Words, queries: np.ndarray, rows: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """TF-IDF cosine of each query row to the nearest *other* selected row: float32 ``(Q,)``.

    A row does not cover itself: all selections of one size would get the same share of ones for their own members.
    """
    query_vectors = words.tf_idf(queries)
    selected = words.tf_idf(rows).T.tocsr()
    best = np.zeros(len(queries), np.float32)
    for low in range(0, len(queries), QUERIES_AT_ONCE):
        poll()
        part = slice(low, low + QUERIES_AT_ONCE)
        products = (query_vectors[part] @ selected).tocoo()
        products.data[rows[products.col] == queries[part][products.row]] = 0.0
        best[part] = products.tocsr().max(axis=1).toarray().ravel()
    return best


def tf_idf_coverage(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Mean over a fixed sample of the corpus of the TF-IDF cosine to the nearest other member."""
    words = ground.words()
    if words is None:
        return entry.unavailable(selections, "the corpus has no text column")
    queries = np.argsort(ground.corpus.hashes(), kind="stable")[:QUERIES]
    note = f"its cosines correlate {agreement(ground, words, queries):.2f} with the features'"
    readings = {}
    for name, rows in selections.items():
        best = nearest_selected(words, queries, rows, ground.poll)
        readings[name] = Reading(
            float(best.mean(dtype="float64")), ground.mean_draws(best, queries), "bootstrap", note, bounds=(0.0, 1.0)
        )
    return [entry.measured(readings)]


def agreement(ground: Ground, words: Words, queries: np.ndarray) -> float:
    """How far TF-IDF is a second opinion: rank correlation of both cosines over listed neighbours of `queries`."""
    from scipy.stats import spearmanr

    graph = ground.graph()
    each = graph.k - 1
    sampled = queries[: max(1, PAIRS // max(each, 1))]
    left, right = np.repeat(sampled, each), graph.indices[sampled, 1:].ravel()
    if len(left) < 3:
        return float("nan")
    cosines = words.tf_idf(left).multiply(words.tf_idf(right)).sum(axis=1)
    ground.poll()
    return float(spearmanr(np.asarray(cosines).ravel(), graph.similarities[sampled, 1:].ravel()).statistic)
