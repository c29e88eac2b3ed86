"""Neighbor lists from their definition, in float64: all pairs, one row after the other."""

from __future__ import annotations

import numpy as np


def rounded(features: np.ndarray) -> np.ndarray:
    """Rows as the graph sees them, float64: float16, of unit length, multiples of 1/32,767, times 32,767."""
    rows = features.astype(np.float16).astype(np.float64)
    return np.rint(rows * (32_767 / np.sqrt((rows * rows).sum(axis=1)))[:, None])


def cosines(features: np.ndarray) -> np.ndarray:
    """Of all pairs, float32 ``(N, N)``."""
    rows = rounded(features)
    inverses = 1.0 / np.sqrt((rows * rows).sum(axis=1))
    return np.clip(rows @ rows.T * (inverses[:, None] * inverses), -1, 1).astype(np.float32)


def true_lists(features: np.ndarray, k: int, ties: np.ndarray | None = None, compared: np.ndarray | None = None):
    """The k most similar of each row, itself first, and their cosines; ties by number where None are given.

    compared: bool ``(N, N)``, the pairs that count; None: all.
    """
    near = cosines(features)
    ties = np.arange(len(near)) if ties is None else ties
    by = near if compared is None else np.where(compared, near, -np.inf)
    by = np.where(np.eye(len(near), dtype=bool), np.inf, by)
    order = np.array([np.lexsort((ties, -row))[:k] for row in by])
    values = np.take_along_axis(by, order, 1).astype(np.float32)
    values[:, 0] = 1.0
    return order, values
