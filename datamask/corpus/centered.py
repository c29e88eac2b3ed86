"""The same corpus seen from its own mean: what is common to all features taken away before they are unit length."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

ROWS_AT_ONCE = 16_384
"""Rows per chunk, in float64: 50 MB at 384 dimensions, some 30 ms."""

NOWHERE = 1e-6
"""A row nearer to the mean than this share of its length has no direction left but rounding."""


def centered(corpus: Corpus, poll: Poll = no_poll) -> Corpus:
    """The mean of the features as they were read, subtracted from each, and the rest scaled to unit length.

    Embeddings of some models share a large common component: E5's cosines lie between 0.7 and 1.0, and nearly all that
    a mean cosine sees is that component. The other columns are the corpus's own; the fingerprint is another, so
    whatever is cached by it (neighbours, ends of scales) is never mixed up.

    Raises:
        InputError: rows that equal the mean, and so have no direction from it.
        Stopped: from `poll`.
    """
    n, d = corpus.features.shape
    norms, _ = _squarable(corpus.norms)
    mean = _mean(corpus, norms, poll)
    features = corpus.place.empty((n, d), np.float32)
    lost = 0
    for part in _parts(n):
        poll()
        rows = _as_read(corpus, norms, part)
        before = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows -= mean
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        lost += int((lengths <= NOWHERE * before).sum())
        with np.errstate(invalid="ignore", divide="ignore"):
            features[part] = rows / lengths[:, None]
    if lost:
        raise InputError(
            f"--center leaves {lost:,} of {n:,} rows without a direction: their features equal the mean "
            "of the corpus; leave --center out, or take those rows out"
        )
    features.flags.writeable = False
    return replace(corpus, features=features, norms=None, fingerprint=f"{corpus.fingerprint}-centered")


def common_mean(corpus: Corpus, poll: Poll = no_poll) -> np.ndarray:
    """What `centered` subtracts: the mean of the features as they were read, float64 ``(d,)``.

    Raises:
        InputError: it is beyond the range of float64.
        Stopped: from `poll`.
    """
    norms, exponent = _squarable(corpus.norms)
    with np.errstate(over="ignore"):
        mean: np.ndarray = np.ldexp(_mean(corpus, norms, poll), exponent)
    if not np.isfinite(mean).all():
        raise InputError("the mean of the features is beyond the range of float64; divide them by a constant")
    return mean


def _parts(n: int) -> list[slice]:
    return [slice(low, low + ROWS_AT_ONCE) for low in range(0, n, ROWS_AT_ONCE)]


def _mean(corpus: Corpus, norms: np.ndarray | None, poll: Poll) -> np.ndarray:
    total = np.zeros(corpus.dim)
    for part in _parts(len(corpus)):
        poll()
        total += _as_read(corpus, norms, part).sum(axis=0)
    return total / len(corpus)


def _squarable(norms: np.ndarray | None) -> tuple[np.ndarray | None, int]:
    """The norms, all divided by one power of two where the largest could not be squared: directions stay.

    Returns:
        The norms, and the power's exponent.
    """
    if norms is None or 1e-100 < (largest := float(norms.max())) < 1e100:
        return norms, 0
    exponent = int(np.frexp(largest)[1])
    return np.ldexp(norms, -exponent), exponent


def _as_read(corpus: Corpus, norms: np.ndarray | None, part: slice) -> np.ndarray:
    """Features before they were made unit length, float64, up to one factor common to all."""
    rows = corpus.features[part].astype(np.float64)
    return rows if norms is None else rows * norms[part, None]
