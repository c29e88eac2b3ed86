"""From Arrow buffers to numpy: feature lists as one 2-D view, numbers as float64, ids as one plain array.

No value passes through a Python object. A feature column whose rows all have d values is a view on its buffer in its
own width; the caller widens it to float32 while copying it to its place.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.corpus.columns import is_string, value_type

NUMPY_FLOATS = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64}


class LengthError(ValueError):
    """A feature row without exactly d values. row: its place in the batch; length: how many values it has."""

    def __init__(self, row: int, length: int) -> None:
        super().__init__(f"row {row} has {length} values")
        self.row, self.length = row, length


def plain(column: pa.Array) -> pa.Array:
    """The same values without extension type or dictionary encoding."""
    while True:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        elif pt.is_dictionary(column.type):
            column = column.dictionary_decode()
        else:
            return column


def feature_length(column: pa.Array) -> int | None:
    """d by the first row that is not null; None where all are."""
    column = plain(column)
    if pt.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    lengths = pc.list_value_length(column).drop_null()
    return int(lengths[0].as_py()) if len(lengths) else None


def feature_rows(column: pa.Array, dim: int) -> tuple[np.ndarray, np.ndarray | None]:
    """The features of a batch as an ``(n, dim)`` array in their own float width, and which rows are null.

    A view of the Arrow buffer wherever no value is missing. Null rows, and null values inside a row, become NaN.

    Returns:
        The array, and a boolean ``(n,)`` mask of null rows or None where there are none.

    Raises:
        LengthError: a row that is not null does not have `dim` values.
    """
    column = plain(column)
    n = len(column)
    null = np.asarray(column.is_null()) if column.null_count else None
    if pt.is_fixed_size_list(column.type):
        if column.type.list_size != dim:
            raise LengthError(0, column.type.list_size)
        rows = _floats(column.values, column.offset * dim, n * dim).reshape(n, dim)
    else:
        offsets = np.asarray(column.offsets, dtype=np.int64)
        lengths = np.diff(offsets)
        wrong = lengths != dim if null is None else (lengths != dim) & ~null
        if wrong.any():
            row = int(np.argmax(wrong))
            raise LengthError(row, int(lengths[row]))
        if null is None:
            rows = _floats(column.values, int(offsets[0]) if n else 0, n * dim).reshape(n, dim)
        else:
            # null rows may or may not own values, so the others are gathered by where they start
            flat = _floats(column.values, 0, len(column.values))
            rows = np.full((n, dim), np.nan, flat.dtype)
            rows[~null] = flat[offsets[:-1][~null, None] + np.arange(dim)]
            return rows, null
    if null is not None:
        rows = rows.copy()
        rows[null] = np.nan
    return rows, null


def _floats(values: pa.Array, start: int, count: int) -> np.ndarray:
    """``count`` values from ``start`` on; a view, or a copy with NaN where any of them is null."""
    values = values.slice(start, count)
    kind = NUMPY_FLOATS[values.type]
    if count == 0:
        return np.empty(0, kind)
    flat = np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + count]
    if values.null_count:
        flat = flat.copy()
        flat[np.asarray(values.is_null())] = np.nan
    return flat


def within_float32(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Float64 rows whose directions survive the cast to float32.

    A row whose largest value float32 cannot hold, or holds with few bits only, is multiplied by a power of two, which
    is exact; all others stay as they are, and so do rows that hold NaN or infinity.

    Args:
        rows: float64 ``(n, d)``.

    Returns:
        The rows, and the int16 ``(n,)`` exponents e by which ``rows = returned * 2**e``; None where all are 0.
    """
    limits = np.finfo(np.float32)
    largest = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = np.isfinite(largest) & (np.isinf(largest.astype(np.float32)) | (largest < limits.tiny)) & (largest > 0)
    if not beyond.any():
        return rows, None
    exponents = np.where(beyond, np.frexp(np.where(beyond, largest, 1.0))[1], 0).astype(np.int16)
    scaled = rows.copy()
    scaled[beyond] = np.ldexp(rows[beyond], -exponents[beyond, None].astype(np.int32))
    return scaled, exponents


def integer_rests(column: pa.Array) -> np.ndarray | None:
    """What float64 cannot hold of an integer column: float64 ``(n,)``, value minus its rounding; None if all is held.

    Beyond 2^53 neighbours round to one float64; the value and its rest together are exact.
    """
    column = plain(column)
    if not (pt.is_int64(column.type) or pt.is_uint64(column.type)):
        return None
    exact = column.fill_null(0).to_numpy(zero_copy_only=False)
    bound = 2**53
    if not len(exact) or (int(exact.max()) <= bound and int(exact.min()) >= -bound):
        return None
    # rounding may end at 2^63 or 2^64, which the integer type does not hold, so the difference is Python's
    return np.array([value - int(float(value)) for value in exact.tolist()], np.float64)


def numbers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Any number column as float64 ``(n,)``, NaN where null, and the boolean mask of nulls."""
    column = plain(column)
    null = np.asarray(column.is_null()) if column.null_count else np.zeros(len(column), bool)
    if not pt.is_float64(column.type):
        column = pc.cast(column, pa.float64(), safe=False)
    return np.where(null, np.nan, column.to_numpy(zero_copy_only=False)), null


def id_type(kinds: list[pa.DataType]) -> pa.DataType | None:
    """One type that holds the ids of all shards: the common one, else the widest of its kind; None if none does."""
    kinds = [value_type(kind) for kind in kinds]
    if all(is_string(kind) for kind in kinds):
        return pa.large_string() if any(pt.is_large_string(kind) for kind in kinds) else pa.string()
    if any(is_string(kind) for kind in kinds):
        return None
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(pt.is_unsigned_integer(kind) for kind in kinds):
        return pa.uint64()
    # metadata asks about columns of every type; a flag is a number where other shards have numbers
    whole = all(pt.is_integer(kind) or pt.is_boolean(kind) for kind in kinds)
    return None if not whole or any(pt.is_uint64(kind) for kind in kinds) else pa.int64()


def id_values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The ids of a batch as `kind` (see `id_type`)."""
    column = plain(column)
    return column if column.type == kind else pc.cast(column, kind)


def joined(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Arrays of one type end to end; strings beyond 2 GiB become large_string, since 32-bit offsets end there."""
    if pt.is_string(kind) and sum(array.nbytes for array in arrays) >= 2**31 - 1:
        kind = pa.large_string()
    whole = [array.cast(kind) for array in arrays]
    return pa.concat_arrays(whole, memory_pool=pa.system_memory_pool()) if arrays else pa.array([], kind)
