"""What readers of text files share: bytes that may be compressed, whole lines, and facts that are worth keeping.

Nothing holds more than one piece of a file and the block behind it, however far a compressed one unpacks.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from datamask.corpus.readers.contract import FileFacts
from datamask.errors import InputError, Stopped
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, is_address
from datamask.storage.remote import RemoteFile, file_stamp

READ_BYTES = 1 << 20
REMOTE_BYTES = 4 << 20
"""The same of a file elsewhere, where each read is a request that takes its time."""

CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of a compressed file -> the codec, as pyarrow calls it. zstd refuses windows above 128 MiB by itself."""

PACKED = (".gz", ".zst")
"""What may follow the ending of a text file's name."""

LONGEST = 16 << 20
"""Bytes of one line or row: a long book. Parsed, it takes some ten times as much."""

DEEPEST = 64
"""Values within values; far deeper ones end the process inside of pyarrow."""

MOST_COLUMNS = 10_000
Look = Callable[[str, Poll, int | None], FileFacts]
MANY_DIGITS = r"[+-]?\d{16,308}"
"""Whole numbers that float64 may not hold; longer ones are infinite in it."""

_KEPT = 4096
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


def endings(*plain: str) -> tuple[str, ...]:
    """Return the endings of plain and of compressed files; ``.csv`` stands for ``.csv.gz`` and ``.csv.zst`` too."""
    return tuple(ending + packed for ending in plain for packed in ("", *PACKED))


def codec_of(head: bytes) -> str | None:
    """Return the codec of a file by its first bytes; None: it is not compressed.

    zstd files may begin with a frame to be skipped, as those of parallel compressors do.
    """
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[:1] >= b"\x50" and head[:1] < b"\x60"
    return "zstd" if skippable else next((codec for mark, codec in CODECS.items() if head.startswith(mark)), None)


def opened(path: str, poll: Poll = no_poll) -> pa.NativeFile:
    """The bytes of a file, unpacked where they are gzip or zstd, whatever its name.

    Args:
        path: of the file, or the address of one elsewhere.
        poll: called while a file elsewhere is waited for, here and in every read.
    """
    if is_address(path):
        remote = RemoteFile(Address.parse(path), poll)
        codec = codec_of(remote.read(4))
        remote.seek(0)
        return pa.input_stream(remote, compression=codec, buffer_size=REMOTE_BYTES)
    with open(path, "rb") as file:  # noqa: PTH123
        codec = codec_of(file.read(4))
    return pa.input_stream(path, compression=codec, buffer_size=READ_BYTES)


class Piece(NamedTuple):
    """Whole lines of a file. number: of the first, from 1. ends: how many line ends are in them."""

    number: int
    content: bytes
    ends: int

    @property
    def lines(self) -> int:
        """How many there are; only the last of a file may have no end."""
        return self.ends + (not self.content.endswith(b"\n"))


def lines(path: str, poll: Poll = no_poll) -> Iterator[Piece]:
    """Whole lines of a file, some `READ_BYTES` at a time.

    Args:
        path, poll: as of `opened`.

    Raises:
        InputError: a line is too long, or bytes are no UTF-8.
        Stopped: from `poll`, or the program is ending.
    """
    waiting, number = bytearray(), 1
    for place, block in enumerate(_blocks(path, poll)):
        if place == 0:
            block = block.removeprefix(b"\xef\xbb\xbf")
        cut = block.rfind(b"\n") + 1
        if len(waiting) + (block.find(b"\n") if cut else len(block)) > LONGEST:
            raise InputError(
                f"{path} line {number:,} is longer than {LONGEST >> 20} MiB; cut it, or write the file as parquet"
            )
        if cut:
            piece = _piece(path, number, b"".join((waiting, memoryview(block)[:cut])))
            waiting = bytearray(memoryview(block)[cut:])
            yield piece
            number += piece.ends
        else:
            waiting += block
    if waiting:
        yield _piece(path, number, bytes(waiting))


def _blocks(path: str, poll: Poll) -> Iterator[bytes]:
    """The bytes of a file. A thread reads and unpacks the next block while the caller works with the one before."""
    with opened(path, poll) as stream:
        read = functools.partial(stream.read, READ_BYTES)
        if is_address(path):  # its reads call `poll`, for which this thread was chosen
            yield from iter(read, b"")
            return
        with ThreadPoolExecutor(1, "datamask-lines") as pool:
            ahead = _submitted(pool, read)
            while block := ahead.result():
                ahead = _submitted(pool, read)
                yield block


def _submitted(pool: ThreadPoolExecutor, read: Callable[[], bytes]) -> Future[bytes]:
    try:
        return pool.submit(read)
    except RuntimeError as error:
        if "interpreter shutdown" not in str(error):
            raise
        # background work is asked to stop when the process ends, but pools take no more work from then on
        raise Stopped("stopped: the program is ending") from error


def count(content: bytes, word: str) -> int:
    """Return how often an ASCII word of one or four letters is there: in a third of the time of ``bytes.count``."""
    size, kind = len(word), np.uint8 if len(word) == 1 else np.uint32
    spelled = np.frombuffer(word.encode(), kind)[0]
    starts = range(min(size, len(content) - size + 1))
    words = (np.frombuffer(content, kind, (len(content) - start) // size, start) for start in starts)
    return sum(int(np.count_nonzero(each == spelled)) for each in words)


def _piece(path: str, number: int, content: bytes) -> Piece:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = number + content.count(b"\n", 0, error.start)
        raise InputError(
            f"{path} line {line:,} is no UTF-8 (byte {content[error.start]:#04x}); convert the file to UTF-8"
        ) from error
    return Piece(number, content, count(content, "\n"))


def halves(piece: Piece) -> tuple[Piece, ...]:
    """Two pieces of about half as many bytes, cut at the end of a line; the piece itself where there is but one."""
    content = piece.content
    cut = content.find(b"\n", len(content) // 2) + 1
    if cut in (0, len(content)):
        cut = content.rfind(b"\n", 0, len(content) // 2) + 1
    if not cut:
        return (piece,)
    ends = count(content[:cut], "\n")
    return Piece(piece.number, content[:cut], ends), Piece(piece.number + ends, content[cut:], piece.ends - ends)


def too_deep(content: bytes) -> int | None:
    """The first line, counted from 0, with values nested deeper than `DEEPEST`; None where there is none."""
    letters = np.frombuffer(content, np.uint8)
    opening = np.flatnonzero((letters | 0x20) == ord("{"))  # a bit tells it from "["
    if len(opening) <= DEEPEST:
        return None
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    many = np.flatnonzero(np.diff(np.searchsorted(opening, ends), prepend=0) > DEEPEST)
    for line in many.tolist():
        start = 0 if line == 0 else int(ends[line - 1]) + 1
        bare = np.frombuffer(without_texts(content[start : int(ends[line])]), np.uint8)
        steps = np.isin(bare, list(b"{[")).astype(np.int32) - np.isin(bare, list(b"}]"))
        if len(steps) and np.cumsum(steps).max() > DEEPEST:
            return line
    return None


def rounds(number: str) -> bool:
    """Whether a whole number, as digits with a sign, is another one in float64."""
    try:
        return int(float(number)) != int(number)
    except OverflowError:  # infinity, which is refused as such
        return False


def without_texts(line: bytes) -> bytes:
    """JSON with every text made empty."""
    return _TEXT.sub(b'""', line)


def once(look: Look) -> Look:
    """A `look` that remembers the facts of files as long as they stay as they are: it reads them to their end."""
    remembered_facts: OrderedDict[tuple[object, ...], FileFacts] = OrderedDict()
    lock = threading.Lock()

    @functools.wraps(look)
    def remembered(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
        if is_address(path):
            file: tuple[object, ...] = (path, *file_stamp(path, poll))
        else:
            stat = os.stat(path)  # noqa: PTH116
            file = (os.path.realpath(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)
        with lock:
            for key in ((file, None), (file, most_bytes)):
                if key in remembered_facts:
                    remembered_facts.move_to_end(key)
                    return remembered_facts[key]
        facts = look(path, poll, most_bytes)
        with lock:
            remembered_facts[file, None if facts.complete else most_bytes] = facts
            while len(remembered_facts) > _KEPT:
                remembered_facts.popitem(last=False)
        return facts

    return remembered
