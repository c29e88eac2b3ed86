"""How much memory the pages of a parquet file take, by their headers, before any of them is decoded.

pyarrow decompresses each page whole, and a page may be as large as its column chunk. Footers give the size of a chunk
only, but each page has a header in front of it.
"""

from __future__ import annotations

import contextlib
import io
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

Read = Callable[[int, int], bytes]
"""``read(offset, count)`` returns so many bytes of a file, or those that there are."""

HEADER_BYTES = 256
"""Read for one header at first. A header with long statistics takes more, `LONGEST_HEADER` at most (as in pyarrow)."""

LONGEST_HEADER = 16 << 20

MOST_WORDS = 1 << 22
"""Entries of a dictionary that are looked at one by one."""


class Dictionary(NamedTuple):
    """A dictionary page. offset: of its content. stored, plain: bytes in the file and decompressed. codec: its name."""

    offset: int
    stored: int
    plain: int
    codec: str


class Pages(NamedTuple):
    """The pages of a column chunk.

    Attributes:
        dictionary: the dictionary page; None: there is none.
        stored, plain: bytes of the largest page, in the file and decompressed. data: the same of a data page,
            decompressed.
    """

    dictionary: Dictionary | None
    stored: int
    plain: int
    data: int

    @property
    def nbytes(self) -> int:
        """Memory that reading them takes at most: a page as stored and decompressed, the decoder's copy of the
        dictionary, and the values of a page."""
        return self.stored + self.plain + self.data + (self.dictionary.plain if self.dictionary else 0)


class _UnreadError(OSError):
    """pyarrow is about to read pages."""


class _Unread(io.RawIOBase):
    """A file of so many bytes of which none can be read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self._place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence] + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        raise _UnreadError("no page is read")


def column_chunks(
    footer: pq.FileMetaData, size: int, group: int, columns: Sequence[str] | None, places: Sequence[int]
) -> list[pq.ColumnChunkMetaData]:
    """Return what the footer says of some columns of a row group; none where it is damaged.

    Args:
        size: bytes of the file. columns: names; None: all. places: of the same columns among the leaves.
    """
    # asking for a chunk of a damaged footer ends the process; pyarrow checks all of them before it reads a page
    with pq.ParquetFile(_Unread(size), metadata=footer, buffer_size=1 << 16, pre_buffer=False) as file:
        rows = file.iter_batches(
            1, row_groups=[group], columns=None if columns is None else list(columns), use_threads=False
        )
        with contextlib.suppress(StopIteration, pa.ArrowException):
            try:
                next(rows)
            except _UnreadError:
                return [footer.row_group(group).column(place) for place in places]
    return []


def first_page(chunk: pq.ColumnChunkMetaData) -> int:
    """Where in the file a column chunk begins."""
    data, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    return int(min(data, dictionary) if dictionary else data)  # 0 is written where there is none


def look_at_pages(read: Read, chunk: pq.ColumnChunkMetaData) -> Pages:
    """Read the headers of the pages of a column chunk, until they end, are damaged, or `read` gives no more."""
    at = first_page(chunk)
    end = at + chunk.total_compressed_size
    pages = Pages(None, 0, 0, 0)
    while 0 <= at < end:
        header = _header(read, at, end)
        if header is None:
            break
        (kind, plain, stored), length = header
        dictionary, data = pages.dictionary, pages.data
        if kind == 2:
            dictionary = Dictionary(at + length, stored, plain, chunk.compression)
        else:
            data = max(data, plain)
        pages = Pages(dictionary, max(pages.stored, stored), max(pages.plain, plain), data)
        at += length + stored
    return pages


def longest_word(read: Read, page: Dictionary) -> int:
    """Bytes of the longest text of a dictionary page, or a number that is larger.

    pyarrow holds a dictionary four times while it reads it as one: decompressed, decoded, hashed, and as an array.
    """
    content: bytes | pa.Buffer = read(page.offset, page.stored)
    if page.codec != "UNCOMPRESSED":
        codec = "lz4_raw" if page.codec.startswith("LZ4") else page.codec.lower()
        try:
            # from the system's allocator, since Arrow's own keeps what is freed
            content = pa.Codec(codec).decompress(content, page.plain, memory_pool=pa.system_memory_pool())
        except (pa.ArrowException, OSError, ValueError):  # damaged, or of an older kind: pyarrow says so
            return page.plain
    words, at, longest = memoryview(content), 0, 0
    length_at = struct.Struct("<I").unpack_from
    for _ in range(MOST_WORDS):
        if len(words) - at - 4 <= longest:  # no room for a longer one
            return longest
        length = length_at(words, at)[0]
        longest = max(longest, length)
        at += 4 + length
    return max(longest, len(words) - at)


def _header(read: Read, at: int, end: int) -> tuple[tuple[int, int, int], int] | None:
    """Kind, bytes decompressed and bytes stored of the page there, and the length of its header."""
    count = HEADER_BYTES
    while True:
        content = read(at, min(count, end - at))
        try:
            fields, length = _struct(content, 0)
        except IndexError:
            if len(content) < count or count >= LONGEST_HEADER:
                return None
            count *= 16
        except ValueError:
            return None
        else:
            numbers = tuple(fields.get(number, -1) for number in (1, 2, 3))
            return None if min(numbers) < 0 else (numbers, length)  # type: ignore[return-value]


# the compact protocol of Thrift, as far as headers of pages use it


def _struct(content: bytes, at: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """The numbers of a struct by their fields, and where it ends.

    Raises:
        IndexError: it does not end. ValueError: it is damaged.
    """
    fields, number = {}, 0
    while head := content[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _number(content, at)
        match head & 15:
            case 1 | 2:
                pass
            case 3:
                at += 1
            case 4 | 5 | 6:
                fields[number], at = _number(content, at)
            case 7:
                at += 8
            case 8:
                length, at = _varint(content, at)
                at += length
            case 12 if depth < 4:
                _, at = _struct(content, at, depth + 1)
            case kind:
                raise ValueError(f"no header of a page has fields of kind {kind} here")
    return fields, at + 1


def _number(content: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(content, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        value |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return value, at
    raise ValueError("a number is longer than 64 bits")
