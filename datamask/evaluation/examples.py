"""Examples that a person cares about, from a file: ids of a corpus's rows, features of the same model, or texts.

Loads no torch: a page reads them before anything is computed. What is done with them stands in
`datamask.analyses.ablation.compute.aiming`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from datamask.config.target import LEAST_EXAMPLES, MOST_EXAMPLES, Target, check_texts, texts_of
from datamask.corpus.beginnings import beginnings
from datamask.corpus.corpus import Corpus
from datamask.corpus.decode import NUMPY_FLOATS, feature_lengths, feature_rows, plain
from datamask.corpus.readers.kinds import is_string, value_type
from datamask.errors import InputError, StoreError
from datamask.evaluation.id_lists import TEXT_BYTES, read_ids_of, reading
from datamask.files import check_regular, read_bounded, user_path
from datamask.parquet import read_table, reason, refusing
from datamask.work.ledger import ledger


@dataclass(frozen=True)
class Examples:
    """m different examples.

    Attributes:
        name: of the file, for people.
        features: float32 ``(m, d)`` of unit length, in the corpus's own space; None: to be made from the texts.
        texts: m of them, "" where one has none; None: they are known by their features alone.
        repeated: how many of the file were the same as an earlier one.
    """

    name: str
    features: np.ndarray | None
    texts: tuple[str, ...] | None
    repeated: int = 0

    def __len__(self) -> int:
        return len(self.features) if self.features is not None else len(self.texts or ())


def target_of_file(kind: str, path: str | Path) -> Target:
    """The target of a file of examples, known by its content.

    Raises:
        InputError: it cannot be read.
    """
    return Target.examples(kind, _content(kind, path), user_path(path).name)


def _content(kind: str, path: str | Path) -> bytes:
    try:
        with reading(user_path(path)):
            return read_bounded(user_path(path), ledger().total() // TEXT_BYTES)
    except FileNotFoundError:
        raise InputError(f"--target {kind}:{path}: there is no such file") from None
    except (OSError, StoreError) as error:
        raise InputError(f"--target {kind}:{path} cannot be read: {reason(error)}") from error


def read_examples(kind: str, path: str | Path, corpus: Corpus) -> Examples:
    """The different examples of a file.

    Args:
        kind: ``ids``: a parquet or CSV file with a column of the corpus's id column's name, or only one column, or a
            text file with one id per line. ``features``: a parquet file with a column of lists of floats, named as the
            corpus's is or the only such one, and the texts where it has a column named as the corpus's is.
            ``examples``: texts, one per line, or .jsonl with ``text``.
        corpus: whose rows, or whose space, the examples are of.

    Raises:
        InputError: the file cannot be read, names rows that are not in the corpus, holds features of another dimension
            or without a direction, or too few or too many examples.
    """
    place = user_path(path)
    if kind == "ids":
        examples = _of_rows(corpus, _rows_named(place, corpus), place.name)
    elif kind == "features":
        examples = _of_features(place, corpus)
    else:
        examples = _of_texts(place)
    return check_count(examples)


def check_count(examples: Examples) -> Examples:
    """The examples, if there are neither too few nor too many.

    Raises:
        InputError: there are.
    """
    if not LEAST_EXAMPLES <= len(examples) <= MOST_EXAMPLES:
        repeated = f" ({examples.repeated:,} more repeat them)" if examples.repeated else ""
        way_out = (
            "give more examples, or use --target FILE, which takes fewer texts"
            if len(examples) < LEAST_EXAMPLES
            else "a uniform sample of them says the same"
        )
        raise InputError(
            f"--target {examples.name}: {LEAST_EXAMPLES:,} to {MOST_EXAMPLES:,} different examples are needed, half to "
            f"steer and half to evaluate, got {len(examples):,}{repeated}; {way_out}"
        )
    return examples


def distinct(features: np.ndarray, texts: tuple[str, ...] | None) -> np.ndarray:
    """int64, rising: the examples that equal no earlier one in features and text."""
    seen: dict[tuple[bytes, str], int] = {}
    for place, row in enumerate(features):
        seen.setdefault((row.tobytes(), "" if texts is None else texts[place]), place)
    return np.fromiter(seen.values(), np.int64, len(seen))


def _rows_named(path: Path, corpus: Corpus) -> np.ndarray:
    """int64: the rows that a file names, in its order."""
    ids = read_ids_of(path, corpus)
    places = pc.index_in(ids, value_set=corpus.ids)
    unknown = ids.filter(places.is_null())
    if len(unknown):
        source = corpus.provenance
        sampled = f", a sample of {source.total_rows:,}" if source.rows_read < source.total_rows else ""
        raise InputError(
            f"--target {path}: {len(unknown):,} of its {len(ids):,} ids are not in the corpus of {len(corpus):,} rows"
            f"{sampled}, such as {str(unknown[0])!r}; take them out, open {'more rows' if sampled else 'the shards'} "
            "they are in, or give their features (features:FILE.parquet)"
        )
    rows: np.ndarray = pc.drop_null(places).to_numpy().astype(np.int64)
    return rows


def _of_rows(corpus: Corpus, rows: np.ndarray, name: str) -> Examples:
    texts = None
    if corpus.texts is not None:
        texts = tuple(text or "" for text in beginnings(corpus.texts, rows).to_pylist())
    return _distinct_examples(name, corpus.features[rows], texts)


def _distinct_examples(name: str, features: np.ndarray, texts: tuple[str, ...] | None) -> Examples:
    first = distinct(features, texts)
    return Examples(
        name,
        features[first],
        None if texts is None else tuple(texts[place] for place in first),
        len(features) - len(first),
    )


def _of_features(path: Path, corpus: Corpus) -> Examples:
    try:
        check_regular(path)
        with refusing(f"--target features:{path}:", "cannot be read as parquet"), reading(path) as room:
            table = read_table(path, take=room.grow)
    except FileNotFoundError:
        raise InputError(f"--target features:{path}: there is no such file") from None
    except StoreError as error:
        raise InputError(str(error)) from error
    name = _feature_column(table, corpus.provenance.columns.get("feature"), path)
    with refusing(f"--target features:{path}: column {name!r}", "cannot be read"):
        features = _units(table[name], corpus.dim, f"--target features:{path}: column {name!r}")
    text = corpus.provenance.columns.get("text")
    texts = None
    if text in table.column_names and is_string(table.schema.field(text).type):
        with refusing(f"--target features:{path}: column {text!r}", "cannot be read"):
            texts = tuple(pc.fill_null(table[text].cast(pa.large_string()), "").to_pylist())
    return _distinct_examples(path.name, features, texts)


def _feature_column(table: pa.Table, wanted: str | None, path: Path) -> str:
    """The column of lists of floats that is named as the corpus's is, or the only one."""
    lists = [field.name for field in table.schema if _holds_features(field.type)]
    if wanted is not None and wanted in lists:
        return wanted
    if len(lists) == 1:
        return str(lists[0])
    raise InputError(
        f"--target features:{path}: a column of lists of floats is needed, named {wanted!r} as the corpus's is, or the "
        f"only such one; it has {', '.join(lists) or 'none'} among {', '.join(table.column_names)}"
    )


def _holds_features(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    listed = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    return bool(listed and kind.value_type in NUMPY_FLOATS)


def _units(column: pa.ChunkedArray, dim: int, what: str) -> np.ndarray:
    """A feature column as rows of unit length, float32 ``(m, dim)``."""
    parts = []
    for chunk in column.chunks:
        rows, _, other = feature_rows(plain(chunk), dim)
        if other is not None:
            raise InputError(
                f"{what} holds {feature_lengths(chunk.filter(pa.array(other)))[0]} values in a row, and the corpus's "
                f"features have {dim}; give features of the model that made the corpus's"
            )
        parts.append(rows.astype(np.float64))
    rows = np.concatenate([np.zeros((0, dim)), *parts])
    largest = np.abs(rows).max(axis=1, initial=0.0)
    lost = ~np.isfinite(largest) | (largest == 0)
    if lost.any():
        raise InputError(
            f"{what}: {int(lost.sum()):,} of {len(rows):,} rows have no direction (zero, null or not finite), "
            f"the first is row {int(np.argmax(lost)):,}; take them out"
        )
    # divided twice, so that no square leaves the range of float64
    rows /= largest[:, None]
    units: np.ndarray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return units


def _of_texts(path: Path) -> Examples:
    content = _content("examples", path).decode("utf-8", "replace")
    return Examples(path.name, None, tuple(check_texts(texts_of(content, str(path)), path.name)))
