"""Small corpora with clusters."""

from __future__ import annotations

import numpy as np


def clustered(rows: int, dim: int = 16, clusters: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit features float32 ``(rows, dim)`` around so many centres, and qualities."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(clusters, dim)) + 0.3
    features = centres[rng.integers(0, clusters, rows)] + 0.6 * rng.normal(size=(rows, dim))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return features.astype(np.float32), rng.normal(size=rows)
