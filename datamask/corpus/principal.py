"""Principal components: deterministic, and quick at any number of rows."""

from __future__ import annotations

import numpy as np

from datamask.corpus.threads import one_blas_thread

FIT_ROWS = 100_000
"""Rows the components are computed from; more rows move them by less than a picture can show."""

FIT_WORK = 3e11
"""With many dimensions fewer rows are used, so that rows x d^2 stays below this: some seconds."""

BLOCK = 8192


def principal_axes(features: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean and the k directions of largest variance, of a sample where N is large.

    Args:
        features: float32 ``(N, d)``.
        k: how many; at most d.

    Returns:
        Mean float32 ``(d,)`` and axes float32 ``(d, k)``, by falling variance. The sign of an axis is arbitrary; here
        its largest entry is positive, so that the same corpus gives the same picture.
    """
    from scipy.linalg import eigh

    n, dim = features.shape
    k = min(k, dim)
    limit = int(min(FIT_ROWS, max(2 * dim, FIT_WORK / dim**2)))
    rows = np.arange(n)
    if n > limit:
        rows = np.sort(np.random.default_rng(0).choice(n, limit, replace=False))
    mean = np.zeros(dim)
    for low in range(0, len(rows), BLOCK):
        mean += features[rows[low : low + BLOCK]].sum(axis=0, dtype=np.float64)
    mean = (mean / len(rows)).astype(np.float32)
    scatter = np.zeros((dim, dim))
    # one thread: enough for these sizes, and on a busy machine several times as fast as threads that wait in step
    with one_blas_thread():
        for low in range(0, len(rows), BLOCK):
            part = features[rows[low : low + BLOCK]] - mean
            scatter += part.T @ part
        axes = eigh(scatter, subset_by_index=[dim - k, dim - 1])[1][:, ::-1]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], 0)
    return mean, (axes * np.where(largest < 0, -1.0, 1.0)).astype(np.float32)


def project(features: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """``(features - mean) @ axes`` without a copy of the features: float32 ``(N, k)``."""
    with one_blas_thread():
        projected: np.ndarray = features @ axes - mean @ axes
    return projected
