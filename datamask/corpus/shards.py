"""Shards: which files, how many rows, and reading them batch by batch in parallel threads.

Nothing here knows what a column means, nor what format a file has (`datamask.corpus.readers` does). The row groups of a
format that has some are read independently, so one large file keeps all threads busy as well as many small ones do;
batches are sized by bytes, so that memory does not depend on the row-group size.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus.listing import ListingLimit, files_below, files_matching, is_pattern, shortened
from datamask.corpus.readers import READERS, Wanted, by_ending, endings
from datamask.corpus.readers.shard import Shard, counted_batches, open_shard
from datamask.corpus.readers.text import PACKED
from datamask.corpus.remote_listing import file_stamps, remote_files
from datamask.corpus.threads import Tally, thread_count
from datamask.errors import InputError
from datamask.files import user_path
from datamask.parquet import BATCH_BYTES, BATCH_ROWS
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, file_name, harmless, is_address, refuse_secrets
from datamask.work.context import UNWATCHED, Work

REMOTE_THREADS = 8
"""Files elsewhere read at once, where there are fewer cores: each waits most of the time."""

FEW_ROWS = 64
"""Where the first rows of a row group are wanted alone, batches have at least so many."""


@dataclass(frozen=True)
class Source:
    """Shards read as one long table.

    Attributes:
        name: ``input``, ``features`` or ``scores``: the option that named them.
        shards: in reading order.
        starts: int64 ``(len(shards) + 1,)``, the first row of each shard in the long table.
        complete: False where a limit left files out, or rows.
        notes: sentences about what of the paths is read.
    """

    name: str
    shards: tuple[Shard, ...]
    starts: np.ndarray
    complete: bool = True
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    def first(self) -> Shard:
        """The first shard that has rows.

        Raises:
            InputError: none has.
        """
        for shard in self.shards:
            if shard.rows:
                return shard
        raise InputError(
            f"{self.shards[0].path} has no rows"
            if len(self.shards) == 1
            else f"none of the {len(self.shards)} files of --{self.name} has any rows "
            f"(the first is {self.shards[0].path})"
        )

    def locate(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shard index (int32) and row in that shard (int64) of rows of the long table."""
        shard = np.searchsorted(self.starts, rows, side="right") - 1
        return shard.astype(np.int32), rows - self.starts[shard]

    def span(self, shard: int, first: int, count: int) -> range:
        """So many rows of the long table, from a row of a shard on."""
        start = int(self.starts[shard]) + first
        return range(start, start + count)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """A name for each shard, no two the same: its own without ending, where names repeat with folders."""
        paths = [Path(harmless(shard.path).replace("://", "/")) for shard in self.shards]
        names = [Path(path.stem).stem if path.suffix in PACKED else path.stem for path in paths]
        if len(set(names)) < len(names):
            parts = [
                Path(os.path.realpath(shard.path)).parts if not is_address(shard.path) else path.parts
                for shard, path in zip(self.shards, paths, strict=True)
            ]
            differ = (place for place, beside in enumerate(zip(*parts, strict=False)) if len(set(beside)) > 1)
            common = min(next(differ, len(parts[0])), *(len(path) - 1 for path in parts))
            names = ["-".join(part for part in path[common:] if part != "/") for path in parts]
        return tuple(names)

    def made_ids(self, rows: np.ndarray) -> pa.Array:
        """Return ids of rows of the long table where no column has any: ``file:row``."""
        shards, places = self.locate(rows)
        return pa.array([f"{self.stems[shard]}:{row}" for shard, row in zip(shards.tolist(), places.tolist())])

    def place(self, row: int) -> str:
        """``FILE row K`` for messages; rows count from 0, as in ``source_row``."""
        shard = bisect_right(self.starts.tolist(), row) - 1
        return f"{self.shards[shard].path} row {row - int(self.starts[shard]):,}"


def list_files(
    inputs: Sequence[str],
    option: str = "input",
    poll: Poll = no_poll,
    split: str | None = None,
    note: Callable[[str], None] = lambda sentence: None,
) -> tuple[str, ...]:
    """The files that files, folders (recursive, sorted) and globs name, each once, in the order given.

    Of a folder, the files of one format: the first of the table of readers that it has any of, names such as
    ``.json``, which other files have too, last. Addresses of files, folders and globs elsewhere are taken in the same
    way.

    Args:
        inputs, option: the paths, and what named them.
        split: of a folder whose files are all of a split, as ``train-00000.parquet`` or ``train/``, the one that is
            read, or ``all``; None: ``train``.
        note: is told which split is read of a folder that has several.

    Raises:
        InputError: a path does not exist, nothing matches, too many files and folders would have to be looked at, or a
            folder has several splits, none of which is `split` or train.
        RemoteError: a store does not answer.
        Stopped: from `poll`.
    """
    listed: dict[str, str] = {}
    limit = ListingLimit(option, poll)
    for text in inputs:
        path = os.fspath(text)
        if is_address(path):
            for match in _of_split(_remote_matches(path, option, limit, poll, note), path, option, split, note):
                listed.setdefault(match, match)
            continue
        expanded = user_path(path)
        name = shortened(path)
        try:
            if expanded.is_dir():
                files = sorted(str(path) for path in files_below(expanded, endings(in_folders=True), limit))
                matches = of_one_format(files, f"--{option} {name}", note)
                if not matches:
                    raise InputError(f"--{option} {name} {_nothing_in_it()}")
                matches = _of_split(matches, str(expanded), option, split, note)
            elif expanded.exists():
                matches = [str(expanded)]
            elif is_pattern(path):
                matches = sorted(map(str, files_matching(expanded, limit)))
                if not matches:
                    raise InputError(f"--{option} {name} matches no file")
            else:
                raise InputError(f"--{option} {name} does not exist")
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            why = getattr(error, "strerror", None) or error
            raise InputError(f"--{option} {name!r} cannot be read: {why}") from error
        for match in matches:
            listed.setdefault(os.path.realpath(match), match)
    return tuple(listed.values())


_SPLIT = re.compile(r"(train|test|validation|valid|val|dev|eval)(?=[-_./]|$)", re.IGNORECASE)


def _of_split(files: list[str], folder: str, option: str, split: str | None, note: Callable[[str], None]) -> list[str]:
    """The files of a folder that are of the split that is read; all where not each of them is of one."""
    splits: dict[str, list[str]] = {}
    for file in files:
        below = file_name(file)[len(file_name(folder).rstrip("/")) + 1 :]
        found = next((match for match in map(_SPLIT.match, below.split("/")) if match), None)
        splits.setdefault("" if found is None else found[1].lower(), []).append(file)
    if split == "all" or "" in splits or (split is None and len(splits) < 2):
        return files
    name, names = f"--{option} {shortened(folder)}", ", ".join(splits)
    if split is None and "train" not in splits:
        raise InputError(f"{name} has the splits {names}; choose one with --split, or --split all")
    if split is not None and split.lower() not in splits:
        raise InputError(f"{name} has no split {split!r}; its splits are {names}")
    read = (split or "train").lower()
    if split is None:
        note(f"{name} has the splits {names}: {read} is read, and --split chooses another, or all.")
    return splits[read]


def _remote_matches(text: str, option: str, limit: ListingLimit, poll: Poll, note: Callable[[str], None]) -> list[str]:
    """The files that an address names.

    Raises:
        InputError, RemoteError, Stopped: as `list_files`.
    """
    refuse_secrets(text, option)
    name = f"--{option} {shortened(text)}"
    try:
        files, of_folder = remote_files(Address.parse(text), endings(in_folders=True), limit, poll)
    except InputError as error:
        raise type(error)(f"--{option} {error}") from error
    matches = of_one_format([str(file) for file in files], name, note) if of_folder else [str(file) for file in files]
    if not matches:
        raise InputError(f"{name} {_nothing_in_it() if of_folder else 'matches no file'}")
    return matches


def _nothing_in_it() -> str:
    looked_for = ", ".join(endings(in_folders=True))
    return f"is a folder without any file to read (its names would end in {looked_for})"


LOOK_BYTES = 256 << 20
"""Of all files together that must be read to know their rows, a first look reads so much: some seconds."""


def of_one_format(files: Sequence[str], name: str, note: Callable[[str], None]) -> list[str]:
    """Those of the files that are of one format, the first of the table that any is of.

    Args:
        name: of their folder. note: is told of files of other formats.
    """
    for endings_of in (*(reader.endings for reader in READERS), *(reader.named for reader in READERS)):
        matches = [path for path in files if file_name(path).lower().endswith(endings_of)] if endings_of else []
        if matches:
            others = {path for path in files if file_name(path).lower().endswith(endings())}.difference(matches)
            if others:
                count = f"{len(others):,} file{'s' if len(others) > 1 else ''} of other formats"
                note(f"{name} also has {count}, such as {min(others)}; not read.")
            return matches
    return []


def threads_for(paths: Iterable[str], tasks: int) -> int | None:
    """How many threads read these files: more where some wait for a store; None: as many as there are cores."""
    return max(thread_count(tasks), min(REMOTE_THREADS, tasks)) if any(map(is_address, paths)) else None


def open_source(
    name: str,
    inputs: Sequence[str],
    work: Work = UNWATCHED,
    limit: int | None = None,
    split: str | None = None,
    skip: bool = False,
) -> Source:
    """List and open the shards of one option; with a limit at most so many of them, and by a first look only.

    Args:
        split: as of `list_files`. skip: skip lines that cannot be read.

    Raises:
        InputError: a file is missing or of another format, or there are no rows at all.
        Stopped: from `work.poll`.
    """
    notes: list[str] = []
    listed = list_files(inputs, name, work.poll, split, notes.append)
    paths = listed[:limit]
    enough = None if limit is None else LOOK_BYTES // max(1, len(paths))
    sizes = _sizes(paths, work.poll)
    what = f"Looking at {len(paths):,} file{'s' if len(paths) != 1 else ''}"
    tally = Tally(work, sum(sizes), lambda rows: what)

    def look(index: int) -> Shard:
        shard = open_shard(paths[index], tally.poll, enough, skip)
        # bytes of files that are read to their end for that; of parquet it is the footers, in moments
        tally.add(0, sizes[index], sizes[index])
        return shard

    shards = tuple(tally.in_threads(look, len(paths), threads_for(paths, len(paths))))
    source = Source(
        name,
        shards,
        np.cumsum([0, *(shard.rows for shard in shards)], dtype=np.int64),
        len(paths) == len(listed) and all(shard.facts.complete for shard in shards),
        tuple(notes),
    )
    source.first()
    return source


def _sizes(paths: Sequence[str], poll: Poll) -> list[int]:
    """Bytes of each file that is read to its end for a look at it; 0 of others, and where there is none any more."""
    whole = [path for path in paths if (reader := by_ending(path)) is not None and not reader.group]
    sizes = {
        path: 0 if isinstance(stamp, OSError) else stamp[0]
        for path, stamp in zip(whole, file_stamps(whole, poll), strict=True)
    }
    return [sizes.get(path, 0) for path in paths]


@dataclass(frozen=True)
class Piece:
    """Row groups of one shard, read by one task.

    Attributes:
        rows: how many rows they hold.
        until: so many of them, from the first, hold all that is wanted; what lies behind is not read.
    """

    shard: int
    groups: tuple[int, ...]
    rows: int
    until: int


def pieces(source: Source, only_rows: np.ndarray | None = None, rows_each: int = 1 << 16) -> list[Piece]:
    """Cut a source into pieces of about `rows_each` rows; row groups without any of the sorted `only_rows` left out."""
    cut = []
    for index, shard in enumerate(source.shards):
        edges = np.cumsum([0, *shard.group_rows], dtype=np.int64)
        groups: list[int] = []
        count = until = 0
        for group, rows in enumerate(shard.group_rows):
            low, high = source.starts[index] + edges[group], source.starts[index] + edges[group + 1]
            last = high if only_rows is None else _last_below(only_rows, high) + 1
            if rows and last > low:
                groups.append(group)
                until = count + int(last - low)
                count += rows
            if groups and (count >= rows_each or group == len(shard.group_rows) - 1):
                cut.append(Piece(index, tuple(groups), count, until))
                groups, count = [], 0
    return cut


def reading_threads(source: Source, only_rows: np.ndarray | None = None) -> int:
    """How many threads `scan` reads these rows with."""
    tasks = len(pieces(source, only_rows))
    return threads_for((shard.path for shard in source.shards), tasks) or thread_count(tasks)


def _last_below(rows: np.ndarray, limit: int) -> int:
    """The last of the sorted rows that is less than the limit; -1: none is."""
    place = int(np.searchsorted(rows, limit))
    return int(rows[place - 1]) if place else -1


def read_piece(
    source: Source, piece: Piece, columns: Sequence[str], batch_rows: int, poll: Poll = no_poll
) -> Iterator[tuple[np.ndarray, pa.RecordBatch]]:
    """Yield (rows of the long table, batch) of one piece, up to the batch with the last row that is wanted.

    Args:
        poll: called while a file elsewhere is waited for.

    Raises:
        InputError: the file is damaged further in, or changed since it was opened.
        RemoteError: it lies elsewhere, and its store does not answer. Stopped: from `poll`.
    """
    shard = source.shards[piece.shard]
    edges = np.cumsum([source.starts[piece.shard], *shard.group_rows], dtype=np.int64)
    groups = np.array(piece.groups)
    ends = np.cumsum(edges[groups + 1] - edges[groups])  # rows of the piece up to and with each group
    shifts = edges[groups + 1] - ends
    group = shard.reader.group
    where = "" if not group else f" ({group}{f's {groups[0]} to' if len(groups) > 1 else ''} {groups[-1]})"
    wanted = Wanted(columns, piece.groups, batch_rows, poll)
    for done, batch in counted_batches(shard, wanted, piece.rows, where):
        places = np.arange(done, done + batch.num_rows)
        yield places + shifts[np.searchsorted(ends, places, side="right")], batch
        if piece.until <= done + len(places) and (piece.until < piece.rows or not shard.facts.complete):
            return


def scan(
    source: Source,
    columns: Sequence[str],
    take: Callable[[np.ndarray, pa.RecordBatch], None],
    *,
    row_bytes: int,
    only_rows: np.ndarray | None = None,
    work: Work = UNWATCHED,
    what: str = "Reading",
) -> None:
    """Call ``take(rows, batch)`` on every batch of `columns`, from several threads at once, in no fixed order.

    Args:
        source: what to read.
        columns: column names, read and nothing else.
        take: gets the rows of the long table (int64) and the record batch; must be safe to call from several threads.
        row_bytes: expected decoded size of a row, which bounds the batch size; see `read_batches`.
        only_rows: sorted; row groups holding none of them are skipped, and of the others what lies behind the last.
        work: asked from this thread; told the share of the bytes done, the rows, and how many MB a second are decoded.
        what: the words before these.

    Raises:
        InputError: a file is damaged.
        Stopped: from `work.poll`.
    """
    batch_rows = int(np.clip(BATCH_BYTES // max(row_bytes, 1), 1, BATCH_ROWS))
    todo = pieces(source, only_rows)
    total = sum(piece.until for piece in todo)
    # rows of one shard may be many times as long as those of another
    weights = [max(1.0, shard.facts.row_bytes) for shard in source.shards]
    whole = sum(piece.until * weights[piece.shard] for piece in todo)
    tally = Tally(work, whole, lambda rows: f"{what} {rows:,} of {total:,} rows")

    def task(index: int) -> None:
        piece = todo[index]
        # of the first rows of a row group alone, small batches: the last one holds rows that nobody wants
        most = batch_rows if piece.until == piece.rows else min(batch_rows, max(FEW_ROWS, piece.until // 8))
        left = piece.until
        for rows, batch in read_piece(source, piece, columns, most, tally.poll):
            tally.poll()
            take(rows, batch)
            wanted = min(len(rows), left)
            left -= wanted
            tally.add(wanted, batch.nbytes, wanted * weights[piece.shard])

    tally.in_threads(task, len(todo), threads_for((shard.path for shard in source.shards), len(todo)))
