"""What a solver over all rows of a corpus gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datamask.recipes.recipe import Recipe, Thresholds


@dataclass(frozen=True)
class WholeSolution:
    """What came out.

    Attributes:
        selected: bool ``(N,)``, exactly S rows; no given ones.
        joint: value on the run's scale. raw: ``quality`` and every objective, each as it defines itself.
        upper_bound: what no such selection exceeds, on the run's scale; None: nothing is proved.
        scores: of some rising rows, what each is worth beside the others, in parts: the quality's and the diversity's,
            float64 ``(k,)`` each, first order, on the run's scale, before they are weighed by lambda.
        ending: why it ended, in a few words. facts: counts for the run's record: ``passes``.
        rule: recipe and threshold by which rows are selected, but for some near it; None: no rule says so.
        anchors: ends of the scales over all rows.
    """

    selected: np.ndarray
    joint: float
    raw: dict[str, float]
    upper_bound: float | None
    scores: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ending: str
    anchors: dict[str, Any]
    facts: dict[str, int] = field(default_factory=dict)
    rule: tuple[Recipe, Thresholds] | None = None
