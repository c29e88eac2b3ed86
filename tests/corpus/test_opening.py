"""open_corpus: what it reads, in which order, and what it says about it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import open_corpus
from datamask.errors import InputError, Stopped


def table(n=20, dim=4, seed=0, start=0, **columns):
    """A shard in the paper's format, with anything replaced or added."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, dim)).astype(np.float32)
    base = {"chunk_id": pa.array([f"c{start + i}" for i in range(n)]),
            "quality_score": pa.array(rng.uniform(size=n)),
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), dim)}
    return pa.table(base | columns)


def test_two_shards_are_read_in_order_with_unit_features(tmp_path):
    first, second = table(7), table(5, seed=1, start=7)
    pq.write_table(second, tmp_path / "b.parquet")
    pq.write_table(first, tmp_path / "a.parquet")
    corpus = open_corpus(CorpusConfig((str(tmp_path),)))
    assert corpus.ids.to_pylist() == [f"c{i}" for i in range(12)]
    raw = np.array(first["feature_arr"].to_pylist() + second["feature_arr"].to_pylist())
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(corpus.features, expected, atol=1e-6)
    expected = [*first["quality_score"].to_pylist(), *second["quality_score"].to_pylist()]
    np.testing.assert_array_equal(corpus.quality, expected)
    assert corpus.source_file.tolist() == [0] * 7 + [1] * 5
    assert corpus.source_row.tolist() == [*range(7), *range(5)]
    assert corpus.features.flags.c_contiguous and not corpus.features.flags.writeable
    assert len(corpus) == corpus.provenance.total_rows == corpus.provenance.rows_read == 12


def test_several_quality_columns_add_up_with_weights_and_stay_as_metadata(tmp_path):
    a, b = np.arange(20.0), np.arange(20.0)[::-1] ** 2
    pq.write_table(table(a=pa.array(a), b=pa.array(b)), tmp_path / "x.parquet")
    config = CorpusConfig((str(tmp_path / "x.parquet"),),
                          quality_columns=(QualityColumn("a", 2.0, "rank"), QualityColumn("b", 0.5, "z")))
    corpus = open_corpus(config)
    np.testing.assert_allclose(corpus.quality, 2 * a / 19 + 0.5 * (b - b.mean()) / b.std())
    assert {"a", "b", "quality_score"} <= set(corpus.metadata.column_names)


def test_stop_ends_opening(tmp_path):
    pq.write_table(table(), tmp_path / "x.parquet")
    with pytest.raises(Stopped):
        open_corpus(CorpusConfig((str(tmp_path),)), should_stop=lambda: True)


def test_invalid_rows_are_refused_then_dropped(tmp_path):
    features = np.ones((6, 3), np.float32)
    features[1, 2], features[3], features[4, 0] = np.nan, 0, np.inf
    pq.write_table(pa.table({"chunk_id": pa.array(range(6)), "quality_score": [1.0, 2, 3, 4, 5, None],
                             "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 3)}),
                   tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"2 rows have NaN or infinite features .*ids 1, 4; .*--drop-invalid"):
        open_corpus(CorpusConfig((str(tmp_path),)))
    corpus = open_corpus(CorpusConfig((str(tmp_path),), drop_invalid=True))
    assert corpus.ids.to_pylist() == [0, 2]
    assert sum(corpus.provenance.dropped.values()) == 4
    assert corpus.source_row.tolist() == [0, 2]
