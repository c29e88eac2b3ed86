"""The neighbor graph: all pairs against faiss's exact search, and the approximate searches against all pairs.

    python -m benchmarks.graph PATH [--rows 16000,0] [--neighbors 64] [--repeats 3] [--peer_python PYTHON]
                               [--contestants exact,approximate,usearch:64,...] [--threads 2] [--output FILE]

Every contestant builds the graph in a process of its own, so that its peak memory is its own, and compiles before the
clock starts (that time is a column of its own, from an empty cache where the contestant caches). The contestants take
turns within each repeat; ratios are taken within a repeat, so that whatever else runs on the machine falls on both
sides alike, and their median is the result. CPU seconds stand beside, which other programs change less. Recall is
measured on 400 random rows, in float64, the same for all. 0 rows are all.

`--peer_python` names an interpreter with faiss-cpu, usearch or scann (see `benchmarks.graph_peer`); pynndescent comes
with umap-learn. An approximate search is named with its effort, as in ``scann:40``: name several, and compare where
the recall is equal. Results: FILE.json and a table FILE.md, by default in benchmarks/results/.
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

from datamask.work.context import Work

CONTESTANTS = ("exact", "faiss", "approximate", "pynndescent")
PEERS = ("faiss", "faiss-ivf", "usearch", "scann")
"""Searches of `benchmarks.graph_peer`; each but the first is named with its effort, as in ``faiss-ivf:32``."""
PEER = Path(__file__).with_name("graph_peer.py")


def is_peer(who: str) -> bool:
    """Whether a contestant is another library's, which runs in an environment of its own."""
    return who.partition(":")[0] in PEERS


def build(who: str, features: np.ndarray, k: int, threads: int) -> np.ndarray:
    """The graph by one of the searches of this environment: int32 ``(N, k)``."""
    if who == "pynndescent":
        import pynndescent

        # distances between unit rows order as cosines do; the settings are the library's own
        return (
            pynndescent.NNDescent(features, metric="cosine", n_neighbors=k, n_jobs=threads, random_state=0)
            .neighbor_graph[0]
            .astype(np.int32)
        )
    from datamask.corpus import neighbors

    neighbors.LEAST_APPROXIMATE = 0  # measured where it does not pay, too
    return neighbors.build_neighbors(features, k, search=who, work=Work(threads=threads)).indices


def contest(who: str, spec: dict) -> dict:
    """One contestant, in this process; its lists go to a file."""
    features, k, threads = np.load(spec["features"]), spec["k"], spec["threads"]
    start = time.perf_counter()
    build(who, features[:6000].copy(), min(k, 32), threads)
    compiled = time.perf_counter() - start
    start, cpu = time.perf_counter(), time.process_time()
    indices = build(who, features, k, threads)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))
    np.save(spec["out"], indices)
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "compile": compiled}


def alone(who: str, spec: dict, python: str | None, limit: float) -> dict:
    """One contestant in a process of its own, with its recall."""
    from datamask.corpus.neighbors import NeighborGraph, measured_recall

    if is_peer(who):
        command = [python or "", str(PEER), who, spec["features"], str(spec["k"]), str(spec["threads"]), spec["out"]]
    else:
        command = [sys.executable, "-m", "benchmarks.graph", "-", "--one", json.dumps({"who": who, **spec})]
    threads = {name: str(spec["threads"]) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=os.environ | threads)
    except subprocess.TimeoutExpired:
        return {"note": f"over {limit:.0f} s"}
    if done.returncode:
        return {"note": "failed: " + (done.stderr.strip().splitlines() or ["killed"])[-1][:120]}
    features, indices = np.load(spec["features"]), np.load(spec["out"])
    # the lists of others do not always begin with the row itself
    rows = np.arange(len(indices))[:, None]
    others = np.argsort(indices == rows, axis=1, kind="stable")[:, : spec["k"] - 1]
    lists = np.hstack([rows, np.take_along_axis(indices, others, 1)])
    recall = measured_recall(features, NeighborGraph(lists, np.empty(lists.shape, np.float32), False))
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "recall": recall}


def ratios(rounds: list[dict], who: str, base: str, key: str) -> list[float]:
    """`who`'s time over `base`'s in every repeat that has both."""
    return [r[who][key] / r[base][key] for r in rounds if key in r.get(who, {}) and key in r.get(base, {})]


def table(report: dict) -> str:
    """The results as markdown."""
    machine = report["machine"]
    lines = [
        f"# Neighbor graph on {report['corpus']}, K {report['k']}",
        "",
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads each, load "
        f"{machine['load']:.1f} at the start (above 0: other programs shared the cores; read the ratios); Python "
        f"{machine['python']}, " + ", ".join(f"{n} {v}" for n, v in report["versions"].items()) + ". Median of "
        f"{report['repeats']} repeats (least to most); what compiles for over a minute is measured once. "
        "Compiling is not in the time.",
        "",
    ]
    bases = [base for base in ("faiss", "exact") if base in report["contestants"]]
    ratio_keys = [(key, base) for key in ("seconds", "cpu") for base in bases]
    heads = ["search", "seconds", "CPU seconds"]
    heads += [f"{'time' if key == 'seconds' else 'CPU'} / {base}" for key, base in ratio_keys]
    heads += ["recall", "peak MB", "compile s"]
    for size in report["sizes"]:
        rounds = size["rounds"]
        lines += [f"## N {size['n']:,} x {size['dim']}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for who in report["contestants"]:
            runs = [r[who] for r in rounds if "seconds" in r.get(who, {})]
            if not runs:
                lines.append(f"| {who} | {rounds[0][who]['note']} " + "| " * (len(heads) - 2) + "|")
                continue
            took = [f["seconds"] for f in runs]
            cells = [
                who,
                f"{statistics.median(took):.1f} ({min(took):.1f}-{max(took):.1f})",
                f"{statistics.median(f['cpu'] for f in runs):.1f}",
            ]
            for key, base in ratio_keys:
                against = ratios(rounds, who, base, key)
                cells.append(f"{statistics.median(against):.2f}" if against and who != base else "")
            cells += [
                f"{min(f['recall'] for f in runs):.4f}",
                f"{max(f['peak'] for f in runs) / 1e6:,.0f}",
                f"{runs[0]['compile']:.1f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--rows", default="16000,0")
    parser.add_argument("--neighbors", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--contestants", default=",".join(CONTESTANTS))
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--peer_python")
    parser.add_argument("--output")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        spec = json.loads(options.one)
        print(json.dumps(contest(spec.pop("who"), spec)))
        return
    from datamask import CorpusConfig, open_corpus

    name = Path(options.path.rstrip("/")).name
    output = Path(options.output or Path(__file__).parent / "results" / f"graph-{name}")
    who = [c for c in options.contestants.split(",") if options.peer_python or not is_peer(c)]
    report = {
        "corpus": name,
        "k": options.neighbors,
        "repeats": options.repeats,
        "contestants": who,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "threads": options.threads,
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
        },
        "versions": {package: importlib.metadata.version(package) for package in ("numpy", "numba", "pynndescent")},
        "sizes": [],
    }
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as folder:
        for rows in map(int, options.rows.split(",")):
            corpus = open_corpus(CorpusConfig((options.path,), rows=rows or None))
            spec = {
                "features": f"{folder}/features.npy",
                "out": f"{folder}/lists.npy",
                "k": options.neighbors,
                "threads": options.threads,
            }
            np.save(spec["features"], corpus.features)
            size = {"n": len(corpus), "dim": corpus.dim, "rounds": []}
            report["sizes"].append(size)
            for number in range(options.repeats):
                # whoever goes first profits from a quiet moment: take turns at that too
                turn = [*who[number % len(who) :], *who[: number % len(who)]]
                first = size["rounds"][0] if number else {}
                # a long one is measured once
                turn = [c for c in turn if first.get(c, {}).get("compile", 0.0) < options.limit / 10]
                size["rounds"].append({c: alone(c, spec, options.peer_python, options.limit) for c in turn})
                print(json.dumps(size["rounds"][-1]), file=sys.stderr, flush=True)
                for measured in size["rounds"][-1].values():
                    if "version" in measured:
                        package, version = measured["version"]
                        report["versions"][package] = version
                output.with_suffix(".json").write_text(json.dumps(report, indent=1))
                output.with_suffix(".md").write_text(table(report))


if __name__ == "__main__":
    main()
