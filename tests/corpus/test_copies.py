"""Families of copies against union-find over all pairs; density against a loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import copies, row_hash
from datamask.corpus.copies import ROUNDING, exact_families, families, near_copy_rate, subsample_rate
from datamask.corpus.density import local_density
from datamask.corpus.neighbors import NeighborGraph, build_neighbors
from datamask.errors import OptionError


def union_find(n, pairs):
    """The smallest member of each row's component."""
    parent = list(range(n))

    def root(i):
        while parent[i] != i:
            i = parent[i]
        return i

    for i, j in pairs:
        a, b = root(int(i)), root(int(j))
        parent[max(a, b)] = min(a, b)
    return np.array([root(i) for i in range(n)])


def kept_by_hand(family, quality, hashes):
    keep = np.zeros(len(family), bool)
    for name in set(family.tolist()):
        members = np.flatnonzero(family == name)
        keep[min(members, key=lambda i: (-quality[i], int(hashes[i])))] = True
    return keep


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.integers(1, 6), st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 0.999, 1.0]))
def test_cosine_families_equal_union_find_over_all_pairs(make_corpus, n, dim, seed, cosine):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(max(2, n // 3), dim))
    features = base[rng.integers(0, len(base), n)] + rng.choice([0, 0.02], n)[:, None] * rng.normal(size=(n, dim))
    corpus = make_corpus(features, quality=rng.integers(0, 3, n))
    products = corpus.features.astype(float) @ corpus.features.T.astype(float)
    if np.abs(products - cosine + copies.ROUNDING).min() < 1e-6:
        return  # a pair on the threshold itself may fall on either side by rounding
    family = union_find(n, np.argwhere(products >= cosine - copies.ROUNDING))
    graph = build_neighbors(corpus.features, n)
    keep = families(corpus, str(cosine), graph)
    np.testing.assert_array_equal(keep, kept_by_hand(family, corpus.quality, row_hash(corpus.ids, 0)))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 6), st.integers(0, 10**6))
def test_exact_families_equal_a_dictionary_of_rows(n, dim, seed):
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 2, (n, dim)).astype(np.float32)
    features[features == 0] *= rng.choice([-1, 1], int((features == 0).sum()))  # zeros of both signs are equal
    first = {}
    expected = [first.setdefault(tuple(row), i) for i, row in enumerate(features.tolist())]
    np.testing.assert_array_equal(exact_families(features), expected)


def test_rows_with_equal_hashes_by_chance_are_compared(monkeypatch):
    monkeypatch.setattr(copies.np.random, "default_rng", lambda _: ZeroWeights())
    features = np.array([[1, 2], [2, 1], [1, 2], [3, 3]], np.float32)
    # weights of 1 make the first two collide; they must not become one family
    assert exact_families(features).tolist() == [0, 1, 0, 3]


class ZeroWeights:
    def integers(self, low, high, size, dtype):
        return np.zeros(size, dtype)


def test_exact_keeps_the_best_and_breaks_ties_by_hash_not_by_place(make_corpus):
    features = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1]]
    corpus = make_corpus(features, quality=[1, 2, 5, 5, 0])
    keep = families(corpus, "exact", None)
    hashes = row_hash(corpus.ids, 0)
    assert keep.tolist() == [False, True, bool(hashes[2] < hashes[3]), bool(hashes[3] < hashes[2]), True]
    winners = {tuple(families(corpus, "exact", None, seed=seed)[2:4]) for seed in range(20)}
    assert winners == {(True, False), (False, True)}


def test_none_keeps_all_and_nonsense_is_refused(make_corpus):
    corpus = make_corpus(np.eye(3))
    assert families(corpus, "none", None).all()
    with pytest.raises(OptionError, match="needs the neighbor graph"):
        families(corpus, "0.9", None)
    for bad in ("near", "0", "1.5", "nan"):
        with pytest.raises(OptionError, match="--collapse must be"):
            families(corpus, bad, build_neighbors(corpus.features, 2))


def test_near_copy_rate_counts_rows_with_a_close_other_row():
    features = np.array([[1, 0], [1, 0.01], [0, 1], [-1, 0]], np.float32)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    graph = build_neighbors(features, 3)
    assert near_copy_rate(graph) == 0.5
    assert near_copy_rate(graph, 0.99999) == 0.0
    assert near_copy_rate(graph.first(1)) == 0.0


def test_the_rate_of_small_corpora_by_all_their_subsamples():
    """Every subsample of 1 to 9 of 9 rows, counted: the mean rate is exact."""
    x = near_clusters(9, seed=3)
    graph, near = build_neighbors(x, 9), close_pairs(x)
    assert near.any() and not near.all()
    for rows in range(1, 10):
        rates = [near[np.ix_(part, part)].any(1).mean() for part in itertools.combinations(range(9), rows)]
        assert subsample_rate(graph, 0.95, rows) == pytest.approx(np.mean(rates), abs=1e-12)
    for rows in (0, 10):
        with pytest.raises(OptionError, match="from 1 to the 9"):
            subsample_rate(graph, 0.95, rows)


@pytest.mark.parametrize("rows", [100, 400, 1200])
def test_random_subsamples_have_that_rate_on_average(rows):
    x = near_clusters(1600, seed=1)
    graph, near = build_neighbors(x, 64), close_pairs(x)
    assert subsample_rate(graph, 0.95, 1600) == pytest.approx(near.any(1).mean(), abs=1e-12) == near_copy_rate(graph)
    rng = np.random.default_rng(0)
    parts = [rng.choice(1600, rows, replace=False) for _ in range(40)]
    rates = [near[np.ix_(part, part)].any(1).mean() for part in parts]
    noise = np.std(rates) / np.sqrt(len(rates))
    assert abs(np.mean(rates) - subsample_rate(graph, 0.95, rows)) < 4 * noise + 1e-3


def near_clusters(n, seed):
    """Unit rows in clusters of near-copies whose sizes vary, in random order: float32 ``(n, 24)``."""
    rng = np.random.default_rng([seed, 7])
    cluster = np.searchsorted(np.cumsum(rng.geometric(0.15, n)), np.arange(n), side="right")
    rows = rng.normal(size=(cluster.max() + 1, 24))[cluster]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows += 0.24 * rng.random((n, 1)) * rng.normal(size=(n, 24)) / np.sqrt(24)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[rng.permutation(n)].astype(np.float32)


def close_pairs(x):
    """Whether two different rows have cosine 0.95 or more, by float64: boolean ``(n, n)``."""
    near = x.astype(float) @ x.T.astype(float) >= 0.95 - ROUNDING
    np.fill_diagonal(near, False)
    return near


def test_local_density_is_the_mean_over_the_nearest_others():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    products = features @ features.T
    np.fill_diagonal(products, -np.inf)
    expected = -np.sort(-products, axis=1)[:, :15].mean(axis=1)
    graph = build_neighbors(features.astype(np.float32), 20)
    density = local_density(graph)
    assert density.dtype == np.float32
    np.testing.assert_allclose(density, expected, atol=1e-6)
    np.testing.assert_allclose(
        local_density(graph.first(4), 15), -np.sort(-products, axis=1)[:, :3].mean(axis=1), atol=1e-6
    )
    assert local_density(NeighborGraph(graph.indices[:, :1], graph.similarities[:, :1])).tolist() == [0.0] * 40
