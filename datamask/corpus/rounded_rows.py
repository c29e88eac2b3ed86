"""Rows as neighbor graphs see them: of unit length, rounded to float16, then to multiples of 1/32,767.

Every product of two such rows is computed in whole numbers of 30 bits, whose sum cannot leave int32 since neither row
is longer than 1, but for rounding. So it is the same number, and so is the cosine, whatever rows are multiplied
together, in which order, by which machine: lists that are built in memory and by tasks over files are equal, entry for
entry. Products of float32 matrices only say which pairs are worth computing (`slack`).

A cosine is off by some 0.00002 at hundreds of dimensions, by 0.0007 at two, and never by more than `cosine_error`. A
graph in memory has those of the rows too; out of core values and bounds are computed from the rows.
"""

from __future__ import annotations

import math

import numpy as np

from datamask.corpus.threads import in_threads

UNIT = 32_767
"""The length of a row."""

ROWS_AT_ONCE = 4096

LEAST = 1e-3
"""Length below which a row has no direction."""


def rounded(features: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """Round rows, int16 ``(n, d)``.

    Args:
        features: float32 or float16 ``(N, d)``, unit rows; what is rounded to float16 already gives the same.
        of: which rows, int64 ``(n,)``; None: all.
    """
    count = len(features) if of is None else len(of)
    rows = np.empty((count, features.shape[1]), np.int16)

    def task(number: int) -> None:
        part = slice(number * ROWS_AT_ONCE, (number + 1) * ROWS_AT_ONCE)
        some = features[part] if of is None else features[of[part]]
        rows[part] = to_length(some.astype(np.float16).astype(np.float64))

    if count <= 4 * ROWS_AT_ONCE:  # less than threads cost
        for number in range(-(-count // ROWS_AT_ONCE)):
            task(number)
    else:
        in_threads(task, -(-count // ROWS_AT_ONCE))
    return rows


def to_length(rows: np.ndarray) -> np.ndarray:
    """Scale rows to the length of `UNIT` and round them.

    Args:
        rows: float64 ``(n, d)``, of float16 values or whole numbers: no sum of their squares is rounded, in any order.
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    scaled = rows * (UNIT / np.maximum(lengths, LEAST))[:, None]
    whole: np.ndarray = np.rint(scaled, out=scaled).astype(np.int16)
    return whole


def slack(dim: int) -> np.float32:
    """How far a float32 product of two rows of this many dimensions may be from their cosine, at most.

    Each of d terms is rounded, and so are their factors and each of d sums: by 2^-24 of at most 1 altogether.
    """
    return np.float32((dim + 16) * 2.0**-23)


def cosine_error(dim: int) -> float:
    """How far the cosine of two rounded rows of this many dimensions may be from that of the rows, at most.

    A product of unit rows changes by no more than the two rows move. Rounding to float16 moves a coordinate by 2^-11 of
    it or by 2^-25, and rounding to whole numbers by half a one. A thousandth covers what lengths near 1 add.
    """
    moved = 2.0**-11 + math.sqrt(dim) * (2.0**-25 + 0.5 / UNIT)
    return 2.002 * moved


def widened(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounded rows as unit rows of float32, ``(n, d)``, and 1 by their lengths, float64 ``(n,)``."""
    from datamask.corpus import kernels

    inverses, wide = kernels.inverse_lengths(rows), np.empty(rows.shape, np.float32)
    kernels.widen(rows, inverses, wide)
    return wide, inverses
