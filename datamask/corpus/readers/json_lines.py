"""JSON lines: one object per line, each key a column, lists of numbers features. Plain or gzip.

A look reads the whole file: only then is known how many rows there are and of what type each column is. A key that
some lines lack is null there; a column that holds whole numbers here and others there is of float64, and lists of
numbers are of float64 always, since JSON does not tell 1 from 1.0. Texts stay texts, also those that look like dates.
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
from datamask.corpus.readers.contract import FileFacts, Reader, ShouldStop
from datamask.errors import InputError, poll_of

CELLS = 20_000_000
"""Rows times columns that are parsed at once: pyarrow keeps a place for each, also where every line has other keys."""

MOST_KEYS = 100_000
"""At once, as far as colons tell: each may be a column of its own."""

_CHANGED = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+) in row (\d+)")
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@text.once
def look(path: str, should_stop: ShouldStop | None = None, most_bytes: int | None = None) -> FileFacts:
    """Columns and rows, by reading the file to its end, or its first bytes.

    Raises:
        InputError: a line that is no JSON object, or a column of several kinds.
        Stopped: `should_stop` answered true.
    """
    poll = poll_of(should_stop, "reading was stopped")
    kinds: dict[str, pa.DataType] = {}
    rounded: set[str] = set()
    rows = total = bytes_read = 0
    complete = True
    for number, part in _parts(path, should_stop):
        poll()
        if most_bytes is not None and bytes_read > most_bytes:
            complete = False
            break
        bytes_read += len(part)
        table = _parsed(path, number, part, None)
        rows, total = rows + table.num_rows, total + table.nbytes
        for field in table.schema:
            kinds[field.name] = _joined(path, number, field, kinds.get(field.name))
            if field.name not in rounded and _rounds(table[field.name], field.name, part):
                rounded.add(field.name)
        if len(kinds) > text.MOST_COLUMNS:
            raise InputError(
                f"{path} has more than {text.MOST_COLUMNS:,} different keys by line {number:,}; every key "
                "is a column, so write data that differ from line to line as one text"
            )
    schema = pa.schema([(name, _stored(kind)) for name, kind in kinds.items()])
    rounded = {name for name in rounded if kinds[name] == pa.float64()}
    return FileFacts(
        schema, (rows,) if rows else (), total / max(rows, 1), complete=complete, rounded=frozenset(rounded)
    )


def batches(
    path: str,
    facts: FileFacts,
    columns: Sequence[str] | None,
    groups: Sequence[int] | None,
    most_rows: int,
    should_stop: ShouldStop | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of the file, as `contract.Reader.batches`."""
    schema = facts.schema if columns is None else pa.schema([facts.schema.field(name) for name in columns])
    for number, part in _parts(path, should_stop, len(schema)):
        table = _parsed(path, number, part, schema)
        for batch in table.combine_chunks().to_batches(most_rows):
            batch.validate(full=True)
            yield batch


def _parts(path: str, should_stop: ShouldStop | None, columns: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Pieces of the file that pyarrow parses in bounded memory, each with its first line.

    Args:
        should_stop: polled while a file elsewhere is waited for.
        columns: that will be made of them; None: as many as there are keys.
    """
    for number, piece in text.lines(path, should_stop):
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            rows = part.count(b"\n") + 1
            keys = part.count(b":") if columns is None else columns
            if rows * keys > CELLS or keys > MOST_KEYS:
                first, second = text.halves(part)
                if second:
                    waiting += (second, first)
                    continue
                if columns is None:
                    _refuse_many_keys(path, number, part)
            deep = text.too_deep(part)
            if deep is not None:
                raise InputError(
                    f"{path} line {number + deep:,} nests values more than {text.DEEPEST} deep; write "
                    "what lies deeper as text"
                )
            yield number, part
            number += part.count(b"\n")


def _refuse_many_keys(path: str, number: int, line: bytes) -> None:
    """Raises InputError for one object with more keys than there may be columns; its texts may hold colons."""
    count = len(re.findall(rb'"\s*:', text.without_texts(line)))
    if count > text.MOST_COLUMNS:
        raise InputError(
            f"{path} line {number:,} has {count:,} keys, more than {text.MOST_COLUMNS:,}; every key is a "
            "column, so write such data as a list or as text"
        )


def _parsed(path: str, number: int, part: bytes, schema: pa.Schema | None) -> pa.Table:
    """One part as a table; with a schema its columns alone.

    Raises:
        InputError: a line that is no object, or not what the schema says.
    """
    if not part.strip():
        return pa.table({}) if schema is None else schema.empty_table()
    options = {} if schema is None else {"explicit_schema": schema, "unexpected_field_behavior": "ignore"}
    try:
        table = _table(part, **options)
    except (pa.ArrowException, ValueError) as error:
        raise _refusal(path, number, part, str(error)) from error
    # pyarrow takes several objects on a line, or one on several, for as many rows
    if table.num_rows != part.count(b"\n") + (not part.endswith(b"\n")) and table.num_rows != len(_filled(part)):
        raise _refusal(path, number, part, "its lines and its objects are not as many")
    return table


def _filled(part: bytes) -> list[int]:
    """The lines, counted from 0, that hold anything."""
    return [place for place, line in enumerate(part.split(b"\n")) if line.strip()]


def _refusal(path: str, number: int, part: bytes, why: str) -> InputError:
    """The sentence for a part that cannot be parsed: the first line that is no object, else what the library says."""
    for line, content in enumerate(part.split(b"\n"), number):
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
        filled = _filled(part)
        line = number + (filled[int(row)] if int(row) < len(filled) else 0)
        return _mixed(path, name.strip("/"), before, after, line)
    reason = (why.splitlines() or ["no reason given"])[0]
    return InputError(f"{path} cannot be read as JSON lines, from line {number:,} on: {reason[:200]}")


def _mixed(path: str, name: str, before: object, after: object, line: int) -> InputError:
    return InputError(
        f"column {name!r} of {path} holds {after} in line {line:,} and {before} before; write one kind "
        "of value into it, or leave it out"
    )


def _joined(path: str, number: int, field: pa.Field, before: pa.DataType | None) -> pa.DataType:
    """One type for what was seen of a column before and what is seen now; None: nothing before.

    Raises:
        InputError: there is none.
    """
    if before is None or before == field.type:
        return field.type
    pair = [before, field.type]
    for kinds in (pair, [pa.string() if pt.is_timestamp(kind) else kind for kind in pair]):
        try:
            schemas = [pa.schema([("x", kind)]) for kind in kinds]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            continue
    raise _mixed(path, field.name, before, field.type, number)


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type of a column whose values pyarrow takes for `kind`."""
    if pt.is_list(kind) and pt.is_integer(kind.value_type):
        return pa.list_(pa.float64())
    return pa.string() if pt.is_timestamp(kind) else kind  # JSON has no dates; an id may look like one


def _rounds(column: pa.ChunkedArray, name: str, part: bytes) -> bool:
    """Whether float64 cannot hold one of the whole numbers that a part spells under this key."""
    if pt.is_integer(column.type):
        whole = column.drop_null().to_numpy()
        floats = whole.astype(np.float64)
        # the ends of int64 are no floats; what rounds to the upper one has rounded
        return bool(((floats >= 2.0**63) | (np.where(floats >= 2.0**63, 0.0, floats).astype(np.int64) != whole)).any())
    if not pt.is_float64(column.type) or not (np.abs(column.drop_null().to_numpy()) >= 2.0**53).any():
        return False
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


JSON_LINES = Reader(
    "JSON lines", (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"), look, batches, named=(".json", ".json.gz")
)
