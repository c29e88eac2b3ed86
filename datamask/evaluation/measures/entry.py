"""One line of the catalogue of measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from datamask.evaluation.measures.ground import Ground
from datamask.evaluation.measures.reading import Measured, Reading

Selections = Mapping[str, np.ndarray]
"""Name -> int64 ``(S,)``, distinct rows of the corpus."""


@dataclass(frozen=True)
class MeasureEntry:
    """A measure.

    Attributes:
        name: how it is called everywhere; one that looks at columns is called ``name:column`` for each.
        label: what a table shows.
        says: one sentence for a newcomer.
        better: ``higher``, ``lower`` or ``neither``.
        optimisable: whether a selection can have been made by it.
        interval: where its intervals come from, for people.
        effort: seconds for four selections of 18,000 rows x 256, once the graph is there; only ratios count: they order
            the work and say how much of it is done.
        measure: called with the ground, the selections and this entry, for all selections at once, since some measures
            compare at equal tokens.
    """

    name: str
    label: str
    says: str
    better: str
    optimisable: bool
    interval: str
    effort: float
    measure: Callable[[Ground, Selections, MeasureEntry], list[Measured]]

    def measured(
        self,
        readings: Mapping[str, Reading],
        *,
        column: str = "",
        label: str = "",
        says: str = "",
        circular: tuple[str, ...] = (),
    ) -> Measured:
        """This measure's readings; for one of its columns under the column's name."""
        return Measured(
            f"{self.name}:{column}" if column else self.name,
            label or self.label,
            says or self.says,
            self.better,
            self.optimisable,
            readings,
            circular,
        )

    def unavailable(self, selections: Selections, why: str) -> list[Measured]:
        """The measure without a value, and why."""
        return [self.measured({name: Reading(None, note=why) for name in selections})]
