"""What the selected rows hold: read again from the shards, and kept as a digest that tells whether they are the same.

Ids alone do not tell: a shard may be written anew with the same ids and other texts. When a run ends, all columns of
the selected rows are read once more and digested per shard (`datamask.runs.digests`); an export reads them anyway, and
compares.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.readers import Wanted
from datamask.corpus.readers import shard as files
from datamask.corpus.readers.ids import id_values
from datamask.corpus.readers.kinds import is_list, is_string
from datamask.errors import InputError
from datamask.parquet import without_views
from datamask.polling import Poll, no_poll
from datamask.runs.store import Run
from datamask.storage.address import FilePath, path_of
from datamask.storage.remote import is_folder

BATCH_ROWS = 8192
"""Rows read at a time: 768 float32 dimensions are 24 MB."""

UNSETTLED = "changed"
"""In the place of the digest of a shard that was rewritten while the run went on: equal to no digest."""


@dataclass(frozen=True)
class ShardRows:
    """One input file with the rows of it that were in the corpus.

    Attributes:
        path: the file, of the disk or elsewhere.
        rows: int64 ``(n,)`` positions in it, rising.
        ids: what the id column held there, in the same order.
        selected: bool ``(n,)``.
        id_name: the id column.
        left_out: int64, where the file's other rows were in the corpus too (`rows` are then the selected ones alone):
            those that were not. None: `rows` are all that were.
    """

    path: FilePath
    rows: np.ndarray
    ids: pa.ChunkedArray
    selected: np.ndarray
    id_name: str
    left_out: np.ndarray | None = None


def shards_of(run: Run) -> list[ShardRows]:
    """The input files in reading order, those without a row in the corpus included; by the run's rows.parquet.

    Raises:
        StoreError: that table is damaged, or has not the columns that it must have.
    """
    facts = run.facts()
    if run.whole is not None:  # rows.parquet is of a sample of them
        everything = table = run.selection()
        table = table.append_column("selected", pa.array(np.ones(len(table), bool)))
        id_name = run.id_column(everything)
    else:
        everything = run.rows()
        id_name = run.id_column(everything)
        table = run.rows(("source_file", "source_row", "selected"))
    names = table["source_file"].combine_chunks().dictionary_encode()
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    codes = names.indices.to_numpy(zero_copy_only=False)
    with_rows = names.dictionary.to_pylist()
    files = list(dict.fromkeys([*facts.get("files", []), *with_rows]))
    rows = table["source_row"].to_numpy()
    selected = table["selected"].to_numpy()
    shards = []
    for file in files:
        where = np.flatnonzero(codes == with_rows.index(file)) if file in with_rows else np.zeros(0, np.int64)
        where = where[np.argsort(rows[where], kind="stable")]
        ids = everything[id_name].take(pa.array(where))
        shards.append(ShardRows(path_of(file), rows[where], ids, selected[where], id_name))
    return shards if run.whole is None else _with_left_out(run, shards)


def _with_left_out(run: Run, shards: list[ShardRows]) -> list[ShardRows]:
    """The shards of a run on mapped arrays, each with the rows of it that could not be used."""
    table = run.left_out()
    if table is None:
        return [replace(shard, left_out=np.zeros(0, np.int64)) for shard in shards]
    files, rows = table["source_file"], table["source_row"].to_numpy()
    return [
        replace(shard, left_out=rows[pc.equal(files, str(shard.path)).to_numpy(zero_copy_only=False)])
        for shard in shards
    ]


def open_file(path: FilePath, poll: Poll = no_poll) -> files.Shard:
    """A shard, opened again.

    Args:
        poll: called while a file elsewhere is waited for.

    Raises:
        InputError: it is gone, or cannot be read. RemoteError: its store does not answer. Stopped: from `poll`.
    """
    if not _exists(path, poll):
        raise InputError(f"{path} is gone since the run; put it back to export its rows")
    return files.open_shard(str(path), poll)


def _exists(path: FilePath, poll: Poll) -> bool:
    return path.exists() if isinstance(path, Path) else is_folder(path, poll) is not None


def selected_rows(shard: ShardRows, poll: Poll) -> Iterator[pa.Table]:
    """The selected rows of a shard as it has them, batch by batch.

    Args:
        poll: called between batches, and while a file elsewhere is waited for.

    Raises:
        InputError: it is gone, cannot be read, or has other ids in these rows. RemoteError: its store does not answer.
        Stopped: from `poll`.
    """
    keep, expected = shard.rows[shard.selected], shard.ids.filter(pa.array(shard.selected))
    done = 0
    for start, batch in _batches(shard.path, keep, poll):
        poll()
        first, stop = np.searchsorted(keep, [start, start + batch.num_rows]).tolist()
        if stop > first:
            rows = without_views(pa.Table.from_batches([batch])).take(pa.array(keep[first:stop] - start))
            _check_ids(shard, rows, expected.slice(first, stop - first))
            yield rows
            done = stop
    if done < len(keep):
        raise changed(shard.path, f"it has no row {int(keep[-1]):,} any more")


def changed(path: FilePath, how: str) -> InputError:
    """The error for a shard that is not what it was when the run read it."""
    return InputError(f"{path} has changed since the run: {how}; run the selection again")


def _batches(path: FilePath, keep: np.ndarray, poll: Poll) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of the row groups that hold one of the rows `keep`, each with its first row."""
    file = open_file(path, poll)
    edges = np.cumsum([0, *file.group_rows])
    for group, (low, high) in enumerate(itertools.pairwise(edges.tolist())):
        if np.searchsorted(keep, low) < np.searchsorted(keep, high):
            wanted = Wanted(None, [group], BATCH_ROWS, poll)
            for done, batch in files.counted_batches(file, wanted, high - low):
                yield low + done, batch


def _check_ids(shard: ShardRows, rows: pa.Table, expected: pa.ChunkedArray) -> None:
    # ids may come from a side shard; then this file has no such column
    count = rows.column_names.count(shard.id_name)
    if count == 0:
        return
    try:
        same = count == 1 and pa.chunked_array(
            [id_values(chunk, expected.type) for chunk in rows[shard.id_name].chunks], expected.type
        ).equals(expected)
    except pa.ArrowException:  # texts where there were numbers
        same = False
    if not same:
        raise changed(shard.path, f"its {shard.id_name!r} column holds other ids")


# -- the digest -------------------------------------------------------------------------------------------------------


class Digest:
    """A digest of rows: names and values of all columns, whatever the batches, chunks, encodings and compression."""

    def __init__(self) -> None:
        self._parts: dict[str, hashlib.blake2b] = {}

    def add(self, rows: pa.Table) -> None:
        """Take note of more rows, in their order."""
        for place, (name, column) in enumerate(zip(rows.column_names, rows.columns)):
            for chunk in column.chunks:
                self._add(f"{place} {name}", chunk)

    def text(self) -> str:
        """The digest of all rows so far, in hex."""
        whole = hashlib.blake2b(digest_size=16)
        for name in sorted(self._parts):
            whole.update(f"{name}\0{self._parts[name].hexdigest()}\0".encode())
        return whole.hexdigest()

    def _add(self, name: str, values: pa.Array) -> None:
        kind = values.type
        if isinstance(kind, pa.BaseExtensionType):
            self._add(name, values.storage)
            return
        if pa.types.is_dictionary(kind):
            self._add(name, values.dictionary_decode())
            return
        self._update(f"{name} valid", pc.is_valid(values).cast(pa.uint8()))
        if _is_text(kind):
            values = values.cast(pa.large_binary()).fill_null(b"")
            self._update(f"{name} lengths", pc.binary_length(values))
            self._update_bytes(f"{name} bytes", values)
        elif pa.types.is_struct(kind):
            for field, child in zip(kind, values.flatten()):
                self._add(f"{name}.{field.name}", child)
        elif is_list(kind):
            self._update(f"{name} lengths", pc.list_value_length(values).cast(pa.int64()))
            self._add(f"{name}[]", pc.list_flatten(values))
        elif pa.types.is_nested(kind):  # maps and unions are rare, and have no one layout: as Python writes them
            self._add(f"{name} repr", pa.array([repr(value) for value in values.to_pylist()], pa.large_string()))
        elif not pa.types.is_null(kind):
            self._update(f"{name} {kind}", values)

    def _update(self, name: str, values: pa.Array) -> None:
        """Take note of values of a fixed width; what lies under a null counts as zero."""
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.uint8())
        buffer, width = values.buffers()[1], values.type.bit_width // 8
        if buffer is None:
            return
        content = np.frombuffer(buffer, np.uint8)[values.offset * width : (values.offset + len(values)) * width]
        if values.null_count:
            content = content.reshape(len(values), width) * pc.is_valid(values).to_numpy(zero_copy_only=False)[:, None]
        self._hasher(name).update(np.ascontiguousarray(content).data)

    def _update_bytes(self, name: str, values: pa.LargeBinaryArray) -> None:
        _, offsets, content = values.buffers()
        if content is None or not len(values):
            return
        edges = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
        self._hasher(name).update(memoryview(content)[int(edges[0]) : int(edges[-1])])

    def _hasher(self, name: str) -> hashlib.blake2b:
        if name not in self._parts:
            self._parts[name] = hashlib.blake2b(digest_size=16)
        return self._parts[name]


def _is_text(kind: pa.DataType) -> bool:
    of_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(is_string(kind) or of_bytes)
