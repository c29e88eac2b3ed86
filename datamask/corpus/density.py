"""Local density: how close the corpus lies around each row, whatever is selected from it."""

from __future__ import annotations

import numpy as np

from datamask.corpus.neighbors import NeighborGraph


def local_density(graph: NeighborGraph, k: int = 15) -> np.ndarray:
    """Mean similarity to the k nearest other rows: high in a crowd, low for an outlier.

    Args:
        graph: lists of at least 2; where they hold fewer than k other rows, all of them are averaged.
        k: how many.

    Returns:
        float32 ``(N,)``; zeros in a graph that lists no other row.
    """
    others = graph.similarities[:, 1 : k + 1]
    return others.mean(axis=1, dtype=np.float32) if others.shape[1] else np.zeros(len(others), np.float32)
