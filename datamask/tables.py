"""Tables as files: the ending of the name says the format. Whatever people take away from datamask is written here.

| ending | what the file holds |
|---|---|
| ``.parquet`` | all columns with their types, and the metadata |
| ``.csv`` | a header and a line per row; lists as JSON, bytes as hexadecimal digits |
| ``.jsonl`` | a JSON object per row; bytes as hexadecimal digits, numbers that are not finite as null |
| ``.txt`` | the ids alone, one per line |

Parquet has ids in the type of the input: UUIDs, bytes and decimals are texts in memory and in the other formats. The
last three can be compressed: ``.csv.gz``, ``.jsonl.zst``. In CSV, text that a spreadsheet would run as a formula gets a
leading apostrophe. Ids are written as they are, since with another letter before them they name no row.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import decimal
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from datamask.errors import InputError, OptionError
from datamask.files import replacing
from datamask.parquet import gathering

PARQUET, CSV, JSONL, TXT = ".parquet", ".csv", ".jsonl", ".txt"

OF_ROWS = (PARQUET, CSV, JSONL)
"""Formats that hold all columns."""

OF_IDS = (*OF_ROWS, TXT)

ROWS_FILE, IDS_FILE = (f"OUT{'|'.join(endings)}" for endings in (OF_ROWS, OF_IDS))
"""The same in help texts."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

GROUP_ROWS = 8192
"""Rows are gathered up to so many before they are written: each write is a row group."""

JSON_ROWS = 1000
"""Rows that are Python's values at a time."""

_UNSEEN = "\\x00-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff"
FORMULA_STARTS = f"^(?:[\t\r\n]|[{_UNSEEN}]*[-=+@＝＋－＠])"
"""What spreadsheets take for the start of a formula, full-width forms included (OWASP, CSV injection); blanks of every
kind, control characters and marks without width before the sign are dropped by some of them when they read a cell."""


@dataclass(frozen=True)
class Format:
    """A format by the ending of a name.

    Attributes:
        ending: one of `OF_IDS`. compression: ``gzip``, ``zstd`` or None.
    """

    ending: str
    compression: str | None = None


def format_of(path: str | Path, option: str = "output", among: Sequence[str] = OF_IDS) -> Format:
    """Return the format that a name asks for.

    Args:
        path: the file. option: that names it. among: the endings it may have, such as `OF_ROWS`.

    Raises:
        OptionError: it has another ending.
    """
    name = Path(path).name.lower()
    compression = next((way for ending, way in COMPRESSIONS.items() if name.endswith(ending)), None)
    bare = name if compression is None else name.rpartition(".")[0]
    ending = next((ending for ending in among if bare.endswith(ending)), None)
    if ending is None or (ending == PARQUET and compression):
        *first, last = among
        also = f" (all but {PARQUET} also with {' or '.join(COMPRESSIONS)})" if first else ""
        expected = f"{', '.join(first)} or {last}{also}" if first else last
        raise OptionError(f"--{option} must end in {expected}, got {str(path)!r}")
    return Format(ending, compression)


def is_file(path: str | Path, option: str = "output", among: Sequence[str] = OF_IDS) -> bool:
    """Whether a name that may be a folder's or a file's is that of a file.

    Raises:
        OptionError: it looks like that of a file of another format.
    """
    if str(path).endswith("/") or Path(path).is_dir() or not re.search(r"\.[A-Za-z]\w*$", Path(path).name):
        return False
    try:
        format_of(path, option, among)
    except OptionError as error:
        raise OptionError(f"{error}; the name of a folder may end in /") from error
    return True


class Sink(Protocol):
    """What takes the rows of a file."""

    def write(self, rows: pa.Table) -> None:
        """Take more rows, of the schema of the file."""


@contextlib.contextmanager
def table_sink(
    target: Path | pa.BufferOutputStream,
    kind: Format,
    schema: pa.Schema,
    ids: Sequence[str] | None = None,
    group_rows: int = GROUP_ROWS,
) -> Iterator[Sink]:
    """Give a sink for rows of a schema; leaving ends the file.

    Args:
        target: a path, which may be called anything, or memory. kind: the format.
        ids: columns that hold ids, first those that ``.txt`` has; None: the first column.
        group_rows: of a row group of parquet.

    Raises:
        InputError: the format cannot hold these columns, or an id.
    """
    ids = schema.names[:1] if ids is None else ids
    if kind.ending == PARQUET:
        with gathering(target, as_found(schema.empty_table()).schema, group_rows) as rows:
            yield _Converted(rows.write, as_found)
        return
    if kind.ending != TXT and len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise InputError(f"the rows have several columns {twice!r}, which {kind.ending} cannot hold; write {PARQUET}")
    with contextlib.ExitStack() as stack:
        stream = stack.enter_context(pa.OSFile(str(target), "wb")) if isinstance(target, Path) else target
        if kind.compression is not None:
            stream = stack.enter_context(pa.CompressedOutputStream(stream, kind.compression))
        if kind.ending == CSV:
            cells = _csv_schema(schema, ids)
            with pa.csv.CSVWriter(stream, cells) as writer:
                yield _Converted(writer.write_table, lambda rows: _csv_table(rows, cells, ids))
        elif kind.ending == JSONL:
            yield _Converted(stream.write, _json_lines)
        else:
            yield _Converted(stream.write, lambda rows: _id_lines(rows[ids[0]]))


@dataclass(frozen=True)
class _Converted:
    """A sink that turns rows into what the format has of them."""

    take: Callable[[Any], object]
    convert: Callable[[pa.Table], Any]

    def write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            self.take(self.convert(rows))


def write_table(path: str | Path, table: pa.Table, ids: Sequence[str] | None = None) -> None:
    """Write a table in the format of its name, whole or not at all.

    Args:
        path: the file. table: the rows. ids: columns that hold ids; None: the first column.

    Raises:
        OptionError: the name has another ending. InputError: the format cannot hold the rows.
        StoreError: the file cannot be written.

    Example:
        >>> write_table("ids.csv", selection.table())
    """
    kind = format_of(path)
    with replacing(path) as part, table_sink(part, kind, table.schema, ids) as sink:
        sink.write(table)


def table_bytes(table: pa.Table, ending: str, ids: Sequence[str] | None = None) -> bytes:
    """Return the file of a table, by an ending such as ``.csv``; see `write_table`."""
    memory = pa.BufferOutputStream()
    with table_sink(memory, format_of(f"table{ending}"), table.schema, ids) as sink:
        sink.write(table)
    content: bytes = memory.getvalue().to_pybytes()
    return content


# -- ids ---------------------------------------------------------------------------------------------------------------

_FOUND = b"datamask.id_type"
"""In the metadata of a field of ids that are texts in memory: the type that they have in the input."""


def id_field(name: str, kind: pa.DataType, found: pa.DataType) -> pa.Field:
    """Return the field of a column of ids.

    Args:
        kind: of the ids in memory. found: of the column in the input.
    """
    field = pa.field(name, kind)
    if pt.is_integer(kind) or not is_spelled(found):
        return field
    schema = pa.schema([pa.field("id", found)]).serialize().to_pybytes()
    return field.with_metadata({_FOUND: base64.b64encode(schema)})


def is_spelled(kind: pa.DataType) -> bool:
    """Return whether ids of a type are spelled as texts: UUIDs, bytes, decimals."""
    of_bytes = pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind)
    return bool(of_bytes or pt.is_decimal(kind) or kind == pa.uuid())


def with_fields(table: pa.Table, *fields: pa.Field) -> pa.Table:
    """Return the table with these fields in the place of those of their names, which are of the same type."""
    given = {field.name: field for field in fields}
    schema = pa.schema([given.get(field.name, field) for field in table.schema], table.schema.metadata)
    return pa.Table.from_arrays(table.columns, schema=schema)


def as_found(table: pa.Table) -> pa.Table:
    """Return the table with the ids of each `id_field` as they are in the input."""
    for place, field in enumerate(table.schema):
        noted = (field.metadata or {}).get(_FOUND)
        if noted is not None:
            kind = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(noted))).field(0).type
            chunks = [_respelled(chunk, kind) for chunk in table.column(place).chunks]
            table = table.set_column(place, pa.field(field.name, kind), pa.chunked_array(chunks, kind))
    return table


def _respelled(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pt.is_decimal(kind):
        return texts.cast(kind)
    values = [None if text is None else bytes.fromhex(text.replace("-", "")) for text in texts.to_pylist()]
    return pa.array(values, kind)


# -- tables of several shards -----------------------------------------------------------------------------------------


def score_name(columns: Iterable[str]) -> str:
    """Return what the score of a run is called beside these columns of the input: ``score``, if they have none."""
    taken, name = {column.lower() for column in columns}, "score"
    while name in taken:
        name = f"datamask_{name}"
    return name


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return a schema that takes the rows of all of these; see `conform`.

    Raises:
        InputError: columns of one name have types that no other type takes both of.
    """
    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"the shards' columns do not go into one table: {error}; use a mask per shard instead"
        ) from error


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows in a `common_schema`; a column that they lack is null."""
    if rows.schema.names == schema.names:  # a name may occur twice
        return pa.table([column.cast(kind) for column, kind in zip(rows.columns, schema.types)], schema=schema)
    held = dict(zip(rows.column_names, rows.columns, strict=True))
    columns = [
        held[field.name].cast(field.type) if field.name in held else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def with_places(schema: pa.Schema) -> pa.Schema:
    """Return the schema of rows of several shards: ``source_file`` and ``source_row`` first."""
    return pa.schema([("source_file", pa.string()), ("source_row", pa.int64()), *schema])


def placed(rows: pa.Table, file: str, first: int = 0) -> pa.Table:
    """Return rows of a shard, from its row `first` on, with their places as `with_places` has them."""
    places = [pa.repeat(pa.scalar(file), rows.num_rows), pa.array(range(first, first + rows.num_rows), pa.int64())]
    return pa.table([*places, *rows.columns], schema=with_places(rows.schema))


# -- CSV --------------------------------------------------------------------------------------------------------------


def _csv_schema(schema: pa.Schema, ids: Sequence[str]) -> pa.Schema:
    """The columns as CSV has them: numbers, and texts for everything else."""
    names = [name if name in ids else defused(name) for name in schema.names]
    return pa.schema([(name, _csv_type(kind)) for name, kind in zip(names, schema.types, strict=True)])


def _csv_type(kind: pa.DataType) -> pa.DataType:
    if pt.is_dictionary(kind):
        return _csv_type(kind.value_type)
    if pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind) or pt.is_boolean(kind):
        return kind
    return pa.float32() if pt.is_float16(kind) else pa.large_string()


def _csv_table(rows: pa.Table, cells: pa.Schema, ids: Sequence[str]) -> pa.Table:
    columns = []
    for name, column, kind in zip(rows.column_names, rows.columns, cells.types, strict=True):
        if kind != pa.large_string():
            columns.append(column.cast(kind))
            continue
        if pt.is_string(column.type) or pt.is_large_string(column.type):
            texts = column.cast(kind)
        else:
            texts = pa.chunked_array([[_cell(value) for value in _plain_values(column)]], kind)
        columns.append(texts if name in ids else _without_formulas(texts))
    return pa.table(columns, schema=cells)


def _cell(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _without_formulas(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    dangerous = pc.match_substring_regex(texts, FORMULA_STARTS)
    quoted = pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, pa.scalar("", texts.type))
    return pc.if_else(dangerous, quoted, texts)


def defused(text: str) -> str:
    """Return a text for a CSV cell: with a leading apostrophe where a spreadsheet would take it for a formula."""
    return f"'{text}" if re.match(FORMULA_STARTS, text) else text


# -- JSON lines and text ----------------------------------------------------------------------------------------------


def _json_lines(rows: pa.Table) -> bytes:
    lines = []
    for batch in rows.to_batches(max_chunksize=JSON_ROWS):
        for values in zip(*map(_plain_values, batch.columns), strict=True):
            record = dict(zip(rows.column_names, values, strict=True))
            lines.append(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
    return "".join(lines).encode()


def _id_lines(ids: pa.ChunkedArray) -> bytes:
    texts = [str(value) for value in _plain_values(ids)]
    for text in texts:
        if not text or text.strip() != text or "\n" in text:
            raise InputError(
                f"the id {text!r} is empty, begins or ends with a blank or holds a line break, which a line of {TXT} "
                f"cannot; write {CSV}, {JSONL} or {PARQUET}"
            )
    return "".join(f"{text}\n" for text in texts).encode()


def _plain_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column as JSON has them."""
    values: list[Any] = column.to_pylist()
    kind = column.type
    if pt.is_integer(kind) or pt.is_string(kind) or pt.is_large_string(kind) or pt.is_boolean(kind):
        return values
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value) if value.as_tuple().exponent else int(value)
    try:
        return float(value) if math.isfinite(value) else None
    except TypeError:  # a UUID, a span of time
        return str(value)
