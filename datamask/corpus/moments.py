"""Dates and times that every page can show.

A parquet file may hold years that no calendar of Python has, and time zones that nobody has heard of; whatever turns
such a value into text or a cell raises. They are mended once, where metadata is assembled.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400
_FIRST, _LAST = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""

_LONGEST = 999_999_999
"""Days of the longest timedelta."""


def showable(name: str, column: pa.ChunkedArray) -> tuple[pa.ChunkedArray | None, str | None]:
    """A metadata column without moments that cannot be shown, and a note on what was changed.

    A timestamp in an unknown zone is given in UTC, as it is stored; one outside the years 1 to 9999 becomes null. A
    nested column with such values is left out: None.
    """
    kind = column.type
    if pt.is_nested(kind) or pt.is_dictionary(kind):
        if any(
            not _zone_known(leaf.type) or _outside(leaf).any()
            for chunk in column.chunks
            for leaf in _temporal_leaves(chunk)
        ):
            return None, f"Column {name!r} ({kind}) was left out: it holds times that cannot be shown."
        return column, None
    if not pt.is_temporal(kind):
        return column, None
    notes = []
    if not _zone_known(kind):
        column = pa.chunked_array(
            [chunk.view(pa.timestamp(kind.unit, "UTC")) for chunk in column.chunks], pa.timestamp(kind.unit, "UTC")
        )
        notes.append(f"Column {name!r} is in the unknown time zone {kind.tz[:60]!r} and shown in UTC.")
    masks = [_outside(chunk) for chunk in column.chunks]
    count = sum(int(mask.sum()) for mask in masks)
    if count:
        column = pa.chunked_array(
            [
                pc.if_else(pa.array(mask), pa.scalar(None, column.type), chunk)
                for mask, chunk in zip(masks, column.chunks)
            ],
            column.type,
        )
        notes.append(
            f"{count:,} of {len(column):,} values in column {name!r} ({column.type}) lie outside what a "
            "calendar can show (years 1 to 9999) and were left empty."
        )
    return column, " ".join(notes) or None


def _zone_known(kind: pa.DataType) -> bool:
    if not pt.is_timestamp(kind) or kind.tz is None:
        return True
    try:
        pa.scalar(0, kind).as_py()
    except (pa.ArrowException, ValueError, LookupError, OSError):
        return False
    return True


def _outside(column: pa.Array) -> np.ndarray:
    """Which values Python's own types cannot hold: bool ``(n,)``."""
    low, high = _limits(column.type)
    if low is None:
        return np.zeros(len(column), bool)
    narrow = pa.int32() if column.type.bit_width == 32 else pa.int64()
    values = column.view(narrow).fill_null(0).to_numpy(zero_copy_only=False)
    outside: np.ndarray = (values < low) | (values > high)
    return outside


def _limits(kind: pa.DataType) -> tuple[int, int] | tuple[None, None]:
    """The least and greatest integer of a temporal type that can be shown; None where there is no limit."""
    if pt.is_date32(kind):
        return _FIRST, _LAST
    if pt.is_date64(kind):
        return _FIRST * _DAY * 1000, (_LAST + 1) * _DAY * 1000 - 1
    if pt.is_time(kind):
        return 0, _DAY * _PER_SECOND[kind.unit] - 1
    if pt.is_timestamp(kind):
        # moving to a zone may take a day
        margin = 0 if kind.tz is None else 1
        second = _PER_SECOND[kind.unit]
        return (_FIRST + margin) * _DAY * second, (_LAST + 1 - margin) * _DAY * second - 1
    if pt.is_duration(kind):
        return -_LONGEST * _DAY * _PER_SECOND[kind.unit], _LONGEST * _DAY * _PER_SECOND[kind.unit]
    return None, None


def _temporal_leaves(column: pa.Array) -> Iterator[pa.Array]:
    if isinstance(column, pa.ExtensionArray):
        yield from _temporal_leaves(column.storage)
    elif pt.is_dictionary(column.type):
        yield from _temporal_leaves(column.dictionary)
    elif pt.is_nested(column.type):
        for part in column.flatten() if pt.is_struct(column.type) else (column.values,):
            yield from _temporal_leaves(part)
    elif pt.is_temporal(column.type):
        yield column
