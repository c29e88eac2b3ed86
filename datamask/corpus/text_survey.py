"""The first reading of text files: are the columns there, are the ids unique, how many texts; a uniform sample of them.

Whatever is wrong with the input is found here, before minutes of scoring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.corpus.columns import TEXT_NAMES, candidates, guess
from datamask.corpus.readers.text import PACKED
from datamask.corpus.text_features import FIT_LIMIT, LONGEST
from datamask.corpus.text_shards import batches, file_schema, require_column, strings
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.storage.address import FilePath
from datamask.work.context import Work

ID, QUALITY, FEATURES, TOKENS = "chunk_id", "quality_score", "feature_arr", "n_tokens"
"""The columns that preparing makes, by the paper's names where it has one."""

TEXT = TEXT_NAMES[0]


@dataclass(frozen=True)
class TextPlan:
    """What is to be read and made.

    Attributes:
        files: in reading order; stems: a name per file, unique, for made ids and for shards.
        text_column: the column of the texts. id_column: the column that becomes `ID`; None: ids are made.
        present: which of `QUALITY`, `FEATURES` and `TOKENS` the files have already.
        quality_column: another column of a known name that holds the quality; None: `QUALITY` is made or present.
        numbers: columns that could hold the quality and are called otherwise, where `QUALITY` is made.
        guessed: whether the text column was found by another name than ``text``.
        id_guessed: whether the id column was found by its name. It is not used where its values are no ids.
    """

    files: tuple[FilePath, ...]
    stems: tuple[str, ...]
    text_column: str
    id_column: str | None
    present: frozenset[str]
    quality_column: str | None = None
    numbers: tuple[str, ...] = ()
    guessed: bool = False
    id_guessed: bool = False


@dataclass(frozen=True)
class Survey:
    """Counts of a first reading.

    Attributes:
        rows: in all files. texts: rows that hold text. ids_fit: whether every row has an id of its own.
        sample: at most `FIT_LIMIT` of those texts, uniform, in row order, each cut to `LONGEST` characters.
    """

    rows: int
    texts: int
    sample: list[str]
    ids_fit: bool = True


def plan_files(
    files: list[FilePath], text_column: str | None = None, id_column: str | None = None, poll: Poll = no_poll
) -> TextPlan:
    """Check the columns of all files by their schemas alone. text_column: None finds it by name.

    Raises:
        InputError: a file cannot be read, lacks a column, or has columns the others lack.
        Stopped: from `poll`.
    """
    schemas = [file_schema(file, poll) for file in files]
    guessed = text_column is None and TEXT not in schemas[0].names
    text_column = text_column or find_text_column(schemas[0], files[0])
    for file, schema in zip(files, schemas):
        require_column(schema, text_column, "text_column", file)
        if id_column is not None:
            require_column(schema, id_column, "id_column", file)

    def has(name: str) -> bool:
        have = [name in schema.names for schema in schemas]
        if any(have) and not all(have):
            raise InputError(
                f"{files[have.index(False)]} has no column {name!r}, which {files[have.index(True)]} has; "
                "prepare them apart"
            )
        return any(have)

    if id_column not in (None, ID) and has(ID):
        raise InputError(
            f"--id_column {id_column!r} would become {ID}, which {files[0]} already has; leave the option "
            f"out to keep {ID}, or rename that column"
        )
    present = frozenset(name for name in (QUALITY, FEATURES, TOKENS) if has(name))
    quality = None if QUALITY in present else _known_everywhere(schemas, "quality")
    if FEATURES in present and (QUALITY in present or quality is not None):
        raise InputError(f"{files[0]} has {quality or QUALITY} and {FEATURES} already: open it as it is")
    known = ID if has(ID) else _known_everywhere(schemas, "id")
    made = QUALITY not in present and quality is None
    others = candidates(schemas[0], "quality") if made else []
    return TextPlan(
        tuple(files),
        _stems(files),
        text_column,
        id_column or known,
        present,
        quality,
        tuple(name for name in others if name not in (TOKENS, id_column or known)),
        guessed,
        id_guessed=id_column is None and known not in (None, ID),
    )


def _known_everywhere(schemas: Sequence[pa.Schema], role: str) -> str | None:
    """Return the column that all files have for a role by a known name; None: there is none."""
    names = {name if how == "name" else None for name, how in (guess(schema, role) for schema in schemas)}
    return names.pop() if len(names) == 1 else None


def find_text_column(schema: pa.Schema, file: FilePath) -> str:
    """Return the column with the texts by its name: ``text``, else the only one of the names that are usual for it.

    Raises:
        InputError: there is none, or several could be meant.
    """
    if TEXT in schema.names:
        return TEXT
    fitting = candidates(schema, "text")
    named = [name for name in fitting if name in TEXT_NAMES]
    if len(named) == 1:
        return named[0]
    if named:
        raise InputError(
            f"{file} has no column called text, and several that may hold the texts ({', '.join(named)}); "
            "choose one with --text_column"
        )
    raise InputError(
        f"{file} has no column called text; name the column with the texts by --text_column (columns of strings: "
        f"{', '.join(fitting[:12]) or 'none'})"
    )


def survey(plan: TextPlan, seed: int, work: Work) -> Survey:
    """Read text and id of every row once.

    Each row draws 64 random bits by its position, and the `FIT_LIMIT` smallest are the sample, whatever the batches.

    Raises:
        InputError: no rows, no text, null or repeated ids, or a file that is cut short.
        Stopped: from `work.poll`.
    """
    random = np.random.default_rng(seed)
    keys, sample, ids, rows, texts = np.zeros(0, np.uint64), np.zeros(0, object), [], 0, 0
    ids_fit = True
    for f, file in enumerate(plan.files):
        columns = list(dict.fromkeys([plan.text_column, plan.id_column or plan.text_column]))
        for batch in batches(file, columns, work.poll):
            work.poll()
            work.report(f / len(plan.files), f"Reading {file.name} ({rows:,} rows so far)")
            column = strings(batch.column(plan.text_column), plan.text_column, file)
            if plan.id_column is not None and ids_fit:
                if plan.id_guessed and batch.column(plan.id_column).null_count:
                    ids_fit = False
                else:
                    ids.append(id_strings(batch.column(plan.id_column), plan.id_column, file).cast(pa.large_string()))
            draws = random.integers(0, 2**64, batch.num_rows, dtype=np.uint64)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            rows, texts = rows + batch.num_rows, texts + int(valid.sum())
            keys = np.concatenate([keys, draws[valid]])
            cut = pc.utf8_slice_codeunits(column.drop_null(), 0, LONGEST)
            sample = np.concatenate([sample, cut.to_numpy(zero_copy_only=False)])
            if len(keys) > 1.2 * FIT_LIMIT:
                keys, sample = _smallest(keys, sample)
    if rows == 0:
        raise InputError(f"{plan.files[0]} has no rows" if len(plan.files) == 1 else "the input files have no rows")
    if texts == 0:
        raise InputError(f"column {plan.text_column!r} holds no text in any of {rows:,} rows")
    if ids and ids_fit and plan.id_column is not None:
        if plan.id_guessed:
            ids_fit = pc.count_distinct(pa.chunked_array(ids)).as_py() == rows
        else:
            _refuse_repeated(pa.chunked_array(ids), plan.id_column)
    return Survey(rows, texts, list(_smallest(keys, sample)[1]), ids_fit)


def id_strings(column: pa.Array, name: str, file: FilePath) -> pa.Array:
    """An id column as strings.

    Raises:
        InputError: it holds nulls, or values that are no ids.
    """
    if column.null_count:
        raise InputError(
            f"--id_column {name!r} must have no nulls, {file} has some; leave the option out to have ids made"
        )
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (
        pa.types.is_integer(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
    ):
        raise InputError(f"--id_column {name!r} of {file} must hold text or whole numbers, got {column.type}")
    return column.cast(pa.string())


def _refuse_repeated(ids: pa.ChunkedArray, name: str) -> None:
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        raise InputError(
            f"--id_column {name!r} must be unique; {len(repeated):,} ids occur more than once, such as "
            f"{repeated[0]['values'].as_py()!r}; name another column or have ids made"
        )


def _smallest(keys: np.ndarray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    smallest = np.sort(np.argpartition(keys, FIT_LIMIT)[:FIT_LIMIT]) if len(keys) > FIT_LIMIT else np.arange(len(keys))
    return keys[smallest], texts[smallest]


def _stems(files: list[FilePath]) -> tuple[str, ...]:
    """Each file's name without ending; where names repeat, its path below the common folder."""
    names = [Path(file.stem).stem if file.suffix in PACKED else file.stem for file in files]
    if len(set(names)) < len(names):
        parts = [(file.resolve() if isinstance(file, Path) else file).parts for file in files]
        differ = (place for place, beside in enumerate(zip(*parts, strict=False)) if len(set(beside)) > 1)
        common = min(next(differ, len(parts[0])), *(len(path) - 1 for path in parts))
        names = ["-".join(part.replace("://", "-") for part in path[common:] if part != "/") for path in parts]
    return tuple(names)
