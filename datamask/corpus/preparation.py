"""Text in, scored and embedded shards out: what a corpus needs before anything can be selected from it.

`prepare_shards` is behind ``datamask prepare``; `TextFeatures.fit` and `prepared_columns` are its two
calls. Every column stays as it is. Of these, those are made for which no column was found (`columns.guess`):

| column | type | what |
|---|---|---|
| `chunk_id` | string | ``file:row`` |
| `quality_score` | float32 | 0 to 10, by the rules of `quality_rules` |
| `feature_arr` | fixed_size_list<float16>[dim] | TF-IDF and truncated SVD, or by an embedder; unit length |
| `n_tokens` | int32 | tokens, estimated for a vocabulary like o200k_base, or by a tokenizer (`token_counts`) |
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datamask.corpus.columns import columns_metadata
from datamask.corpus.embedders.contract import METADATA_KEY, Embedder, Features, metadata_of, tfidf_metadata
from datamask.corpus.kept_embeddings import KeptEmbeddings, kept_embeddings
from datamask.corpus.quality_rules import scored
from datamask.corpus.readers.leaves import with_leaves
from datamask.corpus.shards import open_source
from datamask.corpus.text_features import TextFeatures
from datamask.corpus.text_survey import Survey, TextPlan, plan_texts, survey, texts_of
from datamask.corpus.token_counts import VOCABULARY, TokenCounter, estimated, script_of, token_counter
from datamask.errors import InputError, Stopped
from datamask.files import remove_leftovers, replacing, replacing_folder, user_path
from datamask.polling import Poll, no_poll
from datamask.storage.address import harmless, is_address
from datamask.tables import PARQUET, is_file
from datamask.work.context import UNWATCHED, Work
from datamask.work.locks import claimed

ROW_GROUP = 16_384
"""Rows, or `_ROW_GROUP_BYTES`, whichever is reached first, gathered before they are written as one row group."""

_ROW_GROUP_BYTES = 128 << 20
_STEP = 256
"""Texts scored between two calls of `poll`, some 50 ms; an embedder may take fewer at a time."""

SCRIPT, SEVERAL = "language_script", 0.01
"""The column for the script of each text, and the share that another script than the first must have for it."""

DIM = 256
"""Dimensions of TF-IDF features, where there are texts enough."""

_UNREADABLE = "lines that cannot be read"
_NO_TEXT, _NO_WORD, _NO_TOKEN = "no text", "no word in common with the other texts", "no word that the embedder knows"


class Prepared(TypedDict):
    """What `prepare_shards` did.

    Attributes:
        files: written. rows_read, rows: read and written. dropped: reason -> rows.
        tokens: of all rows written, the sum of the length column.
        dim, fitted_on: of the features, and on how many texts they were learned; None and 0 where they were there.
        embedder, digest: name of the model that made the features and its SHA-256; None: TF-IDF, or they were there.
        columns: role -> column, of those that were found and made. made: the roles whose column was made.
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
    columns: dict[str, str]
    made: list[str]
    numbers: list[str]
    notes: list[str]


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
    features: Features | None,
    roles: Iterable[str],
    count: TokenCounter = estimated,
    *,
    poll: Poll = no_poll,
) -> tuple[dict[str, pa.Array], int]:
    """Quality, features, length and script of `texts`, as columns by their roles.

    Args:
        texts: n texts.
        features: TF-IDF, fitted, or an embedder; of the role ``feature``.
        roles: that are made, ``script`` among them; ``id`` is none of them.
        count: gives the lengths.
        poll: called every `_STEP` texts, or as many as the embedder takes at a time.

    Returns:
        The columns, and how many texts are scored by the rules for every language alone.

    Raises:
        Stopped: from `poll`. InputError: the embedder failed.
    """
    step = _STEP if features is None else min(_STEP, features.batch)
    quality, tokens, blocks = np.zeros(len(texts), np.float32), np.zeros(len(texts), np.int32), []
    scripts: list[str] = []
    others = 0
    for start in range(0, len(texts), step):
        poll()
        part = texts[start : start + step]
        if "length" in roles:
            tokens[start : start + len(part)] = count(part)
        if "quality" in roles or "script" in roles:
            scripts += map(script_of, part)
        if "quality" in roles:
            scores = list(map(scored, part, scripts[start:]))
            quality[start : start + len(part)] = [score for score, _ in scores]
            others += sum(not is_english for _, is_english in scores)
        if features is not None:
            blocks.append(features.transform(part).astype(np.float16))
    columns = {"quality": pa.array(quality)} if "quality" in roles else {}
    if features is not None:
        columns["feature"] = feature_array(np.concatenate([np.zeros((0, features.dim), np.float16), *blocks]))
    columns |= {"length": pa.array(tokens)} if "length" in roles else {}
    return columns | ({"script": pa.array(scripts).dictionary_encode()} if "script" in roles else {}), others


def prepare_shards(
    inputs: Iterable[str | Path],
    output: str | Path,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    make_ids: bool = False,
    split: str | None = None,
    drop_invalid: bool = False,
    embedder: Embedder | None = None,
    tokenizer: str | Path | None = None,
    dim: int | None = None,
    seed: int = 0,
    work: Work = UNWATCHED,
) -> Prepared:
    """Read text, write shards that `datamask select` takes: every column kept, those of the module's table added.

    An embedding, a score, a length and ids that are there are kept, under their names and types, and only what is
    missing is made. The shards say which columns these are, and `select` takes them. Rows without text, and rows none
    of whose words the features know (a zero feature), are dropped and counted. TF-IDF features are learned on a uniform
    sample of at most `FIT_LIMIT` texts; the files are read twice, batch by batch, never whole.

    The rows that an embedder makes are kept next to the output until that is whole: the same call goes on behind them
    after a stop or a kill, and writes the same bytes as an unbroken one.

    Args:
        inputs: files of any format of `datamask.corpus.readers`, folders, globs, here or elsewhere.
        output: a file ending in ``.parquet`` gets all rows; anything else is a folder with one shard per file. Whole or
            not at all.
        text_column: the column with the text; None: ``text``, else the only one of a usual name.
        id_column: the column with the ids; None: one of a known name, else they are made: ``file:row``, rows counted
            from 0.
        make_ids: make ids in any case.
        split: which is read of a folder that has several, as of `CorpusConfig`.
        drop_invalid: skip and count lines that cannot be read, instead of refusing them.
        embedder: makes the features (`embedders.embedder_of`), and is noted in the shards; None: TF-IDF.
        tokenizer: path of a ``tokenizer.json`` that counts the tokens; None: they are estimated.
        dim: dimensions of TF-IDF features; None: `DIM`; fewer, with a note, where the texts are too few to fill them.
        seed: of the sample and of the SVD.
        work: asked and told once per batch or block.

    Raises:
        InputError: a file or column that cannot be used, an embedder that fails, or nothing left to write.
        StoreError: the output cannot be written, or another process writes it.
        RemoteError: a store that holds inputs does not answer.
        Stopped: from `work.poll`; nothing is written but the rows of an embedder.
    """
    if embedder is not None and dim is not None:
        raise InputError(f"--dim belongs to TF-IDF features; those by {embedder.name} have {embedder.dim} dimensions")
    dim = DIM if dim is None else dim
    if dim < 2:
        raise InputError(f"--dim must be at least 2, got {dim}")
    if is_address(output):
        raise InputError(f"--output must be a file or folder of this machine, got {harmless(str(output))}")
    target = user_path(output)
    source = open_source("input", [str(path) for path in inputs], work.part(0.0, 0.05), split=split, skip=drop_invalid)
    if any(target.resolve() == Path(shard.path).resolve() for shard in source.shards if not is_address(shard.path)):
        raise InputError(f"--output {target} is one of the inputs; name another file")
    plan = plan_texts(source, text_column, id_column, make_ids)
    if embedder is not None and "feature" not in plan.made:
        kept_column = plan.columns.get("feature", " and ".join(plan.several))
        raise InputError(
            f"{source.first().path} has features already ({kept_column}); leave out --embedder to keep them, or remove "
            "that column first"
        )
    if tokenizer is not None and "length" not in plan.made:
        raise InputError(
            f"{source.first().path} has token counts already ({plan.columns['length']}); leave out --tokenizer to keep "
            "them, or remove that column first"
        )
    count = token_counter(tokenizer)
    kept, begun = None, 0.4 if embedder is None else 0.1
    folder = not is_file(target, among=(PARQUET,))
    with ExitStack() as stack:
        stack.enter_context(claimed(target))
        if folder and target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError(f"--output {target} exists already; name a new folder, or a file ending in .parquet")
        counts = survey(plan, seed, work.part(0.05, 0.1))
        remove_leftovers(target)
        features: Features | None = None
        if embedder is not None:
            features = kept = stack.enter_context(kept_embeddings(target, embedder))
            stack.enter_context(_going_on(kept))
        elif "feature" in plan.made:
            features = TextFeatures(dim, seed).fit(counts.sample, work=work.part(0.1, 0.4))
        metadata = metadata_of(embedder) if embedder is not None else None
        if isinstance(features, TextFeatures):
            metadata = tfidf_metadata(features.dim, len(counts.sample))
        several = _several_scripts(counts.sample)
        script = SCRIPT if several and SCRIPT not in plan.source.first().schema.names else None
        making = _Making(plan, features, metadata, count, script)
        written, totals = _write(making, target, work.part(begun, 1.0))
    no_feature = _NO_WORD if embedder is None else _NO_TOKEN
    dropped = {_NO_TEXT: counts.rows - counts.texts, no_feature: counts.texts - totals.rows}
    unread = [shard.facts.skipped for shard in source.shards if shard.facts.skipped]
    dropped[_UNREADABLE] = sum(len(skipped.lines) for skipped in unread)
    dropped = {reason: count for reason, count in dropped.items() if count}
    work.report(1.0, f"Wrote {totals.rows:,} rows")
    fitted_on = len(counts.sample) if features is not None and embedder is None else 0
    notes = _notes(plan, counts, dropped, features.dim if fitted_on and features else None, dim, fitted_on)
    if "length" in plan.made:
        by = f"estimated for a vocabulary like {VOCABULARY}" if tokenizer is None else f"counted by {tokenizer}"
        notes.append(f"The tokens in column {plan.columns['length']} are {by}.")
    if totals.others:
        notes.append(
            f"{totals.others:,} of {counts.texts:,} texts are not English: rules on length, repetition and kinds of "
            "characters alone score them."
        )
    if several:
        notes.append(
            f"Column {SCRIPT} has the script of each text. Scores of several languages do not compare: give "
            f"--quality_within {SCRIPT} to `select` and `open`, or a column with the language."
        )
    notes += [f"The first line that cannot be read: {skipped.first}." for skipped in unread if skipped.lines][:1]
    notes += [
        f"{shard.facts.skipped.cut}: its first {shard.rows:,} rows were read."
        for shard in source.shards
        if shard.facts.skipped and shard.facts.skipped.cut
    ]
    if kept is not None and kept.reused:
        notes.insert(0, f"{kept.reused:,} texts were embedded before this command was last stopped.")
    return {
        "files": [str(path) for path in written],
        "rows_read": counts.rows,
        "rows": totals.rows,
        "tokens": totals.tokens,
        "dropped": dropped,
        "dim": features.dim if features is not None else None,
        "fitted_on": fitted_on,
        "embedder": embedder.name if embedder is not None else None,
        "digest": embedder.digest if embedder is not None else None,
        "columns": plan.columns,
        "made": sorted(plan.made),
        "numbers": list(plan.numbers),
        "notes": notes,
    }


def _several_scripts(sample: Sequence[str]) -> bool:
    """Whether the texts have several scripts."""
    scripts = Counter(map(script_of, sample)).most_common(2)
    return len(scripts) > 1 and scripts[1][1] >= SEVERAL * len(sample)


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
    what = {"id": "ids", "quality": "quality", "feature": "features", "length": "tokens"}
    kept = [f"{what[role]} {name}" for role, name in plan.columns.items() if role not in plan.made]
    notes = [*plan.source.notes, *([f"Kept as they are: {', '.join(kept)}."] if kept else [])]
    made = [f"{what[role]} {plan.columns[role]}" for role in plan.columns if role in plan.made]
    notes += [f"Made: {', '.join(made)}."] if made else []
    if plan.several:
        notes.append(
            f"Columns {' and '.join(plan.several)} can be the features, and none are made; choose one with "
            f"--feature_column {plan.several[0]} in `select` and `open`."
        )
    if "quality" in plan.made:
        notes.append("The quality is made by rules on the text.")
        if plan.numbers:
            notes.append(
                f"Other columns of numbers: {', '.join(plan.numbers[:8])}{' ...' if len(plan.numbers) > 8 else ''}. To "
                f"go by one of them, give --quality_column to `select` and `open`."
            )
    if "id" in plan.made:
        notes.append(
            f"Ids are made of file and row, as in '{plan.source.stems[0]}:0'; --id_column names a column instead."
        )
    if plan.text.lower() != "text":
        notes.append(f"Column {plan.text!r} was taken as the text column.")
    if fitted_dim is not None and fitted_dim < dim:
        notes.append(
            f"TF-IDF of {fitted_on:,} texts has {fitted_dim} dimensions; --dim {dim} allows more than these texts have."
        )
    if fitted_dim is not None and fitted_on < counts.texts:
        notes.append(f"Features were learned on {fitted_on:,} of {counts.texts:,} texts, sampled uniformly.")
    return notes + [f"{count:,} of {counts.rows:,} rows were dropped: {reason}." for reason, count in dropped.items()]


@dataclass(frozen=True)
class _Making:
    """What the second reading adds.

    Attributes:
        features: TF-IDF, fitted, or an embedder; None: they are there. metadata: about what made them, for the shards.
        count: gives the tokens. script: name of the column for the script of each text; None: it has none.
    """

    plan: TextPlan
    features: Features | None
    metadata: bytes | None
    count: TokenCounter
    script: str | None


@dataclass
class _Totals:
    """Rows that were written, their tokens, and how many were not scored by the rules for English."""

    rows: int = 0
    tokens: int = 0
    others: int = 0


def _write(making: _Making, target: Path, work: Work) -> tuple[list[Path], _Totals]:
    """Second reading: every row with its new columns, into one file or one shard per file."""
    plan, features = making.plan, making.features
    embeds, source = isinstance(features, KeptEmbeddings), plan.source
    doing = "Embedding" if embeds else "Scoring"
    totals, done = _Totals(), 0
    began = time.monotonic()
    single = is_file(target, among=(PARQUET,))
    with ExitStack() as stack:
        place = stack.enter_context(replacing(target) if single else replacing_folder(target))
        whole = stack.enter_context(_Shard(place)) if single else None
        for number, stem in enumerate(source.stems):
            shard = stack.enter_context(_Shard(place / f"{stem}.parquet")) if whole is None else whole
            for span, batch in plan.batches(number, None, work.poll):
                rate = f", {done / (time.monotonic() - began):,.0f} a second" if done else ""
                work.report(min(1.0, done / source.rows), f"{doing} {stem} ({done:,} of {source.rows:,} rows{rate})")
                table, others = _with_columns(batch, making, number, span, work.poll)
                shard.add(_noted(table, plan, making.metadata), source.shards[number].path)
                done += batch.num_rows
                totals.rows += table.num_rows
                totals.tokens += _token_total(table, plan)
                totals.others += others
            if whole is None:
                shard.close()
        if totals.rows == 0:
            reason = "has a word that the embedder knows" if embeds else "has a word in common with another"
            raise InputError(f"no row is left to write: no text {reason}")
        if whole is not None:
            whole.close()
        written = [target] if single else [target / path.name for path in sorted(place.iterdir())]
    return written, totals


def _token_total(table: pa.Table, plan: TextPlan) -> int:
    """The sum of the length column."""
    counts = with_leaves(table, table.schema, [plan.columns["length"]])[plan.columns["length"]]
    return int(pc.sum(pc.cast(counts, pa.float64(), safe=False)).as_py() or 0)


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

    def add(self, table: pa.Table, file: str) -> None:
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


def _with_columns(batch: pa.RecordBatch, making: _Making, number: int, span: range, poll: Poll) -> tuple[pa.Table, int]:
    """The rows of `batch` that have text and features, with the columns that were missing; how many were scored by the
    rules for every language alone.

    Args:
        number: of the shard. span: where the rows stand in the source.
    """
    plan, table = making.plan, pa.Table.from_batches([batch])
    text = texts_of(plan.source.shards[number].with_leaves(batch, [plan.text]).column(plan.text))
    for name, value in plan.source.shards[number].partition.items():
        table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
    if "id" in plan.made:
        table = table.add_column(0, plan.columns["id"], plan.reader.ids(span, batch))
    table, texts = table.filter(text.is_valid()), text.drop_null().to_pylist()
    named = plan.columns if making.script is None else {**plan.columns, "script": making.script}
    roles = plan.made if making.script is None else {*plan.made, "script"}
    prepared, others = prepared_columns(texts, making.features, roles, making.count, poll=poll)
    for role, column in prepared.items():
        table = table.append_column(named[role], column)
    return (table.filter(pa.array(nonzero(prepared["feature"]))) if making.features is not None else table), others


def _noted(table: pa.Table, plan: TextPlan, metadata: bytes | None) -> pa.Table:
    """The table with notes of its columns and of what made its features; None: it keeps the note that it had."""
    notes = {**(table.schema.metadata or {}), **columns_metadata({**plan.columns, "text": plan.text})}
    return table.replace_schema_metadata(notes if metadata is None else {**notes, METADATA_KEY: metadata})
