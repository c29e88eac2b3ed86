"""Embeddings kept as they are made, so that a `prepare` that was stopped or killed goes on behind them.

One file next to the output: a line of JSON that says what they are of, then float16 ``(n, d)`` in reading order. It is
removed when the output is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.embedders.contract import Embedder
from datamask.errors import InputError, StoreError
from datamask.files import regular_handle


class KeptEmbeddings:
    """An embedder whose rows are kept: `transform` reads those that an earlier process made, and appends the others.

    Attributes:
        found: rows that were there at the start. useful: whether any row has features.
        batch, dim: of the embedder.
    """

    def __init__(self, file: FileIO, embedder: Embedder, facts: Mapping[str, Any]) -> None:
        self.batch, self.dim = embedder.batch, embedder.dim
        self._file, self._embedder, self._row_bytes = file, embedder, 2 * embedder.dim
        # two functions of one module have the same digest
        model = [embedder.kind, embedder.name, embedder.digest, embedder.dim]
        head = json.dumps({**facts, "embedder": model}).encode() + b"\n"
        self._start, self._row = len(head), 0
        if file.read(len(head)) != head:
            file.truncate(0)
            self._append(head)
        rows = (file.seek(0, os.SEEK_END) - self._start) // self._row_bytes
        # a power cut can leave zeros where rows were to be; a text without features is embedded again in a moment
        while rows and not self._read(rows - 1, 1).any():
            rows -= 1
        file.truncate(self._start + rows * self._row_bytes)
        self.found, self.useful = rows, rows > 0

    @property
    def kept(self) -> int:
        """Rows in the file."""
        return max(self.found, self._row)

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return the features of the next texts in reading order, float32 ``(n, d)`` as float16 holds them.

        Raises:
            StoreError: they cannot be kept. InputError: as the embedder.
        """
        there = min(len(texts), max(0, self.found - self._row))
        blocks = [self._read(self._row, there)]
        if there < len(texts):
            blocks.append(self._embedder.transform(texts[there:]).astype(np.float16))
            self._append(blocks[-1].tobytes())
            self.useful = self.useful or bool(blocks[-1].any())
        self._row += len(texts)
        features: np.ndarray = np.concatenate(blocks).astype(np.float32)
        return features

    def _append(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            self._file.seek(0, os.SEEK_END)
            while left:  # without a buffer a write may be cut short
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StoreError(f"the embeddings cannot be kept next to the output: {error.strerror or error}") from error

    def _read(self, row: int, rows: int) -> np.ndarray:
        self._file.seek(self._start + row * self._row_bytes)
        return np.frombuffer(self._file.read(rows * self._row_bytes), np.float16).reshape(rows, self.dim)


@contextlib.contextmanager
def kept_embeddings(target: Path, embedder: Embedder, facts: Mapping[str, Any]) -> Iterator[KeptEmbeddings]:
    """Give the embedder of an output, with the rows that an earlier process kept; the file goes when all is well.

    Args:
        target: the output. embedder: makes the features. facts: as JSON, what besides the embedder the rows follow
            from: rows that were made from anything else are thrown away.

    Raises:
        InputError: another process prepares the same output. StoreError: the file cannot be written.
    """
    path = target.with_name(f".{target.name}.embeddings")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle = regular_handle(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    except StoreError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    # without a buffer: what was written is there, however the process ends
    with FileIO(handle, "r+") as file:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"another process prepares {target} at the moment; wait for it, or stop it") from error
        except OSError:
            pass  # a file system without locks
        kept = None
        try:
            kept = KeptEmbeddings(file, embedder, facts)
            yield kept
            path.unlink(missing_ok=True)
        finally:
            if kept is None or not kept.useful:
                path.unlink(missing_ok=True)
