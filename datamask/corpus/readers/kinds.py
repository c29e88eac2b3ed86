"""What types of columns hold: texts, numbers, lists, bytes, whatever their encoding."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type behind a dictionary encoding or an extension type."""
    while True:
        if pt.is_dictionary(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def is_string(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_id(kind: pa.DataType) -> bool:
    """Return whether a column can hold ids: `id_values` says as what each type is read."""
    kind = value_type(kind)
    return bool(is_string(kind) or pt.is_integer(kind) or is_bytes(kind) or (pt.is_decimal(kind) and kind.scale == 0))


def is_number(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def inner_type(kind: pa.DataType) -> pa.DataType:
    """What lies in lists, and in lists of lists."""
    kind = value_type(kind)
    return inner_type(kind.value_type) if is_list(kind) else kind


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a column holds bytes."""
    kind = value_type(kind)
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def is_feature(kind: pa.DataType) -> bool:
    """Return whether a column can hold features: lists of numbers, also one in another, or as JSON text."""
    return is_number(inner_type(kind)) if is_list(kind) else is_string(kind)


def is_packed(kind: pa.DataType) -> bool:
    """Return whether a column can hold packed bits: bytes, or lists of 8-bit integers."""
    inner = inner_type(kind)
    of_bytes = pt.is_uint8(inner) or pt.is_int8(inner) if is_list(kind) else False
    return bool(of_bytes or is_bytes(kind))
