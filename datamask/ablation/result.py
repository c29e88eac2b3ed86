"""What an ablation found, as a frozen value: losses by seed, method and target, and what follows from them.

Losses are stored; verdicts, regrets and the recommendation are worked out from them, so they cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from datamask.ablation.comparisons import BETTER, LEVEL, WORSE, Comparisons, Difference, compare, regrets
from datamask.ablation.question import AblationQuestion

VERSION = 1
"""Of the record's fields. `datamask.ablation.question.MEANING` is the version of what they mean."""


@dataclass(frozen=True)
class Method:
    """A way to select that was compared.

    Attributes:
        name: unique, ``facility-0.7``. label: for people, ``Facility location λ 0.7``. simple: a simple baseline.
        objective, lamb: where they have a say in it; "" and None elsewhere.
    """

    name: str
    label: str
    simple: bool = False
    objective: str = ""
    lamb: float | None = None

    @property
    def along_lambda(self) -> bool:
        """Whether it is a point of its objective over lambda."""
        return self.lamb is not None and self.name == f"{self.objective}-{self.lamb:g}"


POOL_LABEL = "held-out text of the corpus"
"""Of the target that stands for the whole corpus."""

BESIDES = f"Besides {POOL_LABEL}, "
"""How the note on the other targets begins."""


@dataclass(frozen=True)
class TargetFacts:
    """A target that methods were compared on.

    Attributes:
        name: unique. label: for people, within a sentence. texts: held-out texts, or examples, of all seeds together.
        circular: made from the quality that methods select by; it recommends nothing.
        note: a sentence that belongs to it, or "".
    """

    name: str
    label: str
    texts: int
    circular: bool = False
    note: str = ""


@dataclass(frozen=True)
class MethodSummary:
    """One method over all targets.

    Attributes:
        method: which. better, worse: targets on which it is better or worse than random.
        better_than_simple, worse_than_simple: likewise than the best simple baseline of the target.
        worst: the target with the largest mean difference to random, and that difference.
        regret: the largest regret to the best method of a target, and regret_on that target.
    """

    method: Method
    better: int
    worse: int
    better_than_simple: int
    worse_than_simple: int
    worst: TargetFacts
    worst_difference: float
    regret: float
    regret_on: TargetFacts


@dataclass(frozen=True, eq=False)
class AblationResult:
    """A result, finished or provisional.

    Attributes:
        question: what was asked. fingerprint: of the corpus. n: its rows.
        rows, selected: rows of a seed that could be selected, and rows selected, in the mean over seeds.
        judge: ``bigram``, ``transformer`` or ``features``. unit: of a loss. training: words, bytes or tokens of each
            selection that it is measured by, in the mean over seeds; 0: all of its rows. counts: ``words``, ``bytes``,
            ``tokens`` or ``rows``.
        methods: M of them, random first. targets: T.
        losses: float64 ``(J, M, T)`` of the seeds done; smaller is better.
        of_texts: float64 ``(M, S, T)``: variance of the difference of each method to each simple one, in the mean over
            seeds, by which texts were held out.
        notes: sentences that a person should read next to it. seconds: of computing. created: seconds since 1970.
    """

    question: AblationQuestion
    fingerprint: str
    n: int
    rows: int
    selected: int
    judge: str
    unit: str
    training: int
    counts: str
    methods: tuple[Method, ...]
    targets: tuple[TargetFacts, ...]
    losses: np.ndarray
    of_texts: np.ndarray
    notes: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
    created: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        seeds, shape = len(self.losses), (len(self.methods), len(self.targets))
        if self.losses.ndim != 3 or self.losses.shape[1:] != shape or not 0 < seeds <= self.question.seeds:
            raise ValueError(
                f"losses must be (J, {shape[0]}, {shape[1]}) with J from 1 to {self.question.seeds}, got "
                f"{self.losses.shape}"
            )
        pairs = (shape[0], sum(method.simple for method in self.methods), shape[1])
        if self.of_texts.shape != pairs or not (self.of_texts >= 0).all():
            raise ValueError(f"of_texts must be variances {pairs}, got {self.of_texts.shape}")
        if not np.isfinite(self.losses).all() or not np.isfinite(self.of_texts).all():
            raise ValueError("losses and of_texts must be finite")
        if not self.methods[0].simple or len({method.name for method in self.methods}) < len(self.methods):
            raise ValueError("methods must have different names, random first")

    @property
    def seeds(self) -> int:
        """J, the seeds done."""
        return len(self.losses)

    @property
    def provisional(self) -> bool:
        """Whether planned seeds are missing: it then colors and recommends nothing."""
        return self.seeds < self.question.seeds

    @property
    def several(self) -> bool:
        """Whether it has several targets."""
        return len(self.targets) > 1

    @cached_property
    def means(self) -> np.ndarray:
        """float64 ``(M, T)``: losses in the mean over seeds."""
        means: np.ndarray = self.losses.mean(axis=0)
        return means

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """Differences with intervals; None as long as the result is provisional."""
        if self.provisional:
            return None
        return compare(self.losses, [method.simple for method in self.methods], self.of_texts)

    @cached_property
    def overall(self) -> Comparisons | None:
        """Differences in the mean over targets; None as long as the result is provisional.

        No row is held out for two targets, so the chances of their texts are independent.
        """
        if self.provisional or not self.several:
            return self.comparisons
        of_texts = self.of_texts.sum(axis=2, keepdims=True) / len(self.targets) ** 2
        return compare(self.losses.mean(axis=2, keepdims=True), [method.simple for method in self.methods], of_texts)

    @property
    def visible(self) -> float:
        """The smallest difference from random, in the mean over targets, that an interval would show; infinity where
        none would, or as long as the result is provisional."""
        compared = () if self.overall is None else self.overall.to_random[0]
        return min(((each.high - each.low) / 2 for each in compared if each.high > each.low), default=math.inf)

    def to_random(self, method: int, target: int) -> Difference | None:
        """The difference of a method to random on a target."""
        return None if self.comparisons is None else self.comparisons.to_random[target][method]

    def to_simple(self, method: int, target: int) -> Difference | None:
        """The difference of a method to the best simple baseline of a target."""
        return None if self.comparisons is None else self.comparisons.to_simple[target][method]

    @property
    def claims(self) -> bool:
        """Whether any method was told apart from random or from the best simple baseline on any target."""
        compared = self.comparisons
        return compared is not None and any(
            difference.verdict != LEVEL
            for table in (compared.to_random, compared.to_simple)
            for row in table
            for difference in row
        )

    @cached_property
    def summaries(self) -> tuple[MethodSummary, ...]:
        """One per method, in their order; counts are 0 as long as the result is provisional."""
        differences = self.means - self.means[0]
        regret = regrets(self.losses)
        return tuple(
            MethodSummary(
                method,
                self._count(self.to_random, place, BETTER),
                self._count(self.to_random, place, WORSE),
                self._count(self.to_simple, place, BETTER),
                self._count(self.to_simple, place, WORSE),
                self.targets[int(differences[place].argmax())],
                float(differences[place].max()),
                float(regret[place].max()),
                self.targets[int(regret[place].argmax())],
            )
            for place, method in enumerate(self.methods)
        )

    def _count(self, difference: Any, method: int, verdict: str) -> int:
        found = (difference(method, target) for target in range(len(self.targets)))
        return sum(each is not None and each.verdict == verdict for each in found)

    @property
    def safest(self) -> MethodSummary | None:
        """The method with the smallest largest regret; None: the result is provisional or its target circular."""
        if self.provisional or any(target.circular for target in self.targets):
            return None
        return min(self.summaries, key=lambda summary: summary.regret)

    @property
    def recommendation(self) -> MethodSummary | None:
        """For an unknown target the method with the smallest largest regret; for one target the method with the
        smallest loss among those better than random. None: no method is better than random or than the best simple
        baseline on any target, or the result is provisional or its target circular."""
        if any(target.circular for target in self.targets):
            return None
        if self.several:
            helps = any(summary.better or summary.better_than_simple for summary in self.summaries)
            return self.safest if helps else None
        better = [summary for summary in self.summaries if summary.better]
        return min(better, key=lambda summary: summary.regret, default=None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it: what is stored, and under ``derived`` what follows from it."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        recommended = self.recommendation
        return {
            **kept,
            "version": VERSION,
            "key": self.question.key,
            "question": self.question.to_dict(),
            "methods": [asdict(method) for method in self.methods],
            "targets": [asdict(target) for target in self.targets],
            "losses": self.losses.tolist(),
            "of_texts": self.of_texts.tolist(),
            "notes": list(self.notes),
            "derived": {
                "provisional": self.provisional,
                "recommendation": recommended.method.name if recommended else None,
                "reach": self.comparisons.reach if self.comparisons and math.isfinite(self.comparisons.reach) else None,
                "best_simple": [self.methods[place].name for place in self.comparisons.best_simple]
                if self.comparisons
                else None,
                "cells": self._cells(),
                "methods": [
                    {
                        **asdict(summary),
                        "method": summary.method.name,
                        "worst": summary.worst.name,
                        "regret_on": summary.regret_on.name,
                    }
                    for summary in self.summaries
                ],
            },
        }

    def _cells(self) -> list[dict[str, Any]]:
        """Every method on every target, with its verdicts."""
        return [
            {
                "method": method.name,
                "target": target.name,
                "loss": float(self.means[m, t]),
                **{
                    name: None
                    if (difference := found(m, t)) is None
                    # an interval without end has no numbers in JSON
                    else {
                        **{end: value if math.isfinite(value) else None for end, value in asdict(difference).items()},
                        "verdict": difference.verdict,
                    }
                    for name, found in (("to_random", self.to_random), ("to_simple", self.to_simple))
                },
            }
            for m, method in enumerate(self.methods)
            for t, target in enumerate(self.targets)
        ]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AblationResult:
        """The result that `to_dict` wrote.

        Raises:
            ValueError: it is of another version, or does not hold together. KeyError, TypeError: a part is missing.
        """
        if data["version"] != VERSION:
            raise ValueError(f"version must be {VERSION}, got {data['version']!r}")
        kept = {field.name: data[field.name] for field in fields(cls)}
        return cls(
            **{
                **kept,
                "question": AblationQuestion.from_dict(data["question"]),
                "methods": tuple(Method(**method) for method in data["methods"]),
                "targets": tuple(TargetFacts(**target) for target in data["targets"]),
                "losses": np.array(data["losses"], np.float64),
                "of_texts": np.array(data["of_texts"], np.float64),
                "notes": tuple(data["notes"]),
            }
        )
