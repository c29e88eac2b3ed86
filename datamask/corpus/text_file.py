"""Texts in a file that is mapped into memory: what pages of it stay there is the system's choice, not the corpus's.

The file has no name, so nothing is left of it when the last array that lies in it is gone, or the process.
"""

from __future__ import annotations

import mmap
import os
import tempfile

import pyarrow as pa
import pyarrow.compute as pc

from datamask.errors import InputError
from datamask.memory import lies_in_memory

ON_DISK = "/var/tmp"
"""The folder that is used where the one for temporary files lies in memory."""


class TextFile:
    """Arrays of texts, written one after the other and then read as arrays in the mapped file.

    Args:
        kind: their type.
    """

    def __init__(self, kind: pa.DataType) -> None:
        usual = tempfile.gettempdir()
        folder = ON_DISK if lies_in_memory(usual) and os.access(ON_DISK, os.W_OK) else usual
        self._schema = pa.schema([pa.field("text", kind)])
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `arrays` closes it
        self._writer = pa.ipc.new_stream(self._file, self._schema)

    def add(self, texts: pa.Array) -> None:
        """Write some texts. Not safe to call from several threads.

        Raises:
            InputError: the disk has no room for them.
        """
        try:
            self._writer.write_batch(pa.record_batch([texts], schema=self._schema))
        except OSError as error:
            raise InputError(
                f"the texts cannot be written to the folder for temporary files: {error.strerror or error}; free some "
                "space, set TMPDIR to a folder on a larger disk, or take a sample (--rows)"
            ) from error

    def arrays(self) -> list[pa.Array]:
        """Return what was written, as it was added, and write no more."""
        with self._file as file:
            self._writer.close()
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return [batch.column(0) for batch in pa.ipc.open_stream(pa.py_buffer(mapped))]


def filtered(table: pa.Table, text: str | None, keep: pa.Array) -> pa.Table:
    """Return some rows of the metadata of a corpus, their texts in a file of their own.

    Args:
        table: N rows. text: the column of the texts, where there is one. keep: bool ``(N,)``.
    """
    place = -1 if text is None else table.schema.get_field_index(text)
    if place < 0:
        return pc.filter(table, keep, memory_pool=pa.system_memory_pool())
    field, first = table.field(place), 0
    file, chunks = TextFile(field.type), []
    for chunk in table.column(place).chunks:
        of_chunk = keep.slice(first, len(chunk))
        first += len(chunk)
        chunks.append(None if of_chunk.false_count else chunk)  # whole ones stay where they are
        if chunks[-1] is None:
            file.add(chunk.filter(of_chunk))
    written = iter(file.arrays())
    texts = pa.chunked_array([next(written) if chunk is None else chunk for chunk in chunks], field.type)
    rest = filtered(table.set_column(place, pa.field("", pa.null()), pa.nulls(len(table))), None, keep)
    return rest.set_column(place, field, texts)


def bytes_in_memory(table: pa.Table, text: str | None) -> int:
    """Return the bytes of memory that the metadata of a corpus takes: its texts lie in a file."""
    return int(table.nbytes) - (int(table[text].nbytes) if text in table.column_names else 0)
