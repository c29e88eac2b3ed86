"""A first look: the first rows of some shards and nothing behind them, whatever the corpus's size and format."""

import csv
import json
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus import first_look, open_corpus
from datamask.corpus.readers import parquet as parquet_reader
from datamask.errors import InputError, Stopped
from datamask.work.context import Work

DIM = 6


def table(shard, rows):
    """Rows whose every value follows from the shard's number and the row's."""
    rng = np.random.default_rng(shard)
    features = rng.normal(size=(rows, DIM)).astype(np.float32)
    return pa.table(
        {
            "id": [f"s{shard}-{row}" for row in range(rows)],
            "quality": rng.uniform(size=rows),
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), DIM),
            "tokens": rng.integers(1, 500, rows),
            "source": [f"from {shard}" for _ in range(rows)],
        }
    )


def write(folder, shards, rows, **options):
    for shard in range(shards):
        pq.write_table(table(shard, rows), folder / f"shard-{shard:03}.parquet", **options)
    return CorpusConfig((str(folder),))


def expected(shards, of_rows, rows):
    return pa.concat_tables([table(shard, of_rows).slice(0, rows) for shard in shards])


def check(sample, want):
    assert sample.ids.to_pylist() == want["id"].to_pylist()
    np.testing.assert_array_equal(sample.quality, want["quality"].to_numpy())
    np.testing.assert_array_equal(sample.lengths, want["tokens"].to_numpy())
    features = np.stack(want["features"].to_pylist()).astype(np.float64)
    norms = np.linalg.norm(features, axis=1)
    np.testing.assert_allclose(sample.features, features / norms[:, None], atol=1e-6)
    np.testing.assert_allclose(sample.norms, norms, rtol=1e-6)
    assert sample.metadata["source"].to_pylist() == want["source"].to_pylist()


def test_few_large_row_groups_are_read_at_their_beginning_alone(tmp_path, monkeypatch):
    config = write(tmp_path, 3, 40_000, row_group_size=20_000)
    decoded, groups = [], set()
    inner = parquet_reader.read_batches

    def counting(path, file, **options):
        groups.update((str(path), group) for group in options["groups"])
        for batch in inner(path, file, **options):
            decoded.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(parquet_reader, "read_batches", counting)
    look = first_look(config)
    check(look.sample, expected(range(3), 40_000, 2_000))
    assert {group for _, group in groups} == {0} and len(groups) == 3
    assert sum(decoded) <= 3 * (2_000 + 250), "no more is decoded than the last batch holds"
    assert (look.shards, look.of_shards, look.rows_each, look.left_out) == (3, 3, 2_000, ())
    assert look.label == "First look: 2,000 rows from each of 3 of 3 shards, not a uniform sample"
    assert look.sample.source_row.tolist() == [*range(2_000)] * 3
    assert look.sample.provenance.rows_read == 6_000 and look.sample.provenance.total_rows == 120_000


def test_bytes_that_are_read_do_not_grow_with_the_shards(tmp_path):
    """By the system's own count of what this process has read."""
    counter = Path("/proc/self/io")

    def read_so_far():
        return int(next(line for line in counter.read_text().splitlines() if line.startswith("rchar")).split()[1])

    try:
        read_so_far()
    except OSError:
        pytest.skip("this system does not count what a process reads")
    rng = np.random.default_rng(0)
    dim, n = 256, 60_000
    features = pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=n * dim).astype(np.float32)), dim)
    path = tmp_path / "large.parquet"
    pq.write_table(
        pa.table({"id": np.arange(n), "quality": rng.uniform(size=n), "features": features}),
        path,
        row_group_size=n,
        compression="none",
    )
    size = path.stat().st_size
    before = read_so_far()
    look = first_look(CorpusConfig((str(path),)))
    taken = read_so_far() - before
    assert len(look.sample) == 2_000
    # 2 MB of features, the dictionaries and ids that stand before them, and the look for the dimensions
    assert taken < size / 4, f"{taken:,} of {size:,} bytes were read"


def test_of_many_small_shards_evenly_spaced_ones_are_looked_at(tmp_path):
    config = write(tmp_path, 150, 5)
    look = first_look(config, shards=10)
    places = [round(place * 149 / 9) for place in range(10)]
    check(look.sample, expected(places, 5, 5))
    assert (look.shards, look.of_shards) == (10, 150)
    assert look.label == "First look: up to 2,000 rows from each of 10 of 150 shards, not a uniform sample"
    assert first_look(config).shards == 64


def test_a_corpus_that_is_all_looked_at_is_the_corpus(tmp_path):
    config = write(tmp_path, 4, 50, row_group_size=50)
    look, whole = first_look(config), open_corpus(config)
    assert look.sample.fingerprint == whole.fingerprint
    assert look.sample.metadata.equals(whole.metadata)


def test_empty_shards_and_empty_row_groups_are_passed_over(tmp_path):
    write(tmp_path, 3, 20)
    pq.write_table(table(0, 20).slice(0, 0), tmp_path / "shard-001.parquet")
    look = first_look(CorpusConfig((str(tmp_path),)))
    check(look.sample, expected([0, 2], 20, 20))
    assert (look.shards, look.of_shards) == (2, 3)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_text_formats_are_read_at_their_beginning(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("datamask.corpus.first_rows.LOOK_BYTES", 16 << 20)
    for shard in range(2):
        rows = table(shard, 30_000).to_pylist()
        with (tmp_path / f"{shard}.{ending}").open("w", newline="") as file:
            if ending == "jsonl":
                file.writelines(json.dumps(row) + "\n" for row in rows)
            else:
                writer = csv.DictWriter(file, rows[0])
                writer.writeheader()
                writer.writerows(row | {"features": json.dumps(row["features"])} for row in rows)
    look = first_look(CorpusConfig((str(tmp_path),)))
    check(look.sample, expected(range(2), 30_000, 2_000))
    assert look.label.endswith("2,000 rows from each of 2 of 2 shards, not a uniform sample")


def test_a_text_file_known_in_part_gives_the_rows_that_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr("datamask.corpus.first_rows.LOOK_BYTES", 1)
    rows = table(0, 30_000).to_pylist()
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    look = first_look(CorpusConfig((str(tmp_path / "a.jsonl"),)), rows=100_000)
    n = len(look.sample)
    assert 1_000 < n < 30_000
    check(look.sample, expected([0], 30_000, n))


@pytest.mark.parametrize("damage", ["footer", "pages"])
def test_a_damaged_shard_is_left_out_with_a_sentence(tmp_path, damage):
    config = write(tmp_path, 5, 3_000, compression="none", use_dictionary=False, write_page_checksum=True)
    path = tmp_path / "shard-002.parquet"
    content = bytearray(path.read_bytes())
    if damage == "footer":
        content = content[:-200]
    else:
        content[2_000:20_000] = bytes(18_000)
    path.write_bytes(content)
    look = first_look(config)
    check(look.sample, expected([0, 1, 3, 4], 3_000, 2_000))
    assert look.shards == 4 and len(look.left_out) == 1 and "shard-002.parquet" in look.left_out[0]
    for other in (0, 1, 3, 4):
        (tmp_path / f"shard-{other:03}.parquet").unlink()
    with pytest.raises(InputError, match="shard-002"):
        first_look(config)


def test_shards_that_differ_in_their_metadata_are_brought_together(tmp_path):
    config = write(tmp_path, 2, 10)
    pq.write_table(table(1, 10).drop(["source"]), tmp_path / "shard-001.parquet")
    look = first_look(config)
    assert look.sample.metadata["source"].to_pylist() == ["from 0"] * 10 + [None] * 10


def test_rows_that_opening_refuses_are_left_out_and_counted(tmp_path):
    config = write(tmp_path, 2, 10)
    broken = table(1, 10).to_pylist()
    broken[3]["features"] = [float("nan")] * DIM
    pq.write_table(pa.Table.from_pylist(broken, schema=table(1, 10).schema), tmp_path / "shard-001.parquet")
    with pytest.raises(InputError, match="NaN"):
        open_corpus(config)
    look = first_look(config)
    assert len(look.sample) == 19 and sum(look.sample.provenance.dropped.values()) == 1


def test_columns_are_those_of_the_settings(tmp_path):
    write(tmp_path, 2, 30)
    config = CorpusConfig(
        (str(tmp_path),), quality_columns=(QualityColumn("quality", 2.0, "z"), QualityColumn("tokens", -1.0, "z"))
    )
    np.testing.assert_array_equal(first_look(config).sample.quality, open_corpus(config).quality)


def test_longer_rows_are_fewer(tmp_path, monkeypatch):
    config = write(tmp_path, 4, 400)
    monkeypatch.setattr("datamask.corpus.first_rows.ROOM", 40_000)
    look = first_look(config)
    assert 20 < look.rows_each < 400
    check(look.sample, expected(range(4), 400, look.rows_each))


def test_what_cannot_be_looked_at_is_a_sentence(tmp_path):
    config = write(tmp_path, 1, 10)
    with pytest.raises(InputError, match="--features names other files"):
        first_look(CorpusConfig(config.inputs, features=config.inputs))
    with pytest.raises(InputError, match="does not exist"):
        first_look(CorpusConfig((str(tmp_path / "none"),)))
    pq.write_table(table(0, 0), tmp_path / "shard-000.parquet")
    with pytest.raises(InputError, match="has any rows"):
        first_look(config)


def test_it_stops_when_asked_to_and_says_how_far_it_is(tmp_path):
    config = write(tmp_path, 3, 50)
    with pytest.raises(Stopped):
        first_look(config, work=Work.of(lambda: True))
    told = []
    first_look(config, work=Work(report=lambda share, what: told.append((share, what, threading.get_ident()))))
    shares = [share for share, _, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert {ident for _, _, ident in told} == {threading.get_ident()}
