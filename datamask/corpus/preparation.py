"""Text in, scored and embedded shards out: what a corpus needs before anything can be selected from it.

`prepare_shards` is behind ``datamask prepare``; the sample corpus is made by the same two calls, `TextFeatures.fit` and
`prepared_columns`. Columns it makes:

| column | type | what |
|---|---|---|
| `chunk_id` | string | the id column's values, else ``file:row`` |
| `quality_score` | float32 | 0 to 10, by the rules of `quality_rules` |
| `feature_arr` | fixed_size_list<float16>[dim] | TF-IDF and truncated SVD, unit length |
| `n_tokens` | int32 | words and punctuation marks of the text |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.corpus.quality_rules import quality_score
from datamask.corpus.text_features import TextFeatures
from datamask.corpus.text_shards import batches, strings, text_files
from datamask.corpus.text_survey import FEATURES, ID, QUALITY, TOKENS, TextPlan, id_strings, plan_files, survey
from datamask.errors import InputError, Stopped
from datamask.files import replacing, replacing_folder, user_path
from datamask.storage.address import FilePath, harmless, is_address

Progress = Callable[[float, str], None]
Stop = Callable[[], bool]

ROW_GROUP = 16_384
"""Rows, or `_ROW_GROUP_BYTES`, whichever is reached first, gathered before they are written as one row group."""

_ROW_GROUP_BYTES = 128 << 20
_TOKEN = re.compile(r"\w+|[^\w\s]")
_STEP = 256
"""Texts scored between two looks at the stop callable, some 50 ms."""

_NO_TEXT, _NO_WORD = "no text", "no word in common with the other texts"


class Prepared(TypedDict):
    """What `prepare_shards` did.

    Attributes:
        files: written. rows_read, rows: read and written. dropped: reason -> rows.
        dim, fitted_on: of the features, and on how many texts they were learned; None and 0 where they were there.
        id_column: the column that the ids are from; None: they were made.
        notes: sentences for a person.
    """

    files: list[str]
    rows_read: int
    rows: int
    dropped: dict[str, int]
    dim: int | None
    fitted_on: int
    id_column: str | None
    notes: list[str]


def count_tokens(text: str) -> int:
    """Words and punctuation marks: a length in the manner of a tokeniser, without one."""
    return len(_TOKEN.findall(text))


def feature_array(features: np.ndarray) -> pa.FixedSizeListArray:
    """A matrix ``(n, d)`` as fixed_size_list<float16>[d]."""
    flat = np.ascontiguousarray(features, dtype=np.float16).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float16()), features.shape[1])


def nonzero(features: pa.FixedSizeListArray) -> np.ndarray:
    """Which rows of a feature column hold anything but zeros, bool ``(n,)``."""
    flat = features.flatten().to_numpy(zero_copy_only=False)
    holds: np.ndarray = flat.reshape(len(features), features.type.list_size).any(axis=1)
    return holds


def prepared_columns(
    texts: Sequence[str],
    features: TextFeatures | None,
    *,
    scores: bool = True,
    progress: Progress | None = None,
    should_stop: Stop | None = None,
) -> dict[str, pa.Array]:
    """Quality, features and length of `texts`, as columns by name.

    Args:
        texts: n texts.
        features: fitted; None makes no feature column.
        scores: whether to make the quality column.
        progress: called with a share of this call and a sentence.
        should_stop: polled every `_STEP` texts.

    Raises:
        Stopped: `should_stop` answered true.
    """
    quality, tokens, blocks = np.zeros(len(texts), np.float32), np.zeros(len(texts), np.int32), []
    for start in range(0, len(texts), _STEP):
        if should_stop is not None and should_stop():
            raise Stopped("stopped while scoring texts")
        if progress is not None:
            progress(start / len(texts), f"Scoring {len(texts):,} texts")
        part = texts[start : start + _STEP]
        tokens[start : start + len(part)] = [count_tokens(text) for text in part]
        if scores:
            quality[start : start + len(part)] = [quality_score(text) for text in part]
        if features is not None:
            blocks.append(features.transform(part).astype(np.float16))
    columns = {QUALITY: pa.array(quality)} if scores else {}
    if features is not None:
        columns[FEATURES] = feature_array(np.concatenate([np.zeros((0, features.dim), np.float16), *blocks]))
    return columns | {TOKENS: pa.array(tokens)}


def prepare_shards(
    inputs: Iterable[str | Path],
    output: str | Path,
    *,
    text_column: str,
    id_column: str | None = None,
    dim: int = 256,
    seed: int = 0,
    progress: Progress | None = None,
    should_stop: Stop | None = None,
) -> Prepared:
    """Read text, write shards that `datamask select` takes: every column kept, those of the module's table added.

    A column of the table that is there already is kept as it is. Rows without text, and rows none of whose words occur
    in the texts the features were learned from (a zero feature), are dropped and counted. The features are learned on a
    uniform sample of at most `FIT_LIMIT` texts; the files are read twice, batch by batch, never whole.

    Args:
        inputs: files of any format of `datamask.corpus.readers`, folders, globs, here or elsewhere.
        output: a file ending in ``.parquet`` gets all rows; anything else is a folder with one shard per file. Whole or
            not at all.
        text_column: the column with the text.
        id_column: becomes `chunk_id`; None: `chunk_id` itself if there is one, else ``file:row`` (rows counted from 0).
        dim: feature dimensions; fewer, with a note, where the texts are too few to fill them.
        seed: of the sample and of the SVD.
        progress: called with a share 0..1 and a sentence, once per batch.
        should_stop: polled once per batch or block.

    Raises:
        InputError: a file or column that cannot be used, or nothing left to write.
        StoreError: the output cannot be written. RemoteError: a store that holds inputs does not answer.
        Stopped: `should_stop` answered true; nothing is written.
    """
    report = progress or (lambda share, what: None)
    if dim < 2:
        raise InputError(f"--dim must be at least 2, got {dim}")
    if is_address(output):
        raise InputError(f"--output must be a file or folder of this machine, got {harmless(str(output))}")
    target, files = user_path(output), text_files(inputs, should_stop)
    if target.suffix != ".parquet" and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--output {target} exists already; name a new folder, or a file ending in .parquet")
    if target.resolve() in {file.resolve() for file in files if isinstance(file, Path)}:
        raise InputError(f"--output {target} is one of the inputs; name another file")
    plan = plan_files(files, text_column, id_column, should_stop)
    counts = survey(plan, seed, lambda share, what: report(0.1 * share, what), should_stop)
    features = None
    if FEATURES not in plan.present:
        features = TextFeatures(dim, seed).fit(
            counts.sample, should_stop=should_stop, progress=lambda share, what: report(0.1 + 0.3 * share, what)
        )
    written, rows = _write(plan, counts.rows, target, features, report, should_stop)
    dropped = {_NO_TEXT: counts.rows - counts.texts, _NO_WORD: counts.texts - rows}
    dropped = {reason: count for reason, count in dropped.items() if count}
    report(1.0, f"Wrote {rows:,} rows")
    return {
        "files": [str(path) for path in written],
        "rows_read": counts.rows,
        "rows": rows,
        "dropped": dropped,
        "dim": features.dim if features else None,
        "fitted_on": len(counts.sample) if features else 0,
        "id_column": plan.id_column,
        "notes": _notes(plan, counts.rows, counts.texts, dropped, features, dim, len(counts.sample)),
    }


def _notes(
    plan: TextPlan,
    rows: int,
    texts: int,
    dropped: dict[str, int],
    features: TextFeatures | None,
    dim: int,
    fitted_on: int,
) -> list[str]:
    notes = [f"{name} was there already and is kept as it is." for name in sorted(plan.present)]
    if plan.id_column is None:
        notes.append(f"{ID} is made of file and row, as in '{plan.stems[0]}:0'; --id-column names a column instead.")
    if features is not None and features.dim < dim:
        notes.append(f"{fitted_on:,} texts fill {features.dim} feature dimensions, not {dim}.")
    if features is not None and fitted_on < texts:
        notes.append(f"Features were learned on {fitted_on:,} of {texts:,} texts, sampled uniformly.")
    return notes + [f"{count:,} of {rows:,} rows were dropped: {reason}." for reason, count in dropped.items()]


def _write(
    plan: TextPlan, total: int, target: Path, features: TextFeatures | None, report: Progress, should_stop: Stop | None
) -> tuple[list[Path], int]:
    """Second reading: every row with its new columns, into one file or one shard per file: the files, and the rows."""
    rows = done = 0
    single = target.suffix == ".parquet"
    with ExitStack() as stack:
        place = stack.enter_context(replacing(target) if single else replacing_folder(target))
        whole = stack.enter_context(_Shard(place)) if single else None
        for file, stem in zip(plan.files, plan.stems):
            shard = stack.enter_context(_Shard(place / f"{stem}.parquet")) if whole is None else whole
            position = 0
            for batch in batches(file, None, should_stop):
                report(0.4 + 0.6 * min(1.0, done / total), f"Scoring {file.name} ({done:,} of {total:,} rows)")
                table = _with_columns(batch, plan, file, f"{stem}:", position, features, should_stop)
                shard.add(table, file)
                position, done, rows = position + batch.num_rows, done + batch.num_rows, rows + table.num_rows
            if whole is None:
                shard.close()
        if rows == 0:
            raise InputError("no row is left to write: no text has a word in common with another")
        if whole is not None:
            whole.close()
        written = [target] if single else [target / path.name for path in sorted(place.iterdir())]
    return written, rows


class _Shard:
    """One parquet file, written in row groups; none at all if nothing is added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._schema: pa.Schema | None = None
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> _Shard:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, table: pa.Table, file: FilePath) -> None:
        """Append rows that came from `file`.

        Raises:
            InputError: they have other columns than the rows before them.
        """
        self._schema = self._schema or table.schema
        if table.schema != self._schema:
            raise InputError(
                f"{file} has other columns than the files before it; name a folder as --output to get one "
                "shard per file"
            )
        if table.num_rows:
            self._waiting.append(table)
            self._rows, self._bytes = self._rows + table.num_rows, self._bytes + table.nbytes
        if self._rows >= ROW_GROUP or self._bytes >= _ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what waits and finish the file."""
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._writer = self._writer or pq.ParquetWriter(self._path, self._schema, compression="zstd")
            self._writer.write_table(table, row_group_size=self._rows)
            self._waiting, self._rows, self._bytes = [], 0, 0


def _with_columns(
    batch: pa.RecordBatch,
    plan: TextPlan,
    file: FilePath,
    prefix: str,
    position: int,
    features: TextFeatures | None,
    should_stop: Stop | None,
) -> pa.Table:
    """The rows of `batch` that have text and features, with the columns that were missing."""
    table = pa.Table.from_batches([batch])
    text = strings(batch.column(plan.text_column), plan.text_column, file)
    if plan.id_column is None:
        made_ids = [f"{prefix}{row}" for row in range(position, position + batch.num_rows)]
        table = table.add_column(0, ID, pa.array(made_ids, pa.string()))
    elif plan.id_column != ID:
        table = table.add_column(0, ID, id_strings(batch.column(plan.id_column), plan.id_column, file))
    table, text = table.filter(text.is_valid()), text.drop_null()
    prepared = prepared_columns(text.to_pylist(), features, scores=QUALITY not in plan.present, should_stop=should_stop)
    for name, column in prepared.items():
        if name not in plan.present:
            table = table.append_column(name, column)
    return table.filter(pa.array(nonzero(prepared[FEATURES]))) if features is not None else table
