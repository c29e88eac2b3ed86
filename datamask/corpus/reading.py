"""Fill preallocated arrays from shards: features, quality, lengths, ids and metadata of exactly the wanted rows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from datamask.corpus import decode
from datamask.corpus.columns import Columns
from datamask.corpus.row_reader import RowNumbers, RowReader
from datamask.corpus.shards import Source, scan
from datamask.corpus.text_file import TextFile
from datamask.errors import InputError
from datamask.parquet import BATCH_BYTES, VIEWS
from datamask.places import MEMORY, Place
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import Reservation, in_words

KEPT_FROM = 64 << 10
"""Bytes of a column from which a copy is worth its while."""

IN_FLIGHT = 4
"""Times a batch that a thread holds while it reads one: decoded, as its buffers grew, and copied."""


THREAD_BYTES = 32 << 20
"""What a thread that reads takes besides: buffers of columns, and what Arrow's allocator keeps for it."""


@dataclass
class Room:
    """Memory for the ids and metadata of some rows, and for the batches that threads hold while they read.

    Attributes:
        reservation: where it comes from.
        granted: bytes of the reservation that are for this; more is asked for when they are used up.
        most: bytes that ids and metadata may take, the texts in their file included: that needs a bound as well.
        threads: that read.
        spent: bytes of ids and metadata in memory so far. texts: bytes in the file. largest: bytes of the largest
            batch so far.
    """

    reservation: Reservation
    granted: int
    most: int
    threads: int
    spent: int = 0
    texts: int = 0
    largest: int = BATCH_BYTES

    @property
    def taken(self) -> int:
        """Bytes that are in use now, at most."""
        return self.spent + reading_bytes(self.threads, self.largest)

    def take(self, nbytes: int, batch: int = 0) -> None:
        """Take bytes for rows of a batch of so many bytes. Called under one lock.

        Raises:
            NoRoomError: they are not free.
        """
        self.largest = max(self.largest, batch)
        self.spent += nbytes
        if self.taken > self.granted:
            # by steps, so that not every small batch asks
            more = max(self.taken - self.granted, min(STEP, self.granted // 8))
            self.reservation.grow(more)
            self.granted += more


STEP = 32 << 20
"""Bytes by which a room grows, about; of a small room an eighth."""


def reading_bytes(threads: int, batch: int = BATCH_BYTES) -> int:
    """Bytes that so many threads hold beside what they have read, with batches of so many bytes."""
    return threads * (THREAD_BYTES + IN_FLIGHT * batch)


@dataclass
class Rows(RowNumbers):
    """What is read: N rows, in the order they will have. Arrays are allocated once and filled in place.

    Attributes:
        features: float32 ``(N, d)``; all else as there. names: of the Q quality columns.
        exponents: int16 ``(N,)``, features were divided by ``2**exponents`` (`decode.within_float32`); None: none was.
        rests: row of `quality` -> what float64 could not hold of it, ``(N,)`` (see `decode.integer_rests`).
        room: the memory for ids and metadata.
        parts: (first slot, ids, metadata batch) of each batch of the input, in no fixed order.
    """

    names: Sequence[str]
    exponents: np.ndarray | None = None
    rests: dict[int, np.ndarray] = field(default_factory=dict)
    room: Room | None = None
    parts: list[tuple[int, pa.Array, pa.RecordBatch]] = field(default_factory=list)

    def clear(self) -> None:
        """Let go of all that was read."""
        self.features, self.quality = np.empty((0, self.features.shape[1]), np.float32), np.empty((0, 0))
        self.lengths = self.exponents = None
        self.rests, self.parts = {}, []

    def take(self, nbytes: int) -> None:
        """Take memory for what is made of the rows.

        Raises:
            NoRoomError: it is not free.
        """
        if self.room is not None:
            self.room.take(nbytes)

    @property
    def rows_read(self) -> int:
        """Rows whose ids and metadata are there."""
        return sum(len(ids) for _, ids, _ in self.parts)

    @classmethod
    def empty(cls, n: int, dim: int, columns: Columns, place: Place = MEMORY) -> Rows:
        return cls(
            place.empty((n, dim), np.float32),
            np.zeros(n, bool),
            np.zeros(n, bool),
            np.empty((len(columns.quality), n)),
            np.zeros(n, bool),
            None if columns.length is None else np.empty(n),
            [column.name for column in columns.quality],
        )


@dataclass(frozen=True)
class Targets:
    """Where rows of a source go.

    Attributes:
        rows: int64, sorted rows of the source that are wanted; None: all, each to the slot of its own number.
        slots: int64, the slot of each of them; None: 0, 1, 2, ...
    """

    rows: np.ndarray | None = None
    slots: np.ndarray | None = None

    @classmethod
    def of(cls, rows: np.ndarray | None) -> Targets:
        """From the row wanted in slot 0, 1, 2, ..., in any order; None: all rows."""
        if rows is None or np.all(rows[1:] > rows[:-1]):
            return cls(rows)
        order = np.argsort(rows, kind="stable")
        return cls(rows[order], order)

    def match(self, rows: np.ndarray) -> tuple[np.ndarray | slice, np.ndarray | slice]:
        """(which rows of a batch, the slots they go to) for a batch holding the rising source rows `rows`."""
        if self.rows is None:
            return slice(None), slice(int(rows[0]), int(rows[-1]) + 1)
        low, high = np.searchsorted(self.rows, [rows[0], rows[-1] + 1])
        picked = np.searchsorted(rows, self.rows[low:high])
        slots = slice(int(low), int(high)) if self.slots is None else self.slots[low:high]
        return (slice(None) if len(picked) == len(rows) else picked), slots


def read_rows(reader: RowReader, targets: Targets, into: Rows, *, work: Work = UNWATCHED) -> None:
    """Read the columns of one source into `into`.

    Raises:
        InputError: features of another length, null ids, qualities that the reader rounded, or a damaged file.
        Stopped: from `work.poll`.
    """
    refuse_rounded(reader.source, reader.quality)
    lock, text = threading.Lock(), reader.text
    file = None if text is None else TextFile(text.type)
    written: list[int] = []

    def take(rows: np.ndarray, batch: pa.RecordBatch) -> None:
        if not len(rows):
            return
        picked, slots = targets.match(rows)
        if not isinstance(picked, slice) and not len(picked):
            return
        numbers = reader.read(rows, batch)
        if reader.feature is not None:
            values = numbers.features
            if values.dtype == np.float64:
                values, exponents = decode.within_float32(values)
                if exponents is not None:
                    with lock:
                        if into.exponents is None:
                            into.exponents = np.zeros(len(into.features), np.int16)
                    into.exponents[slots] = exponents[picked]
            with np.errstate(over="ignore", invalid="ignore"):
                into.features[slots] = values[picked]
            into.no_features[slots] = numbers.no_features[picked]
            into.other_length[slots] = numbers.other_length[picked]
        for name, values in zip(reader.quality, numbers.quality, strict=True):
            index = into.names.index(name)
            into.quality[index, slots] = values[picked]
            rests = decode.integer_rests(batch.column(name))
            if rests is not None:
                with lock:
                    whole = into.rests.setdefault(index, np.zeros(len(into.features)))
                whole[slots] = rests[picked]
        into.no_quality[slots] |= numbers.no_quality[picked]
        if numbers.lengths is not None and into.lengths is not None:
            into.lengths[slots] = numbers.lengths[picked]
        if reader.id is not None:
            ids = reader.ids(rows, batch)
            if not isinstance(slots, slice):
                raise ValueError("ids are read by rising rows; the rows asked for must be sorted")
            held = set(batch.schema.names)
            metadata = batch.select([name for name in reader.metadata if name in held])
            texts = decode.of_type(batch[text.name], text.type) if text is not None and text.name in held else None
            if not isinstance(picked, slice):
                of_batch = pa.array(picked)
                plain = [decode.of_type(column, VIEWS.get(column.type, column.type)) for column in metadata.columns]
                metadata = pa.RecordBatch.from_arrays(plain, metadata.schema.names)
                ids, metadata = ids.take(of_batch), metadata.take(of_batch)
                texts = None if texts is None else texts.take(of_batch)
            with lock:
                spend(into, ids.nbytes + metadata.nbytes, batch.nbytes, 0 if texts is None else texts.nbytes)
                if file is not None and texts is not None:
                    file.add(texts)
                    written.append(len(into.parts))
                into.parts.append((slots.start, kept(ids), _kept_columns(metadata)))

    row_bytes = 64 + 32 * len(reader.columns) + (4 * reader.dim if reader.feature is not None else 0)
    scan(reader.source, reader.columns, take, row_bytes=row_bytes, only_rows=targets.rows, work=work)
    if file is not None and text is not None:
        for place, texts in zip(written, file.arrays(), strict=True):
            first, ids, metadata = into.parts[place]
            schema = pa.schema([*metadata.schema, text])
            into.parts[place] = first, ids, pa.RecordBatch.from_arrays([*metadata.columns, texts], schema=schema)


def refuse_rounded(source: Source, names: Iterable[str]) -> None:
    """Refuse qualities of which the order is lost, as `datamask.corpus.quality` does where a table holds them whole.

    Args:
        names: the quality columns of this source.

    Raises:
        InputError: a shard holds such.
    """
    for shard in source.shards:
        for name in names:
            if name in shard.facts.rounded:
                raise InputError(
                    f"column {name!r} of {shard.path} holds whole numbers beyond 2^53 and fractions, or numbers beyond "
                    "2^63, and float64 would make close ones equal; subtract a constant from the column, or write "
                    "it as whole numbers below 2^63 and rank them"
                )


def spend(into: Rows, nbytes: int, batch: int = 0, texts: int = 0) -> None:
    """Take bytes of the room for ids and metadata.

    Raises:
        InputError: they take more than these rows may. NoRoomError: others hold what is missing.
    """
    room = into.room
    if room is None:
        return
    room.texts += texts
    if room.spent + room.texts + nbytes > room.most:
        rows = into.rows_read
        raise InputError(
            f"the columns other than the features take {in_words(room.spent + room.texts)} for the first {rows:,} of "
            f"{len(into.features):,} rows, and may take {in_words(room.most)}; take a sample, such as "
            f"--rows {max(2, rows // 2)}, or leave large columns out of the shards"
        )
    room.take(nbytes, batch)


def _kept_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([kept(column) for column in batch.columns], schema=batch.schema)


def kept(column: pa.Array) -> pa.Array:
    """A copy in buffers of exactly its size, from the system's allocator.

    Arrow's own allocator keeps up to 1.5 times the size of buffers of some MiB, and keeps them when they are let go.
    """
    if column.nbytes < KEPT_FROM:
        return column
    try:
        return pa.concat_arrays([column, column.slice(0, 0)], memory_pool=pa.system_memory_pool())
    except pa.ArrowNotImplementedError:
        return column
