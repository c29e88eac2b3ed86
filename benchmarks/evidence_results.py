"""What the study's results say: differences paired by seed, regrets, the hypothesis, and who wins. No torch.

| symbol | meaning |
|---|---|
| v_ms | loss of method m in seed s on one target, in nats per word or byte; lower is better |
| d_s = v_ms - v_bs | its difference to a baseline b in the same seed: same pool, same target, equally many words |
| interval | mean of d_s, give or take ``t sd / sqrt(k)`` over the k seeds that have both; k - 1 degrees of freedom |
| regret | mean of v_ms over the seeds, minus the same of the best method of the plan on that target |
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent / "results"
RESULTS = FOLDER / "evidence.json"
PROXIES = ("bigram", "transformer")
RANDOM, COPIES = "random", "exact-duplicates"
BETTER, WORSE, LEVEL = "better", "worse", "cannot be told apart"
LEAST_SEEDS = 3
"""Of two, an interval reaches nine standard deviations: it says nothing."""

RESAMPLES = 1_000


@dataclass(frozen=True)
class Difference:
    """A method against a baseline on one target.

    Attributes:
        mean, low, high: in nats; below 0 is better. p: of a two-sided paired t-test. seeds: k. sd: of the differences.
    """

    mean: float
    low: float
    high: float
    p: float
    seeds: int
    sd: float

    @property
    def verdict(self) -> str:
        """Return what the interval says, without a correction."""
        return BETTER if self.high < 0 else WORSE if self.low > 0 else LEVEL

    def smallest_effect(self, level: float, power: float) -> float:
        """Return the size of effect that such a test finds with this probability at this level."""
        from scipy.stats import t

        reach = t.ppf(1 - level / 2, self.seeds - 1) + t.ppf(power, self.seeds - 1)
        return float(reach * self.sd / self.seeds**0.5)


def difference(pairs: Sequence[tuple[float, float]], level: float) -> Difference | None:
    """Return the difference of values and the baseline's, one pair a seed; None for fewer than `LEAST_SEEDS`."""
    from scipy.stats import t

    if len(pairs) < LEAST_SEEDS:
        return None
    d = np.array([value - baseline for value, baseline in pairs])
    error = float(d.std(ddof=1) / len(d) ** 0.5)
    mean = float(d.mean())
    reach = float(t.ppf(1 - level / 2, len(d) - 1)) * error
    # a method that equals its baseline in every seed is not told apart from it
    p = float(2 * t.sf(abs(mean) / error, len(d) - 1)) if error > 0 else float(mean == 0)
    return Difference(mean, mean - reach, mean + reach, p, len(d), float(d.std(ddof=1)))


def holm(outcomes: Sequence[Difference | None], level: float) -> list[str | None]:
    """Return the verdict of each outcome after Holm's correction over those that are there."""
    order = sorted((place for place, one in enumerate(outcomes) if one is not None), key=lambda i: outcomes[i].p)  # type: ignore[union-attr]
    verdicts: list[str | None] = [None if one is None else LEVEL for one in outcomes]
    for step, place in enumerate(order):
        one = outcomes[place]
        if one is None or one.p > level / (len(order) - step):
            break
        verdicts[place] = BETTER if one.mean < 0 else WORSE
    return verdicts


def methods_of(asked: Mapping[str, Any]) -> list[str]:
    """Return every method of the plan in its order: simple ones first."""
    methods = asked["methods"]
    return [*methods["simple"], methods["masks"], *methods["others"], *by_lambda(asked)]


def by_lambda(asked: Mapping[str, Any]) -> list[str]:
    """Return the joint methods at each lambda."""
    methods = asked["methods"]
    return [f"{name} {lamb:g}" for name, lamb in itertools.product(methods["by_lambda"], methods["lambdas"])]


@dataclass(frozen=True)
class Target:
    """A target of an arm.

    Attributes:
        arm: ``corpus/quality/features``. name: in the plan. place: in a cell's lists.
    """

    arm: str
    name: str
    place: int

    @property
    def corpus(self) -> str:
        return self.arm.split("/")[0]

    @property
    def title(self) -> str:
        return f"{self.corpus}: {self.name}"


@dataclass(frozen=True)
class Contest:
    """The best joint method against the best simple baseline on one target.

    Which one is the best is chosen, on each side, by the mean over the other seeds, and judged on the seed left out:
    the best of many on the very seeds that chose it would look better than it is.

    Attributes:
        outcome: joint less simple over the seeds left out; below 0 joint is better. joint, simple: how often each was
            chosen.
    """

    target: Target
    outcome: Difference
    joint: Counter[str]
    simple: Counter[str]


class Evidence:
    """Results next to what was planned.

    Args:
        results: what `RESULTS` holds. asked: the plan. proxy: whose cells.
    """

    def __init__(self, results: Mapping[str, Any], asked: Mapping[str, Any], proxy: str = "bigram") -> None:
        self.results, self.asked, self.proxy = results, asked, proxy
        self.level: float = asked["level"]
        self.cells: Mapping[str, Any] = results.get(proxy, {})
        self.arms = [name for group in asked["arms"] for name in group["names"]]
        self.simple: list[str] = list(asked["methods"]["simple"])
        self.joint = [*asked["methods"]["others"], *by_lambda(asked)]
        planned = methods_of(asked) if proxy == "bigram" else asked["methods"]["transformer"]
        there = {name for cell in self.cells.values() for name in cell["nats"]}
        self.methods = [name for name in planned if name in there]
        self.absent = [name for name in planned if name not in there]

    def seeds(self, arm: str) -> list[int]:
        """Return the seeds of the plan whose cells are there."""
        planned = [*self.asked["seeds"]["first"], *self.asked["seeds"]["then"]]
        return [seed for seed in planned if f"{arm}/{seed}" in self.cells]

    def targets(self, arm: str) -> list[Target]:
        """Return the targets of an arm."""
        corpus = arm.split("/")[0]
        return [Target(arm, name, place) for place, name in enumerate(self.asked["corpora"][corpus]["targets"])]

    @property
    def tested(self) -> list[Target]:
        """Return the targets of the hypothesis."""
        return [
            target
            for arm in self.asked["hypothesis"]["arms"]
            for target in self.targets(arm)
            if target.name in self.asked["corpora"][target.corpus]["hypothesis"]
        ]

    @property
    def supposed(self) -> list[str]:
        """Return the methods of the hypothesis."""
        hypothesis = self.asked["hypothesis"]
        return [f"{hypothesis['method']} {lamb:g}" for lamb in hypothesis["lambdas"]]

    def values(self, target: Target, name: str) -> dict[int, float]:
        """Return a method's loss on a target by seed."""
        cells = {seed: self.cells[f"{target.arm}/{seed}"]["nats"] for seed in self.seeds(target.arm)}
        return {seed: float(nats[name][target.place]) for seed, nats in cells.items() if name in nats}

    def difference(self, target: Target, name: str, baseline: str = RANDOM) -> Difference | None:
        """Return a method's difference to a baseline on a target."""
        ours, theirs = self.values(target, name), self.values(target, baseline)
        return difference([(ours[seed], theirs[seed]) for seed in ours if seed in theirs], self.level)

    def differences(self, targets: Sequence[Target], name: str, baseline: str = RANDOM) -> list[Difference | None]:
        return [self.difference(target, name, baseline) for target in targets]

    def counts(self, targets: Sequence[Target], name: str, baseline: str = RANDOM) -> tuple[Counter, Counter]:
        """Return on how many targets a method is better, worse, or neither: after Holm's correction, and without."""
        outcomes = self.differences(targets, name, baseline)
        corrected = Counter(verdict for verdict in holm(outcomes, self.level) if verdict is not None)
        return corrected, Counter(one.verdict for one in outcomes if one is not None)

    def complete(self, arm: str) -> list[str]:
        """Return the methods that every cell of an arm has: those that can be the best of a target."""
        every = [self.cells[f"{arm}/{seed}"]["nats"] for seed in self.seeds(arm)]
        return [name for name in self.methods if every and all(name in nats for nats in every)]

    def losses(self, arm: str, names: Sequence[str], seeds: Sequence[int] | None = None) -> np.ndarray:
        """Return losses, ``(seeds, methods, targets)``."""
        chosen = self.seeds(arm) if seeds is None else seeds
        return np.array([[self.cells[f"{arm}/{seed}"]["nats"][name] for name in names] for seed in chosen])

    def means(self, arm: str, names: Sequence[str], seeds: Sequence[int] | None = None) -> np.ndarray:
        """Return mean losses over seeds, ``(methods, targets)``."""
        means: np.ndarray = self.losses(arm, names, seeds).mean(axis=0)
        return means

    def _places(self, targets: Sequence[Target]) -> dict[str, list[int]]:
        """Return the places of targets by arm; arms with fewer than `LEAST_SEEDS` are left out."""
        arms = [arm for arm in dict.fromkeys(target.arm for target in targets) if len(self.seeds(arm)) >= LEAST_SEEDS]
        return {arm: [target.place for target in targets if target.arm == arm] for arm in arms}

    def regrets(self, targets: Sequence[Target]) -> dict[str, np.ndarray]:
        """Return each method's regret on each target, in nats.

        A method that only some seeds of an arm have is compared on these seeds, and is never the best for the others;
        one that fewer than `LEAST_SEEDS` of an arm have is left out.
        """
        arms = self._places(targets)
        found: dict[str, list[float]] = {name: [] for name in self.methods}
        for arm, places in arms.items():
            complete = self.complete(arm)
            for name in self.methods:
                seeds = [seed for seed in self.seeds(arm) if name in self.cells[f"{arm}/{seed}"]["nats"]]
                if len(seeds) >= LEAST_SEEDS:
                    means = self.means(arm, [*complete, name], seeds)[:, places]
                    found[name] += (means[-1] - means.min(axis=0)).tolist()
        size = sum(map(len, arms.values()))
        return {name: np.array(of) for name, of in found.items() if len(of) == size > 0}

    def largest_regrets(self, targets: Sequence[Target]) -> dict[str, float]:
        """Return each method's largest regret over targets, in nats; empty where nothing is done."""
        return {name: float(of.max()) for name, of in self.regrets(targets).items()}

    def resampled(self, targets: Sequence[Target]) -> dict[str, np.ndarray]:
        """Return the largest regret of each method that no cell lacks, in `RESAMPLES` resamples of the seeds."""
        arms, rng = self._places(targets), np.random.default_rng(0)
        names = [name for name in self.methods if all(name in self.complete(arm) for arm in arms)]
        largest = np.zeros((RESAMPLES, len(names)))
        for arm, places in arms.items():
            complete = self.complete(arm)
            losses = self.losses(arm, complete)[:, :, places]
            rows = [complete.index(name) for name in names]
            for draw in largest:
                means = losses[rng.integers(0, len(losses), len(losses))].mean(axis=0)
                np.maximum(draw, (means[rows] - means.min(axis=0)).max(axis=1), out=draw)
        return dict(zip(names, largest.T, strict=True))

    def contest(self, target: Target) -> Contest | None:
        """Return the best joint method against the best simple baseline on a target; None where seeds are too few."""
        there = self.complete(target.arm)
        sides = [[name for name in names if name in there] for names in (self.joint, self.simple)]
        seeds = self.seeds(target.arm)
        if len(seeds) < LEAST_SEEDS or not all(sides):
            return None
        values = {name: self.values(target, name) for names in sides for name in names}
        chosen = [
            [
                min(names, key=lambda name: sum(values[name][other] for other in seeds if other != seed))
                for names in sides
            ]
            for seed in seeds
        ]
        pairs = [(values[ours][seed], values[theirs][seed]) for seed, (ours, theirs) in zip(seeds, chosen, strict=True)]
        outcome = difference(pairs, self.level)
        if outcome is None:
            return None
        return Contest(target, outcome, Counter(ours for ours, _ in chosen), Counter(theirs for _, theirs in chosen))

    def contests(self, targets: Iterable[Target]) -> list[Contest]:
        """Return the contests of those targets that have seeds enough."""
        return [found for target in targets if (found := self.contest(target)) is not None]

    def not_run(self) -> dict[str, list[int]]:
        """Return the seeds of each arm whose cells are missing."""
        planned = [*self.asked["seeds"]["first"], *self.asked["seeds"]["then"]]
        missing = {arm: [seed for seed in planned if f"{arm}/{seed}" not in self.cells] for arm in self.arms}
        return {arm: seeds for arm, seeds in missing.items() if seeds}

    def lacking(self) -> dict[str, list[str]]:
        """Return the cells that ran without a method of the plan that others have, by method."""
        masks, arms = self.asked["methods"]["masks"], self.asked["methods"]["masks_arms"]
        found: dict[str, list[str]] = {}
        for arm in self.arms:
            for seed in self.seeds(arm):
                planned = arm in arms and seed in self.asked["seeds"]["first"]
                for name in self.methods:
                    if name not in self.cells[f"{arm}/{seed}"]["nats"] and (name != masks or planned):
                        found.setdefault(name, []).append(f"{arm}/{seed}")
        return found


def read_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return the stored results; empty where there are none."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return stored
