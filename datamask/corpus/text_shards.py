"""Files of text, read batch by batch, in any format that `datamask.corpus.readers` knows.

Nothing here holds more than one batch of a file. Errors are sentences about the file and the column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.listing import ListingLimit, files_matching
from datamask.corpus.readers import by_ending, endings, formats
from datamask.corpus.readers.json_lines import JSON_LINES
from datamask.corpus.readers.parquet import PARQUET
from datamask.corpus.readers.shard import open_shard
from datamask.corpus.shards import files_in
from datamask.corpus.threads import ShouldStop
from datamask.errors import InputError
from datamask.files import user_path
from datamask.parquet import refusing

BATCH_ROWS = 1_024
"""Small, since a row may be a book."""

TOGETHER = (PARQUET, JSON_LINES)
"""Of a folder both are read, as they always were here."""


def text_files(inputs: Iterable[str | Path], should_stop: ShouldStop | None = None) -> list[Path]:
    """The files that `inputs` (files, folders, globs) name, each once; those of a folder or glob in sorted order.

    Raises:
        InputError: an input names nothing, too much to look at, or a file of no format that is read here.
        Stopped: `should_stop` answered true.
    """
    listed: dict[Path, None] = {}
    limit = ListingLimit("input", should_stop)
    for name in inputs:
        path = user_path(name)
        with refusing(f"{name} cannot be read"):
            if path.is_dir():
                files = [Path(file) for file in files_in(path, limit, TOGETHER)]
            elif path.exists():
                files = [path]
            else:
                files = sorted(files_matching(path, limit))
        if not files:
            raise InputError(f"{name} names no {formats()} file; give files, folders or globs")
        listed.update(dict.fromkeys(files))
    for path in listed:
        if by_ending(path.name) is None:
            raise InputError(f"{path} must be {formats()} and end in one of {', '.join(endings())}")
    if not listed:
        raise InputError(f"at least one {formats()} file is needed, got none")
    return list(listed)


def file_schema(path: Path, should_stop: ShouldStop | None = None) -> pa.Schema:
    """The columns of one file.

    Raises:
        InputError: the file cannot be read.
        Stopped: `should_stop` answered true.
    """
    return open_shard(str(path), should_stop).schema


def batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of one file in order, at most `BATCH_ROWS` at a time, `columns` only (None: all).

    Raises:
        InputError: the file cannot be read, or is cut short.
    """
    shard = open_shard(str(path))
    with refusing(f"{path} cannot be read as {shard.reader.name}; it may be cut short or another format"):
        yield from shard.batches(columns, None, BATCH_ROWS)


def strings(column: pa.Array, name: str, path: Path) -> pa.Array:
    """`column` as strings, null where null or nothing but white space.

    Raises:
        InputError: the column holds no text.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    ):
        raise InputError(f"column {name!r} of {path} must hold text, got {column.type}; name another --text-column")
    text = column.cast(pa.large_string())
    return pc.if_else(
        pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0), pa.scalar(None, pa.large_string()), text
    )


def require_column(schema: pa.Schema, name: str, option: str, path: Path) -> None:
    """Refuse a file without column `name`.

    Raises:
        InputError: it has none, or two of that name.
    """
    count = schema.names.count(name)
    if count != 1:
        raise InputError(
            f"--{option} {name!r} must name one column of {path}, found {count}; its columns are "
            f"{', '.join(schema.names) or 'none'}"
        )
