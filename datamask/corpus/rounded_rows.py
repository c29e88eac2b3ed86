"""Rows as neighbor graphs see them: of unit length, rounded to float16, then to multiples of 1/32,767.

Every product of two such rows is computed in whole numbers of 30 bits, whose sum cannot leave int32 since neither row
is longer than 1, but for rounding. So it is the same number, and so is the cosine, whatever rows are multiplied
together, in which order, by which machine: lists are equal, entry for entry. Products of float32 matrices only say
which pairs are worth computing (`slack`).

A cosine is off by some 0.00002 at hundreds of dimensions, by 0.0007 at two, and never by more than `cosine_error`. A
graph has those of the rows too, and how far rows were moved.
"""

from __future__ import annotations

import math

import numpy as np

from datamask.corpus.threads import in_threads
from datamask.places import MEMORY, Place

UNIT = 32_767
"""The length of a row."""

NUMBERS_AT_ONCE = 2**20
"""Of rows that are widened to float64, which takes 8 MB, and as much again for what is made of them."""

LENGTHS = 2.0**-22
"""The product of two equal rows is above 1 by so much at most: their lengths are 1 to the rounding of float32."""

LEAST = 1e-3
"""Length below which a row has no direction."""


def rounded(features: np.ndarray, of: np.ndarray | None = None, place: Place = MEMORY) -> np.ndarray:
    """Round rows, int16 ``(n, d)``, in that place.

    Args:
        features: float32 or float16 ``(N, d)``, unit rows; what is rounded to float16 already gives the same.
        of: which rows, int64 ``(n,)``; None: all.
    """
    count = len(features) if of is None else len(of)
    rows = place.empty((count, features.shape[1]), np.int16)

    parts = _parts(*rows.shape)

    def task(number: int) -> None:
        part = parts[number]
        some = features[part] if of is None else features[of[part]]
        rows[part] = to_length(some.astype(np.float16).astype(np.float64))

    if len(parts) <= 2:  # less than threads cost
        for number in range(len(parts)):
            task(number)
    else:
        in_threads(task, len(parts))
    return rows


def _parts(count: int, dim: int) -> list[slice]:
    """Slices of at most `NUMBERS_AT_ONCE` numbers that cover so many rows."""
    step = max(NUMBERS_AT_ONCE // max(dim, 1), 1)
    return [slice(low, min(low + step, count)) for low in range(0, count, step)]


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


def longest_move(features: np.ndarray, rows: np.ndarray) -> float:
    """How far a rounded row of unit length lies from the row, at most.

    Args:
        features: float32 ``(N, d)``, unit rows. rows: int16 ``(N, d)``, the same rounded.
    """
    most = 0.0
    for part in _parts(*rows.shape):
        some = rows[part].astype(np.float64)
        some /= np.sqrt(np.einsum("ij,ij->i", some, some))[:, None]
        some -= features[part]
        most = max(most, float(np.einsum("ij,ij->i", some, some).max()))
    return math.sqrt(most)


def highest_product(cosines: np.ndarray, move: float) -> np.ndarray:
    """The highest product that two rows may have whose rounded rows have a cosine, float64 ``(n,)``.

    Each of the two rows moved by at most `move`, so they are nearer by at most twice that. Rows that nearly coincide
    are a small distance apart, and their cosine changes by much less than the rows moved.

    Args:
        cosines: float32 ``(n,)``, of rounded rows.
    """
    cosines = cosines.astype(np.float64) + 2.0**-24  # they were rounded themselves
    apart = np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0)) - 2.0 * move
    of_distance = 1.0 - np.maximum(apart, 0.0) ** 2 / 2
    return np.minimum(cosines + 2.0 * move, of_distance) + LENGTHS


def widened(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounded rows as unit rows of float32, ``(n, d)``, and 1 by their lengths, float64 ``(n,)``."""
    from datamask.corpus import kernels

    inverses, wide = kernels.inverse_lengths(rows), np.empty(rows.shape, np.float32)
    kernels.widen(rows, inverses, wide)
    return wide, inverses
