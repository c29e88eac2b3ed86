"""Judges: what a selection is worth to the target, as losses per text of the target under one or two measures.

| judge | needs | measures |
|---|---|---|
| `TextJudge` | texts of corpus and target | cross-entropy of a small model that learned from the selection; distance |
| | | to the nearest text that it learned from |
| `FeatureJudge` | examples as features | distance to the nearest selected row |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from datamask.errors import InputError
from datamask.evaluation.lambdas.aiming import nearest_cosine
from datamask.evaluation.lambdas.holdout import HeldOutTexts
from datamask.evaluation.lambdas.meaning import Meaning
from datamask.evaluation.lambdas.measuring import Selections, available, measure, random_rows
from datamask.evaluation.lambdas.statistics import Losses
from datamask.evaluation.measures.words import Words
from datamask.objectives.contract import Poll, no_poll

LEAST_WORDS = 1_000

Halves = tuple[Losses, Losses]
"""What the choosing and the reporting half of a split say."""


class Judge(Protocol):
    """What `study` asks of a judge."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what it measures, the one that verdicts go by first."""

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
    ) -> tuple[list[Halves], np.ndarray]:
        """The losses of every selection, and of random ones as the last column, for each measure; and the random
        selections' own values on the reporting half, float64 ``(measures, draws)``."""


class TextJudge:
    """A small model learns from each selection and must predict the target's texts.

    Args:
        words: of the corpus's texts, and of the target's after them. meaning: their directions.
        units: by text number, texts of one number are near-copies. most: words that a selection trains on at most.
    """

    measures = ("cross_entropy", "coverage")

    def __init__(self, words: Words, meaning: Meaning, units: np.ndarray, most: int, seed: int) -> None:
        self._words, self._meaning, self._units, self._most, self._seed = words, meaning, units, most, seed

    def budget(self, selections: Sequence[np.ndarray], ratio: float) -> int:
        """Words of the shortest selection, or the most."""
        budget = min(self._most, available(self._words, selections))
        if budget < LEAST_WORDS:
            raise InputError(
                f"A selection at ratio {ratio:g} has only {budget:,} words to train on, {LEAST_WORDS:,} "
                "are needed; choose a larger ratio or a larger corpus"
            )
        return budget

    def doing(self, budget: int) -> str:
        return f"training on {budget:,} words of each selection"

    def losses(
        self,
        selections: Selections,
        remaining: np.ndarray,
        size: int,
        budget: int,
        held_out: HeldOutTexts,
        split: int,
        poll: Poll = no_poll,
    ) -> tuple[list[Halves], np.ndarray]:
        """Cross-entropy and coverage."""
        *both, spread = measure(
            self._words,
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
        )
        return both, spread


class FeatureJudge:
    """How far each example is from the nearest selected row, among the corpus's own features.

    The selections are compared as they are, equally many rows each: nothing is trained.

    Args:
        features: float32 ``(N, d)``, of the corpus. examples: float32 ``(m, d)``. units: int64 ``(m,)``, examples of
            one number are near-copies. Both of unit length. What is asked are places in `examples`.
    """

    measures = ("nearness",)

    def __init__(self, features: np.ndarray, examples: np.ndarray, units: np.ndarray, seed: int) -> None:
        self._features, self._examples, self._units, self._seed = features, examples, units, seed

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
    ) -> tuple[list[Halves], np.ndarray]:
        """One minus the cosine to the nearest selected row."""
        halves: list[Losses] = []
        spread = np.empty((1, 0))
        for half, examples in enumerate((held_out.choose, held_out.report)):
            asked = self._examples[examples]
            drawn = [
                1.0 - nearest_cosine(asked, self._features[rows], poll)
                for rows in random_rows(remaining, size, split, half, self._seed)
            ]
            columns = [1.0 - nearest_cosine(asked, self._features[rows], poll) for rows in selections.values()]
            spread = np.array([[distances.mean() for distances in drawn]])
            sums = np.column_stack([*columns, np.mean(drawn, axis=0)])
            halves.append(Losses(sums, np.ones(len(examples)), self._units[examples]))
        return [(halves[0], halves[1])], spread


ABOUT = {
    "cross_entropy": (
        "Cross-entropy",
        "nats per word",
        "How badly a small model, trained on the selection, predicts the target. Lower is better.",
    ),
    "coverage": (
        "Distance to the nearest training text",
        "cosine distance",
        "How far each target text is from the nearest text the model was trained on, in a space made from "
        "words alone. Lower is better.",
    ),
    "nearness": (
        "Distance to the nearest selected sample",
        "cosine distance",
        "How far each example is from the nearest selected sample, among the features that selections were made with. "
        "Lower is better.",
    ),
}
"""By a measure's name its label, its unit and what it says."""


def empty_record(name: str) -> dict[str, Any]:
    """A measure's record, before any curve."""
    label, unit, says = ABOUT[name]
    return {"name": name, "label": label, "unit": unit, "says": says, "curves": [], "named": [], "random": []}
