"""The contestants of `benchmarks.engine`, each in a process of its own: what it reaches, in what time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

PAPER = {"partial": 0.1, "max_lr": 10.0, "min_lr": 1.0, "n_rollout": 128, "init": "quality"}
RATES, GROUPS = (1.0, 3.0, 10.0, 30.0), (32, 128, 512)
BLOCK, PICKS = 1024, 16
"""The published DiSF: blocks of so many samples, so many greedy picks in each (arXiv 2504.20644)."""


def peak_memory() -> int:
    """The largest resident size of this program, in bytes; unlike getrusage, without what its parent had at the
    fork."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def opened(path: str, rows: int):
    """The corpus of a problem; 0 rows are all."""
    from datamask import CorpusConfig, open_corpus

    return open_corpus(CorpusConfig((path,), rows=rows or None))


def pool_of(corpus, cache: str):
    """The corpus on the CPU, with graph and anchors from the cache."""
    import torch

    from datamask.evaluation.pool import Pool

    return Pool(corpus, torch.device("cpu"), Path(cache))


def posed(spec: dict, estimator: str = "random", **options):
    """Settings and problem of a spec."""
    from datamask import SelectionConfig
    from datamask.evaluation.problems import pose

    config = SelectionConfig.from_options(
        estimator=estimator,
        objective=spec["objective"],
        device="cpu",
        select_ratio=spec["ratio"],
        lamb=spec["lamb"],
        **options,
    )
    return config, pose(pool_of(opened(spec["path"], spec["rows"]), spec["cache"]), config)


def prepare(spec: dict) -> dict:
    """Corpus, graph and anchors of a problem into the cache; their times and the peak."""
    from datamask import SelectionConfig
    from datamask.evaluation.problems import pose

    corpus = opened(spec["path"], spec["rows"])
    pool = pool_of(corpus, spec["cache"])
    start = time.perf_counter()
    config = SelectionConfig.from_options(objective=spec["objective"], select_ratio=spec["ratio"], device="cpu")
    problem = pose(pool, config)
    return {
        "n": len(corpus),
        "dim": corpus.dim,
        "size": problem.problem.size,
        "seconds_anchors": time.perf_counter() - start - pool.seconds_graph,
        "anchor": problem.diversity_anchors[spec["objective"]].to_dict(),
    }


def graph(spec: dict) -> dict:
    """The exact neighbor graph that the problem wants, built anew."""
    from datamask.corpus.list_length import list_length
    from datamask.corpus.neighbors import build_neighbors

    corpus = opened(spec["path"], spec["rows"])
    build_neighbors(corpus.features[:2000], 64)  # compiled before the clock starts
    base, clock = peak_memory(), Clock()
    build_neighbors(corpus.features, list_length(spec["ratio"], len(corpus)))
    return {"seconds": clock.seconds, "cpu": clock.cpu, "peak": peak_memory(), "peak_before": base}


class Clock:
    """Wall and CPU seconds since it was made, less those spent inside `aside`; `poll` stops a learner at the limit."""

    def __init__(self, limit: float = float("inf")) -> None:
        self._aside, self._limit = np.zeros(2), limit
        self._start = self._now()

    @staticmethod
    def _now() -> np.ndarray:
        return np.array([time.perf_counter(), time.process_time()])

    @property
    def seconds(self) -> float:
        return float((self._now() - self._start - self._aside)[0])

    @property
    def cpu(self) -> float:
        return float((self._now() - self._start - self._aside)[1])

    def poll(self) -> None:
        from datamask.errors import Stopped

        if self.seconds > self._limit:
            raise Stopped("limit")

    def aside(self, call: Callable) -> Callable:
        """`call`, off the clock: the paper's method does not look at its whole-corpus value on the way."""

        def timed(*given, **named):
            start = self._now()
            try:
                return call(*given, **named)
            finally:
                self._aside += self._now() - start

        return timed


def contest(spec: dict) -> dict:
    """One contestant on one problem. REINFORCE and greedy that pass the limit are stopped, and their time is
    extrapolated from the steps or picks they made."""
    from datamask import learning
    from datamask.errors import Stopped
    from datamask.learning.reinforce import Reinforce

    who = spec["who"]
    if who == "neighbor graph":
        return graph(spec)
    if who == "DiSF in blocks":
        return blocks(spec)
    best = spec["best"] if who == "reinforce-best" else None
    estimator = "reinforce" if best else who
    sampled = PAPER | {"n_epochs": spec["steps"]} if estimator == "reinforce" else {}
    if best:
        sampled |= {"max_lr": best["lr"], "min_lr": best["lr"] / 10, "n_rollout": best["G"]}
    config, problem = posed(spec, estimator, **sampled)
    kind = learning.load(config.estimator)
    warm = kind(problem.problem, config)
    warm.step(warm.init())  # compiled code is loaded before the clock starts
    base = peak_memory()
    learner = kind(problem.problem, config)
    clock = Clock(spec["limit"])
    if isinstance(learner, Reinforce):
        learner.evaluate = clock.aside(learner.evaluate)  # type: ignore[method-assign]  # of this learner alone
    state, curve, note = learner.init(), [], [f"lr {best['lr']:g}, G {best['G']}"] if best else []
    scale = 1.0
    try:
        while learner.finished(state) is None:
            state, record = learner.step(state, clock.poll)
            if record.values is not None:
                curve.append((round(clock.seconds, 4), record.values.joint))
    except Stopped:
        if estimator not in ("reinforce", "greedy"):
            return {"note": f"over {spec['limit']:.0f} s after {state.step:,} steps"}
        total, unit = (spec["steps"], "steps") if estimator == "reinforce" else (problem.problem.size, "picks")
        scale = total / max(state.step, 1)
        note.append(f"stopped after {state.step:,} of {total:,} {unit}; time extrapolated")
    mask = learner.result(state)
    result = {
        "seconds": clock.seconds * scale,
        "cpu": clock.cpu * scale,
        "extrapolated": scale > 1,
        "steps": state.step,
        "curve": curve,
        "note": "; ".join(note),
    }
    if scale == 1 or estimator == "reinforce":  # some of the picks are no selection of this size
        result |= measured(problem, mask, bound=estimator not in ("reinforce", "greedy"))
    return result | {"peak": peak_memory(), "peak_before": base}


def measured(problem, mask, bound: bool) -> dict:
    """Exact values of a selection on the calibrated scale, and how long its proof takes."""
    from datamask.learning.certificates import certify

    values = problem.problem.joint.evaluate(mask)
    record = {
        "joint": values.joint,
        "quality": values.quality,
        "diversity": values.diversity,
        "raw": next(iter(values.raw_diversity.values())),
    }
    if bound:
        certify(problem.problem, mask, values.joint, dual_steps=1)  # compiled code is loaded before the clock starts
        clock = Clock()
        proof = certify(problem.problem, mask, values.joint)
        if proof is not None:
            record |= {"gap": proof.upper_bound - values.joint, "seconds_bound": clock.seconds, "cpu_bound": clock.cpu}
    return record


def blocks(spec: dict) -> dict:
    """The published DiSF greedy: in blocks of `BLOCK` samples, `PICKS` picks each, block after block over what is left
    until S are picked. Two things are kinder than the original: picks maximise the joint value, quality included, and
    a candidate is valued by its rank-one change of the correlations, not by correlations taken anew.
    """
    import torch

    from datamask.learning.greedy import Greedy
    from datamask.learning.problem import Problem

    config, problem = posed(spec, "greedy")
    whole = problem.problem
    base = peak_memory()
    clock = Clock(spec["limit"])
    chosen = torch.zeros(whole.joint.n, dtype=torch.bool)
    generator = torch.Generator().manual_seed(0)
    while (made := int(chosen.sum())) < whole.size and (not made or clock.seconds < spec["limit"]):
        left = (~chosen).nonzero().squeeze(1)
        left = left[torch.randperm(len(left), generator=generator)]
        for rows in left.split(BLOCK):
            count = min(PICKS, whole.size - made, len(rows) - 1)
            if count < 1 or (made and clock.seconds >= spec["limit"]):
                break
            block = Problem(whole.joint.batch(rows, count), count, torch.arange(len(rows)), whole.ties[rows])
            learner = Greedy(block, config)
            state = learner.init()
            while learner.finished(state) is None:
                state, _ = learner.step(state)
            chosen[rows[learner.result(state)]] = True
            made += count
    scale = whole.size / made
    record = {
        "seconds": clock.seconds * scale,
        "cpu": clock.cpu * scale,
        "extrapolated": scale > 1,
        "peak": peak_memory(),
        "peak_before": base,
    }
    if scale > 1:
        return record | {"note": f"stopped after {made:,} of {whole.size:,} picks; time extrapolated"}
    return record | measured(problem, chosen, bound=False)


def choose(spec: dict) -> dict:
    """REINFORCE's best of `RATES` x `GROUPS` after ``steps`` steps, each with its own full schedule."""
    from datamask.learning.reinforce import Reinforce

    tried = []
    for rate in RATES:
        for group in GROUPS:
            config, problem = posed(
                spec,
                "reinforce",
                **PAPER | {"n_epochs": spec["steps"], "max_lr": rate, "min_lr": rate / 10, "n_rollout": group},
            )
            learner = Reinforce(problem.problem, config)
            learner.evaluate_every = config.n_epochs
            state = learner.init()
            while learner.finished(state) is None:
                state, _ = learner.step(state)
            value = problem.problem.joint.evaluate(learner.result(state)).joint
            tried.append({"lr": rate, "G": group, "joint": value})
    return {
        "best": max(tried, key=lambda trial: trial["joint"]),
        "tried": tried,
        "rows": spec["rows"],
        "steps": spec["steps"],
    }
