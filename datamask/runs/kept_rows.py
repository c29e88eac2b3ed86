"""A corpus without some of its rows, such as duplicates: the other rows, as the shards have them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from datamask.errors import InputError
from datamask.runs.contents import ShardRows
from datamask.runs.exports import write_rows
from datamask.storage.address import path_of
from datamask.work.context import UNWATCHED, Work

if TYPE_CHECKING:
    from datamask.corpus.corpus import Corpus


def write_kept(corpus: Corpus, kept: np.ndarray, path: str | Path, work: Work = UNWATCHED) -> int:
    """Write rows of a corpus into one parquet file, in input order, with all columns; return how many.

    Args:
        corpus: all N rows of its shards. kept: bool ``(N,)``, such as `datamask.corpus.copies.find_duplicates` finds.
        path: of the file, which is whole or not there.

    Raises:
        InputError: the corpus is a sample of its shards, `path` is one of them, or one has changed since.
        StoreError: `path` cannot be written. Stopped: from `work`.

    Example:
        >>> write_kept(corpus, find_duplicates(corpus, "exact", None).kept, "kept.parquet")
        5400
    """
    facts = corpus.provenance
    if facts.rows_read < facts.total_rows:
        raise InputError(
            f"--remove needs all rows, and {facts.rows_read:,} of {facts.total_rows:,} were read; leave --rows out, or "
            "take a machine with more memory"
        )
    if Path(path).resolve() in {Path(file).resolve() for file in facts.files}:
        raise InputError(f"--remove {path} is one of the inputs; name another file")
    return write_rows(_shards(corpus, kept), path, work)


def _shards(corpus: Corpus, kept: np.ndarray) -> list[ShardRows]:
    """The shards that have rows which are kept."""
    shards, ids = [], pa.chunked_array([corpus.ids])
    for number, file in enumerate(corpus.provenance.files):
        where = np.flatnonzero(corpus.source_file == number)
        where = where[np.argsort(corpus.source_row[where], kind="stable")]
        if kept[where].any():
            rows, of_rows = corpus.source_row[where], ids.take(pa.array(where))
            shards.append(ShardRows(path_of(file), rows, of_rows, kept[where], corpus.provenance.columns["id"]))
    return shards
