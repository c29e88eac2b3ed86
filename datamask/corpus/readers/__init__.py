"""Input formats, by a table: which there are, and which a file is of.

| module | job |
|---|---|
| `contract` | what a reader is |
| `parquet`, `arrow`, `json_lines`, `csv`, `numpy_array` | one each |
| `text` | what readers of text share: lines, compression, bounds |
| `leaves` | fields of nested columns by dotted names, numbered columns as lists |
| `kinds` | what types of columns hold |
| `ids` | ids of every type as integers or texts |
| `shard` | one file, looked at |

To add one: a file here with a `Reader`, and its line in the table. Inputs, side shards, texts to prepare, uploads and
exports follow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from datamask.corpus.readers.arrow import ARROW
from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.corpus.readers.csv import CSV
from datamask.corpus.readers.json_lines import JSON_LINES
from datamask.corpus.readers.numpy_array import NUMPY
from datamask.corpus.readers.parquet import PARQUET
from datamask.errors import InputError
from datamask.files import open_regular
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, file_name, is_address
from datamask.storage.remote import RemoteFile

READERS: list[Reader] = [
    PARQUET,
    ARROW,
    JSON_LINES,
    CSV,
    NUMPY,
]
"""In this order a folder is asked for files: the first format that it has files of is read, others in it are not."""


def endings(readers: Sequence[Reader] | None = None, *, in_folders: bool = False) -> tuple[str, ...]:
    """Of all files of these formats; None: of all formats. in_folders: those that other files have too come last."""
    readers = READERS if readers is None else readers
    named = [reader.named for reader in readers] if in_folders else []
    return tuple(ending for of_one in (*(reader.endings for reader in readers), *named) for ending in of_one)


def formats() -> str:
    """The formats in words: ``parquet, Arrow, JSON lines, CSV or NumPy arrays``."""
    *first, last = [reader.name for reader in READERS]
    return f"{', '.join(first)} or {last}" if first else last


def by_ending(name: str) -> Reader | None:
    """The reader of files of that name; None: no name of that kind is known."""
    name = file_name(name).lower()
    return next((reader for reader in READERS if name.endswith((*reader.endings, *reader.named))), None)


def reader_of(path: str | os.PathLike[str], poll: Poll = no_poll) -> Reader:
    """The reader of a file: by its first bytes, where they tell, since shards may be called anything; else by its name.

    Args:
        path: of the file, or the address of one elsewhere.
        poll: called while a file elsewhere is waited for.

    Raises:
        InputError: neither tells.
        OSError: it cannot be read.
        StoreError: it is a pipe, a device or the like.
        Stopped: from `poll`.
    """
    longest = max(len(reader.magic) for reader in READERS)
    named = by_ending(os.fspath(path))
    if not is_address(path):
        with open_regular(path, "name another") as file:
            head = file.read(longest)
    elif named is not None and named.magic:
        return named  # another request could tell nothing else: without its first bytes no reader takes it either
    else:
        head = RemoteFile(Address.parse(os.fspath(path)), poll).read(longest)
    marked = (reader for reader in READERS if reader.magic and head.startswith(reader.magic))
    reader = next(marked, None) or named
    if reader is None:
        raise InputError(
            f"{path} is neither a parquet file nor named like another format that is read here "
            f"({', '.join(endings(READERS[1:]))}); convert it, or rename it if it is one of these"
        )
    return reader


__all__ = ["READERS", "FileFacts", "Reader", "Wanted", "by_ending", "endings", "formats", "reader_of"]
