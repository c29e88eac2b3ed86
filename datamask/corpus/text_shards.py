"""Files of text, read batch by batch: parquet with a text column, and JSON lines.

Nothing here holds more than one batch of a file. Errors are sentences about the file and the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from datamask.corpus.listing import Budget, files_below, files_matching
from datamask.corpus.threads import ShouldStop
from datamask.errors import InputError
from datamask.files import user_path
from datamask.parquet import open_parquet, read_batches, refusing

BATCH_ROWS = 1_024
"""Small, since a row may be a book."""

_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_JSON_BLOCK = 16 << 20
"""Bytes; a line longer than a block is refused by pyarrow."""


def text_files(inputs: Iterable[str | Path], should_stop: ShouldStop | None = None) -> list[Path]:
    """The files that `inputs` (files, folders, globs) name, each once; those of a folder or glob in sorted order.

    Raises:
        InputError: an input names nothing, too much to look at, or a file that is neither parquet nor JSON lines.
        Stopped: `should_stop` answered true.
    """
    found: dict[Path, None] = {}
    budget = Budget("input", should_stop)
    for name in inputs:
        path = user_path(name)
        with refusing(f"{name} cannot be read"):
            if path.is_dir():
                files = sorted(files_below(path, (".parquet", *_JSON_ENDINGS[:2]), budget))
            elif path.exists():
                files = [path]
            else:
                files = sorted(files_matching(path, budget))
        if not files:
            raise InputError(f"{name} names no parquet or jsonl file; give files, folders or globs")
        found.update(dict.fromkeys(files))
    for path in found:
        if path.suffix not in (".parquet", *_JSON_ENDINGS):
            raise InputError(f"{path} must be parquet or JSON lines and end in .parquet, .jsonl, .ndjson or .json")
    if not found:
        raise InputError("at least one parquet or jsonl file is needed, got none")
    return list(found)


def file_schema(path: Path) -> pa.Schema:
    """The columns of one file; those of JSON lines as its first block shows them.

    Raises:
        InputError: the file cannot be read.
    """
    with refusing(_problem(path)):
        if path.suffix in _JSON_ENDINGS:
            with _open_json(path) as reader:
                return reader.schema
        with open_parquet(path) as file:
            return file.schema_arrow


def batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one file in order, at most `BATCH_ROWS` at a time, `columns` only (None: all).

    Raises:
        InputError: the file cannot be read, is cut short, or changes its columns midway (JSON lines).
    """
    with refusing(_problem(path)):
        if path.suffix in _JSON_ENDINGS:
            with _open_json(path) as reader:
                for block in reader:
                    for start in range(0, block.num_rows, BATCH_ROWS):
                        batch = block.slice(start, BATCH_ROWS)
                        yield batch.select(columns) if columns is not None else batch
        else:
            with open_parquet(path) as file:
                yield from read_batches(path, file, columns=columns, most_rows=BATCH_ROWS)


def strings(column: pa.Array, name: str, path: Path) -> pa.Array:
    """`column` as strings, null where null or nothing but white space.

    Raises:
        InputError: the column holds no text.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
            or pa.types.is_null(kind)):
        raise InputError(f"column {name!r} of {path} must hold text, got {column.type}; name another --text-column")
    text = column.cast(pa.large_string())
    return pc.if_else(pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0), pa.scalar(None, pa.large_string()),
                      text)


def require_column(schema: pa.Schema, name: str, option: str, path: Path) -> None:
    """Refuse a file without column `name`.

    Raises:
        InputError: it has none, or two of that name.
    """
    count = schema.names.count(name)
    if count != 1:
        raise InputError(f"--{option} {name!r} must name one column of {path}, found {count}; its columns are "
                         f"{', '.join(schema.names) or 'none'}")


def _open_json(path: Path):
    return pyarrow.json.open_json(path, read_options=pyarrow.json.ReadOptions(block_size=_JSON_BLOCK))


def _problem(path: Path) -> str:
    kind = "JSON lines" if path.suffix in _JSON_ENDINGS else "a parquet file"
    return f"{path} cannot be read as {kind}; it may be cut short or another format"
