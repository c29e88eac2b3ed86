"""How evenly a selection spreads over the topics of its corpus: the entropy of its shares of k-means clusters."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

import numpy as np

from datamask.corpus import row_hash
from datamask.corpus.corpus import Corpus
from datamask.corpus.threads import one_blas_thread
from datamask.errors import StoreError
from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground, polled
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.files import DAMAGED, replacing
from datamask.objectives.contract import Poll, no_poll

log = logging.getLogger(__name__)

VERSION = 1
"""Part of the cache file's name: raise it when anything below changes the clusters."""

CLUSTERS = 200
ROWS_PER_CLUSTER = 20
FIT_ROWS = 20_480
BATCH = 2_048
PASSES = 3
BLOCK = 8_192


def entropy(counts: np.ndarray) -> np.ndarray:
    """Entropy in nats of shares ``counts / sum``: ``(..., k)`` to ``(...)``."""
    shares = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    return -(shares * np.log(np.maximum(shares, 1e-300))).sum(-1)


def cluster_entropy(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """Entropy over the clusters of the whole corpus, the same for every selection."""
    labels = cluster_labels(ground.corpus, ground.pool.cache_dir, ground.poll)
    count = int(labels.max()) + 1
    whole = float(entropy(np.bincount(labels, minlength=count)))
    note = f"{count} clusters; at most {np.log(count):.3f}, the corpus itself {whole:.3f}"
    readings = {}
    for name, rows in selections.items():
        value = float(entropy(np.bincount(labels[rows], minlength=count)))
        readings[name] = Reading(value, entropy(ground.count_draws(labels[rows], count, rows)), "bootstrap", note,
                                 bounds=(0.0, float(np.log(count))))
    return [entry.measured(readings)]


def cluster_labels(corpus: Corpus, cache_dir: Path, poll: Poll = no_poll) -> np.ndarray:
    """The cluster of each row, int32 ``(N,)``, from the cache where it has been computed before.

    Mini-batch k-means (Sculley 2010) on a fixed sample by hash; 200 clusters, fewer where that would leave under 20
    rows each.
    """
    path = cache_dir / corpus.fingerprint / f"clusters-v{VERSION}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            labels = file["labels"]
        if labels.shape == (len(corpus),) and labels.dtype == np.int32 and labels.min() >= 0:
            return labels
        log.warning("%s is of another corpus and will be made anew", path)
    except FileNotFoundError:
        pass
    except DAMAGED as error:
        log.warning("%s is damaged and will be made anew: %s", path, error)
    labels = _labels(corpus, poll)
    with contextlib.suppress(StoreError), replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, labels=labels)  # a cache that cannot be written costs time, not the result
    return labels


def _labels(corpus: Corpus, poll: Poll) -> np.ndarray:
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    n = len(corpus)
    count = min(CLUSTERS, max(2, n // ROWS_PER_CLUSTER), n)
    sample = np.argsort(row_hash(corpus.ids, 0), kind="stable")[:FIT_ROWS]  # in random order already
    model = MiniBatchKMeans(count, random_state=0, batch_size=BATCH, n_init=1)

    def fit(batch: np.ndarray) -> None:
        # one thread: the order of sums would follow the thread count, and with it the last digits of the centres
        with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
            model.partial_fit(batch)

    for _ in range(PASSES):
        for low in range(0, max(len(sample) - count, 0) + 1, BATCH):
            batch = corpus.features[sample[low:low + BATCH]]
            polled(lambda batch=batch: fit(batch), poll)
    centres = model.cluster_centers_
    with one_blas_thread():
        labels, half = np.empty(n, np.int32), (centres**2).sum(1) / 2
        for low in range(0, n, BLOCK):
            poll()
            # the nearest centre; the rows all have length one, which changes nothing
            labels[low:low + BLOCK] = (corpus.features[low:low + BLOCK] @ centres.T - half).argmax(1)
    return labels
