"""What DiSF costs and reaches: against an earlier commit, against greedy, and on 100,000 rows.

    python -m benchmarks.disf PATH --work FOLDER [--base COMMIT] [--rounds N] [--large PATH] [--only PART ...] [...]

PATH is a folder of parquet shards; DiSF as by default: ratio 0.3, lambda 0.5, calibrated. Parts, each kept in the
output as it is done, and not done again:

- ``base``: 30,000 rows of PATH from an empty cache, by the tree of `--base` and by this one in turn, with one thread:
  CPU seconds of the command, and both joint values on the scale that the base found. Threads that wait for each other
  beside other work count as CPU seconds too, hence one.
- ``greedy``: 2,000 rows of PATH, by default and by plain greedy, which values all rows after every pick, on
  one scale.
- ``large``: 100,000 rows of `--large` by default, one thread: seconds of the whole command, joint value, and how long
  greedy would take, from the picks of its first minute.
- ``stochastic``: stochastic greedy on the rows of ``greedy`` and of ``large``, on the scales that the defaults found,
  with more and more candidates for a pick: with all of them it is plain greedy. Needs both parts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.million import ROOT, commit, compare_trees, timed
from benchmarks.stochastic_greedy import fewest_candidates, stochastic_greedy

ROWS, SMALL, LARGE = 30_000, 2_000, 100_000
OPTIONS = ("--objective", "disf")
COLUMNS = ["chunk_id", "quality_score", "feature_arr"]
GREEDY_SECONDS = 60.0


def drawn(corpus: Path, rows: int, work: Path) -> Path:
    """So many rows of a folder of shards in the paper's columns, drawn by seed 0; written where they are missing."""
    target = work / f"{corpus.resolve().name}-{rows}" / "part-0.parquet"
    if not target.exists():
        table = pa.concat_tables([pq.read_table(path, columns=COLUMNS) for path in sorted(corpus.glob("*.parquet"))])
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.take(np.sort(np.random.default_rng(0).permutation(len(table))[:rows])), target)
    return target.parent


def joint_on(anchors: Mapping[str, Any], entry: Mapping[str, Any], lamb: float = 0.5) -> float:
    """The joint value of an outcome on the scale with these ends."""

    def share(raw: float, ends: Mapping[str, float]) -> float:
        return (raw - ends["random"]) / (ends["best"] - ends["random"])

    quality, diversity = (share(entry[name], ends) for name, ends in _ends(anchors).items())
    return lamb * quality + (1 - lamb) * diversity


def _ends(anchors: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    (diversity,) = anchors["diversity"].values()
    return {"quality": anchors["quality"], "diversity": diversity}


def against_base(corpus: Path, base: str, rounds: int) -> dict[str, Any]:
    """Both trees in turn, and how far this one's joint lies above the base's on the base's scale."""
    compared = compare_trees(corpus, base, OPTIONS, ("1",), rounds)
    pairs = [turn for turns in compared["turns"].values() for turn in turns]
    above = [
        joint_on(turn["base"]["anchors"], turn["here"]) - joint_on(turn["base"]["anchors"], turn["base"])
        for turn in pairs
    ]
    return {**compared, "joint_above_base": sorted(above)}


def against_greedy(corpus: Path) -> dict[str, Any]:
    """The default and plain greedy, each from an empty cache; joint values on the scale of the default."""
    entries = {
        "default": timed(corpus, ROOT, "1", OPTIONS),
        "greedy": timed(corpus, ROOT, "1", (*OPTIONS, "--estimator", "greedy")),
    }
    scale = entries["default"]["anchors"]
    return {name: {**entry, "joint_on_one_scale": joint_on(scale, entry)} for name, entry in entries.items()}


def large(corpus: Path) -> dict[str, Any]:
    """The default on all rows, and how far greedy comes in a minute."""
    return {"default": timed(corpus, ROOT, "1", OPTIONS), "greedy": greedy_begun(corpus)}


def greedy_begun(corpus: Path) -> dict[str, Any]:
    """Picks of plain greedy in its first minute, and the hours that all of them would take at that pace."""
    import torch

    from datamask import CorpusConfig, SelectionConfig, open_corpus
    from datamask.evaluation.pool import Pool
    from datamask.learning.greedy import Greedy
    from datamask.learning.problem import Problem
    from datamask.objectives.joint import Joint, Term

    torch.set_num_threads(1)
    opened = open_corpus(CorpusConfig((str(corpus),)))
    config = SelectionConfig.from_options(objective="disf", estimator="greedy")
    with tempfile.TemporaryDirectory() as cache:
        pool = Pool(opened, torch.device("cpu"), Path(cache))
        size = config.size(len(pool))
        joint = Joint(pool.quality, (Term("disf", 1.0, pool.function("disf", size)),), config.lamb)
        greedy = Greedy(Problem(joint, size, torch.arange(len(pool)), pool.ties(0)), config)
        state, start = greedy.init(), time.perf_counter()
        while (seconds := time.perf_counter() - start) < GREEDY_SECONDS:
            state, _ = greedy.step(state)
    return {
        "picks": state.step,
        "of": size,
        "seconds": seconds,
        "hours_extrapolated": seconds / state.step * size / 3600,
    }


def stochastic(rows: Path, anchors: Mapping[str, Any], counts: Sequence[int]) -> list[dict[str, Any]]:
    """CPU seconds of stochastic greedy in one thread, and its values.

    Args:
        anchors: the ends of the scale for its joint value. counts: of candidates; more than there are rows: all.
    """
    import torch
    from threadpoolctl import threadpool_limits

    from datamask import CorpusConfig, SelectionConfig, open_corpus
    from datamask.evaluation.pool import Pool
    from datamask.objectives.disf import DiSF

    torch.set_num_threads(1)
    opened = open_corpus(CorpusConfig((str(rows),)))
    config = SelectionConfig.from_options(objective="disf")
    entries = []
    with tempfile.TemporaryDirectory() as cache, threadpool_limits(1):
        pool = Pool(opened, torch.device("cpu"), Path(cache))
        size = config.size(len(pool))
        function = pool.function("disf", size)
        assert isinstance(function, DiSF)
        quality, standardised = pool.quality.scores.double().numpy(), function.y[:].double().numpy()
        spans = {name: ends["best"] - ends["random"] for name, ends in _ends(anchors).items()}
        weights = (config.lamb / spans["quality"], (1 - config.lamb) / spans["diversity"])
        for count in (fewest_candidates(len(pool), size), *counts):
            start = time.process_time()
            picks = stochastic_greedy(standardised, quality, size, weights, count)
            seconds = time.process_time() - start
            mask = torch.zeros(len(pool), dtype=torch.bool)
            mask[torch.from_numpy(picks)] = True
            values = {"quality": float(quality[picks].mean()), "diversity": function.value(mask)}
            entries.append(
                {"candidates": count, "cpu_seconds": seconds, **values, "joint_on_one_scale": joint_on(anchors, values)}
            )
            print(entries[-1], flush=True)
    return entries


def main() -> None:
    """Do the parts that are asked for and not done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="a folder of parquet shards with at least 30,000 rows")
    parser.add_argument("--work", type=Path, required=True, help="where draws of rows are made and kept")
    parser.add_argument("--base", help="the commit that ``base`` compares with; without it there is no such part")
    parser.add_argument("--rounds", type=int, default=2, help="how often each tree takes its turn in ``base``")
    parser.add_argument(
        "--large", type=Path, help="a folder with at least 100,000 rows, as `datamask prepare` makes one"
    )
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "disf.json")
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "greedy": lambda: against_greedy(drawn(options.corpus, SMALL, options.work))
    }
    if options.base is not None:
        parts["base"] = lambda: against_base(drawn(options.corpus, ROWS, options.work), options.base, options.rounds)
    if options.large is not None:
        parts["large"] = lambda: large(drawn(options.large, LARGE, options.work))
    results = json.loads(options.output.read_text()) if options.output.is_file() else {}
    if options.large is not None:
        parts["stochastic"] = lambda: {
            "greedy": stochastic(
                drawn(options.corpus, SMALL, options.work), results["greedy"]["default"]["anchors"], (64, 256, SMALL)
            ),
            "large": stochastic(
                drawn(options.large, LARGE, options.work), results["large"]["default"]["anchors"], (64, 256)
            ),
        }
    for name, measure in parts.items():
        if (options.only and name not in options.only) or name in results:
            continue
        before, start = os.getloadavg()[0], time.perf_counter()
        results[name] = measure() | {
            "corpus": options.large.resolve().name if name == "large" else options.corpus.resolve().name,
            "commit": commit(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
            "load_before_and_after": [before, os.getloadavg()[0]],
            "seconds": time.perf_counter() - start,
        }
        options.output.write_text(json.dumps(results, indent=1) + "\n")
        print(name, json.dumps(results[name], indent=1))


if __name__ == "__main__":
    main()
