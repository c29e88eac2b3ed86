"""Families of copies against union-find over all pairs; density against a loop."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from datamask.corpus import copies, equal_rows, open_corpus, row_hash
from datamask.corpus.copies import ROUNDING, find_duplicates, near_copy_rate, subsample_rate
from datamask.corpus.density import local_density
from datamask.corpus.equal_rows import equal_features, exact_families
from datamask.corpus.neighbors import NeighborGraph, build_neighbors
from datamask.errors import InputError, OptionError
from datamask.options.duplicates import left_words
from tests.making.pools import corpus_of


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
    keep = find_duplicates(corpus, str(cosine), graph).kept
    np.testing.assert_array_equal(keep, kept_by_hand(family, corpus.quality, row_hash(corpus.ids, 0)))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 6), st.integers(0, 10**6))
def test_equal_features_are_those_of_a_dictionary_of_rows(n, dim, seed):
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 2, (n, dim)).astype(np.float32)
    features[features == 0] *= rng.choice([-1, 1], int((features == 0).sum()))  # zeros of both signs are equal
    first = {}
    expected = [first.setdefault(tuple(row), i) for i, row in enumerate(features.tolist())]
    np.testing.assert_array_equal(equal_features(features), expected)


def test_rows_with_equal_hashes_by_chance_are_compared(monkeypatch):
    monkeypatch.setattr(equal_rows.np.random, "default_rng", lambda _: ZeroWeights())
    features = np.array([[1, 2], [2, 1], [1, 2], [3, 3]], np.float32)
    # weights of 1 make the first two collide; they must not become one family
    assert equal_features(features).tolist() == [0, 1, 0, 3]


class ZeroWeights:
    def integers(self, low, high, size, dtype):
        return np.zeros(size, dtype)


TEXTS = ["Caf\u00e9", "other", " Cafe\u0301\n", None, None, "", " \u2003", "Caf\u00e9 2", "caf\u00e9"]
OF_TEXTS = [0, 1, 0, 3, 4, 5, 5, 7, 8]
"""The first row of the same text: NFC, without white space around it; a null text equals nothing."""


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_say_which_rows_are_exact_duplicates_and_features_where_there_are_none(kind):
    texts = pa.array(TEXTS, kind)
    alike = corpus_of(np.ones((len(TEXTS), 3)), text=texts)
    assert exact_families(alike).tolist() == OF_TEXTS
    coded = pa.table({"text": texts.cast(pa.string()).dictionary_encode()})
    assert exact_families(replace(alike, metadata=coded)).tolist() == OF_TEXTS
    assert not exact_families(corpus_of(np.ones((4, 3)))).any()


def test_texts_that_a_corpus_does_not_hold_are_read_in_batches_and_not_kept(tmp_path):
    """Two files, one of them without texts, a row dropped, and a sample of the rows."""
    rng = np.random.default_rng(0)
    texts = [f"{i % 40} \u00e9" for i in range(300)]
    for name, low, high in (("a", 0, 200), ("b", 200, 300)):
        rows = {
            "id": [f"i{i}" for i in range(low, high)],
            "quality": np.where(np.arange(low, high) == 7, np.nan, 1.0),
            "features": list(rng.normal(size=(high - low, 4)).astype(np.float32)),
        }
        rows |= {"text": texts[low:high]} if name == "a" else {}
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    for options in ({}, {"rows": 120}):
        whole = open_corpus(str(tmp_path), drop_invalid=True, **options)
        bare = replace(whole, metadata=whole.metadata.drop_columns(["text"]))
        family = exact_families(bare)
        of_text = {}
        firsts = [
            place if text is None else of_text.setdefault(text, place)
            for place, text in enumerate(whole.metadata["text"].to_pylist())
        ]
        assert family.tolist() == firsts == exact_families(whole).tolist()
        assert bare.metadata.column_names == []
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(InputError, match="cannot be read again"):
        exact_families(bare)


def test_a_text_that_is_no_utf_8_equals_its_own_bytes_alone():
    wrong = pa.array([b"\xff", b"\xfe", b"\xff"], pa.binary())
    texts = pa.Array.from_buffers(pa.string(), 3, wrong.buffers())
    assert exact_families(corpus_of(np.ones((3, 2)), text=texts)).tolist() == [0, 1, 0]


def test_exact_keeps_the_best_and_breaks_ties_by_hash_not_by_place(make_corpus):
    features = [[1, 0], [1, 0], [0, 1], [0, 1], [1, 1]]
    corpus = make_corpus(features, quality=[1, 2, 5, 5, 0])
    keep = find_duplicates(corpus, "exact", None).kept
    hashes = row_hash(corpus.ids, 0)
    assert keep.tolist() == [False, True, bool(hashes[2] < hashes[3]), bool(hashes[3] < hashes[2]), True]
    winners = {tuple(find_duplicates(corpus, "exact", None, seed=seed).kept[2:4]) for seed in range(20)}
    assert winners == {(True, False), (False, True)}


@pytest.mark.parametrize(
    "groups",
    [
        pa.array(["b", "a", None, "b", None, "a", "c"]),
        pa.array(["b", "a", None, "b", None, "a", "c"]).dictionary_encode(),
        pa.array([2.0, 1.0, np.nan, 2.0, None, 1.0, 7.0]),
        pa.array([2, 1, None, 2, None, 1, 7]),
    ],
)
def test_the_best_of_each_group_of_a_column_is_kept_and_a_row_without_one_is_alone(groups):
    corpus = corpus_of(np.eye(7), np.array([1.0, 5, 0, 2, 0, 4, 0]), group=groups, labels=pa.array([[1]] * 7))
    found = find_duplicates(corpus, "column:group", None)
    assert found.winner.tolist() == [3, 1, 2, 3, 4, 1, 6]
    with pytest.raises(OptionError, match="no column 'grp'; it has group, labels"):
        find_duplicates(corpus, "column:grp", None)
    with pytest.raises(OptionError, match="'labels' must hold one value for each row"):
        find_duplicates(corpus, "column:labels", None)


def test_none_keeps_all_and_nonsense_is_refused(make_corpus):
    corpus = make_corpus(np.eye(3))
    assert find_duplicates(corpus, "none", None).kept.all()
    with pytest.raises(OptionError, match="needs the neighbor graph"):
        find_duplicates(corpus, "0.9", None)
    for bad in ("near", "0", "1.5", "nan"):
        with pytest.raises(OptionError, match="--collapse must be"):
            find_duplicates(corpus, bad, build_neighbors(corpus.features, 2))


@pytest.mark.parametrize("equal, groups", [(1, 200), (2, 100), (20, 40), (31, 40), (32, 40), (64, 40), (200, 12)])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1])
def test_no_pair_stays_of_groups_of_equal_and_nearly_equal_rows(make_corpus, equal, groups, noise):
    """Groups whose centers are near each other: equal rows fill the lists of their group."""
    rng = np.random.default_rng([equal, groups])
    centers = np.eye(32)[0] + 0.12 * rng.normal(size=(groups, 32)) / np.sqrt(32)
    x = np.repeat(centers, equal, 0) + noise * rng.normal(size=(equal * groups, 32)) / np.sqrt(32)
    corpus = make_corpus(rng.permutation(np.concatenate([x, rng.normal(size=(600, 32))])))
    found = find_duplicates(corpus, "0.95", build_neighbors(corpus.features, 32))
    kept = np.flatnonzero(found.kept)
    assert not close_pairs(corpus.features[kept]).any()
    assert found.kept[found.winner].all() and found.judged == found.left == 0
    near = close_pairs(corpus.features)
    assert (found.winner == np.arange(len(corpus)))[~near.any(1)].all()
    _, family = connected_components(near, directed=False)
    assert (family[found.winner] == family).all()


def test_lists_cut_by_rounded_rows_hide_no_pair(make_corpus):
    """In two dimensions the cosine of two rounded rows is off by up to 0.001: more than these rows are apart."""
    angles = np.concatenate([np.linspace(0, 1e-3, 90), [0.5, 1.0]])
    corpus = make_corpus(np.stack([np.cos(angles), np.sin(angles)], 1))
    for cosine in ("1", "0.9999999", "0.99999"):
        found = find_duplicates(corpus, cosine, build_neighbors(corpus.features, 32))
        assert not (close_pairs(corpus.features[found.kept], float(cosine))).any()


def test_what_an_approximate_graph_leaves_is_counted_on_a_sample(make_corpus, monkeypatch):
    """One pair of equal rows in three is missing from the lists."""
    rng = np.random.default_rng(0)
    corpus = make_corpus(np.concatenate([x := rng.normal(size=(300, 16)), x + 1e-3 * rng.normal(size=x.shape)]))
    graph = build_neighbors(corpus.features, 8)
    similarities = graph.similarities.copy()
    similarities[np.r_[0:300:3, 300:600:3], 1] = 0.0
    graph = replace(graph, similarities=similarities, exact=False, recall=0.9)
    found = find_duplicates(corpus, "0.95", graph)
    assert (found.recall, found.judged, found.left) == (0.9, 400, 200)
    assert close_pairs(corpus.features[found.kept]).any(1).sum() == 200
    monkeypatch.setattr(copies, "JUDGED_ROWS", 50)
    some = find_duplicates(corpus, "0.95", graph)
    assert some.judged == 50 and 10 < some.left < 40
    assert "of 50 kept rows that were compared" in left_words(some.recall, some.judged, some.left)


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


def close_pairs(x, cosine=0.95):
    """Whether two different rows have this cosine or more, by float64: boolean ``(n, n)``."""
    near = x.astype(float) @ x.T.astype(float) >= cosine - ROUNDING
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
