"""JSON lines: one object per line, each key a column, lists of numbers features. Plain, gzip or zstd.

A look reads the whole file: only then is known how many rows there are and of what type each column is. A key that
some lines lack is null there; a column that holds whole numbers here and others there is of float64, and lists of
numbers are of float64 always, since JSON does not tell 1 from 1.0. Texts stay texts, also those that look like dates.
Objects are structs, whose fields `leaves` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.types as pt

from datamask.corpus.readers import text
from datamask.corpus.readers.contract import FileFacts, Reader
from datamask.corpus.readers.json_kinds import LeftOut, joined, leave_out_wide, stored, without
from datamask.corpus.readers.leaves import Path, fields_in_lists, leaves, schema_of
from datamask.corpus.readers.text import Piece
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

CELLS = 10_000_000
"""Rows times columns that are parsed at once: pyarrow keeps a place for each, also where every line has other keys.
A field of an object counts as a column."""

LINE_CELLS = 3 * CELLS
"""Objects in lists times their fields that one line may hold, since a line cannot be cut: some 400 MB."""

MOST_KEYS = 100_000
"""At once, as far as colons tell: each may be a column of its own."""


class MixedKinds(InputError):
    """A column, or a field of one, that holds values of several kinds.

    Attributes:
        keys: the path from the column down to the field, lists left out.
        kinds: what it holds.
    """

    def __init__(self, path: str, name: str, before: object, after: object, line: int) -> None:
        keys = name.split("/[]")[0].split("/")
        super().__init__(
            f"column {'.'.join(keys)!r} of {path} holds {after} in line {line:,} and {before} before; write one kind "
            "of value into it, or leave it out"
        )
        self.keys, self.kinds = tuple(keys), (str(before), str(after))

    @property
    def is_nested(self) -> bool:
        """Whether it concerns a field of objects, or a column that holds objects in some lines."""
        return len(self.keys) > 1 or "object" in self.kinds


_CHANGED = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+) in row (\d+)")
_SEVERAL = {"object": "objects", "array": "lists", "string": "texts", "number": "numbers", "boolean": "true or false"}
_NAME = re.compile(rb'("(?:[^"\\]|\\.)*")\s*(:?)', re.DOTALL)
"""A text, and the colon behind it where it is the name of a field."""

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@text.once
def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
    """Columns and rows, by reading the file to its end, or its first bytes.

    Raises:
        InputError: a line that is no JSON object, or a column of several kinds.
        Stopped: from `poll`.
    """
    kinds: dict[str, pa.DataType] = {}
    left_out: dict[Path, str] = {}
    rounded: set[str] = set()
    rows = total = bytes_read = 0
    complete = True
    for part in _parts(path, poll):
        poll()
        if most_bytes is not None and bytes_read > most_bytes:
            complete = False
            break
        bytes_read += len(part.content)
        _refuse_deep(path, part)
        table = _inferred(path, part, left_out)
        rows, total = rows + table.num_rows, total + table.nbytes
        for field in table.schema:
            _add_kind(kinds, path, part.number, field, left_out)
        for keys, column in _number_columns(table):
            name = ".".join(keys)
            if name not in rounded and _rounds(column, keys[-1], part.content):
                rounded.add(name)
        if leave_out_wide(kinds, left_out) > text.MOST_COLUMNS:
            raise InputError(
                f"{path} has more than {text.MOST_COLUMNS:,} different keys by line {part.number:,}; every key "
                "is a column, so write data that differ from line to line as one text"
            )
    fields = [stored(name, kind, left_out) for name, kind in kinds.items()]
    schema = pa.schema([field for field in fields if field is not None])
    floats = {".".join(keys) for keys, field in leaves(list(schema)) if field.type == pa.float64()}
    return FileFacts(
        schema,
        (rows,) if rows else (),
        total / max(rows, 1),
        complete=complete,
        rounded=frozenset(rounded & floats),
        left_out={".".join(keys): why for keys, why in left_out.items()},
    )


def _inferred(path: str, part: Piece, left_out: LeftOut) -> pa.Table:
    """One part as a table, of the types that pyarrow finds. Fields that have none are left out and noted.

    Raises:
        InputError: as `_parsed`, and where a column has no type.
    """
    gone: frozenset[Path] = frozenset()
    while True:
        try:
            return _parsed(path, part, None)
        except MixedKinds as error:
            keys = error.keys
            if keys in gone:
                # it is still there, since a key with a slash looks like two: the column is left out
                del left_out[keys]
                keys = keys[:1]
            if not error.is_nested or keys in gone:
                raise
            before, after = (_SEVERAL.get(kind, kind) for kind in error.kinds)
            left_out.setdefault(keys, f"holds {after} in some lines and {before} in others")
            gone = frozenset(left_out)
            part = part._replace(content=without(part.content, gone))


def _add_kind(kinds: dict[str, pa.DataType], path: str, number: int, field: pa.Field, left_out: LeftOut) -> None:
    """Join the type of a column with what it was before.

    Raises:
        InputError: there is no type for both.
    """
    if (field.name,) in left_out:
        return
    before = kinds.get(field.name)
    kind = joined(before, field.type, (field.name,), left_out)
    if kind is not None:
        kinds[field.name] = kind
    elif pt.is_struct(field.type) or pt.is_struct(before):
        left_out[field.name,] = "holds objects in some lines and other values in others"
    else:
        raise MixedKinds(path, field.name, before, field.type, number)


def _number_columns(table: pa.Table) -> Iterator[tuple[Path, pa.ChunkedArray]]:
    """Path and values of every leaf of a table that holds numbers."""
    for keys, field in leaves(list(table.schema)):
        if pt.is_integer(field.type) or pt.is_float64(field.type):
            column = table[keys[0]]
            yield keys, column if len(keys) == 1 else pc.struct_field(column, list(keys[1:]))


def batches(
    path: str,
    facts: FileFacts,
    columns: Sequence[str] | None,
    groups: Sequence[int] | None,
    most_rows: int,
    poll: Poll = no_poll,
) -> Iterator[pa.RecordBatch]:
    """The rows of the file, as `contract.Reader.batches`."""
    schema = facts.schema if columns is None else schema_of(facts.schema, columns)
    for part in _parts(path, poll, schema):
        table = _parsed(path, part, schema)
        for batch in table.combine_chunks().to_batches(most_rows):
            batch.validate(full=True)
            yield batch


def _parts(path: str, poll: Poll, schema: pa.Schema | None = None) -> Iterator[Piece]:
    """Pieces of the file that pyarrow parses in bounded memory.

    Args:
        poll: called while a file elsewhere is waited for.
        schema: of what is made of them; None: each key may be a column, or a field of every object.
    """
    columns = 0 if schema is None else sum(1 for _ in leaves(list(schema)))
    inside = 0 if schema is None else sum(fields_in_lists(field.type) for field in schema)
    for piece in text.lines(path, poll):
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            objects = _objects(part.content) if inside or schema is None else 0
            keys, cells = columns, (part.ends + 1) * columns + objects * inside
            if schema is None:
                keys = text.count(part.content, ":")
                cells = objects * keys // 2  # mostly there are more colons than columns
            if cells > CELLS or keys > MOST_KEYS:
                parts = text.halves(part)
                if len(parts) > 1:
                    waiting += reversed(parts)
                    continue
                if schema is None and keys > MOST_KEYS:
                    _refuse_many_keys(path, part)
                _refuse_many_objects(path, part, inside)
            yield part


def _objects(content: bytes) -> int:
    """How many objects, or nulls in the place of one, there are at most: texts may hold some too."""
    return text.count(content, "{") + text.count(content, "null")


def _refuse_many_objects(path: str, line: Piece, fields: int) -> None:
    """Raises InputError for one line whose lists hold too many objects. fields: of each; 0: all keys of the line."""
    if not fields:
        fields = len({match[1] for match in _NAME.finditer(line.content) if match[2]})
    objects = _objects(text.without_texts(line.content))
    if objects * fields > LINE_CELLS:
        raise InputError(
            f"{path} line {line.number:,} has {objects:,} objects that may have {fields:,} fields each; write lists of "
            "so many objects as text"
        )


def _refuse_deep(path: str, part: Piece) -> None:
    """Raises InputError for values nested so deep that pyarrow ends the process where it looks for their types."""
    deep = text.too_deep(part.content)
    if deep is not None:
        raise InputError(
            f"{path} line {part.number + deep:,} nests values more than {text.DEEPEST} deep; write what lies deeper "
            "as text"
        )


def _refuse_many_keys(path: str, line: Piece) -> None:
    """Raises InputError for one object with more keys than there may be columns; its texts may hold colons."""
    count = len(re.findall(rb'"\s*:', text.without_texts(line.content)))
    if count > text.MOST_COLUMNS:
        raise InputError(
            f"{path} line {line.number:,} has {count:,} keys, more than {text.MOST_COLUMNS:,}; every key is a "
            "column, so write such data as a list or as text"
        )


def _parsed(path: str, part: Piece, schema: pa.Schema | None) -> pa.Table:
    """One part as a table; with a schema its columns alone.

    Raises:
        InputError: a line that is no object, or not what the schema says.
    """
    if part.content.isspace():
        return pa.table({}) if schema is None else schema.empty_table()
    options = {} if schema is None else {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
    try:
        table = _table(part.content, **options)
    except (pa.ArrowException, ValueError) as error:
        raise _refusal(path, part, str(error)) from error
    # pyarrow takes several objects on a line, or one on several, for as many rows
    if table.num_rows != part.lines and table.num_rows != len(_filled(part.content)):
        raise _refusal(path, part, "its lines and its objects are not as many")
    return table


def _filled(content: bytes) -> list[int]:
    """The lines, counted from 0, that hold anything."""
    return [place for place, line in enumerate(content.split(b"\n")) if line.strip()]


def _refusal(path: str, part: Piece, why: str) -> InputError:
    """The sentence for a part that cannot be parsed: the first line that is no object, else what the library says."""
    for line, content in enumerate(part.content.split(b"\n"), part.number):
        if not content.strip():
            continue
        try:
            value = json.loads(content)
        except json.JSONDecodeError as error:
            return InputError(
                f"{path} line {line:,}, column {error.colno:,} is not JSON ({error.msg}); every line "
                'must hold one whole object such as {"id": "a", "text": "..."}'
            )
        except (ValueError, RecursionError) as error:
            return InputError(
                f"{path} line {line:,} cannot be read ({error}); every line must hold one object of "
                "ordinary numbers, texts and lists"
            )
        if not isinstance(value, dict):
            return InputError(
                f"{path} line {line:,} holds {_KINDS.get(type(value), 'a number')}, but every line must "
                'hold one object such as {"id": "a", "text": "..."}'
            )
    changed = _CHANGED.search(why)
    if changed:
        name, before, after, row = changed.groups()
        filled = _filled(part.content)
        line = part.number + (filled[int(row)] if int(row) < len(filled) else 0)
        return MixedKinds(path, name.strip("/"), before, after, line)
    reason = (why.splitlines() or ["no reason given"])[0]
    return InputError(f"{path} cannot be read as JSON lines, from line {part.number:,} on: {reason[:200]}")


def _rounds(column: pa.ChunkedArray, name: str, part: bytes) -> bool:
    """Whether float64 cannot hold one of the whole numbers that a part spells under this key."""
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is None or -(2**53) < least <= most < 2**53:
        return False
    if pt.is_integer(column.type):
        whole = column.drop_null().to_numpy()
        floats = whole.astype(np.float64)
        # the ends of int64 are no floats; what rounds to the upper one has rounded
        return bool(((floats >= 2.0**63) | (np.where(floats >= 2.0**63, 0.0, floats).astype(np.int64) != whole)).any())
    # pyarrow has rounded them already, so they are read again; a quote inside of a text has a backslash before it
    spelled = rb'"%s"\s*:\s*(%s)\s*[,}]' % (re.escape(name.encode()), text.MANY_DIGITS.encode())
    return any(text.rounds(match[1].decode()) for match in re.finditer(spelled, part))


def _table(content: bytes, **options: object) -> pa.Table:
    return pa.json.read_json(
        pa.BufferReader(content),
        pa.json.ReadOptions(use_threads=False, block_size=len(content) + 1),
        pa.json.ParseOptions(**options),
    )


def lists_of(values: pa.Array) -> pa.Array:
    """Texts that are JSON lists of numbers, as list<double>; null stays null.

    Raises:
        ArrowInvalid: another text.
    """
    plain = pc.replace_substring_regex(pc.fill_null(values, "null"), r"[\r\n]+", " ")
    objects = pc.binary_join_element_wise('{"v":', plain, "}", "").cast(pa.string())
    document = pc.binary_join(pa.ListArray.from_arrays([0, len(objects)], objects), "\n")
    content = document[0].as_py().encode()
    schema = pa.schema([("v", pa.list_(pa.float64()))])
    table = _table(content, explicit_schema=schema)
    if table.num_rows != len(values):
        raise pa.ArrowInvalid("not as many lists as texts")
    return table["v"].combine_chunks()


JSON_LINES = Reader("JSON lines", text.endings(".jsonl", ".ndjson"), look, batches, named=text.endings(".json"))
