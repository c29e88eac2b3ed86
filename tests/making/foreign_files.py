"""Files as other programs write them, made once by those programs: `tests/corpus/foreign`.

    python -m tests.making.foreign_files     # needs polars and datasets beside the development requirements

Every one holds the same 60 rows; `plain.parquet` is written by pyarrow. `versions.json` says which versions wrote them.
What Spark and Dolma write is made here by hand, as neither can be installed beside the tests.
"""

from __future__ import annotations

import gzip
import json
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parents[1] / "corpus" / "foreign"
N, DIM = 60, 8


def rows() -> pa.Table:
    """The rows: clustered features, a score, token counts, texts, and a language."""
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(6, DIM))[np.arange(N) % 6] + 0.3 * rng.normal(size=(N, DIM))).astype(np.float32)
    return pa.table(
        {
            "id": [f"doc-{row:04d}" for row in range(N)],
            "text": [f'Text {row}, with "quotes", a comma and 字.' for row in range(N)],
            "score": rng.normal(size=N).round(6),
            "token_count": rng.integers(20, 200, N),
            "lang": ["en" if row % 3 else "de" for row in range(N)],
            "embedding": pa.array(list(features), pa.list_(pa.float32())),
        }
    )


def by_pandas(table: pa.Table) -> None:
    frame = table.to_pandas()
    shuffled = frame.sample(frac=1, random_state=0)
    shuffled.to_parquet(FOLDER / "pandas-index.parquet")  # the index is a column
    frame.to_json(FOLDER / "pandas.jsonl", orient="records", lines=True, force_ascii=False, double_precision=15)
    frame.assign(embedding=[json.dumps(each.tolist()) for each in frame.embedding]).to_csv(FOLDER / "pandas-index.csv")


def by_polars(table: pa.Table) -> None:
    import polars as pl

    frame = pl.from_arrow(table).with_columns(
        pl.col("embedding").cast(pl.Array(pl.Float32, DIM)), pl.col("lang").cast(pl.Categorical)
    )
    frame.write_parquet(FOLDER / "polars.parquet", row_group_size=7)
    frame.write_ipc(FOLDER / "polars.arrow")  # text as string views
    frame.write_ndjson(FOLDER / "polars.ndjson")


def by_duckdb(table: pa.Table) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("plain", table)
        connection.execute(f"CREATE TABLE made AS SELECT * REPLACE (embedding::FLOAT[{DIM}] AS embedding) FROM plain")
        connection.execute(f"COPY made TO '{FOLDER / 'duckdb.parquet'}' (FORMAT parquet, COMPRESSION zstd)")
        connection.execute(f"COPY made TO '{FOLDER / 'duckdb-hive'}' (FORMAT parquet, PARTITION_BY (lang))")
        connection.execute(f"COPY made TO '{FOLDER / 'duckdb.json.gz'}' (FORMAT json, COMPRESSION gzip)")


def by_datasets(table: pa.Table) -> None:
    from datasets import Dataset, DatasetDict

    dataset = Dataset(table)
    DatasetDict({"train": dataset, "test": dataset.select(range(5))}).save_to_disk(str(FOLDER / "datasets-splits"))
    dataset.save_to_disk(str(FOLDER / "datasets"), num_shards=2)
    dataset.to_parquet(str(FOLDER / "datasets.parquet"))


def as_spark(table: pa.Table) -> None:
    """A job that wrote two partitions, and the remains of one that did not end."""
    for number, start in enumerate((0, N // 2)):
        name = f"part-{number:05d}-0c2a4c5e-1111-4222-8333-444455556666.c000.snappy.parquet"
        (FOLDER / "spark").mkdir(exist_ok=True)
        pq.write_table(table.slice(start, N // 2), FOLDER / "spark" / name, compression="snappy")
        (FOLDER / "spark" / f".{name}.crc").write_bytes(b"crc\0")
    (FOLDER / "spark" / "_SUCCESS").touch()
    unfinished = FOLDER / "spark" / "_temporary" / "0"
    unfinished.mkdir(parents=True)
    pq.write_table(table.slice(0, 10), unfinished / "part-00000.parquet")


def as_dolma(table: pa.Table) -> None:
    """Documents as Dolma lays them out, what is known of each in `metadata`."""
    folder = FOLDER / "dolma" / "documents"
    folder.mkdir(parents=True)
    for number, start in enumerate((0, N // 2)):
        lines = []
        for row in table.slice(start, N // 2).to_pylist():
            known = {name: row.pop(name) for name in ("score", "token_count", "lang")}
            lines.append(json.dumps({**row, "source": "made", "added": "2024-03-01T00:00:00Z", "metadata": known}))
        with gzip.GzipFile(folder / f"{number:04d}.json.gz", "wb", mtime=0) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())


def main() -> None:
    """Make them all anew."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    table = rows()
    pq.write_table(table, FOLDER / "plain.parquet")
    for make in (by_pandas, by_polars, by_duckdb, by_datasets, as_spark, as_dolma):
        make(table)
    versions = {name: version(name) for name in ("pandas", "polars", "duckdb", "datasets", "pyarrow")}
    (FOLDER / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")


if __name__ == "__main__":
    main()
