"""By what the contents of a file are known without reading it: whether it was written anew."""

from __future__ import annotations

import hashlib
import os

from datamask.errors import InputError
from datamask.files import open_regular
from datamask.polling import Poll, no_poll
from datamask.storage.address import is_address
from datamask.storage.remote import file_stamp

TAIL_BYTES = 1 << 16
"""Of a file without a footer, so many bytes at its end are digested in its place."""


def content_stamp(path: str | os.PathLike[str], poll: Poll = no_poll) -> str:
    """By what the contents of a file are known: its size with `footer_digest`, or what its store says of them.

    Raises:
        OSError: it is not there, or cannot be looked at. InputError, RemoteError, Stopped: as `RemoteFile`.
    """
    size, *others = file_stamp(path, poll)
    return f"{size} {' '.join(map(str, others)) if is_address(path) else footer_digest(os.fspath(path))}"


def footer_digest(path: str) -> str:
    """Return a digest of a shard's end, which mostly is another one after the file was rewritten with the same size.

    The footer of a parquet file says where each column chunk lies, how large it is compressed, and what its extremes
    are. Of files without one it is the last `TAIL_BYTES`: another text of the same length before them does not show.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with open_regular(path, "name another") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 8))
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little") + 8 if tail[4:] == b"PAR1" else TAIL_BYTES
            file.seek(max(0, size - length))
            digest = hashlib.blake2b(digest_size=16)
            while piece := file.read(TAIL_BYTES):
                digest.update(piece)
            return digest.hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
