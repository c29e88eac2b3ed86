"""Where the large arrays of a corpus lie: in memory, or in files of a folder that are mapped into it.

A mapped array takes no memory that counts: where memory is short, the system writes its pages to the file and drops
them. Its bytes are taken of the disk before it is mapped, since a process that writes to a map ends without a word
where the disk turns out to be full. And its file has no name. So it is gone with the last array that lies in it, or
with the process, however that ends; and it can neither be cut short nor removed while it is in use.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

from datamask.errors import StoreError
from datamask.work.ledger import in_words

ZEROS = bytes(1 << 20)
"""Written where the system cannot take bytes of a disk in one call."""


@dataclass(frozen=True)
class Place:
    """Where arrays lie. Safe to use from any thread.

    Attributes:
        folder: of the files, made if it is missing; None: the arrays are in memory.
    """

    folder: Path | None = None

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return an array whose values are yet to be written.

        Raises:
            StoreError: the folder cannot be written, or its disk has no room.
        """
        kind = np.dtype(dtype)
        nbytes = math.prod(shape) * kind.itemsize
        if self.folder is None or not nbytes:
            return np.empty(shape, kind)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                take_room(file, nbytes)
                return np.ndarray(shape, kind, mmap.mmap(file.fileno(), nbytes))
        except OSError as error:
            raise StoreError(
                f"{in_words(nbytes)} cannot be written to {self.folder}: {error.strerror or error}; free some "
                "space, or name another folder with --scratch_dir (into= in Python)"
            ) from error

    def copy(self, array: np.ndarray) -> np.ndarray:
        """Return a copy that may be written to."""
        copied = self.empty(array.shape, array.dtype)
        copied[:] = array
        return copied

    def taken(self, array: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return rows of an array. rows: int64 ``(n,)``."""
        out = self.empty((len(rows), *array.shape[1:]), array.dtype)
        return np.take(array, rows, axis=0, out=out, mode="clip")  # "raise" would write to a buffer first

    def memory(self, nbytes: int) -> int:
        """Return how many bytes of memory arrays of so many bytes take."""
        return nbytes if self.folder is None else 0


MEMORY = Place()


def take_room(file: IO[bytes], nbytes: int) -> None:
    """Give a new file its length, and the disk's blocks for all of it. Raises OSError where the disk has no room."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, nbytes)
    else:  # macOS
        for low in range(0, nbytes, len(ZEROS)):
            file.write(ZEROS[: nbytes - low])
        file.flush()
