"""How many texts a second `prepare` embeds by a static model, against TF-IDF and against the model alone.

    python -m benchmarks.embedders --texts FOLDER --model FOLDER [--rows 20000] [--rounds 3] [--output FILE]

Each file of texts is prepared whole, with quality scores and writing, by each embedder in turn; the rate is that of the
whole command. ``embed`` is the model alone, in one call after another. Rates are texts over wall seconds, the median of
the rounds; `cpu` is seconds of the processor for a thousand texts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.corpus import machine
from datamask.corpus.embedders.model2vec import Model2Vec
from datamask.corpus.preparation import prepare_shards
from datamask.corpus.text_survey import find_text_column

NEEDED = 1_000.0
"""Texts a second that `prepare` by a static model is held to."""


def timed(work: Callable[[], object], texts: int) -> dict[str, float]:
    """Texts a second, and seconds of the processor for a thousand texts."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"texts_per_second": texts / wall, "cpu": 1000 * cpu / texts}


def measure(source: Path, model: Path, rows: int, rounds: int, work: Path) -> dict[str, Any]:
    """Rates of one file of texts, its first `rows` rows; work: an empty folder."""
    schema = pq.read_schema(source)
    table = pq.read_table(source, columns=[find_text_column(schema, source)]).slice(0, rows)
    pq.write_table(table.rename_columns(["text"]), work / "in.parquet")
    texts, embedder = table.column(0).to_pylist(), Model2Vec(model)
    step = embedder.batch
    contestants: dict[str, Callable[[], object]] = {
        "tfidf": lambda: prepare_shards([work / "in.parquet"], work / "tfidf.parquet"),
        "model2vec": lambda: prepare_shards([work / "in.parquet"], work / "static.parquet", embedder=embedder),
        "embed": lambda: [embedder.transform(texts[start : start + step]) for start in range(0, len(texts), step)],
    }
    times: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            times[name].append(timed(contestant, len(texts)))
    found: dict[str, Any] = {"rows": len(texts), "letters": round(statistics.mean(map(len, texts)))}
    for name, each in times.items():
        rates = [one["texts_per_second"] for one in each]
        found[name] = {
            "texts_per_second": round(statistics.median(rates)),
            "least": round(min(rates)),
            "cpu": round(statistics.median(one["cpu"] for one in each), 3),
        }
    found["model2vec_over_tfidf"] = round(
        found["model2vec"]["texts_per_second"] / found["tfidf"]["texts_per_second"], 2
    )
    return found


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True, help="a parquet file of texts, or a folder of them")
    parser.add_argument("--model", type=Path, required=True, help="a model2vec folder")
    parser.add_argument("--rows", type=int, default=20_000, help="of each file, the first ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/embedders.json"))
    options = parser.parse_args()
    files = sorted(options.texts.glob("*.parquet")) if options.texts.is_dir() else [options.texts]
    model = Model2Vec(options.model)
    result: dict[str, Any] = {
        "machine": machine() | {"cores": os.cpu_count()},
        "model": {"name": model.name, "digest": model.digest, "dim": model.dim},
        "needed": NEEDED,
        "files": {},
    }
    for file in files:
        with tempfile.TemporaryDirectory() as work:
            result["files"][file.stem] = measure(file, options.model, options.rows, options.rounds, Path(work))
        print(file.stem, json.dumps(result["files"][file.stem]))
    slowest = min(found["model2vec"]["least"] for found in result["files"].values())
    result |= {"slowest": slowest, "fast_enough": slowest >= NEEDED}
    options.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
