"""The leading principal components of a corpus, and its rows on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.corpus.corpus import Corpus
from datamask.corpus.threads import one_blas_thread
from datamask.errors import InputError
from datamask.places import MEMORY, Place
from datamask.polling import Poll, no_poll

ROWS_AT_ONCE = 4_096
"""Rows per chunk, in float64: 130 MB at 4,096 dimensions."""

ROUNDING = 1e-12
"""A component of less than this share of the trace is the rounding of float32 features, and left out."""

NOWHERE = 1e-6
"""A row whose part in the components is shorter than this has no direction left but rounding."""


@dataclass(frozen=True)
class Components:
    """Eigenvectors of the mean of ``x x'`` over all rows x of unit length.

    The mean row is not subtracted, unless ``--center`` did so before: Vendi is of second moments around zero.

    Attributes:
        axes: float64 ``(d, k)``, by falling eigenvalue, orthonormal.
        share: of the trace that their eigenvalues have.
    """

    axes: np.ndarray
    share: float

    @classmethod
    def of(cls, corpus: Corpus, k: int, poll: Poll = no_poll) -> Components:
        """Find k of them, at most d, or as many as are more than rounding."""
        from scipy.linalg import cholesky, eigh, solve_triangular

        features, (n, d) = corpus.features, corpus.features.shape
        # rows are added up by their ids, so that components do not depend on the order of the corpus
        order = np.argsort(corpus.hashes(), kind="stable")
        few, size = n < d, min(n, d)
        with one_blas_thread():
            rows = features[order].astype(np.float64) if few else np.empty((0, d))
            square = rows @ rows.T / n if few else _moment(features, order, poll)
            trace = float(np.trace(square))
            poll()
            first = max(size - k, 0)
            values, axes = eigh(square, lower=False, overwrite_a=True, subset_by_index=[first, size - 1])
            real = values > ROUNDING * trace
            axes, values = axes[:, real][:, ::-1], values[real]
            if few:  # from products of rows, where axes of small eigenvalues come out orthogonal to rounding only
                axes = rows.T @ (axes / np.sqrt(n * values))
                axes = solve_triangular(cholesky(axes.T @ axes, lower=True), axes.T, lower=True).T
        return cls(np.ascontiguousarray(axes), float(values.sum()) / trace)

    def rows(self, features: np.ndarray, poll: Poll = no_poll, place: Place = MEMORY) -> np.ndarray:
        """Return rows on the components, scaled to unit length again: float32 ``(n, k)``, in that place.

        Raises:
            InputError: a row has no part in them.
        """
        n, lost = len(features), 0
        out = place.empty((n, self.axes.shape[1]), np.float32)
        with one_blas_thread():
            for low in range(0, n, ROWS_AT_ONCE):
                poll()
                part = features[low : low + ROWS_AT_ONCE].astype(np.float64) @ self.axes
                lengths = np.sqrt(np.einsum("ij,ij->i", part, part))
                lost += int((lengths <= NOWHERE).sum())
                out[low : low + ROWS_AT_ONCE] = part / np.maximum(lengths, NOWHERE)[:, None]
        if lost:
            raise InputError(
                f"the {self.axes.shape[1]:,} leading components have no part of {lost:,} of {n:,} rows, which are left "
                "without a direction; keep more of them, or --components all"
            )
        out.flags.writeable = False
        return out


def _moment(features: np.ndarray, order: np.ndarray, poll: Poll) -> np.ndarray:
    """The mean of ``x x'`` over all rows, added up in this order: float64 ``(d, d)``, its upper half."""
    from scipy.linalg import blas

    n, d = features.shape
    moment: np.ndarray = np.zeros((d, d), order="F")
    for low in range(0, n, ROWS_AT_ONCE):
        poll()
        rows = features[order[low : low + ROWS_AT_ONCE]].astype(np.float64)
        moment = blas.dsyrk(1.0 / n, rows.T, 1.0, moment, overwrite_c=1)
    return moment
