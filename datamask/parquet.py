"""The one road on which rows of a user's parquet file enter: checksums compared, every batch validated, sizes bounded.

A file from elsewhere may be damaged or made to do harm. pyarrow does not look at dictionary indices or UTF-8, and
whoever follows such an index reads foreign memory; a file of some kilobytes can hold gigabytes of equal texts. Hence
nobody else opens such a file: `open_parquet` and `read_batches` are for all, and `refusing` makes one sentence of
whatever goes wrong.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from datamask.errors import DatamaskError, InputError, NoRoomError
from datamask.parquet_pages import Pages, Read, column_chunks, first_page, longest_word, look_at_pages
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, file_name, is_address
from datamask.storage.remote import RemoteFile
from datamask.work.ledger import Reservation, in_words, ledger

BATCH_BYTES = 4 << 20
"""Decoded bytes per batch: stays near the cache, and makes stop and progress answer within a tenth of a second."""

BATCH_ROWS = 1 << 16
"""Rows per batch, however narrow they are."""

READ_BUFFER = 1 << 20
"""Stream column chunks through a buffer. Without it, or with pyarrow's pre-buffering, which overrides it, each thread
holds a whole compressed column chunk: measured, 156 instead of 12 MiB for one of 200 000 x 384 float16."""

REMOTE_BUFFERS = 32 << 20
"""The same for a file elsewhere, where each read is a request that takes its time: all columns together take so much,
each `READ_BUFFER` at least and `REMOTE_BUFFER` at most."""

REMOTE_BUFFER = 8 << 20

SPAN_BYTES = 16 << 20
"""No batch of texts decodes to more, but for a single row that does."""

CAREFUL_ROWS = 64
"""Rows per batch where the longest text cannot be known beforehand (front-coded columns)."""

PAGES_FROM = 4 << 20
"""Decoded bytes of a column chunk from which the sizes of its pages matter."""

PAGES_BYTES = 16 << 20
"""Pages of a row group that take more have a reservation of their own; less is within what a reading thread has."""

FOOTER_TIMES = 10
"""Times its size in the file that a footer takes in memory, about, while it is read and as long as it is used."""

FOOTER_FROM = 4 << 20
"""Bytes of a footer from which it has a reservation."""

MOST_FOOTER = 512 << 20
"""Bytes. A footer holds some 100 bytes for each column of each row group, so this is enough for five million."""

SMALLER = "write the file with fewer columns or larger row groups"

GROWTH = 8
"""The first batch is one row, since nothing is known of its size; each next one at most so many times the last."""

UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
"""What pyarrow raises on files that are damaged: its own errors, and those of Python (names that are no UTF-8, sizes
that fit no integer, more memory than there is)."""


@contextlib.contextmanager
def refusing(file: object, problem: str) -> Iterator[None]:
    """Make one sentence, ``{file} {problem}: {reason}``, of any error that a library raises on a file.

    Args:
        file: what people call it, such as its path.
        problem: what is wrong with the file where it is not the memory that is short.

    Raises:
        InputError: in place of any of `UNREADABLE`; what datamask raises itself passes.
        NoRoomError: the library got no memory, which says nothing about the file.
    """
    try:
        yield
    except DatamaskError:
        raise
    except MemoryError as error:
        raise NoRoomError(f"{file} {unfit(error)}") from error
    except UNREADABLE as error:
        raise InputError(f"{file} {problem}: {reason(error)}") from error


def unfit(error: MemoryError) -> str:
    """Say that a file does not fit, and what to do."""
    return f"does not fit in memory ({reason(error)}); read fewer rows, or leave large columns out of the file"


def reason(error: Exception) -> str:
    """The first sentence of a library's message, without its stack of details."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(". ")[:200]


def open_parquet(
    path: str | Path | Address,
    footer: pq.FileMetaData | None = None,
    as_dictionary: Sequence[str] = (),
    *,
    columns: Sequence[str] | None = None,
    poll: Poll = no_poll,
) -> pq.ParquetFile:
    """A parquet file whose page checksums are compared, where it has some.

    Args:
        path: of the file, or the address of one elsewhere.
        footer: read before, so that it need not be read again.
        as_dictionary: paths of leaf columns to be read dictionary-encoded.
        columns: names of those that will be read, which share the buffers of a file elsewhere; None: all.
        poll: called while a file elsewhere is waited for, here and in every read.

    Raises:
        Exception: one of `UNREADABLE`. RemoteError, InputError: a file elsewhere cannot be had.
        NoRoomError: its footer does not fit in memory. Stopped: from `poll`.
    """
    source: object = path
    buffer = READ_BUFFER
    if is_address(path):
        source = RemoteFile(Address.parse(str(path)), poll)
        if footer is not None:
            buffer = int(np.clip(REMOTE_BUFFERS // max(1, len(_leaves(footer, columns))), READ_BUFFER, REMOTE_BUFFER))
    with _footer_room(path, source, poll) if footer is None else contextlib.nullcontext() as room:
        file = pq.ParquetFile(
            source,
            metadata=footer,
            read_dictionary=list(as_dictionary),
            buffer_size=buffer,
            pre_buffer=False,
            page_checksum_verification=True,
        )
        if room is not None:
            room.pass_to(file.metadata)
    return file


def _footer_room(path: object, source: object, poll: Poll) -> Reservation:
    """Reserve memory for a footer before it is read. Its length stands at the end of the file.

    Raises:
        InputError: it is larger than `MOST_FOOTER`. NoRoomError: it does not fit in memory.
    """
    if isinstance(source, RemoteFile):
        size, end = source.size(), source.tail()[-8:]
    else:
        with Path(str(path)).open("rb") as file:
            size = file.seek(0, io.SEEK_END)
            file.seek(max(0, size - 8))
            end = file.read(8)
    length = int.from_bytes(end[:4], "little") if end[4:] in (b"PAR1", b"PARE") else 0
    if length > size:
        length = 0  # it is damaged: pyarrow says so and reads nothing
    if length > MOST_FOOTER:
        raise InputError(
            f"{path} has a footer of {in_words(length)}, and footers may have {in_words(MOST_FOOTER)}; {SMALLER}"
        )
    return ledger().reserve(
        FOOTER_TIMES * length if length >= FOOTER_FROM else 0,
        f"Reading the footer of {_name(path)}",
        way_out=SMALLER,
        poll=poll,
    )


def _name(path: object) -> str:
    """The name of a file without its folders, which visitors must not see."""
    return Path(file_name(str(path)).rstrip("/")).name


def read_batches(
    path: str | Path | Address,
    file: pq.ParquetFile,
    *,
    columns: Sequence[str] | None = None,
    groups: Sequence[int] | None = None,
    most_rows: int = BATCH_ROWS,
    poll: Poll = no_poll,
) -> Iterator[pa.RecordBatch]:
    """The rows of an open file in order, in batches of some `BATCH_BYTES` that are safe to use.

    Every batch is fully validated: dictionary indices, offsets, UTF-8. Footers tell encoded sizes, so the decoded size
    of rows is learned from the batches before.

    Args:
        path: of the file, for a second look at its dictionaries.
        file: from `open_parquet`; closing it is the caller's.
        columns: names; None: all.
        groups: row groups; None: all.
        most_rows: per batch, at most.
        poll: called while a file elsewhere is looked at a second time.

    Raises:
        Exception: one of `UNREADABLE`, where the file is damaged; see `refusing`. RemoteError, Stopped: as
            `open_parquet`. NoRoomError: its pages do not fit in memory.
    """
    groups = list(range(file.metadata.num_row_groups) if groups is None else groups)
    with _pages_room(path, file.metadata, groups, columns, poll) as pages:
        limit = _safe_rows(path, file.metadata, groups, columns, min(most_rows, BATCH_ROWS), pages, poll)
        rows = 1
        for batch in file.iter_batches(
            rows, row_groups=groups, columns=None if columns is None else list(columns), use_threads=False
        ):
            batch.validate(full=True)
            batch = _without_unused(batch)
            if batch.num_rows:
                fitting = BATCH_BYTES * batch.num_rows // max(1, batch.nbytes)
                rows = int(np.clip(fitting, 1, min(GROWTH * rows, limit)))
                file.reader.set_batch_size(rows)  # asked for before each batch
            yield batch


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, take: Callable[[int], object] | None = None
) -> pa.Table:
    """A whole small file as a table, by `read_batches`.

    Args:
        path: of the file.
        columns: names; None: all.
        take: called with the bytes of each batch before it is kept, and raises where they are too many: small files
            can hold much where one value stands in many rows.

    Raises:
        Exception: one of `UNREADABLE`, where the file is damaged; see `refusing`.
    """
    with open_parquet(path) as file:
        batches = []
        for batch in read_batches(path, file, columns=columns):
            if take is not None:
                take(batch.nbytes)
            batches.append(batch)
        return pa.Table.from_batches(batches, None if batches else file.schema_arrow)


GROUP_BYTES = 64 << 20
"""Of rows that are gathered before they are written."""


class Gathering:
    """Writes rows to a parquet file in row groups of one size, however small the batches are that they come in.

    Args:
        sink: the open file. most_rows: of a row group.
    """

    def __init__(self, sink: pq.ParquetWriter, most_rows: int) -> None:
        self._sink, self._most_rows = sink, most_rows
        self._gathered: list[pa.Table] = []

    def write(self, rows: pa.Table) -> None:
        """Take more rows, of the file's schema."""
        if not rows.num_rows:
            return
        self._gathered.append(rows)
        while sum(len(part) for part in self._gathered) >= self._most_rows:
            whole = pa.concat_tables(self._gathered)
            self._sink.write_table(whole.slice(0, self._most_rows))
            self._gathered = [whole.slice(self._most_rows)]
        if sum(part.nbytes for part in self._gathered) >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is gathered."""
        if sum(len(part) for part in self._gathered):
            self._sink.write_table(pa.concat_tables(self._gathered))
        self._gathered = []

    def note(self, key: str, text: str) -> None:
        """Put a text into the file's metadata."""
        self._sink.add_key_value_metadata({key: text})


@contextlib.contextmanager
def gathering(path: str | Path, schema: pa.Schema, most_rows: int) -> Iterator[Gathering]:
    """Give a `Gathering` that writes a parquet file with a page index and page checksums; leaving ends the file.

    Args:
        path: of the file. schema: of its rows. most_rows: of a row group.
    """
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_index=True, write_page_checksum=True) as sink:
        gathered = Gathering(sink, most_rows)
        yield gathered
        gathered.flush()


VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
"""Types of which pyarrow cannot take rows, and what stands in for them."""


def schema_without_views(schema: pa.Schema) -> pa.Schema:
    """The schema with plain texts in the place of views."""
    return pa.schema([field.with_type(VIEWS.get(field.type, field.type)) for field in schema], schema.metadata)


def without_views(rows: pa.Table) -> pa.Table:
    """The rows with plain texts in the place of views, of which pyarrow cannot take some."""
    # those columns alone: the cast of a whole table fails on some columns that need none, such as a struct with nulls
    for place, field in enumerate(rows.schema):
        if field.type in VIEWS:
            kind = VIEWS[field.type]
            rows = rows.set_column(place, field.with_type(kind), rows.column(place).cast(kind))
    return rows


def _leaves(footer: pq.FileMetaData, columns: Sequence[str] | None) -> dict[int, pq.ColumnSchema]:
    """The columns as they lie in the file, by place, nested ones part by part; those of `columns` alone, None: all."""
    leaves = {place: footer.schema.column(place) for place in range(len(footer.schema))}
    if columns is not None:
        asked = set(columns)
        leaves = {
            place: leaf
            for place, leaf in leaves.items()
            if not asked.isdisjoint(accumulate(leaf.path.split("."), "{}.{}".format))
        }
    return leaves


Looks = dict[tuple[int, int], Pages]
"""Row group and place of a column -> pages of that chunk. Small chunks are not in it."""


@contextlib.contextmanager
def _pages_room(
    path: str | Path | Address,
    footer: pq.FileMetaData,
    groups: Sequence[int],
    columns: Sequence[str] | None,
    poll: Poll,
) -> Iterator[Looks]:
    """Look at the pages of large column chunks, and hold the memory that reading one row group takes meanwhile.

    Raises:
        NoRoomError: it is not free. There is no wait, since the caller holds memory already.
    """
    large = [group for group in groups if footer.row_group(group).total_byte_size >= PAGES_FROM]
    looks: Looks = {}
    if large:
        places = list(_leaves(footer, columns))
        with _reading(path, poll) as file:
            size = file.seek(0, io.SEEK_END)
            for group in large:
                for place, chunk in zip(places, column_chunks(footer, size, group, columns, places)):
                    if chunk.total_uncompressed_size >= PAGES_FROM:
                        looks[group, place] = look_at_pages(_read_of(file, chunk), chunk)
    needed = max((sum(look.nbytes for (at, _), look in looks.items() if at == group) for group in large), default=0)
    with ledger().reserve(
        needed if needed > PAGES_BYTES else 0,
        f"Reading {_name(path)}",
        way_out="write its long texts in smaller pages, or try again when other work has ended",
        poll=poll,
        seconds=0.0,
    ):
        yield looks


def _read_of(file: IO[bytes] | RemoteFile, chunk: pq.ColumnChunkMetaData | None = None) -> Read:
    """Read from an open file; of a chunk elsewhere only the first `READ_BUFFER` bytes, by one request."""

    def read(offset: int, count: int) -> bytes:
        file.seek(offset)
        return file.read(count)

    if chunk is None or not isinstance(file, RemoteFile):
        return read
    start = first_page(chunk)
    content = read(start, min(READ_BUFFER, chunk.total_compressed_size))
    return lambda offset, count: content[offset - start : offset - start + count]


@contextlib.contextmanager
def _reading(path: str | Path | Address, poll: Poll) -> Iterator[IO[bytes] | RemoteFile]:
    """A file, or one elsewhere, as bytes."""
    remote = is_address(path)
    with RemoteFile(Address.parse(str(path)), poll) if remote else Path(str(path)).open("rb") as file:
        yield file


def _safe_rows(
    path: str | Path | Address,
    footer: pq.FileMetaData,
    groups: Sequence[int],
    columns: Sequence[str] | None,
    most_rows: int,
    pages: Looks,
    poll: Poll,
) -> int:
    """How many rows may be decoded at once, by the longest text any of them can hold."""
    leaves = {
        place: leaf.path for place, leaf in _leaves(footer, columns).items() if leaf.physical_type == "BYTE_ARRAY"
    }
    paths = list(leaves.values())
    leaves = {place: leaf for place, leaf in leaves.items() if paths.count(leaf) == 1}
    # no text is longer than its row group, so most small groups need no second look
    doubtful = [group for group in groups if footer.row_group(group).total_byte_size * most_rows > SPAN_BYTES]
    if not leaves or not doubtful:
        return most_rows
    longest = 0
    for group in doubtful:
        small = []
        for place, leaf in leaves.items():
            dictionary = pages[group, place].dictionary if (group, place) in pages else None
            if dictionary is None or dictionary.plain < PAGES_FROM:
                small.append(leaf)
            else:
                with _reading(path, poll) as file:
                    longest = max(longest, longest_word(_read_of(file), dictionary))
        if small:
            longest = max(longest, _longest_text(path, footer, group, small, poll))
    return int(np.clip(SPAN_BYTES // max(1, longest), 1, most_rows))


def _longest_text(
    path: str | Path | Address,
    footer: pq.FileMetaData,
    group: int,
    leaves: Sequence[str],
    poll: Poll = no_poll,
) -> int:
    """Bytes of the longest text in the dictionaries of one row group.

    Read dictionary-encoded, the first row brings the whole dictionary with it but repeats none of its texts. Texts that
    stand in no dictionary take as much room in the file's pages as decoded.
    """
    try:
        with open_parquet(path, footer, leaves, columns=leaves, poll=poll) as file:
            first = next(file.iter_batches(1, row_groups=[group], columns=leaves, use_threads=False), None)
    except DatamaskError:
        raise
    except (OSError, pa.ArrowNotImplementedError):  # front-coded texts cannot be read so
        return SPAN_BYTES // CAREFUL_ROWS
    if first is None:  # the footer promises rows that are not there: whoever reads on will say so
        return 0
    dictionaries = [texts for column in first.columns for texts in _dictionaries(column)]
    return max((pc.max(pc.binary_length(texts)).as_py() or 0 for texts in dictionaries), default=0)


def _dictionaries(column: pa.Array) -> Iterator[pa.Array]:
    """The dictionaries in a column, those of nested fields included."""
    if isinstance(column, pa.ExtensionArray):
        yield from _dictionaries(column.storage)
    elif pt.is_dictionary(column.type):
        if pt.is_string(column.dictionary.type) or pt.is_binary(column.dictionary.type):
            yield column.dictionary
    elif pt.is_nested(column.type):
        for part in column.flatten() if pt.is_struct(column.type) else (column.values,):
            yield from _dictionaries(part)


def _without_unused(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Large dictionaries cut to what the batch uses: else each batch holds a whole copy of its row group's."""
    for index, column in enumerate(batch.columns):
        if (
            pt.is_dictionary(column.type)
            and len(column.dictionary) > batch.num_rows
            and column.dictionary.nbytes > BATCH_BYTES // 16
        ):
            used = pa.array(np.unique(column.indices.drop_null()), column.type.index_type)
            indices = pc.index_in(column.indices, used).cast(column.type.index_type)
            small = pa.DictionaryArray.from_arrays(indices, column.dictionary.take(used), ordered=column.type.ordered)
            batch = batch.set_column(index, batch.schema.field(index), small)
    return batch
