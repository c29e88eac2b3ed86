"""Arrow columns to numpy, against Arrow's own Python values."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.corpus import decode
from datamask.corpus.decode import LengthError, feature_length, feature_rows, id_type, id_values, joined, numbers

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
    rows, null = feature_rows(column, dim)
    expected = np.array(
        [[np.nan] * dim if row is None else [np.nan if v is None else v for v in row] for row in values[low:high]],
        FLOATS[item],
    ).reshape(high - low, dim)
    assert rows.dtype == FLOATS[item] and rows.shape == expected.shape
    np.testing.assert_array_equal(rows, expected)
    missing = [row is None for row in values[low:high]]
    assert (null is None and not any(missing)) or null.tolist() == missing
    first = next((row for row in values[low:high] if row is not None), None)
    assert feature_length(column) == (dim if kind == "fixed" or first is not None else None)


def test_null_rows_that_own_values_do_not_shift_the_others():
    flat = pa.array(np.arange(8, dtype=np.float32))
    column = pa.ListArray.from_arrays(
        pa.array([0, 2, 5, 6, 8], pa.int32()), flat, mask=pa.array([False, True, True, False])
    )
    rows, null = feature_rows(column, 2)
    np.testing.assert_array_equal(rows, [[0, 1], [np.nan, np.nan], [np.nan, np.nan], [6, 7]])
    assert null.tolist() == [False, True, True, False]


@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
@pytest.mark.parametrize("item", FLOATS)
def test_complete_columns_are_views_of_their_buffer(kind, item):
    column = pa.array(np.ones((6, 3)).tolist(), list_type(kind, item, 3)).slice(1, 4)
    rows, null = feature_rows(column, 3)
    assert null is None and rows.shape == (4, 3)
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
def test_other_lengths_name_the_row(kind):
    column = pa.array([[0.0], [1.0, 2], None, [3.0, 4, 5]], list_type(kind, pa.float32(), 2)).slice(1)
    with pytest.raises(LengthError) as raised:
        feature_rows(column, 2)
    assert (raised.value.row, raised.value.length) == (2, 3)


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
