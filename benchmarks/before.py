"""Facility from shards to ids by the command line: this tree against an earlier one.

    python -m benchmarks.before PATH --base TREE [--ratio 0.1] [--lamb 0.5] [--rounds 1] [--output FILE.json]

PATH: shards with id, quality and feature columns. TREE: a checkout of the earlier commit. Both trees run the same
command in turns, each with its own runs folder, so no graph is kept from run to run. The order changes with each round.
CPU seconds and the largest resident set are those of the process. All selections are judged alike, with float32
features: the mean quality of the members, and the mean similarity of the same rows (`JUDGED_ROWS` at most) to their
nearest member, each compared with every member. On both scales 0 is a random selection and 1 the best: top quality, and
what this tree selects at lambda 0.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.corpus import machine
from benchmarks.descent import nearest_members
from benchmarks.million import ROOT
from datamask.config import CorpusConfig
from datamask.corpus import open_corpus

JUDGED_ROWS = 250_000
"""At most. 20,000 of 236,007 rows tell the joint values of two selections apart to no more than 0.002."""


def selection(tree: Path, path: str, lamb: float, ratio: float) -> tuple[np.ndarray, dict[str, Any]]:
    """The row numbers that a tree's command selects, and what it took and said."""
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as folder:
        out = Path(folder) / "out.parquet"
        command = [sys.executable, "-m", "datamask", "select", path, "--objective", "facility", "--json"]
        command += ["--lamb", str(lamb), "--select_ratio", str(ratio), "--output", str(out)]
        command += ["--runs-dir", str(Path(folder) / "runs")]
        began = time.perf_counter()
        with subprocess.Popen(
            command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            said = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"the command of {tree} ended with {process.returncode}")
        summary = json.loads(said.splitlines()[-1])
        table = pq.read_table(out, columns=["source_file", "source_row"])
        facts = {
            "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "seconds": time.perf_counter() - began,
            "resident_bytes": usage.ru_maxrss * 1024,
            "gap": summary["gap"],
            "upper_bound": summary["upper_bound"],
        }
    return _numbers(path, table), facts


def _numbers(path: str, table: Any) -> np.ndarray:
    """Row numbers in the order of the shards, of selected rows."""
    files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    starts, start = {}, 0
    for file in files:
        starts[file.name] = start
        start += pq.read_metadata(file).num_rows
    names = [Path(name).name for name in table["source_file"].to_pylist()]
    rows = np.array([starts[name] for name in names]) + table["source_row"].to_numpy()
    return np.sort(rows)


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--ratio", type=float, default=0.1)
    parser.add_argument("--lamb", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    trees = {"before": options.base.resolve(), "now": ROOT}
    done: dict[str, list[tuple[np.ndarray, dict[str, Any]]]] = {name: [] for name in trees}
    for number in range(options.rounds):
        for name in sorted(trees, reverse=bool(number % 2)):
            done[name].append(selection(trees[name], options.path, options.lamb, options.ratio))
            print(name, json.dumps(done[name][-1][1]), flush=True)
    best, _ = selection(ROOT, options.path, 0.0, options.ratio)
    corpus = open_corpus(CorpusConfig((options.path,)))
    features, quality = np.asarray(corpus.features, np.float32), corpus.quality.astype(np.float64)
    rng = np.random.default_rng(0)
    judged = features[np.sort(rng.choice(len(corpus), min(JUDGED_ROWS, len(corpus)), replace=False))]
    size = len(best)
    ends = [nearest_members(judged, features[rows]).mean() for rows in (rng.permutation(len(corpus))[:size], best)]
    least, most = quality.mean(), np.sort(quality)[-size:].mean()
    report: dict[str, Any] = {
        "commits": {name: _commit_of(tree) for name, tree in trees.items()},
        "machine": machine(),
        "path": Path(options.path).name,
        "rows": len(corpus),
        "dim": corpus.dim,
        "ratio": options.ratio,
        "lamb": options.lamb,
    }
    near = {name: nearest_members(judged, features[runs[0][0]]) for name, runs in done.items()}
    for name, runs in done.items():
        shares = {
            "quality": (quality[runs[0][0]].mean() - least) / (most - least),
            "diversity": (near[name].mean() - ends[0]) / (ends[1] - ends[0]),
        }
        joint = options.lamb * shares["quality"] + (1 - options.lamb) * shares["diversity"]
        report[name] = {**shares, "joint": joint, "runs": [facts for _, facts in runs]}
    cpu = {name: statistics.median(facts["cpu_seconds"] for _, facts in runs) for name, runs in done.items()}
    report["cpu_ratio"] = cpu["now"] / cpu["before"]
    report["joint_difference"] = report["now"]["joint"] - report["before"]["joint"]
    apart = (near["now"] - near["before"]).std() / (ends[1] - ends[0]) * (1 - options.lamb)
    # of rows drawn without replacement: none left out, no error
    report["standard_error"] = apart * math.sqrt((1 - len(judged) / len(corpus)) / len(judged))
    report["judged_rows"] = len(judged)
    print(json.dumps(report, indent=1))
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _commit_of(tree: Path) -> str:
    return subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=tree, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
