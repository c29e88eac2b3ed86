"""What a selection costs besides its neighbor graph, and what values on an approximate graph are worth.

    python -m benchmarks.million --work FOLDER [--rows 1000000] [--prepared FOLDER] [--only PART ...] [--output FILE]

Parts, each kept in the output as it is done, and not done again:

- ``million``: a clustered synthetic corpus of `--rows` x 128, facility location, ratio 0.1, lambda 0.5, from an empty
  cache: seconds of the graph, of everything after it as a share of it, peak memory, the estimate.
- ``texts``, ``texts by masks``: the same on a folder of prepared shards (`--prepared`, made by ``datamask prepare``),
  by the default estimator and by 128 masks a step; ``texts beside two busy processes``: the default, while two
  processes do nothing else than keep a core busy.
- ``approximate``: 100,000 x 128 by exact and by approximate lists: how far the two selections lie apart, both valued
  exactly.
- ``interval``: 50,000 x 128 on approximate lists: in how many of 100 draws the estimate's interval holds the exact
  value.
- ``pairwise``: `--rows` x 64 in memory, pair-wise similarity, ratio 0.1, lambda 0.3, from an empty cache, by the tree
  of `--base` and by this one in turn, by one thread and by all: CPU seconds of the command, which say more than wall
  times beside other work.

Wall times depend on what else the machine does: the load before and after stands beside them. Shares of the graph's
time do so less, but the graph uses every core and most of what follows it one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.clustered import build

ROOT = Path(__file__).parents[1]
RATIO, LAMB, DIM = 0.1, 0.5, 128
PAIRWISE_LAMB, PAIRWISE_DIM, TURNS = 0.3, 64, 2
THREADS = ("1", "all")
"""Threads that wait for each other count as CPU seconds too, and more of them beside other work."""


def selected(inputs: Path, *options: str) -> dict[str, Any]:
    """The summary of a selection by the command line, from an empty cache, and the seconds of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out, start = Path(folder) / "out.parquet", time.perf_counter()
        words = [
            *("select", str(inputs), "--output", str(out), "--runs_dir", str(Path(folder) / "runs"), "--json"),
            *("--objective", "facility", "--select_ratio", str(RATIO), "--lamb", str(LAMB), *options),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "datamask", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        )
        summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        wall = time.perf_counter() - start
    after = summary["seconds_total"] - summary["seconds_graph"]
    names = ("estimator", "n", "steps", "diversity", "joint", "values", "estimate", "calibrated", "gap", "neighbors")
    return {
        **{name: summary[name] for name in (*names, "seconds_graph", "seconds_total", "peak_memory_bytes")},
        "seconds_command": wall,
        "after_graph_over_graph": after / summary["seconds_graph"],
    }


def beside_busy(count: int, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A measurement while so many other processes keep a core busy each."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        return measure()
    finally:
        for other in others:
            other.kill()
            other.wait()


def solved(work: Path, rows: int, neighbors: str, cache: str) -> tuple[Any, Any, dict[str, Any] | None]:
    """Facility location of so many rows on lists of one kind: the problem, its selection, and facts of the lists."""
    import torch

    from datamask import CorpusConfig, SelectionConfig, learning, open_corpus
    from datamask.evaluation.pool import Pool
    from datamask.evaluation.problems import pose
    from datamask.learning.loop import learn

    corpus = open_corpus(CorpusConfig((str(build(work, rows, DIM)),)))
    pool = Pool(corpus, torch.device("cpu"), Path(cache), neighbors=neighbors)
    config = SelectionConfig.from_options(select_ratio=RATIO, lamb=LAMB)
    problem = pose(pool, config).problem
    mask = learn(learning.load(config.estimator)(problem, config)).mask
    return problem, mask, graph.to_dict() if (graph := pool.graph_facts()) else None


def approximate(work: Path) -> dict[str, Any]:
    """The same selection on exact and on approximate lists of 100,000 rows, both valued on the exact ones."""
    with tempfile.TemporaryDirectory() as cache:
        exact, first, _ = solved(work, 100_000, "exact", cache)
        _, second, graph = solved(work, 100_000, "approximate", cache)
        values = [exact.joint.evaluate(mask) for mask in (first, second)]
    return {
        "graph": graph,
        "diversity_apart": values[1].diversity - values[0].diversity,
        "joint_apart": values[1].joint - values[0].joint,
        "ids_in_common": int((first & second).sum()) / int(first.sum()),
    }


def interval(work: Path, draws: int = 100) -> dict[str, Any]:
    """In how many draws of 10,000 of 50,000 rows the interval holds the value of a selection on approximate lists."""
    with tempfile.TemporaryDirectory() as cache:
        problem, mask, graph = solved(work, 50_000, "approximate", cache)
        exact = solved(work, 50_000, "exact", cache)[0].joint.terms[0].function.value(mask)
        function = problem.joint.terms[0].function
        estimates = [each for seed in range(draws) if (each := function.estimate(mask, seed)) is not None]
    return {
        "graph": graph,
        "exact": exact,
        "listed": function.value(mask),
        "draws": len(estimates),
        "held": sum(bool(each.low <= exact <= each.high) for each in estimates),
        "mean_length": sum(each.high - each.low for each in estimates) / len(estimates),
    }


def pairwise(corpus: Path, base: str) -> dict[str, Any]:
    """Pair-wise similarity by the tree of commit `base` and by this one, in turn."""
    words = ("--objective", "pairwise", "--select_ratio", str(RATIO), "--lamb", str(PAIRWISE_LAMB))
    return compare_trees(corpus, base, words, THREADS)


def compare_trees(
    corpus: Path, base: str, words: Sequence[str], threads: Sequence[str], rounds: int = TURNS
) -> dict[str, Any]:
    """The same selection by the tree of commit `base` and by this one, in turn: what each took, and what it found.

    Args:
        words: of the selection. threads: numbers of threads, or ``all``. rounds: how often each tree takes its turn.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), base], cwd=ROOT, check=True)
        try:
            turns = {
                number: [
                    {name: timed(corpus, root, number, words) for name, root in (("base", tree), ("here", ROOT))}
                    for _ in range(rounds)
                ]
                for number in threads
            }
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    ratios = {
        number: sorted(turn["here"]["cpu_seconds"] / turn["base"]["cpu_seconds"] for turn in both)
        for number, both in turns.items()
    }
    return {"base": commit(base), "cpu_seconds_here_over_base": ratios, "turns": turns}


def timed(corpus: Path, root: Path, threads: str, words: Sequence[str], limit: int | None = None) -> dict[str, Any]:
    """One selection by the tree at `root`: CPU and wall seconds of the command, and the values of its selection.

    Args:
        threads: a number of threads, or ``all``. words: of the selection. limit: CPU seconds after which it is ended,
            and ``not_after`` is all there is to say.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "PYTHONPATH")}
    if threads != "all":
        environment["OMP_NUM_THREADS"] = threads

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit or -1, limit or -1))

    with tempfile.TemporaryDirectory() as folder:
        places = ("--output", str(Path(folder) / "out.parquet"), "--runs_dir", str(Path(folder) / "runs"), "--json")
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "datamask", "select", str(corpus), *places, *words],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            check=limit is None,
            preexec_fn=limited if limit else None,
        )
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        return {"not_after": limit, "ending": done.returncode, "last_words": done.stderr[-200:]}
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    names = ("quality", "diversity", "joint", "calibrated", "anchors", "upper_bound", "gap", "steps")
    kept = {name: summary[name] for name in names}
    return {"cpu_seconds": used, "seconds_command": wall, **kept, "peak_memory_bytes": summary["peak_memory_bytes"]}


def commit(name: str = "HEAD") -> str:
    """The commit of that name; HEAD: the one that is checked out."""
    return subprocess.run(
        ["git", "rev-parse", "--short=12", name], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> None:
    """Do the parts that are asked for and not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="where synthetic corpora are made and kept")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--prepared", type=Path, help="a folder that `datamask prepare` made")
    parser.add_argument("--base", help="the commit that `pairwise` compares with; without it there is no such part")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "million.json")
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "interval": lambda: interval(options.work),
        "approximate": lambda: approximate(options.work),
        "million": lambda: selected(build(options.work, options.rows, DIM)),
    }
    if options.base is not None:
        parts["pairwise"] = lambda: pairwise(build(options.work, options.rows, PAIRWISE_DIM), options.base)
    if options.prepared is not None:
        parts["texts"] = lambda: selected(options.prepared)
        parts["texts beside two busy processes"] = lambda: beside_busy(2, lambda: selected(options.prepared))
        parts["texts by masks"] = lambda: selected(
            options.prepared, "--estimator", "counterfactual", "--n_rollout", "128"
        )
    results = json.loads(options.output.read_text()) if options.output.is_file() else {}
    for name, measure in parts.items():
        if (options.only and name not in options.only) or name in results:
            continue
        before, start = os.getloadavg()[0], time.perf_counter()
        results[name] = measure() | {
            "commit": commit(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
            "load_before_and_after": [before, os.getloadavg()[0]],
            "seconds": time.perf_counter() - start,
        }
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        print(name, json.dumps(results[name], indent=1))


if __name__ == "__main__":
    main()
