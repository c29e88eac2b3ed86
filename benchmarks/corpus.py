"""How fast a corpus opens, against `pyarrow.parquet.read_table` on the same columns; how fast its graph is built.

    python -m benchmarks.corpus PATH [--rounds 7] [--neighbors 64] [--neighbor-rows N] [--output FILE.json]

PATH: shards with id, quality and feature columns. They are copied to a temporary folder with these columns alone, so
that all contestants read the same bytes; then, in turns: read_table; decoding and widening to float32; opening, which
adds checks, normalisation and the fingerprint. The median of the rounds counts; the first round warms the page cache.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig
from datamask.corpus import open_corpus
from datamask.corpus.neighbors import build_neighbors
from datamask.corpus.opening import feature_dim, open_sources, resolve_columns, row_reader
from datamask.corpus.reading import Rows, Targets, read_rows
from datamask.corpus.threads import thread_count

WANTED = {"decoding_rate_over_read_table": 0.7, "checks_over_decoding": 0.6}
"""At least, and at most."""


def seconds(call) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def copy_columns(path: str, folder: Path) -> CorpusConfig:
    """The shards with id, quality and features alone, row groups as they were."""
    config = CorpusConfig((path,))
    source = open_sources(config)["input"]
    columns = resolve_columns(config, {"input": source})
    names = [columns.id, *(quality.name for quality in columns.quality), columns.feature]
    for number, shard in enumerate(source.shards):
        schema = pa.schema([shard.schema.field(name) for name in names])
        with pq.ParquetFile(shard.path) as file, pq.ParquetWriter(folder / f"{number:05d}.parquet", schema) as writer:
            for group in range(file.num_row_groups):
                writer.write_table(file.read_row_group(group, columns=names).select(names))
    return CorpusConfig((str(folder),))


def decode(config: CorpusConfig) -> None:
    """Footers, columns, and every value in its place: all of opening up to the checks."""
    sources = open_sources(config)
    main, columns = sources["input"], resolve_columns(config, sources)
    dim = feature_dim(main, columns.feature)
    reader = replace(row_reader("input", sources, columns, dim), length=None, metadata=())
    read_rows(reader, Targets(), Rows.empty(main.rows, dim, columns))


def measure_opening(config: CorpusConfig, folder: Path, rounds: int) -> dict:
    """Medians over rounds, and the two ratios."""
    times: dict[str, list[float]] = {"read_table": [], "decode": [], "open": []}
    for _ in range(rounds + 1):
        times["read_table"].append(seconds(lambda: pq.read_table(folder)))
        times["decode"].append(seconds(lambda: decode(config)))
        times["open"].append(seconds(lambda: open_corpus(config, row_limit=2**62)))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    return {
        "seconds": {name: round(value, 4) for name, value in medians.items()},
        "all_seconds": {name: [round(value, 4) for value in values[1:]] for name, values in times.items()},
        "ratios": {
            "decoding_rate_over_read_table": round(medians["read_table"] / medians["decode"], 3),
            "checks_over_decoding": round((medians["open"] - medians["decode"]) / medians["decode"], 3),
        },
        "wanted": WANTED,
    }


def measure_neighbors(config: CorpusConfig, k: int, rows: int | None, rounds: int) -> dict:
    """The exact graph; beside it faiss's flat index where faiss is installed, in turns."""
    features = open_corpus(replace(config, rows=rows), row_limit=2**62).features
    build_neighbors(features[:2000], k)  # compilation is paid once per installation
    ours, theirs = [], []
    try:
        import faiss
    except ImportError:
        faiss = None
    for _ in range(rounds):
        ours.append(seconds(lambda: build_neighbors(features, k)))
        if faiss is not None:
            faiss.omp_set_num_threads(thread_count(16))
            index = faiss.IndexFlatIP(features.shape[1])
            index.add(features)
            theirs.append(seconds(lambda index=index: index.search(features, k)))
    result = {
        "k": k,
        "rows": len(features),
        "seconds": round(statistics.median(ours), 2),
        "all_seconds": [round(value, 2) for value in ours],
    }
    if theirs:
        result |= {
            "faiss_flat_seconds": round(statistics.median(theirs), 2),
            "faiss_all_seconds": [round(value, 2) for value in theirs],
            "faiss": faiss.__version__,
            "time_over_faiss": round(statistics.median(ours) / statistics.median(theirs), 3),
        }
    return result


def machine() -> dict:
    """What the numbers depend on."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "processor": model,
        "threads": thread_count(16),
        "load_average_at_start": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "pyarrow", "numba")},
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", help="shards with id, quality and feature columns")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--neighbors", type=int, default=64, help="list length of the graph; 0: do not build it")
    parser.add_argument("--neighbor-rows", type=int, help="build it on a uniform sample of this size")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    name = Path(options.corpus).resolve().name.removesuffix(".parquet")
    output = options.output or Path(__file__).parent / "results" / f"corpus-{name}.json"
    result: dict[str, Any] = {"corpus": name, "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        config = copy_columns(options.corpus, Path(folder))
        source = open_sources(config)["input"]
        feature = resolve_columns(config, {"input": source}).feature
        result |= {
            "rows": source.rows,
            "files": len(source.shards),
            "dim": feature_dim(source, feature),
            "feature_type": str(source.first().schema.field(feature).type),
            "opening": measure_opening(config, Path(folder), options.rounds),
        }
        if options.neighbors:
            result["neighbors"] = measure_neighbors(
                config, options.neighbors, options.neighbor_rows, max(1, options.rounds // 2)
            )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
