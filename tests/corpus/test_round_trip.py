"""Whatever way a corpus is written to parquet, it opens as the same rows in the same order."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus, shards

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
NUMBERS = [*INTEGERS, pa.float16(), pa.float32(), pa.float64(), pa.decimal128(9, 3)]
FLOATS = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64}
LISTS = ["list", "large_list", "fixed_size_list"]


def feature_column(rows, kind, item):
    """Lists of `item` from an array ``(n, d)``, behind a few rows that a slice then removes."""
    rows = np.concatenate([np.zeros((2, rows.shape[1]), rows.dtype), rows])
    flat = pa.array(rows.ravel(), item)
    if kind == "fixed_size_list":
        column = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
    else:
        offsets = pa.array(np.arange(len(rows) + 1) * rows.shape[1])
        column = (
            pa.LargeListArray.from_arrays(offsets, flat)
            if kind == "large_list"
            else pa.ListArray.from_arrays(offsets.cast(pa.int32()), flat)
        )
    return column.slice(2)


def chunked(column, cuts):
    """The same values in several chunks, empty ones among them."""
    edges = [0, *sorted(cuts), len(column)]
    return pa.chunked_array([column.slice(a, b - a) for a, b in itertools.pairwise(edges)], column.type)


@st.composite
def corpora(draw):
    """(the tables of several files, how each is written, and the rows that must come out)."""
    n, dim = draw(st.integers(1, 60)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    item = draw(st.sampled_from(list(FLOATS)))
    features = (rng.normal(size=(n, dim)) * 10.0 ** rng.integers(-2, 3)).astype(FLOATS[item])
    features[np.abs(features).max(axis=1) == 0] = 1
    id_kind = draw(st.sampled_from([*INTEGERS, *STRINGS]))
    numbers = rng.permutation(100)[:n]
    ids = (
        pa.array([f"é{i}" for i in numbers], pa.string()).cast(id_kind)
        if id_kind in STRINGS
        else pa.array(numbers, id_kind)
    )
    quality = pa.array(rng.integers(0, 100, n).astype(float)).cast(draw(st.sampled_from(NUMBERS)))
    files = draw(st.integers(1, 4))
    edges = [0, *sorted(draw(st.lists(st.integers(0, n), min_size=files - 1, max_size=files - 1))), n]
    tables, options = [], []
    for low, high in itertools.pairwise(edges):
        part = slice(low, high)
        columns = {
            "note": pa.array([f"row {i}" for i in range(low, high)]),
            "chunk_id": ids[part],
            "feature_arr": feature_column(features[part], draw(st.sampled_from(LISTS)), item),
            "quality_score": quality[part],
        }
        cuts = draw(st.lists(st.integers(0, high - low), max_size=3))
        tables.append(pa.table({name: chunked(column, cuts) for name, column in columns.items()}))
        options.append(
            {
                "row_group_size": draw(st.integers(1, 40)),
                "use_dictionary": draw(st.booleans()),
                "compression": draw(st.sampled_from(["none", "snappy", "zstd"])),
                "data_page_size": draw(st.sampled_from([64, 1 << 20])),
            }
        )
    expected = features.astype(np.float32).astype(np.float64)
    return tables, options, ids, quality, expected, edges


@settings(max_examples=60, deadline=None)
@given(corpora(), st.sampled_from([1, 900, shards.BATCH_BYTES]))
def test_any_types_chunks_row_groups_and_files_give_the_same_rows(tmp_path_factory, made, batch_bytes):
    tables, options, ids, quality, features, edges = made
    folder = tmp_path_factory.mktemp("shards")
    for number, (table, how) in enumerate(zip(tables, options)):
        pq.write_table(table, folder / f"part-{number}.parquet", **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards, "BATCH_BYTES", batch_bytes)
        corpus = open_corpus(CorpusConfig((str(folder),)))
    assert corpus.ids.to_pylist() == ids.to_pylist()
    np.testing.assert_allclose(corpus.quality, [float(value) for value in quality.to_pylist()], rtol=1e-12)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.features, unit, atol=3e-7)
    assert corpus.features.dtype == np.float32 and corpus.quality.dtype == np.float64
    assert corpus.metadata.column_names == ["note"]
    assert corpus.metadata["note"].to_pylist() == [f"row {i}" for i in range(len(ids))]
    files = np.repeat(np.arange(len(tables)), np.diff(edges))
    np.testing.assert_array_equal(corpus.source_file, files)
    np.testing.assert_array_equal(corpus.source_row, np.arange(len(ids)) - np.array(edges)[files])
    # cut anew into one file, it is the same corpus by its fingerprint
    table = pa.table(
        {
            "chunk_id": ids,
            "quality_score": quality,
            "feature_arr": feature_column(features.astype(np.float32), "list", pa.float32()),
        }
    )
    pq.write_table(table, folder / "one.parquet")
    assert open_corpus(CorpusConfig((str(folder / "one.parquet"),))).fingerprint == corpus.fingerprint


@settings(max_examples=60, deadline=None)
@given(corpora(), st.integers(2, 30), st.integers(0, 5))
def test_a_sample_holds_the_same_rows_as_the_whole(tmp_path_factory, made, rows, seed):
    tables, options, _, _, _, _ = made
    folder = tmp_path_factory.mktemp("shards")
    for number, (table, how) in enumerate(zip(tables, options)):
        pq.write_table(table, folder / f"part-{number}.parquet", **how)
    whole = open_corpus(CorpusConfig((str(folder),)))
    part = open_corpus(CorpusConfig((str(folder),), rows=rows, seed=seed))
    assert len(part) == min(rows, len(whole))
    place = {value: i for i, value in enumerate(whole.ids.to_pylist())}
    where = np.array([place[value] for value in part.ids.to_pylist()])
    assert (np.diff(where) > 0).all(), "rows keep their order"
    np.testing.assert_array_equal(part.features, whole.features[where])
    np.testing.assert_array_equal(part.quality, whole.quality[where])
    np.testing.assert_array_equal(part.source_file, whole.source_file[where])
    np.testing.assert_array_equal(part.source_row, whole.source_row[where])
    assert (
        part.metadata.equals(whole.metadata.take(where).combine_chunks())
        or part.metadata.to_pylist() == whole.metadata.take(where).to_pylist()
    )
    assert part.provenance.total_rows == len(whole) and part.provenance.rows_read == len(part)
    assert (part.fingerprint == whole.fingerprint) == (len(part) == len(whole))
