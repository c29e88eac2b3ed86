"""Copies inside a selection against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.corpus.neighbors import build_neighbors
from datamask.evaluation.measures.copies import near_copies_inside
from datamask.work.context import Work
from tests.making.pools import corpus_of, ground_of, made_corpus, reading


def by_pairs(x: np.ndarray, rows: np.ndarray, cosine: float) -> np.ndarray:
    near = x[rows].astype(float) @ x[rows].astype(float).T >= cosine - 1e-6
    np.fill_diagonal(near, False)
    return near.any(1)


@pytest.mark.parametrize("k", [3, 8, 400])
def test_near_copies_are_those_of_all_pairs_however_short_the_lists(rng, k):
    """Families of 40 alike: a list of 3 is full of near-copies, most of which are not selected."""
    families = np.repeat(rng.normal(size=(8, 6)), 40, axis=0)
    x = np.vstack([families + 0.05 * rng.normal(size=families.shape), rng.normal(size=(80, 6))])
    x = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    graph = build_neighbors(x, k, work=Work(threads=1))
    for size in (20, 100, 300):
        rows = rng.choice(len(x), size, replace=False)
        assert np.array_equal(near_copies_inside(x, graph, rows), by_pairs(x, rows, 0.95))


def test_rates_of_a_made_corpus(tmp_path, rng):
    corpus = made_corpus()
    ground = ground_of(corpus, tmp_path)
    rows = np.sort(rng.choice(1200, 400, replace=False))
    assert reading(ground, "near_copies", rows).value == by_pairs(corpus.features, rows, 0.95).mean()
    chosen = set(rows.tolist())
    exact = np.mean([(row % 10 == 9 and row - 1 in chosen) or (row % 10 == 8 and row + 1 in chosen) for row in rows])
    assert reading(ground, "exact_copies", rows).value == pytest.approx(exact)
    assert "in the whole corpus 0.200" in reading(ground, "exact_copies", rows).note


def test_a_selection_without_copies_has_none(tmp_path):
    ground = ground_of(corpus_of(np.repeat(np.eye(30), 2, axis=0)), tmp_path)
    assert reading(ground, "near_copies", np.arange(0, 60, 2)).value == 0.0
    assert reading(ground, "near_copies", np.arange(30)).value == 1.0
    assert reading(ground, "exact_copies", np.arange(31)).value == pytest.approx(30 / 31)
