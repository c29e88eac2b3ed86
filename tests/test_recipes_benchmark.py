"""The benchmark of recipes: its shards are the same every time, its steps are done once, and its verdicts add up."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from benchmarks import recipes as benchmark


def test_what_is_measured_adds_up_and_is_measured_once(tmp_path, monkeypatch):
    result = benchmark.measure(tmp_path, rows=12_000, dim=8, shards=4, sample=4_000)
    verdicts = benchmark.verdicts(result)
    assert result["applied"]["rows"] == 12_000 and result["unseen"]["rows"] == 6_000
    assert verdicts["ids_that_differ_in_duckdb_and_are_not_near"] == 0 and result["asked"]["kept"] > 3_000
    assert abs(verdicts["share_of_unseen_over_learned"] - 1) < 0.1
    assert result["learned"]["rows"] == 4_000
    monkeypatch.setattr(benchmark, "execute", None)  # nothing is done again
    again = benchmark.measure(tmp_path, rows=12_000, dim=8, shards=4, sample=4_000)
    assert again == json.loads(json.dumps(result))


def test_shards_are_the_same_every_time(tmp_path):
    for name in ("one", "two"):
        benchmark.write_shard(tmp_path / f"{name}.parquet", 3, 100, 4)
    one, two = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("one", "two"))
    assert one.equals(two) and one["id"][0].as_py() == 300
