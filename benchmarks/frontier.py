"""The certified frontier of a corpus: how long many lambdas take, and how far each point is from the best possible.

    python -m benchmarks.frontier PATH [--count 41] [--ratio 0.3] [--rounds 3] [--output FILE.json]

Pair-wise similarity. Each point's values are recomputed from its mask with numpy in float64, by the textbook's
formulas; the gap is from the recomputed joint value to the proved bound. Opening the corpus and the anchors come before
the clock starts, and are told beside it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.contestants import opened, peak_memory, pool_of
from benchmarks.engine import machine

WANTED = {"seconds": 10.0, "worst_gap": 1e-4, "largest_difference": 1e-6}
"""Each at most."""


def recomputed(corpus, point, ends) -> float:
    """A point's joint value from its mask alone, by mean quality and mean cosine of pairs, on the anchors' scale."""
    members = point.mask.nonzero()[0]
    features = corpus.features[members].astype(np.float64)
    size, total = len(members), features.sum(0)
    raw = (
        np.asarray(corpus.quality, dtype=np.float64)[members].mean(),
        -(total @ total - np.square(features).sum()) / (size * (size - 1)),
    )
    quality, diversity = ((value - end.random) / (end.best - end.random) for value, end in zip(raw, ends))
    return point.lamb * quality + (1 - point.lamb) * diversity


def measure(path: str, count: int, ratio: float, rounds: int) -> dict:
    """The frontier, several times, and its last points."""
    from datamask import SelectionConfig
    from datamask.evaluation.frontier import frontier
    from datamask.evaluation.problems import pose

    corpus = opened(path, 0)
    config = SelectionConfig.from_options(objective="pairwise", estimator="relaxed", select_ratio=ratio, device="cpu")
    with tempfile.TemporaryDirectory(prefix="datamask-bench-") as cache:
        pool = pool_of(corpus, cache)
        start = time.perf_counter()
        problem = pose(pool, config)
        anchors = time.perf_counter() - start
        took, cpu = [], []
        for _ in range(rounds):
            start, cpu_start = time.perf_counter(), time.process_time()
            points = frontier(pool, config, np.linspace(0.0, 1.0, count).tolist())
            took.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
    joints = [
        recomputed(corpus, point, (problem.quality_anchor, problem.diversity_anchors["pairwise"])) for point in points
    ]
    bounds = [point.upper_bound for point in points if point.upper_bound is not None]
    assert len(bounds) == len(points), "every point of pair-wise similarity has a bound"
    rows = [
        {
            "lamb": point.lamb,
            "quality": point.quality,
            "diversity": point.diversity,
            "joint": joint,
            "upper_bound": bound,
            "gap": bound - joint,
            "steps": point.steps,
            "seconds": round(point.seconds, 4),
        }
        for point, joint, bound in zip(points, joints, bounds)
    ]
    return {
        "n": len(corpus),
        "dim": corpus.dim,
        "size": problem.problem.size,
        "ratio": ratio,
        "count": count,
        "seconds": round(statistics.median(took), 3),
        "all_seconds": [round(seconds, 3) for seconds in took],
        "all_cpu_seconds": [round(seconds, 3) for seconds in cpu],
        "seconds_anchors": round(anchors, 3),
        "worst_gap": max(bound - joint for bound, joint in zip(bounds, joints)),
        "largest_difference": max(abs(joint - point.joint) for joint, point in zip(joints, points)),
        "wanted": WANTED,
        "peak": peak_memory(),
        "points": rows,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--count", type=int, default=41)
    parser.add_argument("--ratio", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    name = Path(options.path.rstrip("/")).name
    output = options.output or Path(__file__).parent / "results" / f"frontier-{name}.json"
    measured = {
        "corpus": name,
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "load": round(os.getloadavg()[0], 1),
        **measure(options.path, options.count, options.ratio, options.rounds),
    }
    output.write_text(json.dumps(measured, indent=1) + "\n")
    print(json.dumps({key: value for key, value in measured.items() if key != "points"}, indent=1))


if __name__ == "__main__":
    main()
