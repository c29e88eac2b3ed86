"""Arrow files and streams: ``.feather``, ``.arrow``, and what `datasets` writes with ``save_to_disk``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.corpus.readers.leaves import schema_of
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.storage.address import Address, is_address
from datamask.storage.remote import RemoteFile

MAGIC = b"ARROW1"
"""First bytes of a file; a stream has none."""


@contextmanager
def _opened(path: str, poll: Poll) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The schema of a file and its batches. It is read rather than mapped: a mapped file that is cut ends the process.

    Raises:
        InputError: it is Feather of version 1.
    """
    remote = is_address(path)
    with RemoteFile(Address.parse(path), poll) if remote else pa.OSFile(path) as file:
        head = file.read(len(MAGIC))
        file.seek(0)
        if head.startswith(b"FEA1"):
            raise InputError(f"{path} is Feather of version 1; write it as version 2, or as parquet")
        source = pa.PythonFile(file, "r") if remote else file
        if head == MAGIC:
            reader = pa.ipc.open_file(source)
            yield reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
        else:
            stream = pa.ipc.open_stream(source)
            yield stream.schema, iter(stream)


def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
    """Return columns and rows, by reading the file to its end, or its first bytes.

    Raises:
        InputError: it is Feather of version 1. ArrowInvalid: it is no Arrow file. Stopped: from `poll`.
    """
    rows, total, complete = 0, 0, True
    with _opened(path, poll) as (schema, read):
        for batch in read:
            poll()
            if most_bytes is not None and total > most_bytes:
                complete = False
                break
            rows, total = rows + batch.num_rows, total + batch.nbytes
    return FileFacts(schema, (rows,) if rows else (), total / max(rows, 1), complete=complete)


def batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file, as `contract.Reader.batches`."""
    names = None if wanted.columns is None else schema_of(facts.schema, wanted.columns).names
    with _opened(path, wanted.poll) as (_, read):
        for batch in read:
            part = batch if names is None else batch.select(names)
            for low in range(0, part.num_rows, wanted.most_rows):
                rows = part.slice(low, wanted.most_rows)
                rows.validate(full=True)
                yield rows


ARROW = Reader("Arrow", (".arrow", ".feather"), look, batches, magic=MAGIC)
