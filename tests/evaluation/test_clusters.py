"""Cluster entropy against scipy, and the clusters that all selections share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from datamask.evaluation.measures.clusters import cluster_labels, entropy, stored_clusters
from tests.making.pools import corpus_of, ground_of, made_corpus, reading
from tests.making.raw_cache import RawCache


def test_entropy_is_scipys(rng):
    counts = rng.integers(0, 9, (20, 7)) + np.eye(1, 7)
    assert entropy(counts) == pytest.approx(scipy_entropy(counts, axis=1), abs=1e-12)


def test_clusters_are_found_where_there_are_some(tmp_path, rng):
    """Nine clouds far apart, ninety rows: fewer clusters than clouds, so no cloud is ever split."""
    cloud = np.repeat(np.arange(9), 10)
    corpus = corpus_of(np.eye(9)[cloud] + 0.01 * rng.normal(size=(90, 9)))
    labels = cluster_labels(corpus, tmp_path)
    assert all(len(set(labels[cloud == k])) == 1 for k in range(9)) and len(set(labels)) == 4


def test_labels_are_kept_and_made_anew_where_damaged(tmp_path):
    corpus = made_corpus(texts=False)
    first = cluster_labels(corpus, tmp_path)
    assert first.dtype == np.int32 and first.shape == (1200,)
    cache, entry = RawCache(tmp_path), stored_clusters(corpus, None).entry
    path = cache.path(entry)
    for damage in (b"", b"no archive", path.read_bytes()[:200]):
        path.write_bytes(damage)
        assert np.array_equal(cluster_labels(corpus, tmp_path), first)
    cache.keep(entry, arrays={"labels": np.zeros(1200, np.int32)})
    assert not cluster_labels(corpus, tmp_path).any()  # read, not made


def test_a_selection_from_few_clouds_has_less_entropy(tmp_path):
    ground = ground_of(made_corpus(texts=False), tmp_path)
    labels = cluster_labels(ground.corpus, tmp_path)
    domain = np.array(ground.corpus.metadata["domain"].to_pylist())
    wide, narrow = np.arange(0, 1200, 4), np.flatnonzero(domain == "d0")[:300]
    found = reading(ground, "clusters", wide)
    assert found.value == pytest.approx(scipy_entropy(np.bincount(labels[wide])))
    assert reading(ground, "clusters", narrow).interval[1] < found.interval[0]
    # resampling loses clusters, so the draws lie lower; the interval stands around the value all the same
    assert found.interval[0] < found.value < found.interval[1]
