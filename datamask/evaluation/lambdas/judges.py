"""Judges: what a selection is worth to the target, as losses per text of the target under one or two measures.

| judge | needs | measures |
|---|---|---|
| `TextJudge` | texts of corpus and target | cross-entropy of a small model that learned from the selection; distance |
| | | to the nearest text that it learned from |
| `FeatureJudge` | examples as features | distance to the nearest selected row |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from datamask.errors import InputError
from datamask.evaluation.lambdas.aiming import nearest_cosine
from datamask.evaluation.lambdas.holdout import HeldOutTexts
from datamask.evaluation.lambdas.meaning import Meaning
from datamask.evaluation.lambdas.measuring import Selections, available, measure, random_rows
from datamask.evaluation.lambdas.proxy_models import ProxyModel
from datamask.evaluation.lambdas.statistics import Losses
from datamask.polling import Poll, no_poll

Tick = Callable[[float], None]
"""Called with the share of a split that is done."""

Halves = tuple[Losses, Losses]
"""What the choosing and the reporting half of a split say."""


class Judge(Protocol):
    """What `study` asks of a judge."""

    name: str
    """``bigram``, ``transformer`` or ``features``."""

    def records(self) -> list[dict[str, Any]]:
        """What it measures, before any curve: the record that verdicts go by first."""

    def budget(self, selections: Sequence[np.ndarray], ratio: float) -> int:
        """How much each of these selections trains on, equally much for all; 0 where nothing is trained.

        Raises:
            InputError: too little.
        """

    def doing(self, budget: int) -> str:
        """What is done now, for a progress line."""

    def losses(
        self,
        selections: Selections,
        remaining: np.ndarray,
        size: int,
        budget: int,
        held_out: HeldOutTexts,
        split: int,
        poll: Poll = no_poll,
        tick: Tick = lambda share: None,
    ) -> list[Halves]:
        """For each measure the losses of every selection, of random ones in the mean as the last column."""


class TextJudge:
    """A small model learns from each selection and must predict the target's texts.

    Args:
        proxy: of the corpus's texts, and of the target's after them. meaning: their directions.
        units: by text number, texts of one number are near-copies. most: words, or bytes, that a selection trains on
            at most.
    """

    def __init__(self, proxy: ProxyModel, meaning: Meaning, units: np.ndarray, most: int, seed: int) -> None:
        self._proxy, self._meaning, self._units, self._most, self._seed = proxy, meaning, units, most, seed
        self.name = proxy.judge

    def records(self) -> list[dict[str, Any]]:
        """Cross-entropy and coverage."""
        counts, says = self._proxy.counts, self._proxy.says
        return [
            _record(
                "cross_entropy",
                "Cross-entropy",
                f"nats per {counts.removesuffix('s')}",
                f"How badly {says}, trained on the selection, predicts the target. Lower is better.",
                counts,
            ),
            _record(
                "coverage",
                "Distance to the nearest training text",
                "cosine distance",
                "How far each target text is from the nearest text the model was trained on, in a space made from "
                "words alone. Lower is better.",
                counts,
            ),
        ]

    def budget(self, selections: Sequence[np.ndarray], ratio: float) -> int:
        """Words, or bytes, of the shortest selection, or the most."""
        budget = min(self._most, available(self._proxy, selections))
        if budget < self._proxy.least:
            raise InputError(
                f"A selection at ratio {ratio:g} has only {budget:,} {self._proxy.counts} to train on, "
                f"{self._proxy.least:,} are needed; choose a larger ratio or a larger corpus"
            )
        return budget

    def doing(self, budget: int) -> str:
        model = "" if self.name == "bigram" else f"{self._proxy.says} "
        return f"training {model}on {budget:,} {self._proxy.counts} of each selection"

    def losses(
        self,
        selections: Selections,
        remaining: np.ndarray,
        size: int,
        budget: int,
        held_out: HeldOutTexts,
        split: int,
        poll: Poll = no_poll,
        tick: Tick = lambda share: None,
    ) -> list[Halves]:
        """Cross-entropy and coverage."""
        both = measure(
            self._proxy,
            self._meaning,
            selections,
            remaining,
            size,
            budget,
            held_out,
            self._units,
            split,
            self._seed,
            poll,
            tick,
        )
        return list(both)


class FeatureJudge:
    """How far each example is from the nearest selected row, among the corpus's own features.

    The selections are compared as they are, equally many rows each: nothing is trained.

    Args:
        features: float32 ``(N, d)``, of the corpus. examples: float32 ``(m, d)``. units: int64 ``(m,)``, examples of
            one number are near-copies. Both of unit length. What is asked are places in `examples`.
    """

    name = "features"

    def __init__(self, features: np.ndarray, examples: np.ndarray, units: np.ndarray, seed: int) -> None:
        self._features, self._examples, self._units, self._seed = features, examples, units, seed

    def records(self) -> list[dict[str, Any]]:
        """Nearness."""
        return [
            _record(
                "nearness",
                "Distance to the nearest selected sample",
                "cosine distance",
                "How far each example is from the nearest selected sample, among the features that selections were "
                "made with. Lower is better.",
                "",
            )
        ]

    def budget(self, selections: Sequence[np.ndarray], ratio: float) -> int:
        return 0

    def doing(self, budget: int) -> str:
        return "looking for the nearest selected sample of each example"

    def losses(
        self,
        selections: Selections,
        remaining: np.ndarray,
        size: int,
        budget: int,
        held_out: HeldOutTexts,
        split: int,
        poll: Poll = no_poll,
        tick: Tick = lambda share: None,
    ) -> list[Halves]:
        """One minus the cosine to the nearest selected row."""
        halves: list[Losses] = []
        for half, examples in enumerate((held_out.choose, held_out.report)):
            asked = self._examples[examples]
            drawn = np.column_stack(
                [
                    1.0 - nearest_cosine(asked, self._features[rows], poll)
                    for rows in random_rows(remaining, size, split, half, self._seed)
                ]
            )
            columns = [1.0 - nearest_cosine(asked, self._features[rows], poll) for rows in selections.values()]
            sums = np.column_stack([*columns, drawn.mean(axis=1)])
            halves.append(Losses(sums, np.ones(len(examples)), self._units[examples], drawn))
        return [(halves[0], halves[1])]


def _record(name: str, label: str, unit: str, says: str, counts: str) -> dict[str, Any]:
    """A measure's record, before any curve; `counts` is what training text is counted in, "" where there is none."""
    return {
        "name": name,
        "label": label,
        "unit": unit,
        "says": says,
        "counts": counts,
        "curves": [],
        "named": [],
        "random": [],
    }
