"""Several quality columns to one number per row: a weighted sum of raw values, z-scores or ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from datamask.config import QualityColumn
from datamask.errors import InputError

LARGEST_SUM = float(np.finfo(np.float64).max) / 4
"""Of absolute values: sums of any rows, and differences of two such sums, are then finite."""


def transform(values: np.ndarray, how: str, rests: np.ndarray | None = None) -> np.ndarray:
    """One column under its transform.

    Args:
        values: float64 ``(N,)``, finite.
        rests: what float64 could not hold of integers, ``(N,)`` (see `decode.integer_rests`); only ranks can tell.
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
        # float64 keeps the order of integers but for ties, which their rests decide
        pairs = values if rests is None else _places(np.stack([values, rests]))
        _, place, counts = np.unique(pairs, return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - (counts + 1) / 2
        return middle[place] / max(len(values) - 1, 1)
    return values


def weighted_sum(
    values: np.ndarray,
    columns: Sequence[QualityColumn],
    rests: Mapping[int, np.ndarray] | None = None,
    place: Callable[[int], str] = "row {}".format,
) -> np.ndarray:
    """``sum_c weight_c transform_c(values[c])``: float64 ``(Q, N)`` to ``(N,)``.

    Args:
        values: finite.
        columns: weight and transform of each.
        rests: row of `values` -> what float64 could not hold of it.
        place: where a row comes from, for messages.

    Raises:
        InputError: integers that float64 takes for equal, other than by rank; or values too large to sum.
    """
    rests = rests or {}
    total = np.zeros(values.shape[1])
    for index, (row, column) in enumerate(zip(values, columns, strict=True)):
        if index in rests and column.transform != "rank":
            _refuse_merged(row, rests[index], column)
        with np.errstate(over="ignore", invalid="ignore"):
            total += column.weight * transform(row, column.transform, rests.get(index))
    names = ", ".join(repr(column.name) for column in columns)
    check_sum(
        total,
        f"the quality in column {names}",
        f"divide it by a constant, or take ranks with --quality_column {columns[0].name}:1:rank",
        place,
    )
    return total


def check_sum(values: np.ndarray, what: str, way_out: str, place: Callable[[int], str] = "row {}".format) -> None:
    """Refuse values whose sums float64 cannot hold, naming the largest one's place.

    Raises:
        InputError: the sum of their absolute values is beyond `LARGEST_SUM`.
    """
    largest = float(np.abs(values).max(initial=0.0))
    with np.errstate(over="ignore"):
        fits = float(np.abs(values).sum()) <= LARGEST_SUM
    if not fits:
        size = f"up to {largest:.3g}" if np.isfinite(largest) else "beyond float64's range once weighted"
        where = place(int(np.abs(values).argmax()))
        raise InputError(
            f"{what} is {size} ({where}), too large for {len(values):,} rows to be summed in float64; {way_out}"
        )


def _places(pairs: np.ndarray) -> np.ndarray:
    """The place of each column of ``(2, N)`` in their order, by first row, then second; equal columns share one."""
    order = np.lexsort(pairs[::-1])
    rises = np.any(pairs[:, order[1:]] != pairs[:, order[:-1]], axis=0)
    places = np.empty(pairs.shape[1], np.int64)
    places[order] = np.concatenate([[0], np.cumsum(rises)])
    return places


def _refuse_merged(values: np.ndarray, rests: np.ndarray, column: QualityColumn) -> None:
    merged = len(np.unique(_places(np.stack([values, rests])))) - len(np.unique(values))
    if merged:
        raise InputError(
            f"column {column.name!r} holds whole numbers beyond 2^53: float64 takes {merged:,} of them "
            "for equal to others; rank them with --quality_column "
            f"{column.name}:{column.weight:g}:rank, or subtract a constant from the column"
        )
