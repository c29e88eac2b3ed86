"""Every kind of bound against exhaustive search on many small random problems: free, under rules, beside given rows,
under token budgets; and facility location of forty rows against an integer programme.

    python -m benchmarks.bounds [--problems 1000] [--output FILE.json]

Each problem draws an objective, lambda, list length, and what limits it. Free ones have up to 22 rows in two or three
dimensions and S of 2 to 6 times as many, so that their slack can be told by S / d; the others have up to 14 rows. All
allowed subsets are valued in float64 numpy from the definitions. Reported: how often a bound lay below the best subset
(it must be never; to 1e-7, the rounding of float32 similarities), and how far above it was, as a share of the way from
the mean subset to the best one.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import Bounds, LinearConstraint, milp

from datamask import catalogue, learning, objectives
from datamask.config import SelectionConfig
from datamask.learning.certificates import certify
from datamask.learning.limits import Limits
from datamask.learning.problem import Problem
from datamask.objectives.budgeted import BudgetedQuality
from datamask.objectives.facility import exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.quotas import Groups
from tests.reference import truth

KINDS = {"free": 0.55, "rules": 0.15, "given": 0.1, "budget": 0.15, "integer programme": 0.05}
"""What limits a problem, and how often it is drawn."""

SUBSETS_AT_ONCE = 50_000
PROVED = [entry.name for entry in catalogue.OBJECTIVES if entry.proof]


@dataclass(frozen=True)
class Case:
    """A problem with all that is needed to value its subsets: x ``(n, d)``, q ``(n,)``, and tokens under a budget."""

    name: str
    problem: Problem
    x: np.ndarray
    q: np.ndarray
    lengths: np.ndarray | None = None

    def values(self, member: np.ndarray) -> np.ndarray:
        """Joint values of subsets given as rows of 0 and 1, ``(C, n)`` to ``(C,)``."""
        lamb = self.problem.joint.lamb
        quality = self._mean(member, self.q[:, None])[:, 0]
        return lamb * quality + (1 - lamb) * getattr(self, f"_{self.name}")(member)

    def _mean(self, member: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Mean of rows of `of` over the members; over tokens under a budget, those left over at the pool's mean."""
        if self.lengths is None:
            return member @ of / member.sum(1, keepdims=True)
        most = self.problem.limits.most
        counted = np.where(self.lengths <= most, self.lengths, 0.0)
        spent = member * self.lengths
        return (spent @ of + (most - spent.sum(1, keepdims=True)) * (counted @ of / counted.sum())) / most

    def _pairwise(self, member: np.ndarray) -> np.ndarray:
        square = (self._mean(member, self.x) ** 2).sum(1)
        if self.lengths is None:
            size = member.sum(1)
            return -(square * size - 1) / np.maximum(size - 1, 1)
        most = self.problem.limits.most
        own = self._mean(member, self.lengths[:, None])[:, 0] / most
        counted = np.where(self.lengths <= most, self.lengths, 0.0)
        return -(square - own) / (1 - counted @ self.lengths / counted.sum() / most)

    def _disf_fixed(self, member: np.ndarray) -> np.ndarray:
        d = self.x.shape[1]
        y = (self.x - self.x.mean(0)) / self.x.std(0)
        moment = self._mean(member, np.einsum("na,nb->nab", y, y)[:, ~np.eye(d, dtype=bool)])
        return -(moment**2).sum(1) / (d * (d - 1))

    def _vendi(self, member: np.ndarray) -> np.ndarray:
        outer = np.einsum("na,nb->nab", self.x, self.x)
        if self.lengths is None:
            return _extended(np.tensordot(member / member.sum(1, keepdims=True), outer, 1))
        counted = np.where(self.lengths <= self.problem.limits.most, self.lengths, 0.0)
        share = member * self.lengths / self.problem.limits.most
        average = np.tensordot(counted / counted.sum(), outer, 1)
        return _extended(np.tensordot(share, outer, 1)) + (1 - share.sum(1)) * _extended(average)

    def _facility(self, member: np.ndarray) -> np.ndarray:
        near = np.maximum(self.x @ self.x.T, 0.0)
        if len(near) > 24:
            return np.mean([(member * row).max(1) for row in near], axis=0)
        # each half of the rows has few subsets: who serves a row best is looked up in a table for each half
        half = len(near) // 2
        codes = (member @ 2.0 ** np.arange(len(near))).astype(np.int64)
        first, second = (_served(near[:, part]) for part in (slice(0, half), slice(half, None)))
        return np.maximum(first[codes % 2**half], second[codes // 2**half]).mean(1)


def _extended(moments: np.ndarray) -> np.ndarray:
    """``-tr(M log M) + tr M - 1`` of matrices ``(..., d, d)``: the entropy of the spectrum where the trace is 1."""
    values = np.linalg.eigvalsh(moments)
    return (values - values * np.log(np.maximum(values, 1e-300))).sum(-1) - 1


def _served(near: np.ndarray) -> np.ndarray:
    """Every row's nearest member for every subset of k candidates, ``(n, k)`` to ``(2^k, n)``."""
    best = np.zeros((1, len(near)))
    for column in near.T:
        best = np.concatenate([best, np.maximum(best, column)])
    return best


def subsets(n: int, size: int | None) -> np.ndarray:
    """All subsets of n rows, or all of `size`, as rows of 0 and 1, float64 ``(C, n)``."""
    codes = np.arange(2**n, dtype=np.uint32)
    if size is not None:
        codes = codes[np.bitwise_count(codes) == size]
    return ((codes[:, None] >> np.arange(n, dtype=np.uint32)) & 1).astype(np.float64)


def limits_of(rng: np.random.Generator, n: int, size: int, given: bool) -> Limits:
    """Limits that a random subset obeys: pins and quotas, or given rows alone."""
    inside = rng.choice(n, size=size, replace=False)
    pinned = np.zeros(n, dtype=bool)
    if given:
        pinned[inside[: int(rng.integers(1, size // 2 + 1))]] = True
        return Limits(size, pinned, given=pinned)
    group = rng.integers(0, 3, size=n)
    count = np.bincount(group[inside], minlength=3)
    pinned[inside[: int(rng.integers(0, 2))]] = True
    low, high = np.maximum(count - rng.integers(0, 2, 3), 0), count + rng.integers(0, 2, 3)
    return Limits(size, pinned, quotas=Groups(group, low, high, ("a", "b", "c")))


def shape_of(rng: np.random.Generator, kind: str) -> tuple[int, int, int]:
    """n, d and S."""
    if kind == "integer programme":
        return 40, 3, int(rng.integers(8, 14))
    if kind != "free":
        n = int(rng.integers(9, 15))
        return n, 2, int(rng.integers(4, n // 2 + 2))
    while True:
        d = int(rng.integers(2, 4))
        size = round(rng.uniform(2, 6) * d)
        if 1.5 * size <= 22:
            return int(rng.integers(int(np.ceil(1.5 * size)), 23)), d, size


def case_of(seed: int) -> tuple[str, Case]:
    """What limits the problem of a seed, and the problem."""
    rng = np.random.default_rng([2512, seed])
    kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
    name = "facility" if kind == "integer programme" else str(rng.choice(PROVED))
    n, d, size = shape_of(rng, kind)
    lamb = float(rng.choice([0.0, 0.3, 0.7]))
    features = torch.from_numpy(truth.unit_rows(rng, n, d)).float()
    q = rng.normal(size=n)
    x = features.double().numpy()
    function = objectives.load(name).bind(features, exact_lists(features, int(rng.integers(n // 2, n + 1))))
    quality, limits, lengths = Quality(torch.from_numpy(q)), Limits(size, np.zeros(n, bool)), None
    if kind in ("budget", "integer programme"):
        lengths = rng.integers(1, 12, size=n).astype(float)
        pinned = np.arange(n) < rng.integers(0, 2)
        most = float(max(np.floor(lengths.sum() * size / n), 12 + lengths[pinned].sum()))
        tokens, limits = torch.from_numpy(lengths), Limits(most, pinned, lengths)
        function, quality = function.budgeted(tokens, most), BudgetedQuality(quality.scores, tokens, most)
    elif kind != "free":
        limits = limits_of(rng, n, size, kind == "given")
    problem = Problem(
        Joint(quality, (Term(name, 1.0, function, Scale()),), lamb),
        size,
        torch.arange(n),
        torch.from_numpy(rng.permutation(n)),
        features,
        limits,
    )
    return kind, Case(name, problem, x, q, lengths)


def exhaustive(case: Case) -> tuple[float, float]:
    """The best value of all allowed subsets, and their mean."""
    n, limits = case.problem.joint.n, case.problem.limits
    member = subsets(n, None if limits.by_tokens else case.problem.size)
    groups = np.arange(len(limits.groups.names))
    held = (member * limits.amounts) @ np.eye(len(groups))[limits.groups.group]
    member = member[
        limits.holds(held.sum(1)) & limits.shares(held, groups).all(1) & (member[:, limits.pinned] > 0).all(1)
    ]
    values = np.concatenate(
        [case.values(member[start : start + SUBSETS_AT_ONCE]) for start in range(0, len(member), SUBSETS_AT_ONCE)]
    )
    return float(values.max()), float(values.mean())


def integer_programme(case: Case) -> tuple[float, float]:
    """The best facility value under a budget by scipy's MILP, and the mean of a hundred random filling subsets."""
    problem, n, lamb = case.problem, len(case.x), case.problem.joint.lamb
    near = np.maximum(case.x @ case.x.T, 0.0)
    # y_i: row i is a member; z_vi: row v is served by i
    gain, base = (part.numpy() if isinstance(part, torch.Tensor) else part for part in problem.joint.quality.linear(0))
    cost = -np.concatenate([lamb * gain, (1 - lamb) * near.ravel() / n])
    serve = np.zeros((n, n + n * n))
    linked = np.zeros((n * n, n + n * n))
    for v in range(n):
        serve[v, n + v * n : n + (v + 1) * n] = 1.0
        linked[v * n + np.arange(n), n + v * n + np.arange(n)] = 1.0
        linked[v * n + np.arange(n), np.arange(n)] = -1.0
    tokens = np.concatenate([case.lengths, np.zeros(n * n)])[None, :]
    low = np.zeros(n + n * n)
    low[:n][case.problem.limits.pinned] = 1.0
    solution = milp(
        cost,
        integrality=np.r_[np.ones(n), np.zeros(n * n)],
        bounds=Bounds(low, 1.0),
        constraints=[
            LinearConstraint(serve, -np.inf, 1.0),
            LinearConstraint(linked, -np.inf, 0.0),
            LinearConstraint(tokens, case.problem.limits.least, case.problem.limits.most),
        ],
        options={"mip_rel_gap": 1e-9},
    )
    assert solution.status == 0, solution.message
    rng = np.random.default_rng(0)
    random = [
        case.values(problem.subset(torch.from_numpy(rng.random(n))).numpy()[None].astype(float))[0] for _ in range(100)
    ]
    return float(lamb * base - solution.fun), float(np.mean(random))


def solved(seed: int, best_of: Callable[[Case], tuple[float, float]] | None = None) -> dict:
    """One problem: what it is, its bound's slack, and what the solver missed."""
    kind, case = case_of(seed)
    problem, joint = case.problem, case.problem.joint
    best, mean = (best_of or (integer_programme if kind == "integer programme" else exhaustive))(case)
    learner = learning.load("relaxed")(problem, SelectionConfig.from_options(estimator="relaxed", objective=case.name))
    state = learner.init()
    while learner.finished(state) is None:
        state, _ = learner.step(state)
    mask = learner.result(state)
    value = joint.evaluate(mask).joint
    proof = certify(problem, mask, value)
    assert proof is not None, f"{case.name} must have a bound"
    # rules may leave one subset, or several of one value: then the value itself is the scale
    scale = max(best - mean, 1e-3 * abs(best))
    return {
        "objective": case.name,
        "kind": kind,
        "ratio": problem.size / case.x.shape[1],
        "below": bool(proof.upper_bound < best - 1e-7),
        "slack": (proof.upper_bound - best) / scale,
        "missed": (best - value) / scale,
    }


def table(problems: list[dict]) -> list[dict]:
    """Rows by objective, kind and, for free problems, S / d from 2 to 6."""
    keyed: dict[tuple, list[dict]] = {}
    for row in problems:
        span = f"{int(row['ratio'])} to {int(row['ratio']) + 1}" if row["kind"] == "free" else ""
        for part in {span, ""}:
            keyed.setdefault((row["objective"], row["kind"], part), []).append(row)
    return [
        {
            "objective": name,
            "kind": kind,
            "rows_per_dimension": span or "all",
            "problems": len(rows),
            "below_the_best": sum(row["below"] for row in rows),
            "slack_median": float(np.median([row["slack"] for row in rows])),
            "within_1_percent": float(np.mean([row["slack"] < 0.01 for row in rows])),
            "best_found": float(np.mean([row["missed"] < 1e-6 for row in rows])),
        }
        for (name, kind, span), rows in sorted(keyed.items())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--output", default=str(Path(__file__).parent / "results" / "bounds.json"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    problems = []
    for seed in range(options.problems):
        problems.append(solved(seed))
        if seed % 100 == 99:
            print(f"{seed + 1:,} problems", file=sys.stderr)
    free = [row["slack"] < 0.01 for row in problems if row["kind"] == "free"]
    report = {
        "problems": len(problems),
        "below_the_best": sum(row["below"] for row in problems),
        "free_within_1_percent": float(np.mean(free)),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "rows": table(problems),
    }
    Path(options.output).write_text(json.dumps(report, indent=1))
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
