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
from os.path import commonpath
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datamask.corpus.quality_rules import quality_score
from datamask.corpus.text_features import FIT_LIMIT, TextFeatures
from datamask.corpus.text_shards import batches, file_schema, require_column, strings, text_files
from datamask.errors import InputError, Stopped, StoreError
from datamask.files import replacing, replacing_folder

Progress = Callable[[float, str], None]
Stop = Callable[[], bool]

ID, QUALITY, FEATURES, TOKENS = "chunk_id", "quality_score", "feature_arr", "n_tokens"

_TOKEN = re.compile(r"\w+|[^\w\s]")
_STEP = 256
"""Texts scored between two looks at the stop callable, some 50 ms."""


def count_tokens(text: str) -> int:
    """Words and punctuation marks: a length in the manner of a tokeniser, without one."""
    return len(_TOKEN.findall(text))


def feature_array(features: np.ndarray) -> pa.FixedSizeListArray:
    """A matrix ``(n, d)`` as fixed_size_list<float16>[d]."""
    flat = np.ascontiguousarray(features, dtype=np.float16).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float16()), features.shape[1])


def nonzero(features: pa.FixedSizeListArray) -> np.ndarray:
    """Which rows of a feature column hold anything but zeros, bool ``(n,)``."""
    return features.flatten().to_numpy(zero_copy_only=False).reshape(len(features), -1).any(axis=1)


def prepared_columns(texts: Sequence[str], features: TextFeatures | None, *, scores: bool = True,
                     progress: Progress | None = None, should_stop: Stop | None = None) -> dict[str, pa.Array]:
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
        part = texts[start:start + _STEP]
        tokens[start:start + len(part)] = [count_tokens(text) for text in part]
        if scores:
            quality[start:start + len(part)] = [quality_score(text) for text in part]
        if features is not None:
            blocks.append(features.transform(part).astype(np.float16))
    columns = {QUALITY: pa.array(quality)} if scores else {}
    if features is not None:
        columns[FEATURES] = feature_array(np.concatenate([np.zeros((0, features.dim), np.float16), *blocks]))
    return columns | {TOKENS: pa.array(tokens)}


def prepare_shards(inputs: Iterable[str | Path], output: str | Path, *, text_column: str, id_column: str | None = None,
                   dim: int = 256, seed: int = 0, progress: Progress | None = None,
                   should_stop: Stop | None = None) -> dict:
    """Read text, write shards that `datamask select` takes: every column kept, those of the module's table added.

    A column of the table that is there already is kept as it is. Rows without text, and rows none of whose words occur
    in the texts the features were learned from (a zero feature), are dropped and counted. The features are learned on a
    uniform sample of at most `FIT_LIMIT` texts; the files are read twice, batch by batch, never whole.

    Args:
        inputs: parquet or JSON lines files, folders, globs.
        output: a file ending in ``.parquet`` gets all rows; anything else is a folder with one shard per file. Whole or
            not at all.
        text_column: the column with the text.
        id_column: becomes `chunk_id`; None: `chunk_id` itself if there is one, else ``file:row`` (rows counted from 0).
        dim: feature dimensions; fewer, with a note, where the texts are too few to fill them.
        seed: of the sample and of the SVD.
        progress: called with a share 0..1 and a sentence.
        should_stop: polled every few dozen milliseconds.

    Returns:
        ``files`` (written), ``rows_read``, ``rows`` (written), ``dropped`` (reason -> count), ``dim``, ``fitted_on``,
        ``id_column`` and ``notes``, sentences for a person.

    Raises:
        InputError: a file or column that cannot be used, or nothing left to write.
        StoreError: the output cannot be written.
        Stopped: `should_stop` answered true; nothing is written.
    """
    report = progress or (lambda share, what: None)
    if dim < 2:
        raise InputError(f"--dim must be at least 2, got {dim}")
    files, target = text_files(inputs), Path(output)
    if target.suffix != ".parquet" and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--output {target} exists already; name a new folder, or a file ending in .parquet")
    if target.resolve() in {file.resolve() for file in files}:
        raise InputError(f"--output {target} is one of the inputs; name another file")
    plan = _Plan(files, text_column, id_column)
    sample, notes, rows_read = _survey(plan, seed, report, should_stop), list(plan.notes), plan.rows
    features = None
    if not plan.has(FEATURES):
        features = TextFeatures(dim, seed).fit(sample, should_stop=should_stop,
                                               progress=lambda share, what: report(0.1 + 0.4 * share, what))
        if features.dim < dim:
            notes.append(f"{len(sample):,} texts fill {features.dim} feature dimensions, not {dim}.")
        if plan.texts > len(sample):
            notes.append(f"Features were learned on {len(sample):,} of {plan.texts:,} texts, sampled uniformly.")
    dropped = {"no text": rows_read - plan.texts, "no word in common with the other texts": 0}
    written, rows = _write(plan, target, features, dropped, report, should_stop)
    for reason, count in dropped.items():
        if count:
            notes.append(f"{count:,} of {rows_read:,} rows were dropped: {reason}.")
    report(1.0, f"Wrote {rows:,} rows")
    return {"files": [str(path) for path in written], "rows_read": rows_read, "rows": rows,
            "dropped": {reason: count for reason, count in dropped.items() if count},
            "dim": features.dim if features else None, "fitted_on": len(sample) if features else 0,
            "id_column": plan.id_column, "notes": notes}


class _Plan:
    """What each file offers: its columns checked, its id source decided, a name for its rows."""

    def __init__(self, files: list[Path], text_column: str, id_column: str | None) -> None:
        self.files, self.text_column, self.notes, self.rows, self.texts = files, text_column, [], 0, 0
        self.schemas = [file_schema(file) for file in files]
        for file, schema in zip(files, self.schemas):
            require_column(schema, text_column, "text-column", file)
            if id_column is not None:
                require_column(schema, id_column, "id-column", file)
        if id_column not in (None, ID) and self.has(ID):
            raise InputError(f"--id-column {id_column!r} would become {ID}, which {files[0]} already has; leave the "
                             f"option out to keep {ID}, or rename that column")
        self.id_column = id_column or (ID if self.has(ID) else None)
        if self.has(QUALITY) and self.has(FEATURES):
            raise InputError(f"{files[0]} has {QUALITY} and {FEATURES} already: open it as it is")
        for name in (QUALITY, FEATURES, TOKENS):
            if self.has(name):
                self.notes.append(f"{name} was there already and is kept as it is.")
        if self.id_column is None:
            self.notes.append(f"{ID} is made of file and row, as in '{self.stems()[0]}:0'; --id-column names a column "
                              "instead.")

    def has(self, name: str) -> bool:
        """Whether the files have a column `name`; all must agree.

        Raises:
            InputError: some have it and some have not.
        """
        have = [name in schema.names for schema in self.schemas]
        if any(have) and not all(have):
            raise InputError(f"{self.files[have.index(False)]} has no column {name!r}, which "
                             f"{self.files[have.index(True)]} has; prepare them apart")
        return any(have)

    def stems(self) -> list[str]:
        """A name per file, unique: its own without ending, or its path below the common folder where names repeat."""
        names = [file.stem for file in self.files]
        if len(set(names)) < len(names):
            resolved = [file.resolve() for file in self.files]
            base = commonpath([path.parent for path in resolved])
            names = ["-".join(path.relative_to(base).parts) for path in resolved]
        return names


def _survey(plan: _Plan, seed: int, report: Progress, should_stop: Stop | None) -> list[str]:
    """Read text and id of every row once: count, check the ids, and return a uniform sample of the texts, in row order.

    Each row draws 64 random bits from its position; the `FIT_LIMIT` smallest are the sample, whatever the batches.
    """
    random = np.random.default_rng(seed)
    keys, texts, ids = np.zeros(0, np.uint64), np.zeros(0, object), []
    for f, file in enumerate(plan.files):
        report(0.1 * f / len(plan.files), f"Reading {file.name}")
        for batch in batches(file, [plan.text_column, *({plan.id_column} - {None, plan.text_column})]):
            if should_stop is not None and should_stop():
                raise Stopped("stopped while reading texts")
            column = strings(batch.column(plan.text_column), plan.text_column, file)
            if plan.id_column is not None:
                ids.append(_id_strings(batch.column(plan.id_column), plan.id_column, file))
            draws = random.integers(0, 2**64, batch.num_rows, dtype=np.uint64)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            plan.rows += batch.num_rows
            plan.texts += int(valid.sum())
            keys = np.concatenate([keys, draws[valid]])
            texts = np.concatenate([texts, column.drop_null().to_numpy(zero_copy_only=False)])
            if len(keys) > 2 * FIT_LIMIT:
                keys, texts = _smallest(keys, texts)
    if plan.rows == 0:
        raise InputError(f"{plan.files[0]} has no rows" if len(plan.files) == 1 else "the input files have no rows")
    if plan.texts == 0:
        raise InputError(f"column {plan.text_column!r} holds no text in any of {plan.rows:,} rows")
    if ids:
        counts = pc.value_counts(pa.chunked_array(ids))
        double = counts.filter(pc.greater(counts.field("counts"), 1))
        if len(double):
            raise InputError(f"--id-column {plan.id_column!r} must be unique; {len(double):,} ids occur more than "
                             f"once, such as {double[0]['values'].as_py()!r}; leave the option out to have ids made")
    return list(_smallest(keys, texts)[1])


def _smallest(keys: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.sort(np.argpartition(keys, FIT_LIMIT)[:FIT_LIMIT]) if len(keys) > FIT_LIMIT else np.arange(len(keys))
    return keys[kept], texts[kept]


def _id_strings(column: pa.Array, name: str, file: Path) -> pa.Array:
    if column.null_count:
        raise InputError(f"--id-column {name!r} must have no nulls, {file} has some; leave the option out to have ids "
                         "made")
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise InputError(f"--id-column {name!r} of {file} must hold text or whole numbers, got {column.type}"
                         ) from error


def _write(plan: _Plan, target: Path, features: TextFeatures | None, dropped: dict[str, int], report: Progress,
           should_stop: Stop | None) -> tuple[list[Path], int]:
    """Second reading: every row with its new columns, into one file or one shard per file: the files, and the rows."""
    rows = seen = 0
    single = target.suffix == ".parquet"
    names = [f"{stem}.parquet" for stem in plan.stems()]
    with ExitStack() as stack:
        place = stack.enter_context(replacing(target) if single else replacing_folder(target))
        writer = None
        for f, file in enumerate(plan.files):
            position = 0
            for batch in batches(file):
                report(0.5 + 0.5 * seen / plan.rows, f"Scoring {file.name} ({seen:,} of {plan.rows:,} rows)")
                table = _with_columns(batch, position, plan, f, features, dropped, should_stop)
                position, seen, rows = position + batch.num_rows, seen + batch.num_rows, rows + table.num_rows
                if writer is None:
                    writer = stack.enter_context(_writer(place if single else place / names[f], table.schema))
                elif table.schema != writer.schema:
                    raise InputError(f"{file} has other columns than {plan.files[0]}; name a folder as --output to get "
                                     "one shard per file")
                writer.write_table(table)
            if writer is not None and not single:
                writer.close()
                writer = None
        if rows == 0:
            raise InputError("no row is left: no text shares a word with another")
        if writer is not None:
            writer.close()
        written = [target] if single else [target / p.name for p in sorted(place.iterdir())]
    return written, rows


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    try:
        return pq.ParquetWriter(path, schema, compression="zstd")
    except pa.ArrowException as error:
        raise StoreError(f"{path} cannot be written: {error}") from error


def _with_columns(batch: pa.RecordBatch, position: int, plan: _Plan, f: int, features: TextFeatures | None,
                  dropped: dict[str, int], should_stop: Stop | None) -> pa.Table:
    table = pa.Table.from_batches([batch])
    text = strings(batch.column(plan.text_column), plan.text_column, plan.files[f])
    if plan.id_column is None:
        stem = plan.stems()[f]
        table = table.add_column(0, ID, pa.array([f"{stem}:{position + i}" for i in range(batch.num_rows)]))
    elif plan.id_column != ID:
        table = table.add_column(0, ID, _id_strings(batch.column(plan.id_column), plan.id_column, plan.files[f]))
    table, text = table.filter(text.is_valid()), text.drop_null()
    made = prepared_columns(text.to_pylist(), features, scores=not plan.has(QUALITY), should_stop=should_stop)
    for name, column in made.items():
        if name not in table.column_names:
            table = table.append_column(name, column)
    if features is None:
        return table
    known = nonzero(table[FEATURES].combine_chunks())
    dropped["no word in common with the other texts"] += int((~known).sum())
    return table.filter(pa.array(known))
