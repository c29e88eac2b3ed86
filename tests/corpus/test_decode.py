"""Arrow columns to numpy, against Arrow's own Python values."""

import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import decode
from datamask.corpus.decode import feature_lengths, feature_rows, id_type, joined, numbers
from datamask.corpus.readers.ids import id_values

FLOATS = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64}
VALUE = st.one_of(st.none(), st.floats(-60000, 60000, width=16))


def list_type(kind, item, dim):
    return {"list": pa.list_(item), "large": pa.large_list(item), "fixed": pa.list_(item, dim)}[kind]


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(["list", "large", "fixed"]), st.sampled_from(list(FLOATS)), st.integers(1, 5))
def test_rows_equal_the_python_values_with_nan_for_nulls(data, kind, item, dim):
    row = st.one_of(st.none(), st.lists(VALUE, min_size=dim, max_size=dim))
    values = data.draw(st.lists(row, max_size=12))
    low = data.draw(st.integers(0, len(values)))
    high = data.draw(st.integers(low, len(values)))
    column = pa.array(values, list_type(kind, item, dim)).slice(low, high - low)
    rows, null, other = feature_rows(column, dim)
    expected = np.array(
        [[np.nan] * dim if row is None else [np.nan if v is None else v for v in row] for row in values[low:high]],
        FLOATS[item],
    ).reshape(high - low, dim)
    assert rows.dtype == FLOATS[item] and rows.shape == expected.shape
    np.testing.assert_array_equal(rows, expected)
    missing = [row is None for row in values[low:high]]
    assert (null is None and not any(missing)) or null.tolist() == missing
    assert other is None and feature_lengths(column).tolist() == [dim] * missing.count(False)


def test_null_rows_that_own_values_do_not_shift_the_others():
    flat = pa.array(np.arange(8, dtype=np.float32))
    column = pa.ListArray.from_arrays(
        pa.array([0, 2, 5, 6, 8], pa.int32()), flat, mask=pa.array([False, True, True, False])
    )
    rows, null, _ = feature_rows(column, 2)
    np.testing.assert_array_equal(rows, [[0, 1], [np.nan, np.nan], [np.nan, np.nan], [6, 7]])
    assert null.tolist() == [False, True, True, False]


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("item", FLOATS)
def test_complete_columns_are_views_of_their_buffer(kind, item):
    column = pa.array(np.ones((6, 3)).tolist(), list_type(kind, item, 3)).slice(1, 4)
    rows, null, other = feature_rows(column, 3)
    assert null is None and other is None and rows.shape == (4, 3)
    values = np.frombuffer(column.values.buffers()[1], FLOATS[item])
    assert np.shares_memory(rows, values)


def test_every_float16_widens_to_its_exact_value():
    bits = np.arange(65536, dtype=np.uint16)
    column = pa.FixedSizeListArray.from_arrays(pa.array(bits.view(np.float16)), 64)
    out = np.empty((1024, 64), np.float32)
    out[:] = feature_rows(column, 64)[0]
    sign = np.where(bits >> 15, -1.0, 1.0)
    exponent, fraction = (bits >> 10 & 31).astype(int), (bits & 1023) / 1024
    with np.errstate(invalid="ignore"):
        exact = np.where(exponent == 0, sign * fraction * 2.0**-14, sign * (1 + fraction) * 2.0 ** (exponent - 15))
    finite = exponent < 31
    np.testing.assert_array_equal(out.ravel()[finite], exact[finite])
    assert not np.isfinite(out.ravel()[~finite]).any()


@pytest.mark.parametrize("kind", ["list", "large"])
def test_rows_of_other_lengths_are_marked(kind):
    column = pa.array([[0.0], [1.0, 2], None, [3.0, 4, 5], []], list_type(kind, pa.float32(), 2)).slice(1)
    rows, null, other = feature_rows(column, 2)
    assert null.tolist() == [False, True, False, False] and other.tolist() == [False, False, True, True]
    np.testing.assert_array_equal(rows, [[1, 2], *[[np.nan] * 2] * 3])
    assert feature_lengths(column).tolist() == [2, 3, 0]


ROWS = [[1, 2], None, [3, 4], [5]]
WRITTEN = {
    "int8": pa.array(ROWS, pa.list_(pa.int8())),
    "uint8": pa.array(ROWS, pa.large_list(pa.uint8())),
    "int64": pa.array(ROWS, pa.list_(pa.int64())),
    "decimal": pa.array(ROWS, pa.list_(pa.decimal128(5, 1))),
    "list_view": pa.array(ROWS, pa.list_view(pa.float32())),
    "large_list_view": pa.array(ROWS, pa.large_list_view(pa.float64())),
    "1 x d": pa.array([None if row is None else [row] for row in ROWS], pa.list_(pa.list_(pa.float32()))),
    "1 x d, fixed": pa.array([None if row is None else [row] for row in ROWS], pa.list_(pa.list_(pa.float32()), 1)),
    "JSON text": pa.array([None if row is None else str(row) for row in ROWS]),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("start", [0, 1])
def test_lists_of_numbers_in_every_type(written, start):
    rows, null, other = feature_rows(WRITTEN[written].slice(start), 2)
    np.testing.assert_array_equal(rows, np.array([[1, 2], [np.nan] * 2, [3, 4], [np.nan] * 2])[start:])
    assert null.tolist() == [False, True, False, False][start:]
    assert other.tolist() == [False, False, False, True][start:]


def test_of_several_lists_in_a_row_none_is_taken():
    column = pa.array([[[1, 2]], [[1, 2], [3, 4]], []], pa.list_(pa.list_(pa.float32())))
    assert feature_rows(column, 2)[2].tolist() == [False, True, True]


def test_ids_that_are_no_texts_and_no_integers_become_texts():
    known = [uuid.UUID(int=1 << 100), None, uuid.UUID(int=7)]
    column = pa.array([None if each is None else each.bytes for each in known], pa.uuid())
    assert id_type([column.type, pa.string()]) == pa.string()
    for part in (column, column.slice(2), column.slice(1)):
        expected = [None if each is None else str(each) for each in known[len(known) - len(part) :]]
        assert id_values(part, pa.string()).to_pylist() == expected
    assert id_values(pa.array([b"", b"\x00\xffa", None], pa.binary()), pa.string()).to_pylist() == ["", "00ff61", None]
    assert id_values(pa.array([10**25, -3], pa.decimal128(38, 0)), pa.string()).to_pylist() == [str(10**25), "-3"]


def test_numbers_of_any_type_with_nulls():
    for kind in (pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 1)):
        column = pa.array([9, 1, None, 3]).cast(pa.float64()).cast(kind).slice(1)
        values, null = numbers(column)
        np.testing.assert_array_equal(values, [1, np.nan, 3])
        assert null.tolist() == [False, True, False] and values.dtype == np.float64
    encoded, _ = numbers(pa.array([2**63 + 1, 5, 5], pa.uint64()).dictionary_encode())
    np.testing.assert_array_equal(encoded, [2.0**63, 5, 5])


def test_extension_types_are_read_by_their_storage():
    tensor = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), [2]),
        pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4, dtype=np.float32)), 2),
    )
    np.testing.assert_array_equal(feature_rows(tensor, 2)[0], [[0, 1], [2, 3]])


def test_one_type_for_the_ids_of_all_shards():
    text, large, view = pa.string(), pa.large_string(), pa.string_view()
    assert id_type([text, view, pa.dictionary(pa.int8(), text)]) == text
    assert id_type([text, large]) == large
    assert id_type([pa.int16(), pa.int16()]) == pa.int16()
    assert id_type([pa.int16(), pa.uint32()]) == pa.int64()
    assert id_type([pa.uint8(), pa.uint64()]) == pa.uint64()
    assert id_type([pa.int8(), pa.uint64()]) is None
    assert id_type([text, pa.int64()]) is None
    assert id_values(pa.array(["a", "b", "a"]).dictionary_encode(), text).to_pylist() == ["a", "b", "a"]


def test_joined_strings_change_to_large_offsets_before_they_overflow(monkeypatch):
    parts = [pa.array(["ab", "c"]), pa.array(["d"])]
    assert joined(parts, pa.string()).type == pa.string()
    assert joined([], pa.int8()).type == pa.int8()

    class Heavy:
        nbytes = 2**31

        def cast(self, kind):
            return parts[0].cast(kind)

    assert joined([Heavy(), parts[1]], pa.string()).type == pa.large_string()
    assert decode.joined(parts, pa.string()).to_pylist() == ["ab", "c", "d"]
