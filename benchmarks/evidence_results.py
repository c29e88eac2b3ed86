"""The study's results, and what follows of them: differences paired by seed, verdicts, and who wins.

Torch is not needed for it.

| symbol | meaning |
|---|---|
| v_cs | what the judge says of selection c in seed s on one target, in nats per word or byte; lower is better |
| d_s = v_cs - v_bs | its difference to a baseline b in the same seed: same sample, same target, equally many words |
| interval | mean of d_s, give or take ``t sd / sqrt(k)`` over the k seeds that have both; k - 1 degrees of freedom |
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

BETTER, WORSE, LEVEL = "better", "worse", "cannot be told apart"
QUALITY_OF = {"bigram": ("rules", "classifier"), "transformer": ("classifier",)}
"""Judge -> the kinds of quality that it judges."""

SHORT = {"random": "held-out", "reference": "reference"}
LEAST_SEEDS = 3
"""Of two, an interval reaches nine standard deviations: it says nothing."""

Results = Mapping[str, Mapping[str, Any]]
"""Judge -> what its file of results holds."""


@dataclass(frozen=True)
class Difference:
    """A selection against a baseline on one target.

    Attributes:
        mean, low, high: in nats; below 0 is better. seeds: k.
    """

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def verdict(self) -> str:
        """`BETTER`, `WORSE` or `LEVEL`."""
        return BETTER if self.high < 0 else WORSE if self.low > 0 else LEVEL


def difference(pairs: Sequence[tuple[float, float]], confidence: float) -> Difference | None:
    """Of values and the baseline's, one pair per seed; None for fewer than `LEAST_SEEDS`."""
    from scipy.stats import t

    if len(pairs) < LEAST_SEEDS:
        return None
    d = np.array([value - baseline for value, baseline in pairs])
    reach = float(t.ppf(0.5 + confidence / 2, len(d) - 1) * d.std(ddof=1) / len(d) ** 0.5)
    mean = float(d.mean())
    return Difference(mean, mean - reach, mean + reach, len(d))


@dataclass(frozen=True)
class Target:
    """One of the targets, by its corpus, its name in the plan and its place in a piece."""

    corpus: str
    name: str
    place: int
    title: str


class Evidence:
    """Results, beside what was asked."""

    def __init__(self, results: Results, asked: Mapping[str, Any]) -> None:
        self.results, self.asked = results, asked
        self.targets = [
            Target(corpus, name, place, f"{corpus}: {SHORT.get(name) or facts['target_kind']}")
            for corpus, facts in asked["corpora"].items()
            for place, name in enumerate(facts["targets"])
        ]
        by_lambda, lambdas = asked["selections"]["by_lambda"], asked["selections"]["lambdas"]
        self.simple = list(asked["selections"]["plain"])
        self.joint = [f"{name} {lamb:g}" for name, lamb in itertools.product(by_lambda, lambdas)]
        self.selections = {"bigram": [*self.simple, *self.joint], "transformer": asked["selections"]["transformer"]}

    def pieces(self, judge: str, quality: str, corpus: str) -> list[Mapping[str, Any]]:
        """Of the seeds that were asked for, those that are there."""
        every = self.results.get(judge, {}).get("pieces", {})
        keys = [f"{corpus}/{quality}/{seed}" for seed in self.asked["seeds"][judge]]
        return [every[key] for key in keys if key in every]

    def difference(self, judge: str, quality: str, target: Target, name: str, baseline: str) -> Difference | None:
        """Of a selection to a baseline on a target."""
        nats = [piece["nats"] for piece in self.pieces(judge, quality, target.corpus)]
        return difference(
            [(of[name][target.place], of[baseline][target.place]) for of in nats if name in of and baseline in of],
            self.asked["confidence"],
        )

    def verdicts(self, judge: str, quality: str, name: str, baseline: str) -> dict[str, list[Target]]:
        """The targets on which a selection is better, worse, or cannot be told apart; those without a result are in
        none."""
        sides: dict[str, list[Target]] = {BETTER: [], WORSE: [], LEVEL: []}
        for target in self.targets:
            outcome = self.difference(judge, quality, target, name, baseline)
            if outcome is not None:
                sides[outcome.verdict].append(target)
        return sides

    def done(self, judge: str) -> tuple[int, int]:
        """Selections judged, of how many that were asked for; each once per corpus, seed and quality."""
        qualities = QUALITY_OF[judge]
        there = sum(
            name in piece["nats"]
            for quality, corpus in itertools.product(qualities, self.asked["corpora"])
            for piece in self.pieces(judge, quality, corpus)
            for name in self.selections[judge]
        )
        seeds = len(self.asked["seeds"][judge])
        return there, seeds * len(qualities) * len(self.asked["corpora"]) * len(self.selections[judge])


@dataclass(frozen=True)
class Contest:
    """The best joint selection against the best simple one in one cell: a quality and a target.

    Which one is the best is chosen, on each side, by the mean over the other seeds, and judged on the seed left out:
    the best of many on the very seeds that chose it would look better than it is.

    Attributes:
        quality, target: the cell. outcome: joint less simple, over the seeds left out; below 0 joint is better.
        joint, simple: how often each selection was chosen.
    """

    quality: str
    target: Target
    outcome: Difference
    joint: Counter[str]
    simple: Counter[str]


def contests(evidence: Evidence, judge: str, joint: Sequence[str], simple: Sequence[str]) -> list[Contest]:
    """The cells of a judge for which seeds enough are done.

    Args:
        joint, simple: names of selections; those that the plan does not ask of the judge are left out.
    """
    asked = evidence.selections[judge]
    sides = [[name for name in names if name in asked] for names in (joint, simple)]
    found = []
    for quality, target in itertools.product(QUALITY_OF[judge], evidence.targets):
        seeds = [
            {name: float(values[target.place]) for name, values in piece["nats"].items()}
            for piece in evidence.pieces(judge, quality, target.corpus)
        ]
        seeds = [seed for seed in seeds if all(name in seed for names in sides for name in names)]
        chosen = [[_best(names, [*seeds[:k], *seeds[k + 1 :]]) for names in sides] for k in range(len(seeds))]
        outcome = difference(
            [(seed[ours], seed[theirs]) for seed, (ours, theirs) in zip(seeds, chosen, strict=True)],
            evidence.asked["confidence"],
        )
        if outcome is not None:
            ours, theirs = (Counter(names) for names in zip(*chosen, strict=True))
            found.append(Contest(quality, target, outcome, ours, theirs))
    return found


def _best(names: Sequence[str], seeds: Sequence[Mapping[str, float]]) -> str:
    return min(names, key=lambda name: sum(seed[name] for seed in seeds))
