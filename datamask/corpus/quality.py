"""Several quality columns to one number per row: a weighted sum of raw values, z-scores or ranks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config import QualityColumn
from datamask.errors import InputError

LARGEST_SUM = float(np.finfo(np.float64).max) / 4
"""Of absolute values: sums of any rows, and differences of two such sums, are then finite."""


FEWEST_RANKED = 100
"""Rows of a value that are ranked by themselves: among fewer a rank says little."""


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


def ranks_within(
    quality: np.ndarray, metadata: pa.Table, name: str, unread: Sequence[str] = ()
) -> tuple[np.ndarray, str]:
    """Quality as the rank within each value of a column, so that values whose scores differ compare; and a note.

    Args:
        quality: float64 ``(N,)``. metadata: N rows. name: of the column, such as ``language``. Values of fewer than
            `FEWEST_RANKED` rows are ranked together, and so are rows without a value.
        unread: further columns of the files.

    Raises:
        InputError: there is no such column.

    Example:
        >>> ranks, _ = ranks_within(np.arange(400.0), pa.table({"lang": ["en"] * 200 + ["th"] * 200}), "lang")
        >>> float(ranks[199]), float(ranks[200])
        (1.0, 0.0)
    """
    if name not in metadata.column_names:
        names = [*metadata.column_names, *unread]
        found = f"there are {', '.join(names[:8])}" if names else "there are no others"
        raise InputError(f"--quality_within: the corpus has no column {name!r}; {found}")
    values = pc.fill_null(metadata[name].cast(pa.string()), "").combine_chunks().dictionary_encode()
    group, names = values.indices.to_numpy(), values.dictionary.to_pylist()
    counts = np.bincount(group, minlength=len(names))
    few = counts < FEWEST_RANKED
    group = np.where(few[group], len(names), group)
    ranks = np.empty(len(quality))
    for value in np.unique(group):
        rows = group == value
        ranks[rows] = transform(quality[rows], "rank")
    note = f"Quality is the rank within each of {int((~few).sum()):,} values of {name}"
    if few.any():
        pooled = [f"{names[value] or 'none'} ({counts[value]:,})" for value in np.flatnonzero(few)]
        more = f" and {len(pooled) - 8:,} more" if len(pooled) > 8 else ""
        note += f"; those of fewer than {FEWEST_RANKED} rows are ranked together: {', '.join(pooled[:8])}{more}"
    return ranks, f"{note}."


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
