"""How evenly a selection spreads over the topics of its corpus: the entropy of its shares of k-means clusters."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.threads import one_blas_thread
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground, polled
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.polling import Poll, no_poll
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

VERSION = 1
"""Raise it when anything below changes the clusters."""

CLUSTERS = 200
ROWS_PER_CLUSTER = 20
FIT_ROWS = 20_480
BATCH = 2_048
PASSES = 3
BLOCK = 8_192


def entropy(counts: np.ndarray) -> np.ndarray:
    """Entropy in nats of shares ``counts / sum``: ``(..., k)`` to ``(...)``."""
    shares = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    nats: np.ndarray = -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)
    return nats


def cluster_entropy(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Entropy over the clusters of the whole corpus, the same for every selection."""
    labels = cluster_labels(ground.corpus, ground.pool.cache_dir, ground.poll)
    count = int(labels.max()) + 1
    whole = float(entropy(np.bincount(labels, minlength=count)))
    note = f"{count} clusters; at most {np.log(count):.3f}, the corpus itself {whole:.3f}"
    readings = {}
    for name, rows in selections.items():
        value = float(entropy(np.bincount(labels[rows], minlength=count)))
        readings[name] = Reading(
            value,
            entropy(ground.count_draws(labels[rows], count, rows)),
            "bootstrap",
            note,
            bounds=(0.0, float(np.log(count))),
        )
    return [entry.measured(readings)]


def cluster_labels(corpus: Corpus, cache_dir: Path, poll: Poll = no_poll) -> np.ndarray:
    """The cluster of each row, int32 ``(N,)``, from the cache where it has been computed before.

    Mini-batch k-means (Sculley 2010) on a fixed sample by hash; 200 clusters, fewer where that would leave under 20
    rows each.
    """
    return stored_clusters(corpus, cache_dir).find_or_compute(lambda: _labels(corpus, poll), poll)


def stored_clusters(corpus: Corpus, cache_dir: Path | None) -> Kept[np.ndarray]:
    """Describe a corpus's clusters in the cache."""
    return Kept(
        cache_dir,
        Entry(corpus.fingerprint, "clusters", VERSION),
        read=lambda content: _kept_labels(content, len(corpus)),
        write=lambda labels: Content(arrays={"labels": labels}),
    )


def _kept_labels(content: Content, n: int) -> np.ndarray:
    """The labels that a file holds. Raises Implausible where they are none of n rows."""
    labels = content.arrays["labels"]
    require(labels.dtype == np.int32 and labels.shape == (n,), "the clusters are of another corpus")
    require(labels.min() >= 0 and labels.max() < cluster_count(n), "there are not so many clusters")
    return labels


def cluster_count(n: int) -> int:
    """Clusters of n rows."""
    return min(CLUSTERS, max(2, n // ROWS_PER_CLUSTER), n)


def _labels(corpus: Corpus, poll: Poll) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    n = len(corpus)
    count = cluster_count(n)
    sample = np.argsort(corpus.hashes(), kind="stable")[:FIT_ROWS]  # in random order already
    model = MiniBatchKMeans(count, random_state=0, batch_size=BATCH, n_init=1)

    def fit(batch: np.ndarray) -> None:
        # one thread: the order of sums would follow the thread count, and with it the last digits of the centres
        with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
            model.partial_fit(batch)

    for _ in range(PASSES):
        for low in range(0, max(len(sample) - count, 0) + 1, BATCH):
            batch = corpus.features[sample[low : low + BATCH]]
            polled(partial(fit, batch), poll)
    centres = model.cluster_centers_
    with one_blas_thread():
        labels, half = np.empty(n, np.int32), (centres**2).sum(1) / 2
        for low in range(0, n, BLOCK):
            poll()
            # the nearest centre; the rows all have length one, which changes nothing
            labels[low : low + BLOCK] = (corpus.features[low : low + BLOCK] @ centres.T - half).argmax(1)
    return labels
