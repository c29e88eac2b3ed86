"""Dates and times that no page can show."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.moments import showable

FAR = 2**62


def chunked(values, kind):
    return pa.chunked_array([pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)])


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("ms"),
        pa.timestamp("us"),
        pa.timestamp("us", "Europe/Berlin"),
        pa.date32(),
        pa.date64(),
        pa.time32("s"),
        pa.time64("ns"),
        pa.duration("s"),
    ],
)
def test_what_no_calendar_shows_becomes_null(kind):
    far = 2**30 if kind.bit_width == 32 else FAR
    column, note = showable("when", chunked([0, far, -far, None], kind))
    assert column.to_pylist()[1:] == [None] * 3 and column.to_pylist()[0] is not None
    assert note.startswith("2 of 4 values in column 'when'")
    assert column.type == kind


@pytest.mark.parametrize(
    "kind, first, last",
    [
        (pa.timestamp("us"), datetime.datetime.min, datetime.datetime.max),
        (pa.date32(), datetime.date.min, datetime.date.max),
        (pa.time64("us"), datetime.time.min, datetime.time.max),
        (pa.duration("s"), datetime.timedelta(days=-999_999_999), datetime.timedelta(days=999_999_999)),
    ],
)
def test_the_first_and_last_moment_are_kept(kind, first, last):
    column, note = showable("when", pa.chunked_array([pa.array([first, last], kind)]))
    assert column.to_pylist() == [first, last] and note is None


def test_an_unknown_zone_is_shown_in_utc():
    column, note = showable("when", chunked([0, 10**15], pa.timestamp("us", "Nowhere/Zone")))
    assert column.type == pa.timestamp("us", "UTC")
    assert column.to_pylist()[0] == datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert note == "Column 'when' is in the unknown time zone 'Nowhere/Zone' and shown in UTC."


def test_nested_columns_with_such_times_are_left_out():
    far = chunked([FAR, 0], pa.timestamp("us")).chunk(0)
    near = chunked([1, 0], pa.timestamp("us")).chunk(0)
    for values, kept in ((near, True), (far, False)):
        struct = pa.chunked_array([pa.StructArray.from_arrays([values], ["t"])])
        lists = pa.chunked_array([pa.ListArray.from_arrays([0, 1, 2], values)])
        words = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, 1]), values)])
        for column in (struct, lists, words):
            shown, note = showable("nest", column)
            assert (shown is not None) == (note is None) == kept


def test_a_corpus_with_such_columns_can_be_listed(tmp_path):
    n = 4
    pq.write_table(
        pa.table(
            {
                "chunk_id": [f"c{k}" for k in range(n)],
                "quality_score": [1.0, 2, 3, 4],
                "feature_arr": pa.array([[1.0, float(k)] for k in range(n)], pa.list_(pa.float32())),
                "far": chunked([FAR] * n, pa.timestamp("us")),
                "zone": chunked([0] * n, pa.timestamp("us", "Nowhere/Zone")),
                "plain": pa.array([datetime.datetime(2020, 1, 1)] * n),
            }
        ),
        tmp_path / "a.parquet",
    )
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.metadata.to_pylist()[0] == {
        "far": None,
        "zone": datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        "plain": datetime.datetime(2020, 1, 1),
    }
    assert len([note for note in corpus.provenance.notes if "'far'" in note or "'zone'" in note]) == 2
