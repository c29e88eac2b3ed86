"""A second representation: texts as directions in a space learned from words alone.

TF-IDF of the texts, projected on its leading right singular vectors (latent semantic analysis, Deerwester et al. 1990).
The selections never saw it, unless the corpus's own features are of the same kind; `agreement` says how far they are.
"""

from __future__ import annotations

import numpy as np

from datamask.evaluation.measures.ground import polled
from datamask.evaluation.measures.words import Words
from datamask.polling import Poll, no_poll

DIM = 128
FIT = 20_000
"""Texts the axes are learned from."""

AT_ONCE = 2_048


class Meaning:
    """Unit directions of all texts: float32 ``(N, d)``, zero for a text without a telling word."""

    def __init__(self, words: Words, seed: int = 0, poll: Poll = no_poll) -> None:
        from sklearn.utils.extmath import randomized_svd

        rng = np.random.default_rng([2025, seed])
        fitted = np.sort(rng.permutation(len(words))[:FIT])
        weights = words.tf_idf(fitted)
        dim = max(1, min(DIM, *(side - 1 for side in weights.shape)))
        axes = polled(lambda: randomized_svd(weights, dim, n_iter=3, random_state=seed)[2], poll).T
        axes = np.ascontiguousarray(axes, np.float32)
        self.directions = np.zeros((len(words), axes.shape[1]), np.float32)
        for low in range(0, len(words), AT_ONCE):
            poll()
            rows = np.arange(low, min(low + AT_ONCE, len(words)))
            projected = np.asarray(words.tf_idf(rows) @ axes, np.float32)
            norms = np.linalg.norm(projected, axis=1, keepdims=True)
            # a text whose words hardly touch the axes would be scaled up from rounding noise
            self.directions[rows] = np.where(norms < 1e-4, 0.0, projected / np.maximum(norms, 1e-4))

    def nearest(self, texts: np.ndarray, among: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
        """Cosine of each of `texts` to the nearest of `among`: float64 ``(A,)``."""
        best = np.empty(len(texts))
        those = self.directions[among].T
        for low in range(0, len(texts), AT_ONCE):
            poll()
            best[low : low + AT_ONCE] = (self.directions[texts[low : low + AT_ONCE]] @ those).max(axis=1)
        return best
