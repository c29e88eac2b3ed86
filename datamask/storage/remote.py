"""A file elsewhere, as a file of Python that pyarrow reads like one of the disk, and what tells whether it changed."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, is_address
from datamask.storage.patience import ask
from datamask.storage.stores import Entry, Handle, store_of

Answer = TypeVar("Answer")

TAIL_BYTES = 64 << 10
"""At the end of a file that are asked for together: pyarrow reads so many of a parquet file first."""

PIECE_BYTES = 4 << 20
"""Asked for at once: enough for a line to be busy, and so little that a slow one brings it before it is given up."""


class RemoteFile(io.RawIOBase):
    """The bytes of a file elsewhere, from any place; each try of each read is its own request.

    One thread reads it at a time.

    Args:
        address: of the file.
        poll: called some ten times a second while a read waits.

    Raises:
        FileNotFoundError: there is no such file. InputError: it cannot be read in parts.
        RemoteError: its store refuses, or does not answer, here or in any read. Stopped: from `poll`.
    """

    def __init__(self, address: Address, poll: Poll = no_poll) -> None:
        super().__init__()
        self.address = address
        self._poll = poll
        self._handle: Handle = ask(address, lambda: store_of(address).open(address), poll)
        self._place = 0
        self._tail = b""

    @property
    def stamp(self) -> tuple[int, ...]:
        """Another one after the file was written anew."""
        return self._handle.stamp

    def size(self) -> int:
        return self._handle.size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self.size()}[whence]
        self._place = max(0, start + offset)
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all that are left."""
        left = max(0, self.size() - self._place)
        wanted = left if size is None or size < 0 else min(size, left)
        if left <= len(self._tail):
            start = len(self._tail) - left
            self._place += wanted
            return self._tail[start : start + wanted]
        pieces = []
        while wanted:
            piece = self._piece(self._place, min(wanted, PIECE_BYTES))
            self._place += len(piece)
            wanted -= len(piece)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def tail(self) -> bytes:
        """The last `TAIL_BYTES` bytes, which are kept, so that reading them again is no request."""
        place, self._place = self._place, max(0, self.size() - TAIL_BYTES)
        self._tail = self.read()
        self._place = place
        return self._tail

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def _piece(self, offset: int, count: int) -> bytes:
        def read() -> bytes:
            content = self._handle.read_at(offset, count)
            if len(content) > count:
                raise InputError(f"{self.address} cannot be read in parts: its server sends more than was asked for")
            if len(content) < count:
                raise ConnectionError(f"fewer bytes than were asked for ({len(content):,} of {count:,})")
            return content

        return ask(self.address, read, self._poll)


def file_stamp(path: str | os.PathLike[str], poll: Poll = no_poll) -> tuple[int, ...]:
    """The size of a file in bytes, then numbers that are others after it was written anew.

    Of the disk: times of the last change of its contents and of its record, and its number there.

    Raises:
        OSError: it is not there, or cannot be looked at. InputError, RemoteError, Stopped: as `RemoteFile`.
    """
    if is_address(path):
        return RemoteFile(Address.parse(os.fspath(path)), poll).stamp
    facts = Path(path).stat()
    return facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino


def is_folder(address: Address, poll: Poll = no_poll) -> bool | None:
    """Whether an address names a folder, or a file; None: neither is there.

    Raises:
        InputError, RemoteError, Stopped: as `RemoteFile`.
    """
    return _or_none(lambda: ask(address, lambda: store_of(address).is_folder(address), poll))


def entries(address: Address, poll: Poll = no_poll) -> Sequence[Entry]:
    """What lies in a folder, sorted by name; nothing where there is none.

    Raises:
        InputError, RemoteError, Stopped: as `RemoteFile`.
    """
    listed = _or_none(lambda: ask(address, lambda: store_of(address).entries(address), poll))
    return sorted(listed or (), key=lambda entry: entry.name)


def _or_none(call: Callable[[], Answer]) -> Answer | None:
    try:
        return call()
    except FileNotFoundError:
        return None
