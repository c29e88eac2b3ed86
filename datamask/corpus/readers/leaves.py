"""Columns that a file does not have as such: leaves of structs by dotted names, and many columns of numbers as one.

``metadata.score`` is the field ``score`` of the struct ``metadata``; columns ``emb_0`` to ``emb_31`` are the lists
``emb``. `Shard.schema` names them, so that they can be an id, a quality, features or
a color like any other column. `Shard.batches` reads what is asked for, and of parquet nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

LEAF = {b"datamask.leaf": b"yes"}
"""Metadata of a field that lies in a struct."""

PART = b"datamask.part"
"""In the metadata of a field of `numbered_columns`: the name of the lists that it is a part of."""

MANY = 8
"""Numbered columns of one name are lists from so many on."""

Path = tuple[str, ...]
"""The names from a column down to a leaf."""


def leaves(fields: Sequence[pa.Field], above: Path = ()) -> Iterator[tuple[Path, pa.Field]]:
    """Yield the path and the field of every leaf, in the order of the schema. A struct without fields has none."""
    for field in fields:
        path = (*above, field.name)
        if pt.is_struct(field.type):
            yield from leaves(list(field.type), path)
        else:
            yield path, field


def fields_in_lists(kind: pa.DataType, in_list: bool = False) -> int:
    """Return how many fields the objects have that lie in lists: each object takes a place for every one.

    Example:
        >>> fields_in_lists(pa.list_(pa.struct({"x": pa.int64(), "y": pa.int64()})))
        2
    """
    if pt.is_list(kind):
        return fields_in_lists(kind.value_type, True)
    if pt.is_struct(kind):
        return sum(max(fields_in_lists(field.type, in_list), in_list) for field in kind)
    return 0


def leaf_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with the leaves of every struct in place of the struct, under dotted names.

    A leaf whose dotted name is the name of a column, or of another leaf, is left out: the column has the name. The
    lists of `numbered_columns` come last.

    Example:
        >>> leaf_schema(pa.schema({"id": pa.int64(), "metadata": pa.struct({"score": pa.float64()})})).names
        ['id', 'metadata.score']
    """
    numbered = numbered_columns(schema)
    if numbered:
        whole = {member: name for name, members in numbered.items() for member in members}
        lists = [pa.field(name, pa.list_(pa.float32(), len(members))) for name, members in numbered.items()]
        marked = [field.with_metadata({PART: whole[field.name]}) if field.name in whole else field for field in schema]
        schema = pa.schema([*marked, *lists], schema.metadata)
    if not any(pt.is_struct(field.type) for field in schema):
        return schema
    paths = leaf_paths(schema)
    named = [(".".join(path), path, field) for path, field in leaves(list(schema))]
    fields = [
        field if len(path) == 1 else field.with_name(name).with_metadata(LEAF)
        for name, path, field in named
        if len(path) == 1 or paths.get(name) == path
    ]
    return pa.schema(fields, schema.metadata)


def is_leaf(field: pa.Field) -> bool:
    """Return whether a field of `leaf_schema` lies in a struct: columns may have a dot in their name too."""
    return field.metadata is not None and LEAF.keys() <= field.metadata.keys()


def part_of(field: pa.Field) -> str | None:
    """Return the name of the lists that a field of `leaf_schema` is a part of; None: of none."""
    name = (field.metadata or {}).get(PART)
    return None if name is None else name.decode()


def leaf_paths(schema: pa.Schema) -> dict[str, Path]:
    """Return dotted name -> path of the leaves that lie in a struct."""
    named = [(".".join(path), path) for path, _ in leaves(list(schema)) if len(path) > 1]
    count = Counter([*schema.names, *(name for name, _ in named)])
    return {name: path for name, path in named if count[name] == 1}


def numbered_columns(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the columns of floats whose names differ in a number alone, which counts from 0 or 1: name -> columns.

    Example:
        >>> list(numbered_columns(pa.schema({f"emb_{i}": pa.float32() for i in range(32)})))
        ['emb']
    """
    found: dict[str, dict[int, str]] = {}
    for field in schema:
        match = re.fullmatch(r"(.*?[^\d_.\-])[_.\-]?(\d+)", field.name)
        if match and pt.is_floating(field.type):
            found.setdefault(match[1], {})[int(match[2])] = field.name
    taken = set(schema.names) if found else ()
    return {
        name if name not in taken else f"{name}_*": [members[place] for place in sorted(members)]
        for name, members in found.items()
        if len(members) >= MANY and max(members) - min(members) == len(members) - 1 and min(members) in (0, 1)
    }


def schema_of(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the part of a schema that holds these columns and leaves, with structs cut to what is asked for.

    Example:
        >>> nested = pa.schema({"metadata": pa.struct({"score": pa.float64(), "url": pa.string()})})
        >>> schema_of(nested, ["metadata.score"])
        metadata: struct<score: double>
          child 0, score: double
    """
    paths, whole = leaf_paths(schema), set(columns)
    wanted: dict[str, pa.Field] = {}
    for name in columns:
        top = paths.get(name, (name,))[0]
        wanted.setdefault(top, schema.field(top))
    ends = [paths[name] for name in whole if name in paths]
    inside = {path[:length] for path in ends for length in range(1, len(path) + 1)}
    return pa.schema([field if name in whole else _cut(field, inside, set(ends)) for name, field in wanted.items()])


def _cut(field: pa.Field, inside: set[Path], ends: set[Path], above: Path = ()) -> pa.Field:
    path = (*above, field.name)
    if path in ends or not pt.is_struct(field.type):
        return field
    below = [_cut(child, inside, ends, path) for child in field.type if (*path, child.name) in inside]
    return field.with_type(pa.struct(below))


def with_leaves(batch: pa.RecordBatch, schema: pa.Schema, columns: Sequence[str]) -> pa.RecordBatch:
    """Return a batch whose columns include these, those in structs as columns of their own; a null struct has null.

    Args:
        batch: as the file has it, with at least these columns and leaves. schema: of the file.
        columns: names, dotted ones included.
    """
    own = set(batch.schema.names)
    missing = [name for name in columns if name not in own]
    if not missing:
        return batch
    paths, numbered = leaf_paths(schema), numbered_columns(schema)
    made: dict[str, pa.Array] = {}
    for name in missing:
        if name in numbered:
            values = [pc.cast(batch.column(member), pa.float32()) for member in numbered[name]]
            rows = np.column_stack([column.to_numpy(zero_copy_only=False) for column in values])
            made[name] = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), pa.float32()), len(values))
        elif name in paths:
            top, *below = paths[name]
            made[name] = pc.struct_field(batch.column(top), below)
    fields = [*batch.schema, *(pa.field(name, column.type) for name, column in made.items())]
    return type(batch).from_arrays([*batch.columns, *made.values()], schema=pa.schema(fields, batch.schema.metadata))
