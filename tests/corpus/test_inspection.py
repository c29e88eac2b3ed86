"""A look at footers: sizes, guesses, candidates, problems."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import default_row_limit, inspect_inputs
from datamask.errors import InputError


def write(path, n=10, dim=6, **columns):
    base = {
        "chunk_id": np.arange(n),
        "quality_score": np.ones(n),
        "text": ["t"] * n,
        "feature_arr": pa.array(np.ones((n, dim)).tolist(), pa.list_(pa.float32())),
    }
    columns = {name: value for name, value in (base | columns).items() if value is not None}
    pq.write_table(pa.table(columns), path)


def test_what_the_footers_say(tmp_path):
    write(tmp_path / "b.parquet", 10)
    write(tmp_path / "a.parquet", 15)
    seen = inspect_inputs(CorpusConfig((str(tmp_path),)))
    assert seen.files == (str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"))
    assert seen.rows == 25 and seen.complete and seen.dim == 6 and seen.memory_bytes == 25 * 6 * 4
    assert seen.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert seen.row_limit == default_row_limit(6)
    assert seen.columns == {
        "id": "chunk_id",
        "feature": "feature_arr",
        "quality": "quality_score",
        "length": None,
        "text": "text",
    }
    assert seen.candidates == {
        "id": ["chunk_id", "text"],
        "quality": ["quality_score", "chunk_id"],
        "feature": ["feature_arr"],
        "length": ["chunk_id", "quality_score"],
        "text": ["text"],
    }
    assert seen.problems == () and seen.notes == () and "quality_score" in seen.schema.names


def test_a_quality_where_less_is_better_has_the_same_roles(tmp_path):
    write(tmp_path / "a.parquet")
    config = CorpusConfig((str(tmp_path),), quality_columns=(QualityColumn("quality_score", -1.0),))
    columns = inspect_inputs(config).columns
    assert set(columns) == {"id", "feature", "quality", "length", "text"} and columns["quality"] == "quality_score"


def test_one_unclear_column_does_not_hide_the_others(tmp_path):
    write(tmp_path / "a.parquet", quality_score=None, a=np.ones(10), b=np.ones(10))
    seen = inspect_inputs(CorpusConfig((str(tmp_path),)))
    assert seen.columns == {"id": "chunk_id", "feature": "feature_arr", "quality": None, "length": None, "text": "text"}
    assert len(seen.problems) == 1 and "several columns that could be the quality (a, b)" in seen.problems[0]
    assert seen.dim == 6
    chosen = inspect_inputs(CorpusConfig((str(tmp_path),), quality_columns=(QualityColumn("b"),)))
    assert chosen.columns["quality"] == "b" and chosen.problems == ()


def test_side_shards_are_looked_at_too(tmp_path):
    write(tmp_path / "main.parquet", feature_arr=None)
    seen = inspect_inputs(CorpusConfig((str(tmp_path / "main.parquet"),)))
    assert seen.columns["feature"] is None and seen.dim is None and seen.memory_bytes is None
    assert "no feature column" in seen.problems[0]
    write(tmp_path / "f.parquet", quality_score=None, dim=3)
    seen = inspect_inputs(CorpusConfig((str(tmp_path / "main.parquet"),), features=(str(tmp_path / "f.parquet"),)))
    assert seen.columns["feature"] == "feature_arr" and seen.dim == 3 and seen.problems == ()
    assert seen.candidates["feature"] == ["feature_arr"]


def test_a_limit_looks_at_fewer_files_and_says_so(tmp_path):
    for number in range(4):
        write(tmp_path / f"{number}.parquet", 10)
    seen = inspect_inputs(CorpusConfig((str(tmp_path),)), limit=3)
    assert seen.rows == 30 and len(seen.files) == 3 and not seen.complete


def test_features_without_values_are_a_problem_not_an_error(tmp_path):
    write(tmp_path / "a.parquet", feature_arr=pa.nulls(10, pa.list_(pa.float32())))
    seen = inspect_inputs(CorpusConfig((str(tmp_path),)))
    assert seen.dim is None and "null in every row" in seen.problems[0]


def test_files_that_cannot_be_opened_are_an_error(tmp_path):
    (tmp_path / "a.parquet").write_text("hello")
    with pytest.raises(InputError, match="not a parquet file"):
        inspect_inputs(CorpusConfig((str(tmp_path),)))
