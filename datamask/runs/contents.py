"""The shards of a run, read again for its selected rows.

A shard may be written anew with the same ids and other texts. So a run notes by what the contents of its files were
known before they were opened (`corpus.readers.stamps.content_stamp`), and an export compares.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.readers import Wanted
from datamask.corpus.readers import shard as files
from datamask.corpus.readers.ids import id_values
from datamask.corpus.readers.stamps import content_stamp
from datamask.errors import InputError
from datamask.parquet import without_views
from datamask.polling import Poll, no_poll
from datamask.runs.store import Run
from datamask.storage.address import FilePath, path_of
from datamask.storage.remote import is_folder

BATCH_ROWS = 8192
"""Rows read at a time: 768 float32 dimensions are 24 MB."""


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
        raise gone(path)
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


def check_unchanged(run: Run, shards: Iterable[ShardRows], poll: Poll) -> None:
    """Refuse shards that were written anew since the run opened them.

    Raises:
        InputError: one is gone or has changed. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    noted: dict[str, str] = run.facts().get("contents", {})
    for shard in shards:
        path = str(shard.path)
        try:
            now = content_stamp(path, poll)
        except FileNotFoundError:
            raise gone(shard.path) from None
        if noted.get(path, now) != now:
            raise changed(shard.path, "it was written anew")


def gone(path: FilePath) -> InputError:
    """The error for a shard that is not there any more."""
    return InputError(f"{path} is gone since the run; put it back to export its rows")


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
