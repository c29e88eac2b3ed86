"""CSV: a header, commas, quotes where a value needs them. Plain, gzip or zstd.

Columns are texts until a look at all rows has shown otherwise: whole numbers, numbers, or lists of numbers written
as JSON (``"[0.1, 0.2]"``, as pandas writes them), which are features. Numbers with leading zeros and hexadecimal ones,
such as ids that say 007 or 0x1f, stay texts. Empty values are null in columns of numbers and empty texts elsewhere.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from datamask.corpus.readers import text
from datamask.corpus.readers.contract import FileFacts, Reader, Skipped, Wanted
from datamask.corpus.readers.json_lines import lists_of
from datamask.errors import InputError
from datamask.polling import Poll, no_poll

MISSING = ("", "NA", "N/A", "NULL", "null", "None", "NaN", "nan")
"""What stands for no value in a column of numbers."""

_SPELLED = r"^[+-]?0[0-9xX]"
"""Whole numbers that would be written otherwise: 007 as 7, 0x1f (which pyarrow takes for a number) as 31."""

_LIST = r"^\[[-+0-9eE.,\sNaulnIifty]*\]$"
_NUMBERS = {pa.int64(), pa.float64()}
_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_UTF8 = re.compile(r"In CSV column #(\d+): Row #(\d+): .*UTF8")

_AS: dict[pa.DataType, Callable[[pa.Array], pa.Array]] = {
    pa.int64(): lambda values: pc.cast(values, pa.int64()),
    pa.float64(): lambda values: pc.cast(values, pa.float64()),
    pa.list_(pa.float64()): lists_of,
}
"""From texts without `MISSING` and without blanks at their ends to values, the narrowest type first; each raises
ArrowInvalid."""


def look(path: str, poll: Poll = no_poll, most_bytes: int | None = None, skip: bool = False) -> FileFacts:
    """Return columns and rows, by reading the file to its end, or its first bytes.

    Args:
        skip: skip rows with more or fewer values than the header, and note them.

    Raises:
        InputError: a row with more or fewer values than the header, or text that is no UTF-8.
        Stopped: from `poll`.
    """
    kinds: dict[int, pa.DataType | None] = {}
    names: list[str] = []
    rounded: set[int] = set()
    rows = total = 0
    complete, skipped = True, Skipped() if skip else None
    for batch in _texts(path, None, poll, skipped):
        poll()
        if most_bytes is not None and total > most_bytes:
            complete = False
            break
        names, rows, total = batch.schema.names, rows + batch.num_rows, total + batch.nbytes
        for place, column in enumerate(batch.columns):
            kinds[place] = _joined(kinds.get(place), column)
            if place not in rounded and kinds[place] in _NUMBERS and _rounds(column):
                rounded.add(place)
    return FileFacts(
        pa.schema([(name, kinds.get(place) or pa.string()) for place, name in enumerate(names)]),
        (rows,) if rows else (),
        total / max(rows, 1),
        complete=complete,
        rounded=frozenset(names[place] for place in rounded if kinds[place] == pa.float64()),
        skipped=skipped,
    )


def batches(path: str, facts: FileFacts, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the file, as `contract.Reader.batches`."""
    schema = (
        facts.schema if wanted.columns is None else pa.schema([facts.schema.field(name) for name in wanted.columns])
    )
    for texts in _texts(path, wanted.columns, wanted.poll, facts.skipped):
        for low in range(0, texts.num_rows, wanted.most_rows):
            part = texts.slice(low, wanted.most_rows)
            values = [
                column if field.type == pa.string() else _AS[field.type](_bare(column))
                for column, field in zip(part.columns, schema, strict=True)
            ]
            batch = pa.RecordBatch.from_arrays(values, schema=schema)
            batch.validate(full=True)
            yield batch


def _texts(path: str, columns: Sequence[str] | None, poll: Poll, skipped: Skipped | None) -> Iterator[pa.RecordBatch]:
    """The rows with every value as text; `columns` only.

    Raises:
        InputError: see `look`.
    """
    with text.opened(path, poll) as stream:
        head = stream.read(text.READ_BYTES).partition(b"\n")[0]
    if head.count(b",") >= text.MOST_COLUMNS:
        raise InputError(
            f"{path} has {head.count(b',') + 1:,} columns in its first line, more than {text.MOST_COLUMNS:,}; write "
            "wide rows as lists in one column, in JSON lines or parquet"
        )
    try:
        head.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"the header of {path} is no UTF-8; convert the file to UTF-8") from error

    def skip(row: pa.csv.InvalidRow) -> str:
        assert skipped is not None
        number = row.number or len(skipped.lines) + 1
        skipped.add(number, str(_ragged(path, number, row.expected_columns, row.actual_columns)))
        return "skip"

    try:
        with (
            text.opened(path, poll) as stream,
            pa.csv.open_csv(
                stream if skipped is None else pa.PythonFile(_WholeRows(path, stream, skipped), "r"),
                pa.csv.ReadOptions(use_threads=False, block_size=text.LONGEST),
                pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=None if skipped is None else skip),
                pa.csv.ConvertOptions(
                    default_column_type=pa.string(), include_columns=None if columns is None else list(columns)
                ),
            ) as reader,
        ):
            yield from reader
    except pa.ArrowException as error:
        raise _refusal(path, str(error)) from error


class _WholeRows(io.RawIOBase):
    """The bytes of a file up to its last whole row, wherever it is cut."""

    def __init__(self, path: str, stream: pa.NativeFile, skipped: Skipped) -> None:
        self._blocks, self._skipped = text.blocks(path, stream, skipped), skipped
        self._rows = self._waiting = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._rows and (block := next(self._blocks, None)) is not None:
            self._waiting += block
            letters = np.frombuffer(self._waiting, np.uint8)
            outside = np.cumsum(letters == ord('"')) % 2 == 0
            ends = np.flatnonzero((letters == ord("\n")) & outside)
            end = len(letters) if len(letters) > text.LONGEST else int(ends[-1]) + 1 if len(ends) else 0
            self._rows, self._waiting = self._waiting[:end], self._waiting[end:]
        if not self._rows and not self._skipped.cut:
            self._rows, self._waiting = self._waiting, b""
        part, self._rows = self._rows[:size], self._rows[size:]
        return part


def _ragged(path: str, row: int, expected: int, count: int) -> InputError:
    return InputError(
        f"{path} row {row:,} (the header is row 1) has {count:,} values, the header {expected:,}; "
        "put quotes around values that hold commas, quotes or line ends, or repair the row"
    )


def _refusal(path: str, why: str) -> InputError:
    if ragged := _ROW.search(why):
        return _ragged(path, *(int(number) for number in ragged.groups()))
    if garbled := _UTF8.search(why):
        column, row = (int(number) for number in garbled.groups())
        return InputError(
            f"{path} row {row:,} (the header is row 1), column {column + 1}, is no UTF-8; convert the file to UTF-8"
        )
    if "straddling" in why:
        return InputError(
            f"{path} has a row longer than {text.LONGEST >> 20} MiB, or a quote that never closes; "
            "repair it, or write the file as parquet"
        )
    reason = (why.splitlines() or ["no reason given"])[0].rstrip(". ")
    return InputError(f"{path} cannot be read as CSV: {reason[:200]}")


def _joined(before: pa.DataType | None, column: pa.Array) -> pa.DataType | None:
    """The type of a column by what was seen before (None: nothing) and a batch of texts; None: still nothing."""
    if before == pa.string():
        return before
    now = _kind(_bare(column).drop_null())
    if before is None or now is None or now == before:
        return now or before
    return pa.float64() if {before, now} <= _NUMBERS else pa.string()


def _rounds(column: pa.Array) -> bool:
    """Whether float64 cannot hold one of the whole numbers among texts."""
    bare = _bare(column)
    digits = bare.filter(pc.match_substring_regex(bare, f"^{text.MANY_DIGITS}$"))
    return any(text.rounds(number) for number in digits.to_pylist())


def _kind(values: pa.Array) -> pa.DataType | None:
    if not len(values):
        return None
    if pc.any(pc.match_substring_regex(values, _SPELLED)).as_py():
        return pa.string()
    for kind, converted in _AS.items():
        if pa.types.is_list(kind) and not pc.all(pc.match_substring_regex(values, _LIST)).as_py():
            continue
        try:
            converted(values)
        except pa.ArrowInvalid:
            continue
        return kind
    return pa.string()


def _bare(column: pa.Array) -> pa.Array:
    """Texts without blanks at their ends; null where one stands for no value."""
    bare = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(bare, pa.array(MISSING)), pa.scalar(None, pa.string()), bare)


CSV = Reader("CSV", text.endings(".csv"), look, batches, skips=True)
