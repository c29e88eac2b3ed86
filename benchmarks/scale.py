"""Selections from all rows of corpora beyond memory: passes, values, memory and seconds, against the same in memory.

    python -m benchmarks.scale --work DIR [--only NAME ...] [--debian SHARDS]

Each step is a command in a process of its own; what it says, and what it took, is kept in DIR/scale.json as it comes,
and a step that is there is not done again: remove its entry to measure anew. Made shards of float16 features around
clusters, every second one sorted by cluster (`benchmarks.recipes.write_shard`); memory is the anonymous memory of the
command and all its workers together, looked at twice a second. The steps:

- pairs-1m, pairs-10m: pair-wise similarity over 1,000,000 and 10,000,000 rows x 128, by passes
- facility-1m: facility location of 1,000,000 x 128 in memory; blocks-1m: the same by blocks of at most 250,000 rows
- blocks-5m: 5,000,000 x 128 in 50 shards by blocks
- listed-1m, listed-5m, listed-10m: facility location over all rows on lists that are mapped from files
- greedy-1m, greedy-5m: lazy greedy over all rows at once, in memory, on the lists that blocks-1m and blocks-5m made,
  and both selections on the same sampled rows, each compared with all members
- debian, debian-alone: 63,666 x 384 in 64 blocks at lambda 0, by blocks of cells and by random blocks each alone
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import machine
from benchmarks.million import commit
from benchmarks.recipes import write_shard
from datamask.files import replacing, write_text
from datamask.learning.medoids import greedy, reverse_lists
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.partition import unit_float32

RESULTS = Path(__file__).parent / "results" / "scale.json"
SHARD_ROWS, DIM, CLUSTER_ROWS = 100_000, 128, 250
LOOK_SECONDS = 0.5
PAIRS = ["--objective", "pairwise", "--lamb", "0.5", "--select_ratio", "0.3"]
FACILITY = ["--objective", "facility", "--lamb", "0.5", "--select_ratio", "0.1"]
BLOCK_ROWS = 250_000
LISTS = "atlas-", "block-", "lists-"
"""Beginnings of the names of the tasks' files that lazy greedy needs."""
ESTIMATE_ROWS, BATCH = 10_000, 500


def shards(work: Path, rows: int) -> list[str]:
    """The first shards of the made corpus, as many as hold so many rows; written where they are not there."""
    folder = work / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number:04}.parquet" for number in range(rows // SHARD_ROWS)]
    for number, path in enumerate(paths):
        if not path.exists():
            write_shard(path, number, SHARD_ROWS, DIM)
    return [str(path) for path in paths]


def family(process: int) -> list[int]:
    """A process and all below it."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name in the parentheses may hold anything
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    members, waiting = [], [process]
    while waiting:
        members.append(waiting.pop())
        waiting += parents.get(members[-1], [])
    return members


def anonymous_bytes(process: int) -> int:
    """Memory of a process and all below it that is no part of a file."""
    total = 0
    for pid in family(process):
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Anonymous:"):
                    total += int(line.split()[1]) * 1024
        except OSError:  # it has ended meanwhile
            continue
    return total


def keep_lists(scratch: Path, folder: Path) -> None:
    """Link the files of the lists that are whole, since a run that ends removes its own."""
    for path in scratch.glob("datamask-*/blocks/*"):
        if path.name.startswith(LISTS) and not (folder / path.name).exists():
            with contextlib.suppress(FileNotFoundError):  # it went meanwhile
                os.link(path, folder / path.name)


def selected(work: Path, inputs: list[str], words: list[str], lists: Path | None = None) -> dict[str, Any]:
    """What `datamask select` says of itself, with its seconds and the most memory that it and its workers held.

    Args:
        lists: a folder where the lists are kept.
    """
    runs = work / "runs"
    command = [sys.executable, "-m", "datamask", "select", *inputs, "--output", str(work / "selection.parquet")]
    command += ["--runs_dir", str(runs), "--device", "cpu", "--json", *words]
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    # stderr is progress, and a file that nobody reads would fill up
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        most, ended = 0, threading.Event()

        def look() -> None:
            nonlocal most
            while not ended.wait(LOOK_SECONDS):
                most = max(most, anonymous_bytes(process.pid))
                if lists is not None:
                    keep_lists(work / "scratch", lists)

        watcher = threading.Thread(target=look)
        watcher.start()
        output = process.communicate()[0]
        ended.set()
        watcher.join()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    summary = json.loads(output.splitlines()[-1])
    record = json.loads((runs / summary["run_id"] / "config.json").read_text())
    lines = [json.loads(line) for line in (runs / summary["run_id"] / "metrics.jsonl").read_text().splitlines()]
    return {
        "words": words,
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "seconds_of_the_command": seconds,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "anonymous_bytes": most,
        "summary": {name: value for name, value in summary.items() if name not in ("output", "run_id")},
        "whole": record["facts"].get("whole"),
        "lines": [
            {name: line[name] for name in ("step", "seconds", "joint", "upper_bound", "pass_seconds") if name in line}
            for line in lines
        ],
    }


def pairs(work: Path, rows: int) -> dict[str, Any]:
    """Pair-wise similarity by passes, with the bound on memory that it is held to."""
    words = [*PAIRS, "--scope", "global", "--scratch_dir", str(work / "scratch"), "--block_rows", str(BLOCK_ROWS)]
    measured = selected(work, shards(work, rows), words)
    return measured | {"most_bytes_allowed": 0.6e9 + 40 * rows + 2.5 * BLOCK_ROWS * DIM * 4}


def blocks(work: Path, rows: int) -> dict[str, Any]:
    """Facility location by blocks of cells, out of core."""
    words = [*FACILITY, "--scope", "global", "--scratch_dir", str(work / "scratch"), "--block_rows", str(BLOCK_ROWS)]
    lists = work / f"lists-{rows}"
    shutil.rmtree(lists, ignore_errors=True)
    lists.mkdir()
    measured = selected(work, shards(work, rows), words, lists)
    (work / "selection.parquet").replace(lists / "selection.parquet")
    return measured


def listed(work: Path, rows: int) -> dict[str, Any]:
    """Facility location on the lists of all rows, out of core, with its bound; clusters of 250 rows."""
    folder = work / f"clustered-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    centres = np.random.default_rng(0).normal(size=(rows // CLUSTER_ROWS, DIM)).astype(np.float32) + np.float32(0.3)
    paths = [folder / f"{number:04}.parquet" for number in range(rows // SHARD_ROWS)]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        rng = np.random.default_rng([1, number])
        features = rng.standard_normal((SHARD_ROWS, DIM), np.float32) * np.float32(0.8)
        features += centres[rng.integers(0, len(centres), SHARD_ROWS)]
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        columns = {
            "id": number * SHARD_ROWS + np.arange(SHARD_ROWS),
            "quality_score": rng.normal(size=SHARD_ROWS),
            "feature_arr": pa.FixedSizeListArray.from_arrays(pa.array(features.astype(np.float16).ravel()), DIM),
        }
        with replacing(path) as part:
            pq.write_table(pa.table(columns), part, row_group_size=25_000)
    words = [*FACILITY, "--scratch_dir", str(work / "scratch")]
    return selected(work, [str(path) for path in paths], words)


def beside_greedy(work: Path, rows: int, summary: dict[str, Any]) -> dict[str, Any]:
    """What lazy greedy over all rows selects on the lists of a run by blocks, and what both selections are worth.

    Args:
        summary: of that run.
    """
    lists = work / f"lists-{rows}"
    blocks = [ArrayFile(path) for path in _in_order(lists, "block-")]
    listed = [ArrayFile(path) for path in _in_order(lists, "lists-")]
    quality = np.concatenate([block["quality"] for block in blocks]).astype(np.float64)
    place = np.empty(rows, np.int64)
    place[np.concatenate([block["rows"] for block in blocks])] = np.arange(rows)
    anchors, size = summary["anchors"], summary["selected"]
    ends = anchors["quality"], anchors["diversity"]["facility"]
    slopes = [1 / (end["best"] - end["random"]) for end in ends]
    # lambda is a half: both terms weigh the same
    bonus = (quality - quality.mean()) * (slopes[0] / slopes[1] * rows / size)
    began = time.perf_counter()
    reverse = reverse_lists(
        np.concatenate([each["positions"] for each in listed]).astype(np.int32),
        np.concatenate([each["similarities"] for each in listed]),
    )
    picks = greedy(*reverse, bonus, size, np.arange(rows))
    seconds = time.perf_counter() - began
    of_blocks = pq.read_table(lists / "selection.parquet", columns=["source_file", "source_row"])
    shard = [int(Path(name).stem) for name in of_blocks.column("source_file").to_pylist()]
    by_row = np.array(shard) * SHARD_ROWS + of_blocks.column("source_row").to_numpy()
    sample = np.sort(np.random.default_rng(0).choice(rows, ESTIMATE_ROWS, replace=False))
    features = np.concatenate([block["features"] for block in blocks])
    outcome: dict[str, Any] = {"seconds_of_greedy": seconds, "estimate_rows": ESTIMATE_ROWS}
    for name, members in (("greedy", picks), ("blocks", place[by_row])):
        nearest = nearest_members(features, sample, members)
        parts = (
            (quality[members].mean() - ends[0]["random"]) * slopes[0],
            (nearest.mean() - ends[1]["random"]) * slopes[1],
        )
        outcome[name] = {
            "quality": float(quality[members].mean()),
            "facility": float(nearest.mean()),
            "standard_error": float(nearest.std()) / math.sqrt(len(nearest)),
            "joint": float(sum(parts)) / 2,
        }
    return outcome


def _in_order(folder: Path, beginning: str) -> list[Path]:
    return sorted(folder.glob(f"{beginning}*"), key=lambda path: int(path.stem.rpartition("-")[2]))


def nearest_members(features: np.ndarray, sample: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The similarity of each of these positions to its nearest member, compared with all of them, float64 ``(n,)``.

    Args:
        features: float16 ``(N, d)``, by position.
    """
    of_members, nearest = unit_float32(features[members]), []
    for start in range(0, len(sample), BATCH):
        nearest.append((unit_float32(features[sample[start : start + BATCH]]) @ of_members.T).max(axis=1))
    return np.maximum(np.concatenate(nearest), 0).astype(np.float64)


def debian(work: Path, corpus: str, scope: str) -> dict[str, Any]:
    """64 blocks of a real corpus at lambda 0, out of core."""
    words = ["--objective", "facility", "--lamb", "0", "--select_ratio", "0.1", "--scope", scope]
    return selected(work, [corpus], [*words, "--scratch_dir", str(work / "scratch"), "--block_rows", "995"])


def steps(work: Path, corpus: str | None, result: dict[str, Any]) -> dict[str, Callable[[], dict[str, Any]]]:
    """The steps by name; `result` holds what was measured before."""
    table: dict[str, Callable[[], dict[str, Any]]] = {
        "pairs-1m": lambda: pairs(work, 1_000_000),
        "pairs-10m": lambda: pairs(work, 10_000_000),
        "facility-1m": lambda: selected(work, shards(work, 1_000_000), FACILITY),
        "blocks-1m": lambda: blocks(work, 1_000_000),
        **{f"listed-{millions}m": functools.partial(listed, work, millions * 1_000_000) for millions in (1, 5, 10)},
        "greedy-1m": lambda: beside_greedy(work, 1_000_000, result["blocks-1m"]["summary"]),
        "blocks-5m": lambda: blocks(work, 5_000_000),
        "greedy-5m": lambda: beside_greedy(work, 5_000_000, result["blocks-5m"]["summary"]),
    }
    if corpus is not None:
        table["debian"] = lambda: debian(work, corpus, "global")
        table["debian-alone"] = lambda: debian(work, corpus, "block")
    return table


def main() -> None:
    """Do the steps that are asked for and not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for shards, runs and results, which stay")
    parser.add_argument("--only", nargs="+", default=[], help="names of steps; others are left out")
    parser.add_argument("--debian", help="shards of the package descriptions, for the steps on them")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.work / "scale.json"
    result: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for name, step in steps(options.work, options.debian, result).items():
        if name in result or (options.only and name not in options.only):
            continue
        result[name] = {"commit": commit(), "machine": machine(), **step()}
        write_text(kept, json.dumps(result, indent=1) + "\n")
        print(name, json.dumps(result[name].get("summary", result[name])), flush=True)
    write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
