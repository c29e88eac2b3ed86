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
from datamask.corpus.remote_listing import remote_files
from datamask.corpus.shards import files_in, of_one_format
from datamask.errors import InputError
from datamask.files import user_path
from datamask.parquet import refusing
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, FilePath, is_address, refuse_secrets

BATCH_ROWS = 1_024
"""Small, since a row may be a book."""

TOGETHER = (PARQUET, JSON_LINES)
"""Of a folder both are read, as they always were here."""


def text_files(inputs: Iterable[str | Path], poll: Poll = no_poll) -> list[FilePath]:
    """The files that `inputs` (files, folders, globs) name, each once; those of a folder or glob in sorted order.

    Raises:
        InputError: an input names nothing, too much to look at, or a file of no format that is read here.
        RemoteError: a store does not answer. Stopped: from `poll`.
    """
    listed: dict[FilePath, None] = {}
    limit = ListingLimit("input", poll)
    for name in inputs:
        path = user_path(name)
        files: list[FilePath]
        with refusing(name, "cannot be read"):
            if is_address(name):
                files = _elsewhere(str(name), limit, poll)
            elif path.is_dir():
                files = [Path(file) for file in files_in(path, limit, TOGETHER)]
            elif path.exists():
                files = [path]
            else:
                files = [*sorted(files_matching(path, limit))]
        if not files:
            raise InputError(f"{name} names no {formats()} file; give files, folders or globs")
        listed.update(dict.fromkeys(files))
    for file in listed:
        if by_ending(file.name) is None:
            raise InputError(f"{file} must be {formats()} and end in one of {', '.join(endings())}")
    if not listed:
        raise InputError(f"at least one {formats()} file is needed, got none")
    return list(listed)


def _elsewhere(text: str, limit: ListingLimit, poll: Poll) -> list[FilePath]:
    """The files that an address names."""
    refuse_secrets(text, "input")
    files, of_folder = remote_files(Address.parse(text), endings(), limit, poll)
    if not of_folder:
        return [*files]
    return [Address.parse(file) for file in of_one_format([str(file) for file in files], TOGETHER)]


def file_schema(path: FilePath, poll: Poll = no_poll) -> pa.Schema:
    """The columns of one file.

    Raises:
        InputError: the file cannot be read.
        Stopped: from `poll`.
    """
    return open_shard(str(path), poll).schema


def batches(path: FilePath, columns: list[str] | None = None, poll: Poll = no_poll) -> Iterator[pa.RecordBatch]:
    """The rows of one file in order, at most `BATCH_ROWS` at a time, `columns` only (None: all).

    Args:
        poll: called while a file elsewhere is waited for.

    Raises:
        InputError: the file cannot be read, or is cut short. RemoteError: its store does not answer.
        Stopped: from `poll`.
    """
    shard = open_shard(str(path), poll)
    with refusing(path, f"cannot be read as {shard.reader.name}; it may be cut short or another format"):
        yield from shard.batches(columns, None, BATCH_ROWS, poll)


def strings(column: pa.Array, name: str, path: FilePath) -> pa.Array:
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
        raise InputError(f"column {name!r} of {path} must hold text, got {column.type}; name another --text_column")
    text = column.cast(pa.large_string())
    return pc.if_else(
        pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0), pa.scalar(None, pa.large_string()), text
    )


def require_column(schema: pa.Schema, name: str, option: str, path: FilePath) -> None:
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
