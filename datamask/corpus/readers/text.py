"""What readers of text files share: bytes that may be compressed, and whole lines of them, one piece at a time.

Nothing holds more than one piece of a file and the block behind it, however far a compressed one unpacks.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from datamask.corpus.readers.contract import Skipped
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, is_address
from datamask.storage.remote import RemoteFile

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
MANY_DIGITS = r"[+-]?\d{16,308}"
"""Whole numbers that float64 may not hold; longer ones are infinite in it."""

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"{[")], _STEPS[list(b"}]")] = 1, -1
"""By how much a letter changes the depth."""


def endings(*plain: str) -> tuple[str, ...]:
    """Return the endings of plain and of compressed files; ``.csv`` stands for ``.csv.gz`` and ``.csv.zst`` too."""
    return tuple(ending + packed for ending in plain for packed in ("", *PACKED))


def opened(path: str, poll: Poll = no_poll) -> pa.NativeFile:
    """Return the bytes of a file, unpacked where they are gzip or zstd, whatever its name.

    Args:
        path: of the file, or the address of one elsewhere.
        poll: called while a file elsewhere is waited for, here and in every read.
    """
    file = RemoteFile(Address.parse(path), poll) if is_address(path) else open(path, "rb")  # noqa: PTH123, SIM115
    head = file.read(4)
    file.seek(0)
    # zstd files may begin with a frame to be skipped, as those of parallel compressors do
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[:1] >= b"\x50" and head[:1] < b"\x60"
    codec = "zstd" if skippable else next((name for mark, name in CODECS.items() if head.startswith(mark)), None)
    if isinstance(file, RemoteFile):
        return pa.input_stream(file, compression=codec, buffer_size=REMOTE_BYTES)
    file.close()
    return pa.input_stream(path, compression=codec, buffer_size=READ_BYTES)


def blocks(path: str, stream: pa.NativeFile, skipped: Skipped | None) -> Iterator[bytes]:
    """Yield the bytes of a file, some `READ_BYTES` at a time.

    Args:
        path, stream: as `opened` took and gave them.
        skipped: notes that a compressed file is cut or damaged, where it ends then; None: that raises an OSError.
    """
    while True:
        try:
            block = stream.read(READ_BYTES)
        except OSError as error:
            if skipped is None:
                raise
            skipped.cut = f"{path} is cut short or damaged ({error})"
            return
        if not block:
            return
        yield block


class Piece(NamedTuple):
    """Whole lines of a file. number: of the first, from 1."""

    number: int
    content: bytes

    @property
    def lines(self) -> int:
        """How many there are; only the last of a file may have no end."""
        return self.content.count(b"\n") + (not self.content.endswith(b"\n"))


def lines(path: str, poll: Poll = no_poll, skipped: Skipped | None = None) -> Iterator[Piece]:
    """Yield whole lines of a file, some `READ_BYTES` at a time.

    Args:
        path, poll: as of `opened`.
        skipped: notes lines that are no UTF-8, which are empty then, and where the file is cut; None: both are refused.

    Raises:
        InputError: a line is too long, or bytes are no UTF-8.
        Stopped: from `poll`.
    """
    waiting, number = b"\xef\xbb\xbf", 1
    with opened(path, poll) as stream:
        waiting = stream.read(3).removeprefix(waiting)
        for block in blocks(path, stream, skipped):
            cut = block.rfind(b"\n") + 1
            if len(waiting) + (block.find(b"\n") if cut else len(block)) > LONGEST:
                raise InputError(
                    f"{path} line {number:,} is longer than {LONGEST >> 20} MiB; cut it, or write the file as parquet"
                )
            if cut:
                piece = _piece(path, number, waiting + block[:cut], skipped)
                waiting = block[cut:]
                yield piece
                number += piece.lines
            else:
                waiting += block
    if waiting and not (skipped and skipped.cut):  # else the last line is no whole one
        yield _piece(path, number, waiting, skipped)


def _piece(path: str, number: int, content: bytes, skipped: Skipped | None) -> Piece:
    while True:
        try:
            content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = number + content.count(b"\n", 0, error.start)
            why = f"{path} line {line:,} is no UTF-8 (byte {content[error.start]:#04x}); convert the file to UTF-8"
            if skipped is None:
                raise InputError(why) from error
            skipped.add(line, why)
            content = without_lines(Piece(number, content), {line})
        else:
            return Piece(number, content)


def without_lines(piece: Piece, numbers: Container[int]) -> bytes:
    """Return the content of a piece in which some lines, by their numbers in the file, are empty."""
    kept = enumerate(piece.content.split(b"\n"), piece.number)
    return b"\n".join(b"" if number in numbers else line for number, line in kept)


def halves(piece: Piece) -> tuple[Piece, ...]:
    """Return two pieces of about half as many bytes, cut at the end of a line; the piece itself where there is one."""
    content = piece.content
    middle = len(content) // 2
    cut = content.find(b"\n", middle) + 1 or len(content)
    if cut == len(content):
        cut = content.rfind(b"\n", 0, middle) + 1
    if not cut:
        return (piece,)
    first = Piece(piece.number, content[:cut])
    return first, Piece(piece.number + first.lines, content[cut:])


def too_deep(content: bytes) -> int | None:
    """Return the first line, counted from 0, with values nested deeper than `DEEPEST`; None where there is none."""
    letters = np.frombuffer(content, np.uint8)
    opening = np.flatnonzero((letters | 0x20) == ord("{"))  # a bit tells it from "["
    if len(opening) <= DEEPEST:
        return None
    ends = np.append(np.flatnonzero(letters == ord("\n")), len(letters))
    for line in np.flatnonzero(np.diff(np.searchsorted(opening, ends), prepend=0) > DEEPEST).tolist():
        bare = without_texts(content[0 if line == 0 else int(ends[line - 1]) : int(ends[line])])
        if np.cumsum(_STEPS[np.frombuffer(bare, np.uint8)], dtype=np.int32).max(initial=0) > DEEPEST:
            return line
    return None


def rounds(number: str) -> bool:
    """Return whether a whole number, as digits with a sign, is another one in float64."""
    try:
        return int(float(number)) != int(number)
    except OverflowError:  # infinity, which is refused as such
        return False


def without_texts(line: bytes) -> bytes:
    """Return JSON with every text made empty."""
    return _TEXT.sub(b'""', line)
