"""The samples most similar to one of them, whatever is selected: exact, by one pass over the features. Pure numpy."""

from __future__ import annotations

import numpy as np

BLOCK = 65_536
"""Rows compared at once, so that a corpus that is mapped from disk is not held in memory twice."""


def nearest(features: np.ndarray, row: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows with the highest cosine to one row, which is not among them.

    Args:
        features: unit rows, float ``(N, d)``.
        row: whose neighbours. count: how many, at most N - 1.

    Returns:
        Rows, int64 ``(count,)``, by falling cosine, equal ones by rising row, and their cosines, float32.
    """
    cosines = cosines_to(features, np.array([row]))
    cosines[row] = -np.inf
    count = max(0, min(count, len(features) - 1))
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    # all that reach the last place, so that equal ones are chosen by their row
    last = np.partition(cosines, -count)[-count]
    reaching = np.flatnonzero(cosines >= last)
    order = reaching[np.lexsort((reaching, -cosines[reaching]))][:count]
    return order.astype(np.int64), cosines[order]


def cosines_to(features: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The cosine of every row to the mean of some rows, float32 ``(N,)``; 0 where that mean has no direction.

    Args:
        features: unit rows, float ``(N, d)``. rows: int64 ``(m,)``, m >= 1.
    """
    total = np.zeros(features.shape[1])
    for start in range(0, len(rows), BLOCK):
        total += np.asarray(features[rows[start : start + BLOCK]], np.float64).sum(axis=0)
    length = float(np.linalg.norm(total))
    center = (total / length if length > 1e-9 * len(rows) else total * 0).astype(np.float32)
    cosines = np.empty(len(features), np.float32)
    for start in range(0, len(features), BLOCK):
        cosines[start : start + BLOCK] = np.asarray(features[start : start + BLOCK], np.float32) @ center
    return np.clip(cosines, -1, 1, out=cosines)
