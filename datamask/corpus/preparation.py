"""Text in, scored and embedded shards out: what a corpus needs before anything can be selected from it.

`prepare_shards` is behind ``datamask prepare``; `TextFeatures.fit` and `prepared_columns` are its two
calls. Columns it makes:

| column | type | what |
|---|---|---|
| `chunk_id` | string | the id column's values, else ``file:row`` |
| `quality_score` | float32 | 0 to 10, by the rules of `quality_rules` |
| `feature_arr` | fixed_size_list<float16>[dim] | TF-IDF and truncated SVD, or by an embedder; unit length |
| `n_tokens` | int32 | words and punctuation marks of the text |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datamask.corpus.columns import TEXT_KEY
from datamask.corpus.embedders.contract import METADATA_KEY, Embedder, Features, metadata_of, tfidf_metadata
from datamask.corpus.kept_embeddings import KeptEmbeddings, kept_embeddings
from datamask.corpus.quality_rules import quality_score
from datamask.corpus.readers.leaves import with_leaves
from datamask.corpus.text_features import TextFeatures
from datamask.corpus.text_shards import batches, strings, text_files
from datamask.corpus.text_survey import FEATURES, ID, QUALITY, TOKENS, Survey, TextPlan, id_strings, plan_files, survey
from datamask.errors import InputError, Stopped
from datamask.files import remove_abandoned, replacing, replacing_folder, user_path
from datamask.polling import Poll, no_poll
from datamask.storage.address import FilePath, harmless, is_address
from datamask.storage.remote import file_stamp
from datamask.work.context import UNWATCHED, Work

ROW_GROUP = 16_384
"""Rows, or `_ROW_GROUP_BYTES`, whichever is reached first, gathered before they are written as one row group."""

_ROW_GROUP_BYTES = 128 << 20
_TOKEN = re.compile(r"\w+|[^\w\s]")
_STEP = 256
"""Texts scored between two calls of `poll`, some 50 ms; an embedder may take fewer at a time."""

DIM = 256
"""Dimensions of TF-IDF features, where there are texts enough."""

_NO_TEXT, _NO_WORD, _NO_TOKEN = "no text", "no word in common with the other texts", "no word that the embedder knows"


class Prepared(TypedDict):
    """What `prepare_shards` did.

    Attributes:
        files: written. rows_read, rows: read and written. dropped: reason -> rows.
        tokens: of all rows written, the sum of `n_tokens`.
        dim, fitted_on: of the features, and on how many texts they were learned; None and 0 where they were there.
        embedder, digest: name of the model that made the features and its SHA-256; None: TF-IDF, or they were there.
        id_column: the column that the ids are from; None: they were made.
        numbers: columns that could be the quality, where it was made by rules.
        notes: sentences for a person.
    """

    files: list[str]
    rows_read: int
    rows: int
    tokens: int
    dropped: dict[str, int]
    dim: int | None
    fitted_on: int
    embedder: str | None
    digest: str | None
    id_column: str | None
    numbers: list[str]
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
    texts: Sequence[str], features: Features | None, *, scores: bool = True, poll: Poll = no_poll
) -> dict[str, pa.Array]:
    """Quality, features and length of `texts`, as columns by name.

    Args:
        texts: n texts.
        features: TF-IDF, fitted, or an embedder; None makes no feature column.
        scores: whether to make the quality column.
        poll: called every `_STEP` texts, or as many as the embedder takes at a time.

    Raises:
        Stopped: from `poll`. InputError: the embedder failed.
    """
    step = _STEP if features is None else min(_STEP, features.batch)
    quality, tokens, blocks = np.zeros(len(texts), np.float32), np.zeros(len(texts), np.int32), []
    for start in range(0, len(texts), step):
        poll()
        part = texts[start : start + step]
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
    text_column: str | None = None,
    id_column: str | None = None,
    embedder: Embedder | None = None,
    dim: int | None = None,
    seed: int = 0,
    work: Work = UNWATCHED,
) -> Prepared:
    """Read text, write shards that `datamask select` takes: every column kept, those of the module's table added.

    A column of the table that is there already is kept as it is, and no quality is made where a column of another known
    name holds one. Rows without text, and rows none of whose words the
    features know (a zero feature), are dropped and counted. TF-IDF features are learned on a uniform sample of at most
    `FIT_LIMIT` texts; the files are read twice, batch by batch, never whole.

    The rows that an embedder makes are kept next to the output until that is whole: the same call goes on behind them
    after a stop or a kill, and writes the same bytes as an unbroken one.

    Args:
        inputs: files of any format of `datamask.corpus.readers`, folders, globs, here or elsewhere.
        output: a file ending in ``.parquet`` gets all rows; anything else is a folder with one shard per file. Whole or
            not at all.
        text_column: the column with the text; None: ``text``, else the only one of a usual name.
        id_column: becomes `chunk_id`; None: `chunk_id` itself if there is one, else a column of a known name in which
            every row has a value of its own, else ``file:row`` (rows counted from 0).
        embedder: makes the features (`embedders.embedder_of`), and is noted in the shards; None: TF-IDF.
        dim: dimensions of TF-IDF features; None: `DIM`; fewer, with a note, where the texts are too few to fill them.
        seed: of the sample and of the SVD.
        work: asked and told once per batch or block.

    Raises:
        InputError: a file or column that cannot be used, an embedder that fails, or nothing left to write.
        StoreError: the output cannot be written. RemoteError: a store that holds inputs does not answer.
        Stopped: from `work.poll`; nothing is written but the rows of an embedder.
    """
    if embedder is not None and dim is not None:
        raise InputError(f"--dim belongs to TF-IDF features; those by {embedder.name} have {embedder.dim} dimensions")
    dim = DIM if dim is None else dim
    if dim < 2:
        raise InputError(f"--dim must be at least 2, got {dim}")
    if is_address(output):
        raise InputError(f"--output must be a file or folder of this machine, got {harmless(str(output))}")
    target, files = user_path(output), text_files(inputs, work.poll)
    if target.suffix != ".parquet" and target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"--output {target} exists already; name a new folder, or a file ending in .parquet")
    if target.resolve() in {file.resolve() for file in files if isinstance(file, Path)}:
        raise InputError(f"--output {target} is one of the inputs; name another file")
    plan = plan_files(files, text_column, id_column, work.poll)
    if embedder is not None and FEATURES in plan.present:
        raise InputError(
            f"{files[0]} has {FEATURES} already; leave out --embedder to keep it, or remove that column first"
        )
    counts = survey(plan, seed, work.part(0.0, 0.1))
    if not counts.ids_fit:
        plan = replace(plan, id_column=None)
    for part in target.parent.glob(f".{escape(target.name)}.????????.part"):
        with suppress(OSError):  # in use, or gone: it was for tidiness alone
            remove_abandoned(part)
    found, begun = 0, 0.4 if embedder is None else 0.1
    with ExitStack() as stack:
        features: Features | None = None
        if embedder is not None:
            kept = stack.enter_context(kept_embeddings(target, embedder, _facts(plan, work.poll)))
            features, found = kept, kept.found
            stack.enter_context(_going_on(kept))
        elif FEATURES not in plan.present:
            features = TextFeatures(dim, seed).fit(counts.sample, work=work.part(0.1, 0.4))
        metadata = metadata_of(embedder) if embedder is not None else None
        if isinstance(features, TextFeatures):
            metadata = tfidf_metadata(features.dim, len(counts.sample))
        written, rows, tokens = _write(plan, counts.rows, target, features, metadata, work.part(begun, 1.0))
    no_feature = _NO_WORD if embedder is None else _NO_TOKEN
    dropped = {_NO_TEXT: counts.rows - counts.texts, no_feature: counts.texts - rows}
    dropped = {reason: count for reason, count in dropped.items() if count}
    work.report(1.0, f"Wrote {rows:,} rows")
    fitted_on = len(counts.sample) if features is not None and embedder is None else 0
    notes = _notes(plan, counts, dropped, features.dim if fitted_on and features else None, dim, fitted_on)
    if found:
        notes.insert(0, f"{found:,} texts were embedded before this command was last stopped.")
    return {
        "files": [str(path) for path in written],
        "rows_read": counts.rows,
        "rows": rows,
        "tokens": tokens,
        "dropped": dropped,
        "dim": features.dim if features is not None else None,
        "fitted_on": fitted_on,
        "embedder": embedder.name if embedder is not None else None,
        "digest": embedder.digest if embedder is not None else None,
        "id_column": plan.id_column,
        "numbers": [] if plan.quality_column is not None or QUALITY in plan.present else list(plan.numbers),
        "notes": notes,
    }


def _facts(plan: TextPlan, poll: Poll) -> dict[str, Any]:
    """What embeddings in reading order follow from, besides their embedder: the files as they are now, the column."""
    stamps = [[str(file), *file_stamp(file, poll)[:2]] for file in plan.files]
    return {"text_column": plan.text_column, "files": stamps}


@contextmanager
def _going_on(kept: KeptEmbeddings) -> Iterator[None]:
    """A stop says how to go on behind what is kept."""
    try:
        yield
    except Stopped as stopped:
        if not kept.kept:
            raise
        raise Stopped(f"{stopped}; {kept.kept:,} embeddings are kept, and the same command goes on") from stopped


def _notes(
    plan: TextPlan, counts: Survey, dropped: dict[str, int], fitted_dim: int | None, dim: int, fitted_on: int
) -> list[str]:
    """Sentences about what was found and made. fitted_dim: dimensions of TF-IDF features; None: none were made."""
    notes = [f"{name} was there already and is kept as it is." for name in sorted(plan.present)]
    if plan.quality_column is not None:
        notes.append(f"Column {plan.quality_column!r} holds the quality, by its name; no {QUALITY} is made.")
    elif QUALITY not in plan.present:
        notes.append(f"{QUALITY} is made by rules on the text.")
        if plan.numbers:
            notes.append(
                f"Other columns of numbers: {', '.join(plan.numbers[:8])}{' ...' if len(plan.numbers) > 8 else ''}. To "
                f"go by one of them, give --quality_column to `select` and `open`."
            )
    if plan.id_guessed and plan.id_column is not None:
        notes.append(f"{ID} is column {plan.id_column!r}, by its name.")
    if plan.id_column is None:
        notes.append(f"{ID} is made of file and row, as in '{plan.stems[0]}:0'; --id_column names a column instead.")
    if plan.guessed:
        notes.append(f"Column {plan.text_column!r} was taken as the text column, by its name.")
    if fitted_dim is not None and fitted_dim < dim:
        notes.append(
            f"TF-IDF of {fitted_on:,} texts has {fitted_dim} dimensions; --dim {dim} allows more than these texts have."
        )
    if fitted_dim is not None and fitted_on < counts.texts:
        notes.append(f"Features were learned on {fitted_on:,} of {counts.texts:,} texts, sampled uniformly.")
    return notes + [f"{count:,} of {counts.rows:,} rows were dropped: {reason}." for reason, count in dropped.items()]


def _write(
    plan: TextPlan, total: int, target: Path, features: Features | None, metadata: bytes | None, work: Work
) -> tuple[list[Path], int, int]:
    """Second reading: every row with its new columns, into one file or one shard per file: files, rows, tokens.

    Args:
        metadata: about what made the features, for the shards; None: they were there.
    """
    embeds = isinstance(features, KeptEmbeddings)
    doing = "Embedding" if embeds else "Scoring"
    rows = tokens = done = 0
    single = target.suffix == ".parquet"
    with ExitStack() as stack:
        place = stack.enter_context(replacing(target) if single else replacing_folder(target))
        whole = stack.enter_context(_Shard(place)) if single else None
        for file, stem in zip(plan.files, plan.stems):
            shard = stack.enter_context(_Shard(place / f"{stem}.parquet")) if whole is None else whole
            position = 0
            for batch in batches(file, None, work.poll):
                work.report(min(1.0, done / total), f"{doing} {file.name} ({done:,} of {total:,} rows)")
                table = _with_columns(batch, plan, file, f"{stem}:", position, features, work.poll)
                shard.add(_noted(table, plan.text_column, metadata), file)
                position, done, rows = position + batch.num_rows, done + batch.num_rows, rows + table.num_rows
                tokens += _token_total(table)
            if whole is None:
                shard.close()
        if rows == 0:
            reason = "has a word that the embedder knows" if embeds else "has a word in common with another"
            raise InputError(f"no row is left to write: no text {reason}")
        if whole is not None:
            whole.close()
        written = [target] if single else [target / path.name for path in sorted(place.iterdir())]
    return written, rows, tokens


def _token_total(table: pa.Table) -> int:
    """The sum of `n_tokens`; 0 where such a column was there already and holds no numbers."""
    counts = table[TOKENS]
    is_number = pa.types.is_integer(counts.type) or pa.types.is_floating(counts.type)
    return int(pc.sum(counts).as_py() or 0) if is_number else 0


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
    features: Features | None,
    poll: Poll,
) -> pa.Table:
    """The rows of `batch` that have text and features, with the columns that were missing."""
    table = pa.Table.from_batches([batch])
    batch = with_leaves(batch, batch.schema, [name for name in (plan.text_column, plan.id_column) if name is not None])
    text = strings(batch.column(plan.text_column), plan.text_column, file)
    if plan.id_column is None:
        made_ids = [f"{prefix}{row}" for row in range(position, position + batch.num_rows)]
        table = table.add_column(0, ID, pa.array(made_ids, pa.string()))
    elif plan.id_column != ID:
        table = table.add_column(0, ID, id_strings(batch.column(plan.id_column), plan.id_column, file))
    table, text = table.filter(text.is_valid()), text.drop_null()
    scores = QUALITY not in plan.present and plan.quality_column is None
    prepared = prepared_columns(text.to_pylist(), features, scores=scores, poll=poll)
    for name, column in prepared.items():
        if name not in plan.present:
            table = table.append_column(name, column)
    return table.filter(pa.array(nonzero(prepared[FEATURES]))) if features is not None else table


def _noted(table: pa.Table, text_column: str, metadata: bytes | None) -> pa.Table:
    """The table with notes of its text column and of what made its features; None: it keeps the note that it had."""
    notes = {**(table.schema.metadata or {}), TEXT_KEY: text_column.encode()}
    return table.replace_schema_metadata(notes if metadata is None else {**notes, METADATA_KEY: metadata})
