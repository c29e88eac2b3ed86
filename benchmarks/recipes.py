"""A recipe learned on a sample, applied to the whole corpus: what it keeps, and how fast.

    python -m benchmarks.recipes --work DIR [--rows 10000000] [--dim 128] [--shards 100] [--sample 200000]

Made shards of float16 features around clusters, every second one sorted by cluster, with two more that are kept apart
until the end. Each step's result is kept in DIR/measured.json as it comes, and a step that is there is not done again:
remove the file, or its entry, to measure anew. The steps:

- learned: pair-wise similarity solved on the sample; how many of its rows come out otherwise under its recipe
- decoded: pyarrow's own reading of the columns that `apply` needs, by as many threads
- applied: ids of all shards; the share kept beside that when learned, seconds beside those of decoding
- asked: the same rule in DuckDB; ids that differ, and how far from the threshold
- unseen: the share kept of the two shards apart
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import resource
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import machine
from benchmarks.million import commit
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.shards import open_source
from datamask.corpus.threads import thread_count
from datamask.files import replacing, write_text
from datamask.recipes import read_recipe, write_recipe
from datamask.recipes.apply import apply
from datamask.recipes.batches import Judge
from datamask.recipes.sql import duckdb_sql
from datamask.runs.execute import execute
from datamask.runs.recipe import recipe_of
from datamask.runs.store import RunStore

CLUSTERS, APART = 400, 2
NEAR = 1e-6
"""Rows whose score is this near to the threshold may come out otherwise in DuckDB."""


def write_shard(path: Path, number: int, rows: int, dim: int) -> None:
    """One shard, the same every time; every second one is sorted by cluster."""
    shared = np.random.default_rng(0)
    centres = shared.normal(size=(CLUSTERS, dim)) + 0.4
    sizes = shared.dirichlet(np.full(CLUSTERS, 0.5))
    rng = np.random.default_rng([1, number])
    of_row = rng.choice(CLUSTERS, rows, p=sizes)
    of_row = np.sort(of_row) if number % 2 else of_row
    features = (centres[of_row] + 0.8 * rng.standard_normal((rows, dim), np.float32)).astype(np.float16)
    table = pa.table(
        {
            "id": number * rows + np.arange(rows),
            "quality_score": rng.normal(size=rows) + of_row / CLUSTERS,
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), dim),
        }
    )
    with replacing(path) as part:
        pq.write_table(table, part, row_group_size=25_000)


def decoded(paths: list[Path]) -> dict[str, Any]:
    """Seconds of reading the needed columns by pyarrow alone, a shard a thread."""

    def read(path: Path) -> None:
        for _ in pq.ParquetFile(path).iter_batches(columns=["id", "quality_score", "feature_arr"], use_threads=False):
            pass

    began = time.perf_counter()
    with ThreadPoolExecutor(thread_count(len(paths))) as threads:
        list(threads.map(read, paths))
    return {"seconds": time.perf_counter() - began}


def asked(work: Path) -> dict[str, Any]:
    """The rule in DuckDB, held against the ids that `apply` wrote."""
    import duckdb

    recipe = read_recipe(work / "recipe.json")
    began = time.perf_counter()
    with duckdb.connect() as connection:
        rows = connection.execute(duckdb_sql(recipe, f"read_parquet('{work}/shards/*.parquet')")).fetchnumpy()
    seconds = time.perf_counter() - began
    applied = pa.concat_tables([pq.read_table(path) for path in (work / "ids").glob("*.ids.parquet")])
    scores = dict(zip(applied["id"].to_pylist(), applied["score"].to_pylist()))
    theirs = dict(zip(rows["id"].tolist(), rows["score"].tolist()))
    differ = set(scores) ^ set(theirs)
    tau = recipe.thresholds.tau or 0.0
    off = [abs((scores.get(name) or theirs[name]) - tau) for name in differ]
    return {
        "seconds": seconds,
        "kept": len(theirs),
        "ids_that_differ": len(differ),
        "of_them_near_the_threshold": sum(distance < NEAR for distance in off),
    }


def measure(work: Path, rows: int, dim: int, shards: int, sample: int, ratio: float = 0.3) -> dict[str, Any]:
    """All steps that are not there yet."""
    folder, apart, kept = work / "shards", work / "apart", work / "measured.json"
    folder.mkdir(parents=True, exist_ok=True)
    apart.mkdir(exist_ok=True)
    for number in range(shards + APART):
        path = (folder if number < shards else apart) / f"{number:04}.parquet"
        if not path.exists():
            write_shard(path, number, rows // shards, dim)
    result: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}

    def step(name: str, work_of_step: Callable[[], dict[str, Any]]) -> None:
        if name not in result:
            result[name] = work_of_step()
            result[name]["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            write_text(kept, json.dumps(result, indent=1) + "\n")

    def learned() -> dict[str, Any]:
        selection = SelectionConfig.from_options(objective="pairwise", select_ratio=ratio, device="cpu")
        run = RunStore(work / "runs").create(RunConfig(CorpusConfig((str(folder),), rows=sample), selection))
        execute(run)
        began = time.perf_counter()
        recipe = recipe_of(run)
        write_recipe(recipe, work / "recipe.json")
        facts = {name: recipe.learned[name] for name in ("rows", "selected", "kept", "share_kept", "otherwise")}
        return {**facts, "seconds_of_the_recipe": time.perf_counter() - began}

    def judge_of(place: Path, with_ids: bool = True) -> Judge:
        return Judge(read_recipe(work / "recipe.json"), open_source("input", [str(place)]), with_ids=with_ids)

    def applied() -> dict[str, Any]:
        shutil.rmtree(work / "ids", ignore_errors=True)
        return apply(judge_of(folder), work / "ids", "ids")

    def unseen() -> dict[str, Any]:
        shutil.rmtree(work / "unseen", ignore_errors=True)
        return apply(judge_of(apart, with_ids=False), work / "unseen", "masks")

    step("learned", learned)
    step("decoded", lambda: decoded(sorted(folder.glob("*.parquet"))))
    step("applied", applied)
    step("asked", lambda: asked(work))
    step("unseen", unseen)
    return result


def verdicts(result: dict[str, Any]) -> dict[str, Any]:
    """What the steps say together."""
    return {
        "applied_over_decoded_rate": result["decoded"]["seconds"] / result["applied"]["seconds"],
        "share_of_unseen_over_learned": result["unseen"]["share_kept"] / result["learned"]["share_kept"],
        "ids_that_differ_in_duckdb_and_are_not_near": result["asked"]["ids_that_differ"]
        - result["asked"]["of_them_near_the_threshold"],
    }


def main() -> None:
    """Make the shards, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for shards and results, which stay")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--shards", type=int, default=100)
    parser.add_argument("--sample", type=int, default=200_000)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "recipes.json")
    options = parser.parse_args()
    about = {"rows": options.rows, "dim": options.dim, "shards": options.shards, "sample": options.sample}
    result = measure(options.work, options.rows, options.dim, options.shards, options.sample)
    report = {
        "corpus": about,
        "machine": machine() | {"duckdb": importlib.metadata.version("duckdb")},
        "commit": commit(),
        "verdicts": verdicts(result),
        **result,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
