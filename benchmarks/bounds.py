"""Every kind of bound against exhaustive search on many small random problems, with and without rules.

    python -m benchmarks.bounds [--problems 1000] [--output FILE.json]

Each problem draws an objective, n up to 14, d = 2, S from 2 d, lambda, list length and, in half of them, pins and
quotas. All allowed subsets are valued in float64 numpy from the definitions. Reported: how often a bound lay below the
best subset (it must be never; to 1e-7, the rounding of float32 features), and how far above it was, as a share of the
way from the mean subset to the best one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
from pathlib import Path

import numpy as np
import torch

from datamask import catalogue, learning, objectives
from datamask.config import SelectionConfig
from datamask.learning.certificates import certify
from datamask.learning.problem import Problem
from datamask.learning.rules import Rules
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth

D = 2


def rules_of(rng: np.random.Generator, n: int, size: int) -> Rules:
    """Rules that a random subset obeys."""
    group = rng.integers(0, 3, size=n)
    inside = rng.choice(n, size=size, replace=False)
    count = np.bincount(group[inside], minlength=3)
    pinned = np.zeros(n, dtype=bool)
    pinned[inside[: int(rng.integers(0, 2))]] = True
    return Rules(pinned, group, np.maximum(count - rng.integers(0, 2, 3), 0), count + rng.integers(0, 2, 3),
                 ("a", "b", "c"))


def one(seed: int) -> dict:
    """One problem: its objective, whether it has rules, and its bound's slack."""
    rng = np.random.default_rng([2512, seed])
    name = str(rng.choice([entry.name for entry in catalogue.OBJECTIVES if entry.proof]))
    n = int(rng.integers(9, 15))
    size = int(rng.integers(2 * D, n // 2 + 2))
    lamb = float(rng.choice([0.0, 0.3, 0.7]))
    x, q = truth.unit_rows(rng, n, D), rng.normal(size=n)
    features = torch.from_numpy(x).float()
    function = objectives.load(name).bind(features, exact_lists(features, int(rng.integers(n // 2, n + 1))))
    joint = Joint(Quality(torch.from_numpy(q)), (Term(name, 1.0, function, Scale()),), lamb)
    rules = rules_of(rng, n, size) if rng.random() < 0.5 else None
    problem = Problem(joint, size, torch.arange(n), torch.from_numpy(rng.permutation(n)), features, rules)

    def mask(members) -> torch.Tensor:
        chosen = torch.zeros(n, dtype=torch.bool)
        chosen[list(members)] = True
        return chosen

    values = [lamb * q[list(m)].mean() + (1 - lamb) * truth.OBJECTIVES[name](x, m)
              for m in itertools.combinations(range(n), size) if rules is None or rules.obeyed(mask(m))]
    best, mean = max(values), float(np.mean(values))
    config = SelectionConfig.from_options(estimator="relaxed", objective=name, lamb=lamb)
    learner = learning.load("relaxed")(problem, config)
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    found = learner.result(state)
    value = joint.evaluate(found).joint
    proof = certify(problem, found, value)
    # rules may leave one subset, or several of one value: then the value itself is the scale
    scale = max(best - mean, 1e-3 * abs(best))
    return {"objective": name, "ruled": rules is not None, "below": bool(proof.upper_bound < best - 1e-7),
            "slack": (proof.upper_bound - best) / scale, "missed": (best - value) / scale}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--output", default=str(Path(__file__).parent / "results" / "bounds.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = [one(seed) for seed in range(options.problems)]
    report = {"problems": len(found), "python": platform.python_version(), "torch": torch.__version__, "rows": []}
    for name in sorted({row["objective"] for row in found}):
        for ruled in (False, True):
            rows = [row for row in found if row["objective"] == name and row["ruled"] is ruled]
            slack = np.array([row["slack"] for row in rows])
            report["rows"].append({
                "objective": name, "rules": ruled, "problems": len(rows), "below_the_best": sum(r["below"] for r in
                rows), "slack_median": float(np.median(slack)), "within_1_percent": float((slack < 0.01).mean()),
                "best_found": float(np.mean([row["missed"] < 1e-6 for row in rows]))})
    Path(options.output).write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
