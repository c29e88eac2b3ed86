"""Selections from all rows in mapped files: values, memory and seconds.

    python -m benchmarks.scale --work DIR [--only NAME ...] [--limit 4G]

Each step is a command in a process of its own; what it says, and what it took, is kept in DIR/scale.json as it comes,
and a step that is there is not done again: remove its entry to measure anew. Made shards of float16 features around
clusters, every second one sorted by cluster (`benchmarks.recipes.write_shard`); memory is the anonymous memory of the
command and all its workers together, looked at twice a second. With --limit the commands run in a control group of so
much memory (Linux, as root), in which pages of mapped files count too. The steps:

- pairs-1m, pairs-10m: pair-wise similarity over 1,000,000 and 10,000,000 rows x 128
- moments-1m, moments-10m: DiSF with fixed scale over as many rows
- facility-1m: facility location of 1,000,000 x 128 in memory
- listed-1m, listed-5m, listed-10m: facility location over all rows on lists that are mapped from files
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpus import machine
from benchmarks.million import commit
from benchmarks.recipes import write_shard
from datamask.files import replacing, write_text

RESULTS = Path(__file__).parent / "results" / "scale.json"
SHARD_ROWS, DIM, CLUSTER_ROWS = 100_000, 128, 250
LOOK_SECONDS = 0.5
PAIRS = ["--objective", "pairwise", "--lamb", "0.5", "--select_ratio", "0.3"]
FACILITY = ["--objective", "facility", "--lamb", "0.5", "--select_ratio", "0.1"]


@contextlib.contextmanager
def within(limit: str) -> Iterator[None]:
    """Put this process, and what it starts, into a control group of so much memory, such as 4G; "": leave it."""
    if not limit:
        yield
        return
    first = Path("/sys/fs/cgroup/memory")  # of version 1, where it is there
    root, name = (first, "memory.limit_in_bytes") if first.is_dir() else (first.parent, "memory.max")
    group, own = root / f"datamask-{os.getpid()}", str(os.getpid())
    group.mkdir()
    try:
        (group / name).write_text(limit)
        (group / "cgroup.procs").write_text(own)
        yield
    finally:
        (root / "cgroup.procs").write_text(own)
        group.rmdir()


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


def selected(work: Path, inputs: list[str], words: list[str]) -> dict[str, Any]:
    """What `datamask select` says of itself, with its seconds and the most memory that it and its workers held."""
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
            {name: line[name] for name in ("step", "seconds", "joint", "upper_bound") if name in line} for line in lines
        ],
    }


def pairs(work: Path, rows: int) -> dict[str, Any]:
    """Pair-wise similarity."""
    return selected(work, shards(work, rows), [*PAIRS, "--scratch_dir", str(work / "scratch")])


def moments(work: Path, rows: int) -> dict[str, Any]:
    """DiSF with fixed scale."""
    words = ["--objective", "disf_fixed", *PAIRS[2:], "--scratch_dir", str(work / "scratch")]
    return selected(work, shards(work, rows), words)


def listed(work: Path, rows: int) -> dict[str, Any]:
    """Facility location on the lists of all rows, with its bound; clusters of 250 rows."""
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


def steps(work: Path) -> dict[str, Callable[[], dict[str, Any]]]:
    """The steps by name."""
    return {
        "pairs-1m": lambda: pairs(work, 1_000_000),
        "pairs-10m": lambda: pairs(work, 10_000_000),
        "moments-1m": lambda: moments(work, 1_000_000),
        "moments-10m": lambda: moments(work, 10_000_000),
        "facility-1m": lambda: selected(work, shards(work, 1_000_000), FACILITY),
        **{f"listed-{millions}m": functools.partial(listed, work, millions * 1_000_000) for millions in (1, 5, 10)},
    }


def main() -> None:
    """Do the steps that are asked for and not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for shards, runs and results, which stay")
    parser.add_argument("--only", nargs="+", default=[], help="names of steps; others are left out")
    parser.add_argument("--limit", default="", help="memory of the commands, such as 4G; it becomes part of the names")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    kept = options.work / "scale.json"
    result: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for step_name, step in steps(options.work).items():
        name = f"{step_name} in {options.limit}" if options.limit else step_name
        if name in result or (options.only and step_name not in options.only):
            continue
        with within(options.limit):
            result[name] = {"commit": commit(), "machine": machine(), **step()}
        write_text(kept, json.dumps(result, indent=1) + "\n")
        print(name, json.dumps(result[name].get("summary", result[name])), flush=True)
    write_text(options.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
