"""What a reader is: which files are its own, what a look at one tells, and its rows in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from datamask.parquet import BATCH_ROWS
from datamask.polling import Poll, no_poll


@dataclass
class Skipped:
    """What of a file cannot be read.

    Attributes:
        lines: numbers of lines, from 1. first: what is wrong with the first one, without a full stop.
        cut: why the file ends before its end, in the same way; "": it does not.
    """

    lines: set[int] = field(default_factory=set)
    first: str = ""
    cut: str = ""

    def add(self, line: int, why: str) -> None:
        """Skip a line. why: a sentence about it."""
        if line < min(self.lines, default=line + 1):
            self.first = why
        self.lines.add(line)


@dataclass(frozen=True)
class Wanted:
    """What is to be read of a file.

    Attributes:
        columns: names; a dotted one asks for a leaf of a struct (`leaves`), which comes with that leaf at least. None:
            all. groups: as the reader numbers them; None: all.
        most_rows: of a batch.
        poll: called while a file elsewhere is waited for.
    """

    columns: Sequence[str] | None = None
    groups: Sequence[int] | None = None
    most_rows: int = BATCH_ROWS
    poll: Poll = no_poll


@dataclass(frozen=True)
class FileFacts:
    """What a look at a file tells.

    Attributes:
        schema: of all its rows.
        group_rows: rows of each group that can be read by itself, in their order; their sum is the file's rows.
        row_bytes: decoded bytes per row, about.
        inside: what the reader keeps for itself.
        rounded: columns of float64 whose file spells whole numbers that float64 cannot hold, so that close ones may be
            equal here.
        left_out: dotted name of a field that is not read -> why, as the end of a sentence about it.
        skipped: lines that cannot be read and were skipped, as it was asked for; None: such are refused.
        complete: False where the file was not read to its end, so that there are more rows and perhaps more columns.
    """

    schema: pa.Schema
    group_rows: tuple[int, ...]
    row_bytes: float = 0.0
    inside: object = field(default=None, repr=False, compare=False)
    complete: bool = True
    rounded: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)
    skipped: Skipped | None = None


@dataclass(frozen=True)
class Reader:
    """One input format.

    Attributes:
        name: in sentences: ``parquet``, ``JSON lines``.
        endings: of its files' names, the usual one first; in folders and uploads nothing else is looked at.
        look: the facts of a file that is not empty: ``look(path, poll, most_bytes)``. It calls `poll`
            where it takes long; where it must read rows, those in so many bytes are enough (None: all of them).
            Raises InputError, a sentence with the file's name and the place in it, or one of
            `datamask.parquet.UNREADABLE`. Where `skips`, a fourth argument is true if lines that cannot be read are to
            be skipped.
        batches: the rows of a file by its facts. Every batch is validated in full, and takes
            `datamask.parquet.BATCH_BYTES` or a small multiple. Raises as `look` does.
        named: further endings of its files, which others have too: of a folder they are read only where it has no files
            of another ending.
        magic: first bytes of its files, whatever they are called.
        group: what a group is called in sentences; "": its files are read as a whole.
        skips: whether it can skip lines.
    """

    name: str
    endings: tuple[str, ...]
    look: Callable[..., FileFacts]
    batches: Callable[[str, FileFacts, Wanted], Iterator[pa.RecordBatch]]
    named: tuple[str, ...] = ()
    magic: bytes = b""
    group: str = ""
    skips: bool = False
