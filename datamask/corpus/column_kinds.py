"""What each column of the metadata is: a number, a class, or neither. Asked once per corpus, answered here alone.

`Corpus.metadata_columns` holds the answers, and whatever colours, counts, filters, groups or measures by a column asks
there. Which column plays which part (id, quality, text) is another question: see `columns`.

| kind | of cells | looked at as |
|---|---|---|
| ``number`` | whole numbers, fractions | a scale, a histogram, a mean |
| ``class`` | true or false, strings that repeat, whole numbers of at most `FEW` different values | groups |
| ``text`` | strings that hardly repeat (an id, an address), and the corpus's text column whatever it holds | nothing |
| ``other`` | dates, lists, records, and columns without a single value | nothing |

A dictionary encoding is the file's business: such a column is what its values are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

FEW = 12
"""A whole-number column with at most this many distinct values holds classes (years, labels), not a scale."""

HEAD = 20_000
"""Rows by which strings are judged, so that opening a page stays quick."""

TEXT_HEAD = 2_000
"""Rows of the corpus's text column whose values are counted: it holds the longest strings, and is no class anyway."""

Cells = Literal["whole", "fraction", "truth", "text", "other"]
"""What a cell can hold: a whole number, a number that need not be one, true or false, a string, anything else."""

Kind = Literal["number", "class", "text", "other"]


@dataclass(frozen=True)
class Column:
    """One column of the metadata.

    Attributes:
        name: as in the shards.
        cells: what its cells hold, by its type.
        kind: what it is, by its values; the table above.
        distinct: different values other than null: of whole numbers that are a class in all rows, else in the first
            rows alone; 0 where they were not counted (fractions, other).
    """

    name: str
    cells: Cells
    kind: Kind
    distinct: int = 0

    @property
    def has_numbers(self) -> bool:
        """Whether the cells are numbers, be they few enough for classes or not."""
        return self.cells in ("whole", "fraction")


def metadata_columns(table: pa.Table, text: str | None = None) -> dict[str, Column]:
    """Every column of a metadata table by its name, in the table's order.

    Takes some milliseconds per column of a million rows; `Corpus.metadata_columns` is this, once per corpus.

    Args:
        table: N rows.
        text: the column that plays the part of the text.
    """
    return {
        name: replace(_column(name, values, TEXT_HEAD), kind="text") if name == text else _column(name, values, HEAD)
        for name, values in zip(table.column_names, table.columns)
    }


def cells_of(kind: pa.DataType) -> Cells:
    """What cells of a type hold, whether dictionary-encoded or not."""
    kind = kind.value_type if pt.is_dictionary(kind) else kind
    if pt.is_integer(kind):
        return "whole"
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return "fraction"
    if pt.is_boolean(kind):
        return "truth"
    return "text" if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind) else "other"


def _column(name: str, values: pa.ChunkedArray, rows: int) -> Column:
    """A column by its type and its first `rows`."""
    cells = cells_of(values.type)
    if cells == "other" or values.null_count == len(values):
        return Column(name, cells, "other")
    if cells == "fraction":
        return Column(name, cells, "number")
    distinct = _distinct(values, rows)
    if cells == "whole":
        while distinct <= FEW and rows < len(values):
            # eight times as many rows each time: what is not few is mostly known long before the end
            rows *= 8
            distinct = _distinct(values, rows)
        return Column(name, cells, "class" if distinct <= FEW else "number", distinct)
    if cells == "truth":
        return Column(name, cells, "class", distinct)
    repeats = 0 < distinct <= max(FEW, min(rows, len(values)) // 4)
    return Column(name, cells, "class" if repeats else "text", distinct)


def _distinct(values: pa.ChunkedArray, rows: int) -> int:
    """Different values other than null in the first rows; by unique, because count_distinct knows no dictionaries."""
    return len(pc.unique(values.slice(0, rows)).drop_null())
