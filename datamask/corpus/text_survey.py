"""The first reading of text files: are the columns there, are the ids unique, how many texts; a uniform sample of them.

Whatever is wrong with the input is found here, before minutes of scoring.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.checks import check_unique
from datamask.corpus.columns import NAMES, TEXT_NAMES, candidates, free_name, guess, require, wrong_type
from datamask.corpus.decode import joined
from datamask.corpus.readers import Wanted
from datamask.corpus.readers.ids import plain
from datamask.corpus.readers.shard import counted_batches
from datamask.corpus.row_plan import column_id_type
from datamask.corpus.row_reader import RowReader
from datamask.corpus.shards import Source
from datamask.corpus.text_features import FIT_LIMIT, LONGEST
from datamask.errors import InputError
from datamask.polling import Poll
from datamask.work.context import Work

MADE = {"id": "chunk_id", "quality": "quality_score", "feature": "feature_arr", "length": "n_tokens"}
"""Role -> the column that preparing makes where there is none, by the paper's name where it has one."""

TEXT = TEXT_NAMES[0]

BATCH_ROWS = 1_024
"""Small, since a row may be a book."""


@dataclass(frozen=True)
class TextPlan:
    """What is to be read and made.

    Attributes:
        source: the shards. reader: of their ids.
        text: the column of the texts.
        columns: role -> the column that plays it in what is written.
        made: the roles whose column is made; the others have one, which is kept.
        several: columns of which each could hold the features.
        numbers: columns that could hold the quality and are called otherwise, where the quality is made.
    """

    source: Source
    reader: RowReader
    text: str
    columns: dict[str, str]
    made: frozenset[str]
    several: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def batches(self, shard: int, columns: list[str] | None, poll: Poll) -> Iterator[tuple[range, pa.RecordBatch]]:
        """Yield the rows of a shard, at most `BATCH_ROWS` at a time, with their numbers in the source."""
        file = self.source.shards[shard]
        for first, batch in counted_batches(file, Wanted(columns, None, BATCH_ROWS, poll), file.rows):
            yield self.source.span(shard, first, batch.num_rows), batch


@dataclass(frozen=True)
class Survey:
    """Counts of a first reading.

    Attributes:
        rows: in all files. texts: rows that hold text.
        sample: at most `FIT_LIMIT` of those texts, uniform, in row order, each cut to `LONGEST` characters.
    """

    rows: int
    texts: int
    sample: list[str]


def plan_texts(
    source: Source, text_column: str | None = None, id_column: str | None = None, make_ids: bool = False
) -> TextPlan:
    """Settle what is kept and what is made, by the schemas of all files alone.

    Args:
        text_column: None finds it by name. id_column: None finds it by name, and makes ids where there is none.

    Raises:
        InputError: a file lacks a column, or has columns the others lack, or there is nothing to make.
    """
    shards = [shard for shard in source.shards if shard.rows]
    first = shards[0]
    text = text_column or find_text_column(first.schema, first.path)
    for shard in shards:
        require(shard.schema, text, "text", shard.path)
        if id_column is not None:
            require(shard.schema, id_column, "id", shard.path)
    found: dict[str, str] = {} if id_column is None else {"id": id_column}
    several: tuple[str, ...] = ()
    for role in MADE:
        name, how = guess(first.schema, role)
        if role == "feature" and how == "several":
            several = tuple(candidates(first.schema, role))
        if (role == "id" and (make_ids or id_column)) or name is None or name == text:
            continue
        # a length may be of characters, and no unknown number is a score of texts
        if role == "feature" or (how == "name" and (role != "length" or "token" in name.lower())):
            found[role] = name
    for role in ("id", "feature"):  # what is made next to a column that is meant would be taken in its place
        wrong = None if role in found or several or (role == "id" and make_ids) else wrong_type(first.schema, role)
        if wrong is not None:
            raise InputError(f"{first.path}: {wrong}, or rename that column to have another one made")
    for role, name in found.items():
        lacking = next((shard for shard in shards if shard.schema.names.count(name) != 1), None)
        if lacking is not None:
            raise InputError(
                f"{lacking.path} has no column {name!r}, which {first.path} has for the {role}; prepare them apart"
            )
        for shard in shards:
            require(shard.schema, name, role, shard.path)
    for shard in shards:
        for role in MADE:
            name, how = guess(shard.schema, role)
            if role in ("id", "quality", "feature") and role not in found and how == "name" and not make_ids:
                raise InputError(
                    f"{first.path} has no column {name!r}, which {shard.path} has for the {role}; prepare them apart"
                )
    made = {role: free_name(name, first.schema) for role, name in MADE.items() if role not in found}
    if several:
        del made["feature"]
    if not made:
        raise InputError(f"{first.path} has {', '.join([*found.values(), *several])} already: open it as it is")
    columns = found | made
    others = [name for name in candidates(first.schema, "quality") if "quality" in made]
    others = [name for name in others if name.lower() not in (*NAMES["length"], *NAMES["id"])]
    reader = RowReader(
        source, columns["id"], column_id_type(source, columns["id"], "id" in made), made_ids="id" in made
    )
    return TextPlan(source, reader, text, columns, frozenset(made), several, tuple(others))


def find_text_column(schema: pa.Schema, path: str) -> str:
    """Return the column with the texts by its name: ``text``, else the only one of the names that are usual for it.

    Raises:
        InputError: there is none, or several could be meant.
    """
    fitting = candidates(schema, "text")
    named = [name for name in fitting if name.lower() in TEXT_NAMES]
    if named and (named[0].lower() == TEXT or len(named) == 1):
        return named[0]
    if named:
        raise InputError(
            f"{path} has no column called text, and several that may hold the texts ({', '.join(named)}); "
            "choose one with --text_column"
        )
    raise InputError(
        f"{path} has no column called text; name the column with the texts by --text_column (columns of strings: "
        f"{', '.join(fitting[:12]) or 'none'})"
    )


def survey(plan: TextPlan, seed: int, work: Work) -> Survey:
    """Read text and id of every row once.

    Each row draws 64 random bits by its position, and the `FIT_LIMIT` smallest are the sample, whatever the batches.

    Raises:
        InputError: no text, null or repeated ids, or a file that is cut short.
        Stopped: from `work.poll`.
    """
    random, total = np.random.default_rng(seed), plan.source.rows
    keys, sample, ids, rows, texts = np.zeros(0, np.uint64), np.zeros(0, object), [], 0, 0
    columns = list(dict.fromkeys([plan.text, *plan.reader.columns]))
    for number in range(len(plan.source.shards)):
        for span, batch in plan.batches(number, columns, work.poll):
            work.report(rows / total, f"Reading texts: {rows:,} of {total:,} rows")
            column = texts_of(batch.column(plan.text))
            if "id" not in plan.made:
                ids.append(plan.reader.ids(span, batch))
            draws = random.integers(0, 2**64, batch.num_rows, dtype=np.uint64)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            rows, texts = rows + batch.num_rows, texts + int(valid.sum())
            keys = np.concatenate([keys, draws[valid]])
            cut = pc.utf8_slice_codeunits(column.drop_null(), 0, LONGEST)
            sample = np.concatenate([sample, cut.to_numpy(zero_copy_only=False)])
            if len(keys) > 1.2 * FIT_LIMIT:
                keys, sample = _smallest(keys, sample)
    if texts == 0:
        raise InputError(f"column {plan.text!r} holds no text in any of {rows:,} rows")
    if ids:
        check_unique(joined(ids, ids[0].type), plan.source.place, plan.columns["id"])
    return Survey(rows, texts, list(_smallest(keys, sample)[1]))


def texts_of(column: pa.Array) -> pa.Array:
    """Return a column of texts, null where null or nothing but white space."""
    text = plain(column).cast(pa.large_string())
    blank = pc.equal(pc.utf8_length(pc.utf8_trim_whitespace(text)), 0)
    return pc.if_else(blank, pa.scalar(None, pa.large_string()), text)


def _smallest(keys: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    smallest = np.sort(np.argpartition(keys, FIT_LIMIT)[:FIT_LIMIT]) if len(keys) > FIT_LIMIT else np.arange(len(keys))
    return keys[smallest], texts[smallest]
