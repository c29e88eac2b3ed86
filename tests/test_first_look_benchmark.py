"""The benchmark of first looks: its sparse shards are, at their beginning, whole ones with ids of their own."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import first_look as benchmark
from datamask.config import CorpusConfig
from datamask.corpus import first_look, open_corpus
from datamask.errors import InputError

ROWS, DIM = 30_000, 128


def test_sparse_shards_have_the_rows_of_whole_ones_and_ids_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "HEAD", 4 << 20)
    whole = tmp_path / "whole.parquet"
    benchmark.write_whole(whole, 0, ROWS, DIM)
    (tmp_path / "every").mkdir()
    for number in (1, 7):
        benchmark.write_sparse(tmp_path / "every" / f"{number}.parquet", whole, number, ROWS)
    sparse = tmp_path / "every" / "7.parquet"
    assert sparse.stat().st_size == whole.stat().st_size
    assert sparse.stat().st_blocks * 512 < whole.stat().st_size / 2
    look = first_look(CorpusConfig((str(tmp_path / "every"),)))
    assert not look.left_out and not look.sample.provenance.dropped
    assert look.sample.ids.to_pylist() == [number * ROWS + row for number in (1, 7) for row in range(2_000)]
    features = first_look(CorpusConfig((str(whole),))).sample.features
    np.testing.assert_array_equal(look.sample.features, np.concatenate([features, features]))
    with pytest.raises(InputError):
        open_corpus(CorpusConfig((str(sparse),)))


def test_what_is_measured_adds_up(tmp_path):
    result = benchmark.measure(tmp_path, shards=4, rows=3_000, dim=8, whole=2)
    assert result["rows_of_the_look"] == 8_000 and result["left_out"] == []
    assert "2,000 rows from each of 4 of 4 shards" in result["label"]
    seconds = result["seconds"]
    assert 0 < seconds["rows_and_quality"] <= seconds["map"] <= seconds["rough_frontier"]
    assert result["sample_rows_opened"] == 6_000
