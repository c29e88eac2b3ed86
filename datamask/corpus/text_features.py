"""Features from text alone: TF-IDF and a truncated SVD, fitted on a sample, applied batch by batch.

Latent semantic analysis (Deerwester et al. 1990): a stand-in for a sentence-embedding model that needs no download, no
accelerator and no minutes, and gives the same bytes each time on one machine. A user with real embeddings brings those.

| symbol | shape | meaning |
|---|---|---|
| A | (n, V) sparse | TF-IDF of the n fitted texts over V words, rows of unit norm |
| W | (V, d) | the leading right singular vectors of A |
| X = A W | (n, d) | features, rows scaled to unit norm |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from datamask.corpus.threads import one_blas_thread
from datamask.errors import InputError
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FIT_LIMIT = 50_000
"""Texts that the vocabulary and the SVD are fitted on; the rest are only projected."""

LONGEST = 20_000
"""Characters of a text that are looked at; a book should not outweigh the sample it stands in."""

_IDEOGRAMS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
TOKEN_PATTERN = rf"[{_IDEOGRAMS}]|[^\W_{_IDEOGRAMS}]{{2,}}"
"""Words of two characters or more, split at underscores; scripts written without spaces go character by character."""

_VOCABULARY = 40_000
_OVERSAMPLING = 16
_PASSES = 5
_BLOCK = 2_048


class TextFeatures:
    """TF-IDF and truncated SVD: `fit` once, then `transform` any number of texts.

    Attributes:
        dim: d, the number of dimensions asked for; after `fit` the number there are.
        seed: of the random start of the SVD.
        batch: texts transformed at a time.
        explained: after `fit`, the share of the squared TF-IDF weights that the d dimensions hold.
    """

    batch = 256

    def __init__(self, dim: int = 256, seed: int = 0) -> None:
        self.dim = dim
        self.seed = seed
        self.explained = 0.0

    def fit(self, texts: Sequence[str], *, work: Work = UNWATCHED) -> TextFeatures:
        """Learn the vocabulary and W from `texts`.

        A word counts from its second text on (from its first where that leaves fewer words than dimensions). `dim`
        falls to what the texts can fill: one less than their number or the number of words, whichever is smaller.

        Raises:
            InputError: fewer than two texts, or no words in them.
            Stopped: from `work.poll`.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer

        if len(texts) < 2:
            raise InputError(f"at least 2 texts with words are needed to learn features, got {len(texts)}")
        work.report(0.0, f"Counting the words of {len(texts):,} texts")
        for least in (2, 1):
            self._words = TfidfVectorizer(
                token_pattern=TOKEN_PATTERN,
                sublinear_tf=True,
                min_df=least,
                max_df=0.5 if len(texts) > 100 else 1.0,
                max_features=_VOCABULARY,
                dtype=np.float32,
            )
            try:
                weights = self._words.fit_transform(_watched(texts, work.poll))
            except ValueError as error:
                # scikit-learn raises this when no word is left, and has no type of its own for it
                if least == 2:
                    continue
                raise InputError(
                    f"the {len(texts):,} texts have no words in common to learn features from; give more texts, or "
                    "choose a model with --embedder"
                ) from error
            if min(weights.shape) > self.dim:
                break
        self.dim = min(self.dim, len(texts) - 1, weights.shape[1])
        self._axes, self.explained = _leading_axes(weights, self.dim, self.seed, work)
        return self

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Features of `texts`, float32 ``(n, d)``, rows of unit norm; all zero where no word of a text was in `fit`."""
        features = np.asarray(self._words.transform([text[:LONGEST] for text in texts]) @ self._axes, dtype=np.float32)
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        # a text whose words hardly touch the leading axes would otherwise be scaled up from rounding noise
        features[norms[:, 0] < 1e-4] = 0.0
        norms[norms < 1e-4] = 1.0
        unit: np.ndarray = features / norms
        return unit


def _watched(texts: Sequence[str], poll: Poll) -> Iterator[str]:
    for i, text in enumerate(texts):
        if i % 512 == 0:
            poll()
        yield text[:LONGEST]


def _leading_axes(weights: csr_matrix, dim: int, seed: int, work: Work) -> tuple[np.ndarray, float]:
    """The leading `dim` right singular vectors of a sparse matrix, by subspace iteration (Halko et al. 2011, alg. 4.4).

    scikit-learn's `TruncatedSVD` does the same in one call of many seconds that cannot be stopped; here every product
    is cut into blocks of rows. BLAS runs on one thread: the order of its sums, hence the bytes, would follow the thread
    count.

    Returns:
        W, float32 ``(V, d)``, each column's largest entry positive, and the share of the squared weights it holds.
    """
    vocabulary = weights.shape[1]
    width = min(dim + _OVERSAMPLING, vocabulary)
    with one_blas_thread():
        basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((vocabulary, width), dtype=np.float32))[0]
        blocks = [weights[start : start + _BLOCK] for start in range(0, weights.shape[0], _BLOCK)]
        for sweep in range(_PASSES + 1):
            total = np.zeros((vocabulary if sweep < _PASSES else width, width), dtype=np.float32)
            for i, block in enumerate(blocks):
                work.poll()
                work.report(
                    (sweep + i / len(blocks)) / (_PASSES + 1),
                    f"Learning {dim} dimensions from {weights.shape[0]:,} texts (pass {sweep + 1} of {_PASSES + 1})",
                )
                image = block @ basis
                total += block.T @ image if sweep < _PASSES else image.T @ image
            if sweep < _PASSES:
                basis = np.linalg.qr(total)[0]
        values, rotation = np.linalg.eigh(total.astype(np.float64))
        order = np.argsort(values)[::-1][:dim]
        axes = basis @ rotation[:, order].astype(np.float32)
    # a singular vector's sign is a coin flip of the solver
    axes *= np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(dim)])
    return axes, float(values[order].sum() / weights.multiply(weights).sum())
