"""One input file of any format, looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from datamask.corpus.readers import READERS, FileFacts, Reader, by_ending, formats, reader_of
from datamask.corpus.readers.contract import ShouldStop
from datamask.errors import DatamaskError, InputError
from datamask.parquet import UNREADABLE, reason


@dataclass(frozen=True)
class Shard:
    """One file, by the facts that a look at it tells. bytes: size on disk."""

    path: str
    bytes: int
    reader: Reader = field(repr=False)
    facts: FileFacts

    @property
    def schema(self) -> pa.Schema:
        return self.facts.schema

    @property
    def group_rows(self) -> tuple[int, ...]:
        return self.facts.group_rows

    @property
    def rows(self) -> int:
        return sum(self.group_rows)

    def batches(
        self, columns: Sequence[str] | None, groups: Sequence[int] | None, most_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows of some groups, as `readers.contract.Reader.batches`."""
        return self.reader.batches(self.path, self.facts, columns, groups, most_rows)


def open_shard(path: str, should_stop: ShouldStop | None = None, most_bytes: int | None = None) -> Shard:
    """Look at a file.

    Args:
        path: of the file.
        should_stop: polled where that takes long.
        most_bytes: enough for a first look at a file that must be read to know its rows; None: the whole file.

    Raises:
        InputError: it is of no format that is read here, cut short, or not readable.
        Stopped: `should_stop` answered true.
    """
    try:
        size = Path(path).stat().st_size
        if size == 0:  # pipes and devices too, which may never end
            reader = by_ending(path) or READERS[0]
            raise InputError(f"{path} is empty (0 bytes), not a {reader.name} file")
        reader = reader_of(path)
        return Shard(path, size, reader, reader.look(path, should_stop, most_bytes))
    except DatamaskError:
        raise
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read as {formats()}: {reason(error)}") from error


def output_names(paths: Sequence[Path], ending: str) -> list[Path]:
    """For each shard the name of a file made of it, below any folder: its path below their common folder, other ending.

    No two are the same, as the paths are not.

    Args:
        ending: with its dot.
    """
    absolute = [path.absolute() for path in paths]
    base = absolute[0].parent
    while not all(base in path.parents for path in absolute):
        base = base.parent
    short = [path.relative_to(base).with_name(_stem(path) + ending) for path in absolute]
    count = Counter(short)
    return [
        name if count[name] == 1 else path.relative_to(base).with_name(path.name + ending)
        for name, path in zip(short, absolute)
    ]


def _stem(path: Path) -> str:
    # beside shard.parquet there may lie a shard.csv
    return path.stem if by_ending(path.name) in (READERS[0], None) else path.name
