"""What the estimators reach, in what time and memory, side by side in one run on one corpus.

    python -m benchmarks.engine PATH [--problems pairwise:0.3:0.5,facility:0.1:0,...] [--rows 2000,10000,0]
                                [--repeats 3] [--reinforce_steps 5000] [--limit 600] [--peer_python PYTHON]
                                [--output FILE] [--keep]

A problem is OBJECTIVE:RATIO:LAMBDA; 0 rows are all. Every contestant solves it in a process of its own, so that its
peak memory is its own; corpus, neighbor graph and anchors are made once before, in a cache. The contestants take
turns, so that what else the machine does hits all of them; one that takes longer than a tenth of the limit is measured
once. Values are exact, on the calibrated scale of the problem. A contestant that passes the limit is a row too;
REINFORCE and greedy are stopped there, and their time for all steps or picks is extrapolated and marked.

REINFORCE runs at the paper's setting and at the best of learning rate {1, 3, 10, 30} x G {32, 128, 512}, chosen by its
value after `--choose_steps` steps on `--choose_rows` rows; its clock stands while the whole corpus is valued, which the
method does not need. `--peer_python` names an interpreter with apricot-select and submodlib-py (they want old versions
of numpy). `--keep` keeps the problems of FILE.json that are not measured again.

Results: FILE.json and a table FILE.md, by default in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import contestants
from benchmarks.engine_table import table
from benchmarks.peers import PEERS, peer
from datamask.corpus.threads import thread_count

OURS = ("counterfactual", "relaxed", "greedy", "top-quality", "random", "reinforce", "reinforce-best")
KEYS = ("objective", "ratio", "lamb", "n")


def alone(task: str, spec: dict) -> dict:
    """A function of `benchmarks.contestants` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engine", spec["path"], "--one", json.dumps([task, spec])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"note": "failed: " + (done.stderr.strip().splitlines() or ["killed"])[-1][:150]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def entrants(problem: dict, options: argparse.Namespace) -> list[str]:
    """Who takes part in a problem."""
    facility = problem["objective"] == "facility"
    names = ["neighbor graph"] if facility else []
    names += [who for who in options.contestants.split(",") if who != "relaxed" or problem["objective"] != "disf"]
    if problem["objective"] == "disf":
        names.append("DiSF in blocks")
    if facility and problem["lamb"] == 0 and options.peer_python:
        names += options.peers.split(",")
    return names


def measure(problem: dict, options: argparse.Namespace, cache: str) -> dict:
    """All contestants of a problem, in turns."""
    load = [round(os.getloadavg()[0], 1)]
    spec = {**problem, "path": options.path, "cache": cache, "limit": options.limit, "steps": options.reinforce_steps}
    problem |= alone("prepare", spec)
    spec |= problem
    names = entrants(problem, options)
    if "reinforce-best" in names:
        problem["choice"] = alone("choose", {**spec, "rows": options.choose_rows, "steps": options.choose_steps})
        spec["best"] = problem["choice"]["best"]
        print(json.dumps(spec["best"]), file=sys.stderr, flush=True)
    runs: dict[str, list[dict]] = {who: [] for who in names}
    for _ in range(options.repeats):
        for who, rounds in runs.items():
            if rounds and (
                rounds[-1].get("extrapolated") or rounds[-1].get("seconds", options.limit) > options.limit / 10
            ):
                continue
            if who in PEERS:
                rounds.append(peer(who, options.peer_python, spec, options.limit))
            else:
                sampled = who.startswith(("reinforce", "greedy", "DiSF")) and options.sampled_limit
                rounds.append(alone("contest", {**spec, "who": who, "limit": sampled or options.limit}))
            print(json.dumps([who, {k: v for k, v in rounds[-1].items() if k != "curve"}]), file=sys.stderr, flush=True)
    rows = [
        {
            "who": who,
            **rounds[-1],
            **{
                f"all_{key}": [made[key] for made in rounds if key in made]
                for key in ("seconds", "seconds_bound", "cpu", "cpu_bound")
            },
        }
        for who, rounds in runs.items()
    ]
    load.append(round(os.getloadavg()[0], 1))
    return {
        **problem,
        "date": datetime.date.today().isoformat(),
        "load": load,
        "repeats": options.repeats,
        "machine": machine(),
        "rows_of_table": rows,
    }


def machine() -> dict:
    """What the numbers depend on."""
    from benchmarks import corpus

    threads = int(os.environ.get("OMP_NUM_THREADS") or thread_count(16))
    return {
        "processor": corpus.machine()["processor"],
        "torch_threads": threads,
        "graph_threads": thread_count(16),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("torch", "numpy", "numba")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--problems", default="pairwise:0.3:0.5,facility:0.1:0,facility:0.1:0.5,disf:0.3:0.5")
    parser.add_argument("--rows", default="2000,10000,0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--reinforce_steps", type=int, default=5000)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds per contestant")
    parser.add_argument("--sampled_limit", type=float, help="the same for REINFORCE and greedy; default: as --limit")
    parser.add_argument("--contestants", default=",".join(OURS))
    parser.add_argument("--choose_rows", type=int, default=2000)
    parser.add_argument("--choose_steps", type=int, default=200)
    parser.add_argument("--peers", default="apricot,submodlib")
    parser.add_argument("--peer_python")
    parser.add_argument("--output")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        task, spec = json.loads(options.one)
        print(json.dumps(getattr(contestants, task)(spec)))
        return
    name = Path(options.path.rstrip("/")).name
    output = Path(options.output or Path(__file__).parent / "results" / f"engine-{name}")
    report: dict[str, Any] = {"corpus": name, "problems": []}
    if options.keep and output.with_suffix(".json").exists():
        report["problems"] = json.loads(output.with_suffix(".json").read_text())["problems"]
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as cache:
        for rows in map(int, options.rows.split(",")):
            for text in options.problems.split(","):
                objective, ratio, lamb = text.split(":")
                measured = measure(
                    {"rows": rows, "objective": objective, "ratio": float(ratio), "lamb": float(lamb)}, options, cache
                )
                kept = [old for old in report["problems"] if any(old[key] != measured[key] for key in KEYS)]
                report["problems"] = sorted([*kept, measured], key=lambda problem: [problem[key] for key in KEYS])
                output.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
                output.with_suffix(".md").write_text(table(report))


if __name__ == "__main__":
    main()
