"""k-means of baselines: as good as another library's, and what it promises of copies, seeds, samples and stopping."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from datamask.errors import Stopped
from datamask.learning import kmeans
from datamask.learning.kmeans import kmeans_labels
from tests.reference import truth


def labels_of(x, clusters, seed=0, poll=lambda: None):
    return kmeans_labels(torch.from_numpy(x).float(), clusters, seed, poll).numpy()


def spread(x, labels):
    """Mean squared distance from the mean of one's cluster."""
    return sum(((x[labels == k] - x[labels == k].mean(0)) ** 2).sum() for k in np.unique(labels)) / len(x)


@pytest.mark.parametrize("clusters", [1, 2, 12, 40])
def test_clusters_are_about_as_tight_as_another_librarys(clusters):
    rng = np.random.default_rng(clusters)
    x = truth.unit_rows(rng, 15, 6)[rng.integers(0, 15, 600)] + 0.15 * rng.normal(size=(600, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    ours = np.median([spread(x, labels_of(x, clusters, seed)) for seed in range(5)])
    theirs = np.median([spread(x, KMeans(clusters, n_init=1, random_state=s).fit(x).labels_) for s in range(5)])
    assert ours <= 1.1 * theirs


@pytest.mark.parametrize("distinct", [1, 2, 5, 40])
@pytest.mark.parametrize("clusters", [3, 40])
def test_copies_are_in_one_cluster_and_different_rows_apart_where_there_are_clusters_for_all(distinct, clusters):
    rng = np.random.default_rng(distinct)
    which = rng.permutation(np.arange(120) % distinct)
    labels = labels_of(truth.unit_rows(rng, distinct, 8)[which], clusters)
    pairs = {(int(a), int(b)) for a, b in zip(which, labels)}
    assert len(pairs) == distinct and labels.min() >= 0 and labels.max() < clusters
    assert len(np.unique(labels)) == min(distinct, clusters)


@pytest.mark.parametrize("way", [kmeans._added, kmeans._multiplied])
def test_sums_are_those_of_each_label(way):
    rng = np.random.default_rng(2)
    x, labels = rng.normal(size=(200, 5)), rng.integers(0, 7, 200)
    sums = way(torch.from_numpy(x).float(), torch.from_numpy(labels), 9).numpy()
    assert sums == pytest.approx(np.stack([x[labels == k].sum(0) for k in range(9)]), abs=1e-4)


def test_one_seed_gives_one_clustering_on_any_number_of_threads():
    x = truth.unit_rows(np.random.default_rng(1), 2_000, 16)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        first, other = labels_of(x, 30, 3), labels_of(x, 30, 4)
        torch.set_num_threads(2)
        assert (labels_of(x, 30, 3) == first).all() and (first != other).any()
    finally:
        torch.set_num_threads(before)


def test_many_rows_are_clustered_by_a_sample_of_them_in_chunks(monkeypatch):
    monkeypatch.setattr(kmeans, "LEAST_FITTED", 60)
    monkeypatch.setattr(kmeans, "FITTED_PER_CLUSTER", 10)
    monkeypatch.setattr(kmeans, "SEEDED", 30)
    monkeypatch.setattr(kmeans, "SIMILARITIES_AT_ONCE", 100)
    which = np.random.default_rng(0).integers(0, 4, 500)
    x = np.eye(6)[which] + 0.02 * np.random.default_rng(1).normal(size=(500, 6))
    labels = labels_of(x / np.linalg.norm(x, axis=1, keepdims=True), 4)
    assert len({(int(a), int(b)) for a, b in zip(which, labels)}) == 4 == len(np.unique(labels))


@pytest.mark.parametrize("after", [0, 3, 20, 24])
def test_it_can_be_stopped_anywhere(after):
    asked = [0]

    def poll():
        asked[0] += 1
        if asked[0] > after:
            raise Stopped("now")

    with pytest.raises(Stopped):
        labels_of(truth.unit_rows(np.random.default_rng(0), 300, 4), 20, poll=poll)
    assert asked[0] == after + 1
