"""Ids of every type as integers or texts: UUIDs with their dashes, other bytes as hex."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.corpus.readers.kinds import is_bytes
from datamask.tables import id_field, is_spelled

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)


def plain(column: pa.Array) -> pa.Array:
    """The same values without extension type or dictionary encoding."""
    while True:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        elif pt.is_dictionary(column.type):
            column = column.dictionary_decode()
        else:
            return column


def id_values(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The ids of a batch as `kind` (`datamask.corpus.decode.id_type`): UUIDs with their dashes, other bytes as hex."""
    is_uuid = isinstance(column.type, pa.BaseExtensionType) and column.type.extension_name == "arrow.uuid"
    column = plain(column)
    if is_bytes(column.type):
        column = _hex(column, (8, 12, 16, 20) if is_uuid else ())
    return column if column.type == kind else pc.cast(column, kind)


def held_ids(table: pa.Table) -> pa.Table:
    """Return a table whose ids are as a corpus holds them; the inverse of `datamask.tables.as_found`."""
    for place, field in enumerate(table.schema):
        if is_spelled(field.type):
            chunks = [id_values(chunk, pa.string()) for chunk in table.column(place).chunks]
            held = id_field(field.name, pa.string(), field.type)
            table = table.set_column(place, held, pa.chunked_array(chunks, pa.string()))
    return table


def _hex(column: pa.Array, dashes: tuple[int, ...]) -> pa.Array:
    """Bytes as hex. dashes: places of a digit before which one stands, in values of one length."""
    values = pc.cast(column, pa.large_binary()).fill_null(bytes(16) if dashes else b"")
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(values.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    digits, ends = np.stack([_HEX[content >> 4], _HEX[content & 15]], axis=1).ravel(), 2 * (offsets - offsets[0])
    if dashes:
        rows = digits.reshape(len(values), -1)
        digits = np.insert(rows, dashes, ord("-"), axis=1).ravel()
        ends = np.arange(len(values) + 1) * (rows.shape[1] + len(dashes))
    texts = pa.Array.from_buffers(pa.large_string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(digits)])
    return pc.if_else(column.is_null(), pa.scalar(None, pa.large_string()), texts) if column.null_count else texts
