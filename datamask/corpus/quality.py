"""Several quality columns to one number per row: a weighted sum of raw values, z-scores or ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from datamask.config import QualityColumn


def transform(values: np.ndarray, how: str) -> np.ndarray:
    """One column under its transform.

    Args:
        values: float64 ``(N,)``, finite.
        how: ``raw``; ``z``, (value - mean) / standard deviation, zeros where all are equal; ``rank``, the mean rank of
            equal values over N - 1: 0 for a unique lowest value, 1 for a unique highest.

    Returns:
        float64 ``(N,)``.
    """
    if how == "z":
        # scaled first, so that values near the end of float64's range do not overflow when squared
        largest = float(np.abs(values).max()) or 1.0
        scaled = values / largest
        deviation = scaled.std()
        return (scaled - scaled.mean()) / deviation if deviation > 1e-12 else np.zeros_like(values)
    if how == "rank":
        _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - (counts + 1) / 2
        return middle[place] / max(len(values) - 1, 1)
    return values


def weighted_sum(values: np.ndarray, columns: Sequence[QualityColumn]) -> np.ndarray:
    """``sum_c weight_c transform_c(values[c])``: float64 ``(Q, N)`` to ``(N,)``."""
    total = np.zeros(values.shape[1])
    for row, column in zip(values, columns, strict=True):
        total += column.weight * transform(row, column.transform)
    return total
