"""One input file of any format, looked at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from datamask.corpus.readers import READERS, FileFacts, Reader, Wanted, by_ending, formats, reader_of
from datamask.corpus.readers.leaves import leaf_schema, numbered_columns, with_leaves
from datamask.errors import InputError
from datamask.memo import FileMemo
from datamask.parquet import refusing
from datamask.polling import Poll, no_poll
from datamask.storage.address import FilePath, file_name, is_address
from datamask.storage.remote import file_stamp

_LOOKS: FileMemo[FileFacts] = FileMemo(4096)
"""Files that were looked at: a look at a file of texts reads all of it."""


@dataclass(frozen=True)
class Shard:
    """One file, of the disk or elsewhere, by the facts that a look at it tells. bytes: its size."""

    path: str
    bytes: int
    reader: Reader = field(repr=False)
    facts: FileFacts

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns by which rows are read: leaves in place of structs, lists of numbered columns, and those of
        `partition`. `facts.schema` is the file's own."""
        schema = leaf_schema(self.facts.schema)
        for name in self.partition:
            schema = schema.append(pa.field(name, pa.string()))
        return schema

    @cached_property
    def partition(self) -> dict[str, str | None]:
        """Columns that the folders name, as ``lang=en/year=2020/``: they have one value in all rows, a text."""
        folders = re.split(r"[/\\]", file_name(self.path))[:-1]
        pairs = [folder.split("=", 1) for folder in folders if re.fullmatch(r"[^=]+=.*", folder)]
        return {
            unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
            for name, value in pairs
            if unquote(name) not in self.facts.schema.names
        }

    @property
    def group_rows(self) -> tuple[int, ...]:
        return self.facts.group_rows

    @property
    def rows(self) -> int:
        return sum(self.group_rows)

    def batches(self, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        """The rows that are wanted, as `readers.contract.Reader.batches`.

        Args:
            wanted: its columns are of `schema`, each a column of the batches; what the file lacks is left out. None:
                all columns, as the file has them.
        """
        if wanted.columns is None:
            return self.reader.batches(self.path, self.facts, wanted)
        known = set(self.schema.names)
        columns = [name for name in wanted.columns if name in known]
        numbered = numbered_columns(self.facts.schema)
        parts = [part for name in columns if name not in self.partition for part in numbered.get(name, [name])]
        # rows are counted by a column where none is read
        parts = list(dict.fromkeys(parts)) or self.facts.schema.names[:1]
        batches = self.reader.batches(self.path, self.facts, replace(wanted, columns=parts))
        return (self.with_leaves(batch, columns).select(columns) for batch in batches)

    def with_leaves(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """Return a batch of this file in which these names of `schema` are columns, also where they lie in structs."""
        batch = with_leaves(batch, self.facts.schema, columns)
        for name in columns:
            if name in self.partition:
                value = pa.scalar(self.partition[name], pa.string())
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
        return batch


def open_shard(path: str, poll: Poll = no_poll, most_bytes: int | None = None, skip: bool = False) -> Shard:
    """Look at a file.

    Args:
        path: of the file.
        poll: called where that takes long.
        most_bytes: enough for a first look at a file that must be read to know its rows; None: the whole file.
        skip: skip lines that cannot be read, where the format has lines.

    Raises:
        InputError: it is of no format that is read here, cut short, or not readable.
        RemoteError: it lies elsewhere, and its store does not answer.
        Stopped: from `poll`.
    """
    with refusing(path, f"cannot be read as {formats()}"):
        stamp = file_stamp(path, poll)
        if stamp[0] == 0:  # pipes and devices too, which may never end
            reader = by_ending(path) or READERS[0]
            raise InputError(f"{path} is empty (0 bytes), not a {reader.name} file")
        reader = reader_of(path, poll)

        def look() -> FileFacts:
            return reader.look(path, poll, most_bytes, *([skip] if reader.skips and skip else []))

        facts = _LOOKS.get(path, look, (path, most_bytes, skip), stamp if is_address(path) else None)
        return Shard(path, stamp[0], reader, facts)


def counted_batches(shard: Shard, wanted: Wanted, rows: int, where: str = "") -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the number of rows before it and every batch of what is wanted, which has so many rows.

    Args:
        wanted: its `poll` is called before every batch too. where: in the file, in an error.

    Raises:
        InputError: the file is damaged further in, or changed since it was opened.
        RemoteError: it lies elsewhere, and its store does not answer. Stopped: from `poll`.
    """
    done = 0
    with refusing(shard.path, f"is damaged or was changed while being read{where}"):
        for batch in shard.batches(wanted):
            wanted.poll()
            if not shard.facts.complete:  # a file looked at in part alone goes on behind the rows that are known
                batch = batch.slice(0, rows - done)
            if done + batch.num_rows > rows:
                raise pa.ArrowInvalid("more rows than when it was opened")
            yield done, batch
            done += batch.num_rows
        if done < rows:
            raise pa.ArrowInvalid("fewer rows than when it was opened")


def output_names(paths: Sequence[FilePath], ending: str) -> list[Path]:
    """For each shard the name of a file made of it, below any folder: its path below their common folder, other ending.

    No two are the same, as the paths are not.

    Args:
        ending: with its dot.
    """
    folders = [(path.absolute() if isinstance(path, Path) else path).parts[:-1] for path in paths]
    differ = (place for place, parts in enumerate(zip(*folders, strict=False)) if len(set(parts)) > 1)
    common = next(differ, min(map(len, folders)))
    below = [Path(*(part.replace("://", "-") for part in folder[common:])) for folder in folders]
    short = [folder / (_stem(path) + ending) for folder, path in zip(below, paths, strict=True)]
    count = Counter(short)
    return [
        name if count[name] == 1 else folder / (path.name + ending)
        for name, folder, path in zip(short, below, paths, strict=True)
    ]


def _stem(path: FilePath) -> str:
    # beside shard.parquet there may lie a shard.csv
    return path.stem if by_ending(path.name) in (READERS[0], None) else path.name
