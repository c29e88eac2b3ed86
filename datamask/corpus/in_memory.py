"""`open_corpus` and what it takes: paths, and tables in memory, which are shards to the code that reads files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datamask.config import CorpusConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import read_corpus
from datamask.corpus.readers.contract import FileFacts, Reader, Wanted
from datamask.corpus.readers.shard import Shard
from datamask.corpus.shards import Source
from datamask.errors import InputError
from datamask.options import CORPUS_OPTIONS
from datamask.options.checks import check_known
from datamask.polling import Poll, no_poll
from datamask.work.context import Report, Work

PATH = "table"
"""What stands for the name of a file in messages and in ids that are made."""

GROUP_ROWS = 65_536
"""Rows that one thread reads."""

ARRAYS = {"ids": "id", "features": "feature_arr", "quality": "quality_score", "texts": "text", "tokens": "n_tokens"}
"""Arrays of `open_corpus` -> the columns that they become, known by these names."""

KINDS = "a pandas or polars DataFrame, a pyarrow Table or RecordBatch, a datasets.Dataset or a dict of arrays"


EXPECTED = f"open_corpus needs a path or several, {KINDS} or arrays"


def open_corpus(
    source: Any = None,
    *,
    ids: Any = None,
    features: Any = None,
    quality: Any = None,
    texts: Any = None,
    tokens: Any = None,
    progress: Report | None = None,
    should_stop: Callable[[], bool] | None = None,
    row_limit: int | None = None,
    into: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Corpus:
    """Read shards or a table in memory, check the rows, and scale the features to unit length.

    Args:
        source: a file, folder, glob or address, or several of them; a `CorpusConfig`; a pandas or polars DataFrame, a
            pyarrow Table or a `datasets.Dataset`; a dict of arrays. None: the arrays that follow.
        ids: N ids, integers or strings. None: they are made of the number of the row.
        features: ``(N, d)``, an embedding per row. With a `source`, other shards that hold the features.
        quality: N scores.
        texts: N texts, which may be left out.
        tokens: N counts of tokens, which may be left out.
        progress: called with a share from 0 to 1 and a few words, from this thread.
        should_stop: polled from this thread about ten times a second; True stops.
        row_limit: maximum number of rows if ``config.rows`` is None. None: as many as fit in a quarter of the memory. A
            larger corpus is sampled uniformly by hash, and ``provenance.notes`` says so.
        into: a folder on a disk, in whose files the features lie, and what is made of them; all rows are opened if
            no number is given. What is selected is the same. None: in memory.
        **options: settings of `CorpusConfig` such as ``id_column="doc_id"``; not beside a `CorpusConfig`.

    Returns:
        N rows in input order, with ids, quality, features ``(N, d)`` and metadata.

    Raises:
        InputError: a file, column, row or argument is invalid; the sentence names it.
        RemoteError: a store does not answer.
        NoRoomError: there is not enough free memory.
        Stopped: `should_stop` returned True.

    Examples:
        >>> import pandas as pd
        >>> from datamask import open_corpus
        >>> corpus = open_corpus("sample_data/tiny")
        >>> corpus.features.shape[0] == len(corpus)
        True
        >>> rows = pd.DataFrame({"doc": ["a", "b"], "score": [1.0, 2.0], "embedding": [[0.1, 0.9], [0.8, 0.2]]})
        >>> open_corpus(rows, id_column="doc").ids.to_pylist()
        ['a', 'b']
    """
    arrays = {"ids": ids, "quality": quality, "texts": texts, "tokens": tokens}
    given = [name for name, values in arrays.items() if values is not None]
    work, folder = Work.of(should_stop, progress), None if into is None else Path(into).absolute()
    if source is None:
        if features is None and not given:
            raise InputError(f"{EXPECTED}, got nothing")
        config, table = _config((PATH,), options), table_of_arrays({**arrays, "features": features})
        return read_corpus(config, work, row_limit=row_limit, main=source_of(table), into=folder)
    if given:
        raise InputError(f"{', '.join(given)} and a source exclude each other; put the columns into the table")
    if hasattr(features, "__array__"):
        raise InputError("features must be paths beside a source, got an array; put it into the table as a column")
    options |= {} if features is None else {"features": features}
    if isinstance(source, CorpusConfig):
        if options:
            raise InputError(f"{', '.join(options)} must stand in the CorpusConfig that is given")
        return read_corpus(source, work, row_limit=row_limit, into=folder)
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if isinstance(paths, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in paths):
        return read_corpus(_config(tuple(paths), options), work, row_limit=row_limit, into=folder)
    main = source_of(table_of(source, EXPECTED))
    return read_corpus(_config((PATH,), options), work, row_limit=row_limit, main=main, into=folder)


def _config(inputs: tuple[str | os.PathLike[str], ...], options: dict[str, Any]) -> CorpusConfig:
    """The settings of a corpus, from words of a caller."""
    check_known(options, [name for name in CORPUS_OPTIONS if name != "inputs"], "open_corpus")
    return CorpusConfig(tuple(os.fspath(path) for path in inputs), **options)


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
