"""Embeddings kept as they are made, so that a `prepare` that was stopped or killed goes on behind them.

One file next to the output: a line of JSON that names the embedder, then a record for each batch in reading order: the
number of rows, a digest of their texts and features, and the features as float16 ``(n, d)``. Where the texts or the
bytes have changed, the digest differs, and the record is made again in its place. The file is removed when the output
is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path

import numpy as np

from datamask.corpus.embedders.contract import Embedder
from datamask.errors import InputError, StoreError
from datamask.files import regular_handle

COUNT_BYTES, DIGEST_BYTES = 4, 16


class KeptEmbeddings:
    """An embedder whose rows are kept: `transform` reads those that an earlier process made of the same texts, and
    writes the others.

    Attributes:
        reused: rows that were read. kept: rows that were read or written.
        batch, dim: of the embedder.
    """

    def __init__(self, file: FileIO, embedder: Embedder) -> None:
        self.batch, self.dim = embedder.batch, embedder.dim
        self.reused = self.kept = 0
        self._file, self._embedder, self._any = file, embedder, False
        # two functions of one module have the same digest
        model = [embedder.kind, embedder.name, embedder.digest, embedder.dim]
        head = json.dumps({"embedder": model}).encode() + b"\n"
        self._at = len(head)
        if file.read(len(head)) != head:
            file.truncate(0)
            self._write(0, head)

    @property
    def useful(self) -> bool:
        """Whether any row has features, or is still to be read."""
        return self._any or self._file.seek(0, os.SEEK_END) > self._at

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Return the features of the next texts in reading order, float32 ``(n, d)`` as float16 holds them.

        Raises:
            StoreError: they cannot be kept. InputError: as the embedder.
        """
        rows = self._read(texts)
        if rows is None:
            rows = self._embedder.transform(texts).astype(np.float16).tobytes()
            self._write(self._at, _head(texts, rows) + rows)
        else:
            self.reused += len(texts)
        self.kept += len(texts)
        self._at += COUNT_BYTES + DIGEST_BYTES + len(rows)
        features = np.frombuffer(rows, np.float16).reshape(len(texts), self.dim).astype(np.float32)
        self._any = self._any or bool(features.any())
        return features

    def _read(self, texts: Sequence[str]) -> bytes | None:
        """The rows of the next record; None where it is not one of these texts, or was damaged."""
        self._file.seek(self._at)
        head = self._file.read(COUNT_BYTES + DIGEST_BYTES)
        if head[:COUNT_BYTES] != len(texts).to_bytes(COUNT_BYTES, "little"):
            self._file.truncate(self._at)  # the records behind it stand at other places
            return None
        rows = self._file.read(2 * self.dim * len(texts))
        return rows if head == _head(texts, rows) else None

    def _write(self, place: int, data: bytes) -> None:
        left = memoryview(data)
        try:
            self._file.seek(place)
            while left:  # without a buffer a write may be cut short
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StoreError(f"the embeddings cannot be kept next to the output: {error.strerror or error}") from error


def _head(texts: Sequence[str], rows: bytes) -> bytes:
    """What stands in front of a record: the number of its rows, and the digest of their texts and features."""
    digest = hashlib.blake2b(rows, digest_size=DIGEST_BYTES)
    for text in texts:
        data = text.encode(errors="surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return len(texts).to_bytes(COUNT_BYTES, "little") + digest.digest()


@contextlib.contextmanager
def kept_embeddings(target: Path, embedder: Embedder) -> Iterator[KeptEmbeddings]:
    """Give the embedder of an output, with the rows that an earlier process kept; the file goes when all is well.

    Args:
        target: the output. embedder: makes the features; rows by another one are thrown away.

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
            kept = KeptEmbeddings(file, embedder)
            yield kept
            path.unlink(missing_ok=True)
        finally:
            if kept is None or not kept.useful:
                path.unlink(missing_ok=True)
