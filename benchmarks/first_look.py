"""How soon there is a first look at a large corpus, against opening it.

    python -m benchmarks.first_look [--shards 300] [--rows 100000] [--dim 384] [--whole 3] [--work DIR] [--output FILE]

Made shards of one row group each. All but `--whole` of them are sparse: their footers and sizes are those of whole
files, and the beginnings of their columns are there (`HEAD` bytes), which is more than a first look reads; a reader
that went on behind them would meet zeros, which are no parquet. The whole ones are opened, with a uniform sample of
`SAMPLE` rows; that time, times shards over whole shards, is what opening all would take. Before each measurement the
system is asked to forget the files (a cold cache, as far as it obeys).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import machine
from datamask.config import CorpusConfig
from datamask.corpus import first_look, open_corpus
from datamask.dashboard.data import first_looks

HEAD = 8 << 20
"""Bytes of each column chunk that a sparse shard holds."""

SAMPLE = 20_000
CLUSTERS = 40


def shard_table(number: int, rows: int, dim: int) -> pa.Table:
    """Rows around `CLUSTERS` centres, ids that no other shard has."""
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, dim)).astype(np.float32)
    rng = np.random.default_rng(number + 1)
    of_row = rng.integers(0, CLUSTERS, rows)
    features = centres[of_row] + rng.standard_normal((rows, dim), np.float32)
    return pa.table(
        {
            "id": number * rows + np.arange(rows),
            "quality": rng.normal(size=rows) + of_row / CLUSTERS,
            "features": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), dim),
        }
    )


def write_whole(path: Path, number: int, rows: int, dim: int) -> None:
    """A whole shard; plain and without statistics, so that a copy with other ids is a matter of their bytes."""
    pq.write_table(
        shard_table(number, rows, dim),
        path,
        row_group_size=rows,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
    )


def write_sparse(path: Path, whole: Path, number: int, rows: int) -> None:
    """A shard of the same size as `whole` (number 0), with the beginnings of its columns and ids of its own."""
    with pq.ParquetFile(whole) as file:
        group = file.metadata.row_group(0)
        chunks = [group.column(place) for place in range(group.num_columns)]
        starts = [chunk.data_page_offset for chunk in chunks]
        ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    size = whole.stat().st_size
    with whole.open("rb") as source, path.open("wb") as target:
        target.truncate(size)
        parts = [(0, 4), *((start, min(end, start + HEAD)) for start, end in zip(starts, ends, strict=True))]
        for low, high in [*parts, (max(ends), size)]:
            source.seek(low)
            content = source.read(high - low)
            if low == starts[0]:
                content = renumbered(content, number, rows)
            target.seek(low)
            target.write(content)


def renumbered(content: bytes, number: int, rows: int) -> bytes:
    """The pages of a column of ids 0, 1, 2 ... with those of shard `number`, as many as the first page holds."""
    for count in (rows, 20_000, 5_000, 1_000):  # how many a page holds, the library decides
        before = np.arange(min(count, rows), dtype="<i8")
        place = content.find(before.tobytes())
        if place >= 0:
            after = (before + number * rows).tobytes()
            return content[:place] + after + content[place + len(after) :]
    raise RuntimeError("the ids are not where they were expected; is the library's way of writing pages another?")


def forget(folder: Path) -> None:
    """Ask the system to drop what it holds of these files."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(work: Path, shards: int, rows: int, dim: int, whole: int) -> dict:
    """Seconds of a first look at all shards, and of opening the whole ones."""
    every, complete = work / "every", work / "whole"
    every.mkdir()
    complete.mkdir()
    for number in range(whole):
        write_whole(complete / f"{number:04}.parquet", number, rows, dim)
    for number in range(shards):
        if number < whole:
            os.link(complete / f"{number:04}.parquet", every / f"{number:04}.parquet")
        else:
            write_sparse(every / f"{number:04}.parquet", complete / "0000.parquet", number, rows)
    forget(every)
    began = time.perf_counter()
    look = first_look(CorpusConfig((str(every),)))
    read = time.perf_counter() - began
    picture = first_looks.start(look, "of the benchmark")
    while picture.places is None and not picture.job.ended:
        time.sleep(0.01)
    mapped = time.perf_counter() - began
    picture.job.wait()
    if picture.frontier is None:
        raise RuntimeError(f"the pictures of the first look failed: {picture.job.error}")
    pictured = time.perf_counter() - began
    forget(complete)
    began = time.perf_counter()
    corpus = open_corpus(CorpusConfig((str(complete),), rows=SAMPLE))
    opened = time.perf_counter() - began
    opening = opened * shards / whole
    return {
        "label": look.label,
        "rows_of_the_look": len(look.sample),
        "left_out": list(look.left_out),
        "bytes_of_all_shards": sum(path.stat().st_size for path in every.iterdir()),
        "seconds": {
            "rows_and_quality": round(read, 2),
            "map": round(mapped, 2),
            "rough_frontier": round(pictured, 2),
            f"opening_{whole}_whole_shards": round(opened, 2),
            "opening_all_extrapolated": round(opening, 1),
        },
        "sample_rows_opened": len(corpus),
        "opening_over_first_map": round(opening / mapped, 1),
    }


def main() -> None:
    """Make the shards, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=300)
    parser.add_argument("--rows", type=int, default=100_000, help="of a shard")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--whole", type=int, default=3, help="shards that are whole, and opened")
    parser.add_argument("--work", type=Path, help="folder for the shards, which are removed; default: a temporary one")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "first-look.json")
    options = parser.parse_args()
    if not 1 <= options.whole <= options.shards:
        parser.error(f"--whole must lie between 1 and --shards ({options.shards}), got {options.whole}")
    about = {"shards": options.shards, "rows": options.rows, "dim": options.dim, "whole": options.whole}
    result = {"corpus": about, "cache": "cold, as far as the system obeys", "machine": machine()}
    folder = Path(tempfile.mkdtemp(prefix="first-look-", dir=options.work))
    try:
        result |= measure(folder, options.shards, options.rows, options.dim, options.whole)
    finally:
        shutil.rmtree(folder)
    options.output.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
