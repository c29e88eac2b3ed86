"""What a column is, against the definition in plain Python, on columns as awkward as shards may hold; and who asks."""

from __future__ import annotations

import datetime
import decimal
import math
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.analyses.overview.tables import first_rows
from datamask.corpus import column_kinds
from datamask.corpus.column_kinds import FEW, Column, metadata_columns
from datamask.dashboard.linked.facets import columns_of
from datamask.dashboard.map.layers import Blank, Category, Number, layer_of_column
from datamask.evaluation.measures.drift import domains, number_columns
from tests.making.pools import corpus_of

HEAD = 60
"""In the place of 20,000, so that columns of some hundred rows have rows beyond it."""

DAY = datetime.date(2024, 2, 29)
WHOLE = (pa.int8(), pa.int64(), pa.uint64(), pa.dictionary(pa.int32(), pa.int64()))
FRACTIONS = (pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.dictionary(pa.int16(), pa.float64()))
TEXTS = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
OTHERS = (pa.date32(), pa.timestamp("us", "UTC"), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.null())


def value_of(kind: pa.DataType, k: int) -> object:
    """The k-th value of a type, another one for each k up to 100."""
    if kind in WHOLE:
        return k
    if kind in FRACTIONS:
        return decimal.Decimal(k) / 4 if pa.types.is_decimal(kind) else math.nan if k == 3 else k / 4
    if kind in TEXTS:
        return f"word {k}"
    return {
        pa.bool_(): bool(k % 2),
        pa.date32(): DAY + datetime.timedelta(k),
        pa.timestamp("us", "UTC"): datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(k),
        pa.list_(pa.int64()): [k],
        pa.struct([("a", pa.int64())]): {"a": k},
        pa.null(): None,
    }[kind]


@st.composite
def columns(draw: st.DrawFn, rows: int) -> pa.ChunkedArray:
    """A column of any type: few or many values, any share of nulls, the head like the rest or not, in any chunks."""
    kind = draw(st.sampled_from([*WHOLE, *FRACTIONS, *TEXTS, pa.bool_(), *OTHERS]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    head, rest = (draw(st.sampled_from([1, 2, FEW - 1, FEW, FEW + 1, HEAD // 4, HEAD // 4 + 1, 100])) for _ in "ab")
    numbers = np.where(np.arange(rows) < HEAD, np.arange(rows) % head, np.arange(rows) % rest)
    missing = rng.random(rows) < draw(st.sampled_from([0.0, 0.0, 0.3, 1.0]))
    missing |= draw(st.booleans()) & (np.arange(rows) < HEAD) & draw(st.booleans())
    values = [None if gone else value_of(kind, int(k)) for k, gone in zip(numbers, missing)]
    if pa.types.is_dictionary(kind):
        array = pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    else:
        array = pa.array(values, kind)
    cut = draw(st.integers(0, rows))
    return pa.chunked_array([array.slice(0, cut), array.slice(cut)], kind)


def kind_by_definition(column: pa.ChunkedArray) -> str:
    values = column.to_pylist()
    known = [value for value in values if value is not None]
    if not known or column.type in OTHERS:
        return "other"
    if column.type in WHOLE:
        return "class" if len(set(known)) <= FEW else "number"
    if column.type in FRACTIONS:
        return "number"
    if column.type == pa.bool_():
        return "class"
    head = {value for value in values[:HEAD] if value is not None}
    return "class" if head and len(head) <= max(FEW, len(values[:HEAD]) // 4) else "text"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_kinds_are_those_of_the_definition_and_everybody_agrees(data):
    rows = data.draw(st.sampled_from([0, 1, 7, HEAD - 1, HEAD, HEAD + 1, 150]))
    table = pa.table({name: data.draw(columns(rows)) for name in "abc"})
    with patch.multiple(column_kinds, HEAD=HEAD, TEXT_HEAD=HEAD):
        kinds = metadata_columns(table)
        as_text = metadata_columns(table, text="b")
    assert {name: column.kind for name, column in kinds.items()} == {
        name: kind_by_definition(table[name]) for name in table.column_names
    }
    assert list(kinds) == table.column_names and all(name == column.name for name, column in kinds.items())
    assert as_text == kinds | {"b": Column("b", kinds["b"].cells, "text", kinds["b"].distinct)}
    numbers, classes = columns_of(table, kinds)
    assert [set(numbers), set(classes)] == [
        {name for name, column in kinds.items() if column.kind == kind} for kind in ("number", "class")
    ]
    for name, values in numbers.items():
        expected = [math.nan if value is None else float(value) for value in table[name].to_pylist()]
        assert values.dtype == np.float32 and np.array_equal(values, np.array(expected, np.float32), equal_nan=True)
        assert isinstance(layer_of_column(kinds[name], table[name]), Number | Blank)
    for name, (codes, names) in classes.items():
        expected = ["(none)" if value is None else str(value) for value in table[name].to_pylist()]
        assert [names[code] for code in codes] == expected
        assert isinstance(layer_of_column(kinds[name], table[name]), Category)
        assert kinds[name].distinct == len(set(table[name].to_pylist()[: counted(kinds[name])]) - {None})


def counted(column: Column) -> int | None:
    """How many rows the distinct values are of; None: all."""
    return None if column.cells == "whole" else HEAD


def test_few_whole_numbers_are_few_in_all_rows():
    """The head alone says classes; the thirteenth value is the very last."""
    rows = column_kinds.HEAD + 5
    few, many = np.arange(rows) % FEW, np.arange(rows) % FEW
    many[-1] = 99
    kinds = metadata_columns(pa.table({"few": few, "many": many}))
    assert kinds == {"few": Column("few", "whole", "class", FEW), "many": Column("many", "whole", "number", FEW + 1)}


def test_values_that_begin_behind_the_head_count():
    rows = column_kinds.HEAD + 50
    late = np.where(np.arange(rows) < column_kinds.HEAD, None, np.arange(rows))
    table = pa.table({"late": pa.array(late, pa.float64()), "flag": pa.array([None] * (rows - 1) + [True])})
    assert [column.kind for column in metadata_columns(table).values()] == ["number", "class"]


def test_a_corpus_is_asked_once(rng):
    corpus = corpus_of(rng.normal(size=(40, 3)), year=np.arange(40) % 3, text=["same words"] * 40)
    with patch("datamask.corpus.corpus.metadata_columns", wraps=metadata_columns) as count:
        first = corpus.metadata_columns
        assert corpus.metadata_columns is first
    assert count.call_count == 1
    assert {name: column.kind for name, column in first.items()} == {"year": "class", "text": "text"}


def test_what_is_measured_and_tabled_goes_by_what_cells_hold(rng):
    """Few years are classes to look at, and still have a mean; fifty words are levels, wherever the text is."""
    n = 400
    years = pa.array(2000 + np.arange(n) % 5)
    corpus = corpus_of(
        rng.normal(size=(n, 3)),
        year=years,
        coded=years.dictionary_encode(),
        price=pa.array([decimal.Decimal(k % 7) for k in range(n)], pa.decimal128(5, 1)),
        flag=pa.array(np.arange(n) % 3 == 0),
        level=[f"l{k % 50}" for k in range(n)],
        words=[f"l{k % 51}" for k in range(n)],
        day=pa.array([DAY] * n),
    )
    assert [name for name, _ in number_columns(corpus)] == ["quality", "year", "coded", "price"]
    measured = dict(number_columns(corpus))
    assert np.array_equal(measured["coded"], measured["year"])
    assert measured["price"].tolist() == [k % 7 for k in range(n)]
    assert [name for name, _, _ in domains(corpus)] == ["flag", "level"]
    table = first_rows(corpus)
    assert table["year"].tolist() == years.to_pylist()[:100]
    assert table["price"].sum() == pytest.approx(sum(k % 7 for k in range(100)))
    assert table["flag"][0] == "True" and table["day"][0] == "2024-02-29"
