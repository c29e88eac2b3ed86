"""Tables in memory as shards: what a DataFrame, a Table or arrays hold is read by the code that reads files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.corpus.readers.shard import Shard
from datamask.corpus.shards import Source
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

PATH = "table"
"""What stands for the name of a file in messages and in ids that are made."""

GROUP_ROWS = 65_536
"""Rows that one thread reads."""

ARRAYS = {"ids": "id", "features": "feature_arr", "quality": "quality_score", "texts": "text", "tokens": "n_tokens"}
"""Arrays of `open_corpus` -> the columns that they become, known by these names."""

KINDS = "a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a datasets.Dataset or a dict of arrays"


def table_of(data: Any, expected: str = f"rows must be {KINDS}") -> pa.Table:
    """Return data in memory as a table.

    Args:
        data: a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a `datasets.Dataset`, or a dict of arrays or
            lists of N values each, features as ``(N, d)``.
        expected: the beginning of the sentence about something else.

    Raises:
        InputError: it is something else, or values of a column have several types.
    """
    try:
        if isinstance(data, Mapping) and hasattr(data, "with_format"):
            raise ValueError(f"it has the splits {', '.join(data)}; give one of them")
        if isinstance(data, Mapping):
            return pa.table({str(name): _column(values) for name, values in data.items()})
        if isinstance(data, pa.RecordBatch):
            return pa.Table.from_batches([data])
        if hasattr(data, "with_format"):
            data = data.with_format("arrow")[:]
        if type(data).__module__.startswith("pandas"):
            return pa.Table.from_pandas(data, preserve_index=None if data.index.name else False)
        if hasattr(data, "__arrow_c_stream__"):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InputError(f"the {type(data).__name__} cannot be read as a table: {error}") from error
    raise InputError(f"{expected}, got {type(data).__name__}")


def table_of_arrays(arrays: Mapping[str, Any]) -> pa.Table:
    """Return arrays as the columns of a corpus.

    Args:
        arrays: by the keys of `ARRAYS`; None: there are none.

    Raises:
        InputError: they differ in length, or one cannot be read.
    """
    given = {name: values for name, values in arrays.items() if values is not None}
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{length:,} {name}" for name, length in lengths.items())
        raise InputError(f"ids, features, quality, texts and tokens must have one value per row, got {counts}")
    return table_of({ARRAYS[name]: values for name, values in given.items()})


def source_of(table: pa.Table) -> Source:
    """Return a table as the one shard of a source."""
    rows = [min(GROUP_ROWS, table.num_rows - low) for low in range(0, table.num_rows, GROUP_ROWS)]
    facts = FileFacts(table.schema, tuple(rows), table.nbytes / max(1, table.num_rows), table)
    return Source("input", (Shard(PATH, table.nbytes, MEMORY, facts),), np.array([0, table.num_rows], np.int64))


def _column(values: Any) -> pa.Array | pa.ChunkedArray:
    """A column of N values; of ``(N, d)`` numbers, lists of d."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    array = values if isinstance(values, np.ndarray) or not hasattr(values, "__array__") else np.asarray(values)
    if not isinstance(array, np.ndarray) or array.ndim == 1:
        return pa.array(array)
    if array.ndim != 2:
        raise ValueError(f"arrays must be of shape (N,) or (N, d), got {array.shape}")
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])


def _batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """The rows of some groups, as `readers.contract.Reader.batches`."""
    table = facts.inside
    assert isinstance(table, pa.Table)
    # a dotted name asks for a leaf of a struct, which comes whole
    names = dict.fromkeys(table.column_names)
    roots = {name if name in names else name.partition(".")[0] for name in wanted.columns or names}
    table = table.select([name for name in names if name in roots])
    for group in range(len(facts.group_rows)) if wanted.groups is None else wanted.groups:
        for batch in table.slice(group * GROUP_ROWS, facts.group_rows[group]).to_batches(
            max_chunksize=wanted.most_rows
        ):
            batch.validate(full=True)
            yield batch


def _look(path: str, poll: Poll = no_poll, most_bytes: int | None = None) -> FileFacts:
    raise InputError("a table in memory is no file; give its path")


MEMORY = Reader("table", (), _look, _batches, group="part")
