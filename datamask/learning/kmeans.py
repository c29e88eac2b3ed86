"""Clusters for baselines: seeded mini-batch k-means over rows in memory, which can be stopped."""

from __future__ import annotations

import numpy as np

from datamask.objectives.contract import Poll, chunks

PASSES = 3
"""Passes over the rows: clusters here say what is roughly alike, they need not be the best ones."""

BATCH = 4_096
SIMILARITIES_AT_ONCE = 16_000_000
"""Similarities per dense chunk: 64 MB, and under 0.3 s on two cores at 384 dimensions."""


def kmeans_labels(rows: np.ndarray, clusters: int, seed: int, poll: Poll) -> np.ndarray:
    """Cluster of each row, int64 ``(m,)``, from 0 to `clusters` - 1; some are empty where few rows differ.

    Args:
        rows: float32 ``(m, d)``. clusters: from 1 to m.

    Raises:
        Stopped: from `poll`.
    """
    if clusters == 1:
        return np.zeros(len(rows), dtype=np.int64)
    # scikit-learn takes a second to import, which only those baselines should cost that cluster
    from sklearn.cluster import MiniBatchKMeans

    rng = np.random.default_rng(seed)
    batch = max(BATCH, 3 * clusters)
    poll()
    model = MiniBatchKMeans(clusters, random_state=seed % 2**32, n_init=1)
    for _ in range(PASSES):
        order = rng.permutation(len(rows))
        for part in chunks(len(rows), batch):
            poll()
            model.partial_fit(rows[order[part]])
    label = np.empty(len(rows), dtype=np.int64)
    for part in chunks(len(rows), max(1, SIMILARITIES_AT_ONCE // clusters)):
        poll()
        label[part] = model.predict(rows[part])
    return label
