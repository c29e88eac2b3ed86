"""What a measure says about one selection, and how sure it is: intervals, and differences between two selections.

A reading carries draws: the measure's value under resampling. Two selections are always resampled together, draw by
draw, so the difference of their draws is the difference's own uncertainty: what they share cancels.

| draws | what they are | 95 % interval |
|---|---|---|
| ``bootstrap`` | 200 resamples of the rows | value +- 1.96 sd of the draws |
| ``splits`` | one value per hold-out | value +- t(0.975, splits - 1) sd / sqrt(splits) |
| none | a value without a law of its own | none, and it is never marked best |

The draws' sd stands for their percentiles: of 200 draws the outer percentiles would themselves be a guess (twice the
noise), and the sd does not care that resampling pulls entropies down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

RESAMPLES = 200
NORMAL = 1.959963984540054
"""The 0.975 quantile of the normal law."""


@dataclass(frozen=True)
class Reading:
    """One measure of one selection.

    Attributes:
        value: the value, or None where it cannot be had; `note` says why.
        draws: float64 ``(R,)``, or None where there is no interval.
        kind: what the draws are, or would be: ``bootstrap`` or ``splits``.
        note: what a person should know beside the number.
        extra: more keys for the panel's row, such as ``calibrated`` or ``levels``.
        bounds: the values the measure can take; an interval ends there.
    """

    value: float | None
    draws: np.ndarray | None = None
    kind: str = ""
    note: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the value, or None."""
        if self.value is None or self.draws is None:
            return None
        reach = half_width(self.draws, self.kind)
        low, high = self.bounds
        return max(self.value - reach, min(low, self.value)), min(self.value + reach, max(high, self.value))


@dataclass(frozen=True)
class Measured:
    """One measure of several selections.

    Attributes:
        name: unique in a panel: an entry of the catalogue, or ``entry:column`` for one of its columns.
        label: what a table shows; says: one sentence.
        better: ``higher``, ``lower`` or ``neither``.
        optimisable: whether a selection can have been made by it.
        circular: names of other measures; whoever optimised one of them optimised this too.
        readings: by selection.
    """

    name: str
    label: str
    says: str
    better: str
    optimisable: bool
    readings: Mapping[str, Reading]
    circular: tuple[str, ...] = ()


def half_width(draws: np.ndarray, kind: str) -> float:
    """Half the 95 % interval that draws of this kind give."""
    if len(draws) < 2:
        return 0.0
    spread = float(np.std(draws, ddof=1))
    if kind == "splits":
        from scipy.stats import t

        # hold-outs are disjoint, training rows are not: a little too narrow, as for every cross-validation
        # (Bengio and Grandvalet 2004)
        reach: float = float(t.ppf(0.975, len(draws) - 1)) * spread / len(draws) ** 0.5
        return reach
    return NORMAL * spread


def difference(first: Reading, second: Reading) -> tuple[float, float, float] | None:
    """Value and 95 % interval of ``first - second``, paired draw by draw; None where either has no draws."""
    if first.value is None or second.value is None or first.draws is None or second.draws is None:
        return None
    change = first.value - second.value
    reach = half_width(first.draws - second.draws, first.kind)
    return change, change - reach, change + reach
