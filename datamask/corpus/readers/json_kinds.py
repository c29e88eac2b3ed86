"""Types of JSON columns: one type for what many lines hold, and fields of objects that have none.

A column that holds numbers in some lines and texts in others is refused: it may be what a corpus is selected by. A
field inside of an object is not worth that: it is left out, with a note, and so is a column with objects in some lines
and other values in others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, MutableMapping

import pyarrow as pa
import pyarrow.types as pt

from datamask.corpus.readers.leaves import Path, leaves

MOST_LEAVES = 1_000
"""Fields of one column. Objects with more hold data in their keys."""

LeftOut = MutableMapping[Path, str]
"""Path of a field -> why it is left out, as the end of a sentence about it."""


def joined(before: pa.DataType | None, now: pa.DataType, path: Path, left_out: LeftOut) -> pa.DataType | None:
    """Return one type for what was seen of a column before and what is seen now; None: there is none.

    Args:
        before: None: nothing was seen.
        path: of the column. left_out: fields inside of it that have no type are noted there.
    """
    if before is None or before == now:
        return now
    if pt.is_struct(before) and pt.is_struct(now):
        fields: dict[str, pa.DataType] = {field.name: field.type for field in before}
        for field in now:
            inside = (*path, field.name)
            kind = joined(fields.get(field.name), field.type, inside, left_out)
            if kind is None:
                left_out.setdefault(inside, f"holds {field.type} in some lines and {fields[field.name]} in others")
            else:
                fields[field.name] = kind
        return pa.struct(list(fields.items()))
    pair = [before, now]
    for kinds in (pair, [pa.string() if pt.is_timestamp(kind) else kind for kind in pair]):
        try:
            schemas = [pa.schema([("x", kind)]) for kind in kinds]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            continue
    return None


def stored(name: str, kind: pa.DataType, left_out: LeftOut) -> pa.Field | None:
    """Return the column that holds values which pyarrow takes for `kind`; None: nothing is left of it."""
    return _stored((name,), kind, left_out)


def _stored(path: Path, kind: pa.DataType, left_out: LeftOut) -> pa.Field | None:
    if path in left_out:
        return None
    if pt.is_struct(kind):
        fields = (_stored((*path, field.name), field.type, left_out) for field in kind)
        kind = pa.struct([field for field in fields if field is not None])
        return pa.field(path[-1], kind) if len(kind) else None
    if pt.is_list(kind) and pt.is_integer(kind.value_type):
        kind = pa.list_(pa.float64())
    # JSON has no dates; an id may look like one
    return pa.field(path[-1], pa.string() if pt.is_timestamp(kind) else kind)


def leave_out_wide(kinds: dict[str, pa.DataType], left_out: LeftOut) -> int:
    """Leave out columns with too many fields; return how many columns and fields the others have."""
    counts = {name: sum(1 for _ in leaves([pa.field(name, kind)])) for name, kind in kinds.items()}
    for name, count in counts.items():
        if count > MOST_LEAVES:
            left_out.setdefault((name,), f"has more than {MOST_LEAVES:,} different fields")
    return sum(count for name, count in counts.items() if (name,) not in left_out)


def without(part: bytes, paths: Iterable[Path]) -> bytes:
    """Return lines of JSON objects without these fields."""
    return b"\n".join(_line_without(line, list(paths)) for line in part.split(b"\n"))


def _line_without(line: bytes, paths: list[Path]) -> bytes:
    if not line.strip():
        return line
    row = json.loads(line)
    for *above, last in paths:
        place = row
        for name in above:
            place = place.get(name) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    return json.dumps(row).encode()
