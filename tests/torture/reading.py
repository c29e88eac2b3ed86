"""An independent reading of shards, and whether an open corpus says the same: parquet straight from pyarrow, JSON lines
and CSV by the standard library, which shares no line with the program's readers."""

from __future__ import annotations

import csv
import decimal
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from datamask.corpus.corpus import Corpus
from tests.torture.contract import Finding

BEYOND = 2**53
"""Whole numbers of this size are not all floats; then only their order can be kept."""


BLOCK = 1 << 20
"""Numbers of features that are compared at a time."""

_SHEET = re.compile(r'(?:(?:"(?:[^"]|"")*"|[^",\r\n]*)(?:,|\r\n|\n|\Z))*')
"""A CSV file as RFC 4180 has it: beyond it every reader has rules of its own."""

_WHOLE = re.compile(r"[+-]?\d+")
_NONE = ("", "NA", "N/A", "NULL", "null", "None", "NaN", "nan")


class NotDefined(Exception):
    """The file has no one reading; only the program's own can be looked at."""


def read(paths: Sequence[str | Path], columns: Sequence[str]) -> dict[str, list]:
    """The values of these columns over all files, in order.

    Raises:
        ArrowException, OSError, ValueError, KeyError: pyarrow, or the standard library, says no.
        NotDefined: CSV that is none by its definition.
    """
    values: dict[str, list] = {name: [] for name in columns}
    for path in paths:
        for name, column in _reading(path)(Path(path), columns).items():
            values[name] += column
    return values


def _reading(path: str | Path) -> Callable[[Path, Sequence[str]], dict[str, list]]:
    name = str(path).removesuffix(".gz")
    if name.endswith((".jsonl", ".ndjson")):
        return _read_lines
    return _read_sheet if name.endswith(".csv") else _read_parquet


def _read_parquet(path: Path, columns: Sequence[str]) -> dict[str, list]:
    return {name: column.to_pylist() for name, column in _parquet_columns(path, columns).items()}


def _parquet_columns(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Columns, and fields inside columns that dotted names lead to."""
    top = pq.read_schema(path).names
    paths = {name: [name] if name in top else name.split(".") for name in names}
    table = pq.read_table(
        path,
        columns=[*dict.fromkeys(first for first, *_ in paths.values())],
        use_threads=False,
        page_checksum_verification=True,
    )
    table.validate(full=True)
    return {
        name: pc.struct_field(table[first], fields) if fields else table[first]
        for name, (first, *fields) in paths.items()
    }


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8").removeprefix("\ufeff")


def _read_lines(path: Path, columns: Sequence[str]) -> dict[str, list]:
    rows = [json.loads(line) for line in io.StringIO(_text(path), newline="\n") if line.strip(" \t\r\n")]
    return {name: [row.get(name) for row in rows] for name in columns}


def _read_sheet(path: Path, columns: Sequence[str]) -> dict[str, list]:
    content = _text(path)
    if not _SHEET.fullmatch(content):
        raise NotDefined(path.name)
    csv.field_size_limit(1 << 30)
    head, *rows = [row for row in csv.reader(io.StringIO(content, newline=""), strict=True) if row]
    return {name: [row[head.index(name)] for row in rows] for name in columns}


def rows_of(path: str | Path) -> int:
    """How many rows a file has; raises as `read` does."""
    if _reading(path) is _read_parquet:
        return pq.read_metadata(path).num_rows
    if _reading(path) is _read_lines:
        return len(_read_lines(Path(path), ["any"])["any"])
    return len([row for row in csv.reader(io.StringIO(_text(Path(path)), newline="")) if row]) - 1


def _numbers(values: list) -> list:
    """Numbers of texts or of JSON: whole ones where all are, and fit 64 bits; floats otherwise; None for no number."""
    values = [None if value is None or str(value).strip() in _NONE else value for value in values]
    if all(value is None or _WHOLE.fullmatch(str(value).strip()) for value in values):
        whole = [None if value is None else int(value) for value in values]
        if all(value is None or -(2**63) <= value < 2**63 for value in whole):
            return whole
    # 10**400 is no float, and an infinity like 1e400
    return [None if value is None else float(str(value)) for value in values]


class NoOtherReader(Finding):
    """What was accepted is not read by anybody else, so that there is nothing to hold it against."""


def check_same(corpus: Corpus, files: Sequence[str | Path] | None = None) -> None:
    """Everything an open corpus holds is whole, and is what the shards say.

    Args:
        files: to be read in the place of the corpus's own, which they must equal.

    Raises:
        NoOtherReader: nobody else reads the files. Finding: it is not.
    """
    for name, data in (("ids", corpus.ids), ("metadata", corpus.metadata)):
        try:
            data.validate(full=True)
            values = data.to_pylist()
            str(values).encode("utf-8", "surrogatepass")
        except (pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise Finding(
                f"accepted, but its {name} cannot be used: {type(error).__name__}: {str(error)[:300]}"
            ) from error
    if not (np.isfinite(corpus.features).all() and np.isfinite(corpus.quality).all()):
        raise Finding("accepted, but features or quality are not finite")
    lengths = np.concatenate([np.linalg.norm(block, axis=1) for _, block in _blocks(corpus.features)])
    if np.abs(lengths - 1).max() > 1e-3:
        raise Finding(f"accepted, but a feature has length {lengths[np.abs(lengths - 1).argmax()]:.6g}, not 1")
    _compare(corpus, corpus.provenance.files if files is None else files)


def _compare(corpus: Corpus, files: Sequence[str | Path]) -> None:
    roles = corpus.provenance.columns
    quality = roles["quality"][0]
    wanted = dict.fromkeys([roles["id"], quality])
    try:
        columns = read(files, list(wanted))
        starts = np.cumsum([0, *(rows_of(path) for path in files)])
        if any(_reading(path) is not _read_parquet for path in files):
            columns[quality] = _numbers(columns[quality])
        if any(_reading(path) is _read_sheet for path in files) and pa.types.is_integer(corpus.ids.type):
            columns[roles["id"]] = [int(value) for value in columns[roles["id"]]]
        # numpy's, which no NaN escapes
        difference = np.max([_furthest(corpus, number, Path(path)) for number, path in enumerate(files)])
    except NotDefined:
        return
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError, AttributeError, csv.Error) as error:
        what = f"accepted, but no other reader takes it: {type(error).__name__}: {str(error)[:300]}"
        raise NoOtherReader(what) from error
    rows = starts[corpus.source_file] + corpus.source_row
    ids = [columns[roles["id"]][row] for row in rows]
    if [str(value) for value in ids] != [str(value) for value in corpus.ids.to_pylist()]:
        raise Finding("accepted with other ids than an independent reading has")
    if len(roles["quality"]) == 1 and not roles.get("falling"):
        _compare_quality([columns[quality][row] for row in rows], corpus.quality)
    if not difference < 1e-5:
        raise Finding(f"accepted with features that differ by {difference:.3g} from those of an independent reading")


def _furthest(corpus: Corpus, file: int, path: Path) -> float:
    """The largest difference between a file's features as the corpus has them and as they are read here; NaN is one.

    A feature is thousands of numbers: nothing here makes a Python object of each, and no copy of all is made.
    """
    name = corpus.provenance.columns["feature"]
    places = np.flatnonzero(corpus.source_file == file)
    rows = corpus.source_row[places]
    if not len(rows):
        return 0.0
    if _reading(path) is _read_parquet:
        vectors = _parquet_vectors(path, name, rows)
    else:
        values = _reading(path)(path, [name])[name]
        if _reading(path) is _read_sheet:
            values = [json.loads(value or "null") for value in values]
        vectors = np.array([values[row] for row in rows], np.float64).reshape(len(rows), -1)
    worst = 0.0
    for start, block in _blocks(vectors):
        # by the largest first: squares of 1e300 are no numbers
        block /= np.abs(block).max(axis=1, keepdims=True)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        worst = np.maximum(worst, np.abs(block - corpus.features[places[start : start + len(block)]]).max())
    return float(worst)


def _parquet_vectors(path: Path, name: str, rows: np.ndarray) -> np.ndarray:
    """These rows of a column of lists of numbers, ``(len(rows), d)``.

    Raises:
        ValueError: they are not equally long.
    """
    lists = _parquet_columns(path, [name])[name].take(pa.array(rows))
    kind = lists.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return np.array(lists.to_pylist(), np.float64)  # rare, and then small
    flat = pc.list_flatten(lists)
    if flat.null_count or lists.null_count or pc.count_distinct(pc.list_value_length(lists)).as_py() > 1:
        raise ValueError(f"rows of {name!r} are no vectors of one length")
    if pa.types.is_decimal(flat.type):
        flat = flat.cast(pa.float64())
    return flat.to_numpy().reshape(len(rows), -1)


def _blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows of a matrix as float64, some at a time, each with the number of its first."""
    step = max(1, BLOCK // max(vectors.shape[1], 1))
    for start in range(0, len(vectors), step):
        yield start, vectors[start : start + step].astype(np.float64)


def check_column(corpus: Corpus, name: str) -> None:
    """A text column of the corpus reads as independently read.

    Raises:
        Finding: it does not.
    """
    files = corpus.provenance.files
    try:
        values = read(files, [name])[name]
        starts = np.cumsum([0, *(rows_of(path) for path in files)])
    except NotDefined:
        return
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError, AttributeError, csv.Error) as error:
        raise Finding(f"accepted column {name!r}, which no other reader takes: {str(error)[:300]}") from error
    expected = [values[row] for row in starts[corpus.source_file] + corpus.source_row]
    if expected != corpus.metadata[name].to_pylist():
        raise Finding(f"accepted column {name!r} with other values than an independent reading has")


def _compare_quality(values: list, quality: np.ndarray) -> None:
    if any(isinstance(value, int) and abs(value) > BEYOND for value in values):
        order = {value: place for place, value in enumerate(sorted(set(values)))}
        rank = np.unique(quality, return_inverse=True)[1]
        if [order[value] for value in values] != rank.tolist():
            raise Finding("accepted whole numbers beyond 2^53 as qualities and lost their order")
        return
    expected = np.array([float(value) for value in values])
    # pyarrow's cast of decimals may be off by the last digit
    exact = not any(isinstance(value, decimal.Decimal) for value in values)
    if not np.allclose(expected, quality, rtol=0 if exact else 1e-15, atol=0):
        worst = int(np.abs(expected - quality).argmax())
        raise Finding(f"accepted quality {quality[worst]!r} where an independent reading has {expected[worst]!r}")
