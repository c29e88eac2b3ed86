"""Lists of ids from files, as rows of a corpus, and how far two lists overlap. Loads no torch."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.decode import id_type
from datamask.corpus.readers import Wanted, by_ending, formats
from datamask.corpus.readers.csv import CSV
from datamask.corpus.readers.ids import id_values
from datamask.corpus.readers.json_lines import JSON_LINES
from datamask.corpus.readers.kinds import is_id
from datamask.corpus.readers.shard import open_shard
from datamask.corpus.readers.text import READ_BYTES, opened
from datamask.errors import InputError, StoreError
from datamask.files import check_regular
from datamask.parquet import UNREADABLE, open_parquet, refusing
from datamask.work.ledger import Reservation, ledger

TEXT_BYTES = 8
"""Bytes that a byte of a list takes while it is read: as bytes, as strings of Python, and in a table."""


@dataclass(frozen=True)
class IdList:
    """A selection read from a file.

    Attributes:
        rows: int64 ``(S,)``, rows of the corpus, rising, each once.
        unknown: how many ids of the file are not in the corpus; example: the first of them, "" where there is none.
    """

    rows: np.ndarray
    unknown: int
    example: str = ""


def read_rows(path: str | Path, corpus: Corpus) -> IdList:
    """Read ids from a parquet, JSON lines or CSV file that has a column of the corpus's id column's name, or only one
    column, or from a text file (``.txt``) with one id per line and no header.

    Raises:
        InputError: the file cannot be read, has no such column, holds null or repeated ids, or none or all of the
            corpus's.
    """
    ids = distinct_ids(Path(path), corpus.provenance.columns.get("id", "id"), corpus.ids.type)
    places = pc.index_in(ids, value_set=corpus.ids)
    rows = pc.drop_null(places).to_numpy()
    if not len(rows):
        raise InputError(
            f"{path}: none of its {len(ids):,} ids is in the corpus of {len(corpus):,} rows; is it a "
            "selection of other shards?"
        )
    if len(rows) == len(corpus):
        raise InputError(f"{path}: holds all {len(corpus):,} rows of the corpus, which is no selection")
    unknown = ids.filter(places.is_null())
    return IdList(np.sort(rows).astype(np.int64), len(unknown), str(unknown[0]) if len(unknown) else "")


def distinct_ids(path: Path, column: str, kind: pa.DataType) -> pa.ChunkedArray:
    """The ids of a file, of a type, none null and each once.

    Args:
        column: that they stand in; see `read_rows`.

    Raises:
        InputError: the file cannot be read, has no such column, or holds null, other or repeated ids.
    """
    ids = _typed_ids(path, column, kind)
    if repeated := len(ids) - len(ids.unique()):
        raise InputError(f"{path}: {repeated:,} of its {len(ids):,} ids are repeated; a selection holds each once")
    return ids


def read_ids_of(path: Path, corpus: Corpus) -> pa.ChunkedArray:
    """The ids of a file as the corpus's are: of its type, none null; they may repeat, and be no row's.

    Raises:
        InputError: the file cannot be read, has no such column, or holds null or other ids.
    """
    return _typed_ids(path, corpus.provenance.columns.get("id", "id"), corpus.ids.type)


def _typed_ids(path: Path, column: str, kind: pa.DataType) -> pa.ChunkedArray:
    ids = read_ids(path, column)
    try:
        ids = ids.cast(kind)
    except pa.ArrowException as error:
        raise InputError(f"{path}: its ids are no {kind}, as the corpus's are ({error})") from error
    if ids.null_count:
        raise InputError(f"{path}: {ids.null_count:,} of its {len(ids):,} ids are null")
    return ids


def read_config(path: str | Path) -> SelectionConfig | None:
    """The settings that a selection was made with, which `select` writes into its file.

    None where they are not known: a CSV file, a list that somebody else made, a run whose ids were imported.
    """
    try:
        check_regular(path)
        with open_parquet(path) as file:
            stored = (file.schema_arrow.metadata or {}).get(b"datamask")
        config = None if stored is None else SelectionConfig.from_dict(json.loads(stored)["config"]["selection"])
    except UNREADABLE:
        return None
    return None if config is None or config.estimator == catalogue.IMPORTED.name else config


def overlap(first: np.ndarray, second: np.ndarray) -> tuple[int, float]:
    """Shared members, and their share of the union (Jaccard), of two lists of distinct rows."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared, shared / max(1, len(first) + len(second) - shared)


def chance_overlap(first: int, second: int, n: int) -> float:
    """The overlap of two independent random subsets of these sizes out of n: shared / union of their expectations.

    ``r / (2 - r)`` where both select the share r: 0.176 at 0.3.
    """
    shared = first * second / n
    return shared / (first + second - shared)


def overlaps(lists: Mapping[str, np.ndarray], n: int) -> list[dict[str, Any]]:
    """Every pair of named lists: ``a, b, shared, overlap, chance``."""
    pairs = []
    for (a, first), (b, second) in itertools.combinations(lists.items(), 2):
        shared, value = overlap(first, second)
        pairs.append(
            {"a": a, "b": b, "shared": shared, "overlap": value, "chance": chance_overlap(len(first), len(second), n)}
        )
    return pairs


def reading(path: Path) -> Reservation:
    """Set aside what a small file takes while it is read as text; what is decoded of parquet is added as it comes.

    Raises:
        OSError: there is no such file. NoRoomError: there is not so much memory.
    """
    return ledger().reserve(TEXT_BYTES * path.stat().st_size, f"Reading {path.name}", way_out="give a shorter list")


def _table(path: Path, name: str, room: Reservation) -> pa.Table:
    """A list as a table: the column `name` alone where the file has it."""
    if by_ending(str(path)) is CSV:
        content = _unpacked(path, room)
        # as text: 0007 is an id of four characters until the corpus says it is a number
        with pa.csv.open_csv(pa.BufferReader(content)) as reader:
            names = reader.schema.names
        kept = [name] if name in names else names
        options = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=kept)
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        return pa.csv.read_csv(pa.BufferReader(content), convert_options=options, parse_options=parsing)
    if re.search(r"\.txt(\.gz|\.zst)?$", path.name.lower()):
        lines = [line.strip() for line in _unpacked(path, room).decode("utf-8").split("\n")]
        return pa.table({name: pa.array(filter(None, lines), pa.string())})
    if by_ending(str(path)) is JSON_LINES:
        # whole numbers as Python has them: above 2^63 others are rounded
        lines = _unpacked(path, room).decode("utf-8").split("\n")
        records = [json.loads(line) for line in lines if line.strip()]
        names = [name] if any(name in record for record in records) else list(records[0]) if records else [name]
        return pa.table({each: [_text(record.get(each)) for record in records] for each in names})
    shard = open_shard(str(path))
    names = [name] if name in shard.schema.names else shard.schema.names
    batches = []
    for batch in shard.batches(Wanted(names)):
        room.grow(batch.nbytes)
        batches.append(batch)
    return pa.Table.from_batches(batches, pa.schema([shard.schema.field(each) for each in names]))


def _spelled(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as a corpus holds them, where they can be such."""
    kind = id_type([ids.type]) if is_id(ids.type) else ids.type
    return ids if kind == ids.type else pa.chunked_array([id_values(chunk, kind) for chunk in ids.chunks], kind)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _unpacked(path: Path, room: Reservation) -> bytes:
    """The bytes of a file of texts, which may be compressed. room: has what the file itself takes."""
    left, pieces = path.stat().st_size, []
    with opened(str(path)) as stream:
        while piece := stream.read(READ_BYTES):
            left -= len(piece)
            if left < 0:
                room.grow(TEXT_BYTES * min(-left, len(piece)))
            pieces.append(piece)
    return b"".join(pieces)


def read_ids(path: Path, name: str) -> pa.ChunkedArray:
    """The ids in a file: of its column `name`, else of its only one.

    Raises:
        InputError: the file cannot be read, is no ordinary one or has no such column.
        NoRoomError: it needs more memory than is free.
    """
    try:
        check_regular(path)
        with refusing(f"{path}:", f"cannot be read as {formats().replace(' or', ',')} or .txt"), reading(path) as room:
            table = _table(path, name, room)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except StoreError as error:
        raise InputError(str(error)) from error
    if name in table.column_names or table.num_columns == 1:
        return _spelled(table[name] if name in table.column_names else table.column(0))
    raise InputError(f"{path}: has no column {name!r}, the corpus's id column; it has {', '.join(table.column_names)}")
