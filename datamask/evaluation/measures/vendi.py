"""The Vendi score: the effective number of different samples (Friedman and Dieng 2023, arXiv 2210.02410).

With cosines as similarities, the S x S kernel matrix over S and the d x d second-moment matrix of the members have the
same non-zero eigenvalues. The score is the exponential of their entropy, which the small matrix gives for any S.

| symbol | meaning |
|---|---|
| M = (1/S) sum over i in U of x_i x_i' | second-moment matrix, trace 1 for unit features |
| l_1 ... l_d | its eigenvalues, adding to 1 |
"""

from __future__ import annotations

import numpy as np

from datamask.evaluation.measures.entry import MeasureEntry, Selections
from datamask.evaluation.measures.ground import Ground, polled
from datamask.evaluation.measures.reading import Measured, Reading
from datamask.polling import Poll, no_poll

BLOCK_FLOPS = 2e9
"""Blocks of rows so large that one takes well under 0.3 s on one core."""

NEGLIGIBLE = 1e-12
"""An eigenvalue below this is rounding: directions that no member has."""


def effective_number(shares: np.ndarray) -> float:
    """The exponential of the entropy of shares that add to 1, from 1 (all in one) to their number."""
    shares = shares[shares > NEGLIGIBLE]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def vendi(ground: Ground, selections: Selections, entry: MeasureEntry) -> list[Measured]:
    """The Vendi score, with draws along its tangent: ``dH/dw_i = -(x_i' log(M) x_i + H) / S``."""
    features, readings = ground.corpus.features, {}
    for name, rows in selections.items():
        shares, axes = spectrum(features, rows, ground.poll)
        value, draws = effective_number(shares), None
        if ground.resampling and len(rows) > 1:
            logs = np.where(shares > NEGLIGIBLE, np.log(np.maximum(shares, NEGLIGIBLE)), 0.0).astype(np.float32)
            slope, step = np.empty(len(rows)), _block(features.shape[1])
            for low in range(0, len(rows), step):
                ground.poll()
                slope[low : low + step] = -np.square(features[rows[low : low + step]] @ axes) @ logs
            draws = value * np.exp(ground.mean_draws(slope, rows) - slope.mean())
        readings[name] = Reading(value, draws, "bootstrap", bounds=(1.0, float(min(len(rows), ground.corpus.dim))))
    return [entry.measured(readings)]


def _second_moments(features: np.ndarray, rows: np.ndarray, poll: Poll) -> np.ndarray:
    """M, float64 ``(d, d)``, of these rows."""
    dim = features.shape[1]
    total, step = np.zeros((dim, dim)), _block(dim)
    for low in range(0, len(rows), step):
        poll()
        part = features[rows[low : low + step]]
        total += part.T @ part
    return total / len(rows)


def spectrum(features: np.ndarray, rows: np.ndarray, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of M over these rows as shares, float64 ``(d,)``, and eigenvectors, float32 ``(d, d)`` in columns."""
    moments = _second_moments(features, rows, poll)
    values, axes = polled(lambda: np.linalg.eigh(moments), poll)
    values = np.maximum(values, 0.0)
    return values / values.sum(), axes.astype(np.float32)


def _block(dim: int) -> int:
    return max(64, int(BLOCK_FLOPS / (2 * dim * dim)))
