"""NumPy arrays: ``.npy`` of n x d numbers is features, of n numbers scores. Rows are those of ``--input``, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np
import pyarrow as pa

from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, is_address
from datamask.storage.remote import RemoteFile

MAGIC = b"\x93NUMPY"


@contextmanager
def _opened(path: str, poll: Poll) -> Iterator[tuple[IO[bytes] | RemoteFile, tuple[int, ...], np.dtype]]:
    """A file behind its header, with the array's shape and type.

    Raises:
        InputError: it is no array of numbers with one or two dimensions, row by row.
    """
    with RemoteFile(Address.parse(path), poll) if is_address(path) else open(path, "rb") as file:  # noqa: PTH123
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_column, kind = read(file)
        except ValueError as error:
            raise InputError(f"{path} is not a NumPy array: {error}") from error
        if kind.kind not in "fiu" or kind.itemsize > 8 or not 1 <= len(shape) <= 2 or (by_column and len(shape) == 2):
            raise InputError(
                f"{path} must hold n x d or n numbers, row by row, got {kind} {' x '.join(map(str, shape))}"
                f"{' by columns' if by_column else ''}; save np.ascontiguousarray(array, np.float32)"
            )
        yield file, shape, kind


def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
    """Return the one column and the rows, by the header.

    Raises:
        InputError: as `_opened`.
    """
    with _opened(path, poll) as (_, shape, kind):
        value = pa.from_numpy_dtype(kind.newbyteorder("="))
        column = pa.field("score", value) if len(shape) == 1 else pa.field("features", pa.list_(value, shape[1]))
        return FileFacts(pa.schema([column]), shape[:1] if shape[0] else (), kind.itemsize * float(np.prod(shape[1:])))


def batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file, as `contract.Reader.batches`."""
    with _opened(path, wanted.poll) as (file, shape, kind):
        width = int(np.prod(shape[1:]))
        for low in range(0, shape[0], wanted.most_rows):
            count = width * min(wanted.most_rows, shape[0] - low)
            content = file.read(count * kind.itemsize)
            if len(content) < count * kind.itemsize:
                raise InputError(f"{path} is cut short: it ends in row {low + len(content) // max(width, 1):,}")
            values = pa.array(np.frombuffer(content, kind).astype(kind.newbyteorder("="), copy=False))
            column = values if len(shape) == 1 else pa.FixedSizeListArray.from_arrays(values, width)
            yield pa.RecordBatch.from_arrays([column], schema=facts.schema)


NUMPY = Reader("NumPy arrays", (), look, batches, named=(".npy",), magic=MAGIC)
