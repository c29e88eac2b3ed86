"""What the estimators reach, in what time and memory, side by side in one run on one corpus.

    python -m benchmarks.engine PATH [--problems pairwise:0.3:0.5,facility:0.1:0] [--rows 10000,0] [--repeats 3]
                                [--reinforce_steps 5000] [--limit 600] [--peer_python PYTHON] [--output FILE]

A problem is OBJECTIVE:RATIO:LAMBDA; 0 rows are all. Every contestant solves it in a process of its own, so that its
peak memory is its own; corpus, neighbour graph and anchors are made once before, in a cache, and the graph's time is a
row of its own. Values are exact, on the calibrated scale of the problem. A contestant that passes the limit is a row
too. REINFORCE that cannot take all its steps within the limit is stopped, and its time for all of them is extrapolated
and marked.

`--peer_python` names an interpreter with apricot-select and submodlib-py (they want old versions of numpy); their
selections are measured by the same scoreboard. Results: FILE.json and a table FILE.md, by default in
benchmarks/results/.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

OURS = ("random", "top-quality", "greedy", "reinforce", "counterfactual", "relaxed")
PEERS = ("apricot", "submodlib")
PEER_CODE = """
import json, sys, time
import numpy as np
who, features, size, out = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if who == "apricot":
    from apricot import FacilityLocationSelection
else:
    from submodlib import FacilityLocationFunction

def select(features, size):
    near = np.maximum(features @ features.T, 0)
    if who == "apricot":
        return FacilityLocationSelection(size, metric="precomputed", optimizer="lazy").fit(near).ranking
    function = FacilityLocationFunction(n=len(features), mode="dense", sijs=near, separate_rep=False)
    picks = function.maximize(budget=size, optimizer="LazyGreedy", stopIfZeroGain=False, show_progress=False)
    return np.array([i for i, _ in picks])

select(features[:100], 10)  # compiled before the clock starts
start = time.perf_counter()
rows = select(features, size)
seconds = time.perf_counter() - start
np.save(out, np.asarray(rows, dtype=np.int64))
peak = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": seconds, "peak": peak}))
"""


def peak_memory() -> int:
    """The largest resident size of this program, in bytes; unlike getrusage, without what its parent had at the
    fork."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def opened(path: str, rows: int):
    """The corpus of a problem."""
    from datamask import CorpusConfig, open_corpus
    return open_corpus(CorpusConfig((path,), rows=rows or None))


def contest(spec: dict) -> dict:
    """One contestant on one problem, in this process."""
    import torch

    from datamask import SelectionConfig, learning
    from datamask.errors import Stopped
    from datamask.evaluation.pool import Pool
    from datamask.evaluation.posing import pose
    from datamask.evaluation.selection import Selection

    options = {"objective": spec["objective"], "select_ratio": spec["ratio"], "lamb": spec["lamb"], "device": "cpu"}
    if spec["estimator"] == "reinforce":
        options |= {"n_epochs": spec["steps"], "partial": 0.1, "max_lr": spec.get("max_lr", 10.0), "min_lr": 1.0,
                    "n_rollout": spec.get("n_rollout", 128), "init": "quality"}
    config = SelectionConfig.from_options(estimator=spec["estimator"], **options)
    corpus = opened(spec["path"], spec["rows"])
    pool = Pool(corpus, torch.device("cpu"), Path(spec["cache"]))
    posed = pose(pool, config)
    base = peak_memory()
    start = time.perf_counter()

    def poll() -> None:
        if time.perf_counter() - start > spec["limit"]:
            raise Stopped("limit")

    learner = learning.load(config.estimator)(posed.problem, config)
    state, ended = learner.init(), True
    try:
        while learner.finished(state) is None:
            state, _ = learner.step(state, poll)
    except Stopped:
        ended = False
        if spec["estimator"] != "reinforce":
            return {"note": f"over {spec['limit']} s after {state.step:,} steps", "steps": state.step}
    mask = learner.result(state)
    learned = time.perf_counter() - start
    selection = Selection.measured(corpus, config, posed, mask, learner.logits(state))
    total = time.perf_counter() - start
    found = {"joint": selection.summary["calibrated"]["joint"], "quality": selection.summary["calibrated"]["quality"],
             "diversity": selection.summary["calibrated"]["diversity"], "raw": selection.summary["diversity"],
             "gap": selection.summary["gap"], "seconds": learned, "seconds_with_bound": total, "steps": state.step,
             "peak": peak_memory(), "peak_before": base}
    if not ended:
        found |= {"note": f"value after {state.step:,} of {spec['steps']:,} steps; time extrapolated",
                  "seconds": learned / max(state.step, 1) * spec["steps"]}
    return found


def prepare(path: str, rows: int, objective: str, ratio: float, cache: str) -> dict:
    """Corpus, graph and anchors of a problem into the cache; times."""
    import torch

    from datamask import SelectionConfig
    from datamask.evaluation.pool import Pool
    from datamask.evaluation.posing import pose
    corpus = opened(path, rows)
    pool = Pool(corpus, torch.device("cpu"), Path(cache))
    start = time.perf_counter()
    posed = pose(pool, SelectionConfig.from_options(objective=objective, select_ratio=ratio, device="cpu"))
    return {"n": len(corpus), "dim": corpus.dim, "size": posed.problem.size, "seconds_graph": pool.seconds_graph,
            "seconds_anchors": time.perf_counter() - start - pool.seconds_graph,
            "anchor": posed.diversity_anchors[objective].to_dict()}


def peer(who: str, python: str, problem: dict, cache: str, limit: float) -> dict:
    """A peer library's facility selection, measured by our scoreboard; quality plays no part, so lambda is 0."""
    import torch

    from datamask.evaluation.anchors import diversity_anchor
    from datamask.evaluation.pool import Pool
    from datamask.objectives.joint import Scale
    corpus = opened(problem["path"], problem["rows"])
    with tempfile.TemporaryDirectory() as folder:
        features, out = Path(folder) / "x.npy", Path(folder) / "rows.npy"
        np.save(features, corpus.features)
        command = [python, "-c", PEER_CODE, who, str(features), str(problem["size"]), str(out)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"note": f"over {limit:.0f} s"}
        if done.returncode:
            return {"note": "failed: " + (done.stderr.strip().splitlines() or ["killed, out of memory"])[-1][:120]}
        rows = np.load(out)
    pool = Pool(corpus, torch.device("cpu"), Path(cache))
    mask = torch.zeros(len(corpus), dtype=torch.bool)
    mask[torch.from_numpy(rows)] = True
    raw = pool.function("facility", problem["size"]).value(mask)
    value = Scale.calibrated(diversity_anchor(pool, "facility", problem["size"]))(raw)
    return {"joint": value, "diversity": value, "raw": raw, **json.loads(done.stdout)}


def alone(spec: dict) -> dict:
    """`contest` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engine", spec["path"], "--one", json.dumps(spec)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"note": "failed: " + (done.stderr.strip().splitlines() or ["killed"])[-1][:120]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(report: dict) -> str:
    """The results as markdown."""
    lines = [f"# Engine on {report['corpus']}", "",
             f"{report['machine']['processor']}, {report['machine']['threads']} threads, load "
             f"{report['machine']['load']:.1f} at the start; Python {report['machine']['python']}, torch "
             f"{report['machine']['torch']}. Time is the median (least to most) over the repeats; it is the learner's, "
             "swaps included; the bound's comes after the plus sign.", ""]
    for problem in report["problems"]:
        lines += [f"## {problem['objective']}, ratio {problem['ratio']:g}, lambda {problem['lamb']:g}, N "
                  f"{problem['n']:,} x {problem['dim']}", "",
                  f"Neighbour graph {problem['seconds_graph']:.1f} s, anchors {problem['seconds_anchors']:.1f} s "
                  f"(random {problem['anchor']['random']:.6g}, best {problem['anchor']['best']:.6g}, "
                  f"{problem['anchor']['best_kind']}).", "",
                  "| contestant | joint | raw diversity | gap | seconds | peak MB | note |",
                  "|---|---|---|---|---|---|---|"]
        for row in problem["rows_of_table"]:
            took = row.get("all_seconds") or []
            time_ = f"{statistics.median(took):.2f} ({min(took):.2f}-{max(took):.2f})" if took else ""
            if took and row.get("gap") is not None and "note" not in row:
                time_ += f" + {row['seconds_with_bound'] - row['seconds']:.2f}"
            cells = [row["who"], *(f"{row[k]:.6f}" if row.get(k) is not None else "" for k in ("joint", "raw")),
                     f"{row['gap']:.1e}" if row.get("gap") is not None else "", time_,
                     f"{row['peak'] / 1e6:,.0f}" if row.get("peak") else "", row.get("note", "")]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--problems", default="pairwise:0.3:0.5,facility:0.1:0,facility:0.1:0.5,disf:0.3:0.5")
    parser.add_argument("--rows", default="0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--reinforce_steps", type=int, default=5000)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--contestants", default=",".join(OURS))
    parser.add_argument("--peer_python")
    parser.add_argument("--output")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(contest(json.loads(options.one))))
        return
    name = Path(options.path.rstrip("/")).name
    output = Path(options.output or Path(__file__).parent / "results" / f"engine-{name}")
    report = {"corpus": name, "machine": {
        "processor": platform.processor() or platform.machine(), "threads": os.cpu_count(), "load": os.getloadavg()[0],
        "python": platform.python_version(), "torch": importlib.metadata.version("torch")}, "problems": []}
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as cache:
        for rows in map(int, options.rows.split(",")):
            for text in options.problems.split(","):
                objective, ratio, lamb = text.split(":")
                problem = {"path": options.path, "rows": rows, "objective": objective, "ratio": float(ratio),
                           "lamb": float(lamb)}
                problem |= prepare(options.path, rows, objective, float(ratio), cache)
                problem["rows_of_table"] = []
                contestants = [*options.contestants.split(",")]
                if options.peer_python and objective == "facility" and float(lamb) == 0:
                    contestants += PEERS
                for who in contestants:
                    if who == "relaxed" and objective in ("disf", "graphcut"):
                        continue
                    runs = []
                    for _ in range(options.repeats):
                        if who in PEERS:
                            runs.append(peer(who, options.peer_python, problem, cache, options.limit))
                        else:
                            runs.append(alone({**problem, "rows_of_table": None, "estimator": who, "cache": cache,
                                               "limit": options.limit, "steps": options.reinforce_steps}))
                        if runs[-1].get("seconds", options.limit) > options.limit / 10:
                            break  # a long one is measured once
                    row = {"who": who, **runs[-1], "all_seconds": [r["seconds"] for r in runs if "seconds" in r]}
                    problem["rows_of_table"].append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
                report["problems"].append({k: v for k, v in problem.items() if k != "path"})
                output.with_suffix(".json").write_text(json.dumps(report, indent=1))
                output.with_suffix(".md").write_text(table(report))


if __name__ == "__main__":
    main()
