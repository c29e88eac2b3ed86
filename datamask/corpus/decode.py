"""From Arrow buffers to numpy: feature lists as one 2-D view, numbers as float64, ids as one plain array.

No value passes through a Python object. A feature column whose rows all have d values is a view on its buffer in its
own width; the caller widens it to float32 while copying it to its place.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.corpus.readers.ids import plain as plain
from datamask.corpus.readers.json_lines import lists_of
from datamask.corpus.readers.kinds import is_bytes, is_list, is_string, value_type

NUMPY_FLOATS = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64}
_SHORT = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16())


def feature_lengths(column: pa.Array) -> np.ndarray:
    """Return how many values each row has that is not null: int64.

    Raises:
        ArrowInvalid: a text that is no list of numbers.
    """
    _, starts, ends = _spans(column)
    lengths: np.ndarray = ends - starts
    return lengths[starts >= 0]


def feature_rows(column: pa.Array, dim: int) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """The features of a batch as an ``(n, dim)`` array in their own float width, and which rows have none.

    A view of the Arrow buffer wherever no value is missing. Null rows, rows of another length and null values inside
    of a row become NaN.

    Returns:
        The array, and two boolean ``(n,)`` masks, of null rows and of rows of another length; None where there are
        none.

    Raises:
        ArrowInvalid: a text that is no list of numbers.
    """
    values, starts, ends = _spans(column)
    n, null, other = len(starts), starts < 0, (ends - starts != dim) & (starts >= 0)
    if not null.any() and not other.any() and (n < 2 or np.all(starts[1:] == ends[:-1])):
        return _floats(values, int(starts[0]) if n else 0, n * dim).reshape(n, dim), None, None
    flat, good = _floats(values, 0, len(values)), ~(null | other)
    rows = np.full((n, dim), np.nan, flat.dtype)
    rows[good] = flat[starts[good, None] + np.arange(dim)]
    return rows, null if null.any() else None, other if other.any() else None


def _spans(column: pa.Array) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """Values, and where those of each row begin and end: int64 ``(n,)``, -1 where a row is null.

    A list in another one is the list itself where it is the only one there.
    """
    column = plain(column)
    if is_string(column.type):
        column = lists_of(pc.cast(column, pa.string()))
    if pt.is_list_view(column.type) or pt.is_large_list_view(column.type):
        starts = np.array(column.offsets, dtype=np.int64)
        ends = starts + np.asarray(column.sizes, dtype=np.int64)
    else:
        if pt.is_fixed_size_list(column.type):
            edges = (column.offset + np.arange(len(column) + 1)) * column.type.list_size
        else:
            edges = np.asarray(column.offsets, dtype=np.int64)
        starts, ends = edges[:-1].copy(), edges[1:].copy()
    if column.null_count:
        starts[np.asarray(column.is_null())] = -1
    if not is_list(column.type.value_type):
        return column.values, starts, ends
    values, inner_starts, inner_ends = _spans(column.values)
    alone, empty = (ends - starts == 1) & (starts >= 0), (ends - starts != 1) & (starts >= 0)
    places = starts[alone]
    starts[alone], ends[alone] = inner_starts[places], inner_ends[places]
    starts[empty] = ends[empty] = 0  # of several lists none is the row's
    return values, starts, ends


def _floats(values: pa.Array, start: int, count: int) -> np.ndarray:
    """``count`` values from ``start`` on; a view, or a copy with NaN where any of them is null."""
    values = values.slice(start, count)
    if values.type not in NUMPY_FLOATS:
        values = pc.cast(values, pa.float32() if values.type in _SHORT else pa.float64(), safe=False)
    kind = NUMPY_FLOATS[values.type]
    if count == 0:
        return np.empty(0, kind)
    flat = np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + count]
    if values.null_count:
        flat = flat.copy()
        flat[np.asarray(values.is_null())] = np.nan
    return flat


def unpacked(column: pa.Array) -> pa.Array:
    """Return packed bits as lists of -1 and 1: bytes, or lists of 8-bit integers (of int8 -128 is the byte 0)."""
    column = plain(column)
    if is_list(column.type):
        values, starts, ends = _spans(column)
        content = values.to_numpy(zero_copy_only=False)
        content = content.view(np.uint8) ^ np.uint8(0x80) if content.dtype == np.int8 else content
        null = starts < 0
        parts = [content[low:high] for low, high in zip(starts[~null], ends[~null])]
    else:
        null = np.asarray(column.is_null())
        parts = [np.frombuffer(value, np.uint8) for value in column.drop_null().to_pylist()]
    lengths = np.zeros(len(column), np.int64)
    lengths[~null] = [8 * len(part) for part in parts]
    bits = np.unpackbits(np.concatenate([np.zeros(0, np.uint8), *parts]).astype(np.uint8))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.LargeListArray.from_arrays(offsets, bits.astype(np.float32) * 2 - 1, mask=pa.array(null))


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
    """One type that holds the ids of all shards: the common one, else the widest of its kind; None if none does.

    UUIDs, bytes and decimals are texts (`id_values`).
    """
    kinds = [_as_ids(kind) for kind in kinds]
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


def _as_ids(kind: pa.DataType) -> pa.DataType:
    kind = value_type(kind)
    return pa.string() if is_bytes(kind) or (pt.is_decimal(kind) and kind.scale == 0) else kind


def joined(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """Arrays of one type end to end; strings beyond 2 GiB become large_string, since 32-bit offsets end there."""
    if pt.is_string(kind) and sum(array.nbytes for array in arrays) >= 2**31 - 1:
        kind = pa.large_string()
    whole = [array.cast(kind) for array in arrays]
    return pa.concat_arrays(whole, memory_pool=pa.system_memory_pool()) if arrays else pa.array([], kind)


def of_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values in the type that all shards share."""
    if column.type == kind:
        return column
    return pc.cast(column, kind) if pt.is_dictionary(kind) else pc.cast(plain(column), kind, safe=False)
