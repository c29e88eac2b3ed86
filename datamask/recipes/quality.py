"""Quality columns with their transforms as they were in the run: what a z-score or a rank of an unseen row is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datamask.options import TRANSFORMS, QualityColumn
from datamask.recipes.fields import Fields

MOST_KNOTS = 10_001
"""Values that stand for the ranks of a column; where it has more, ranks between two of them are interpolated."""

CONSTANT = 1e-12
"""Standard deviation, as share of the largest value, under which all values are equal and z-scores 0."""


@dataclass(frozen=True)
class FrozenQuality:
    """One quality column: weight times transform of its value.

    Attributes:
        name, weight, transform: as in `QualityColumn`.
        mean, sd: of the column in the learning corpus, for ``z``; an sd of 0 means that all were equal, and counts 0.
        values, ranks: float64 ``(k,)``, rising values of the learning corpus and their ranks from 0 to 1, for
            ``rank``. Between two of them ranks are interpolated; below the first and above the last they are theirs.
    """

    name: str
    weight: float
    transform: str = "raw"
    mean: float = 0.0
    sd: float = 1.0
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    ranks: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, column: QualityColumn, values: np.ndarray) -> FrozenQuality:
        """The transform of a column as it is over the learning corpus.

        Args:
            values: float64 ``(N,)``, all finite.
        """
        if column.transform == "z":
            largest = float(np.abs(values).max()) or 1.0
            scaled = values / largest  # as in `datamask.corpus.quality`: squares of large values overflow
            sd = float(scaled.std())
            return cls(column.name, column.weight, "z", float(scaled.mean()) * largest, sd * largest * (sd > CONSTANT))
        if column.transform == "rank":
            knots, counts = np.unique(values, return_counts=True)
            ranks = (np.cumsum(counts) - (counts + 1) / 2) / max(len(values) - 1, 1)
            if len(knots) > MOST_KNOTS:
                kept = np.unique(np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], MOST_KNOTS)))
                knots, ranks = knots[kept], ranks[kept]
            return cls(column.name, column.weight, "rank", values=knots, ranks=ranks)
        return cls(column.name, column.weight)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Float64 ``(n,)`` to ``(n,)``; NaN stays NaN."""
        if self.transform == "z":
            return self.weight * (
                (values - self.mean) / self.sd if self.sd > 0 else np.where(np.isnan(values), values, 0)
            )
        if self.transform == "rank":
            between = np.interp(values, self.values, self.ranks)
            return self.weight * np.where(np.isnan(values), np.nan, between)
        return self.weight * values

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"column": self.name, "weight": self.weight, "transform": self.transform}
        if self.transform == "z":
            record |= {"mean": self.mean, "sd": self.sd}
        if self.transform == "rank":
            record |= {"values": self.values.tolist(), "ranks": self.ranks.tolist()}
        return record

    @classmethod
    def read(cls, fields: Fields) -> FrozenQuality:
        """Raises InputError where a field is not what it must be."""
        name, weight = fields.text("column"), fields.number("weight")
        transform = fields.text("transform", TRANSFORMS)
        if transform == "z":
            return cls(name, weight, transform, fields.number("mean"), fields.number("sd", 0.0))
        if transform == "rank":
            values = fields.vector("values")
            ranks = fields.vector("ranks", len(values))
            if (np.diff(values) <= 0).any() or (np.diff(ranks) < 0).any():
                raise fields.error("values", "rising, and so must be ranks", "a list that falls")
            return cls(name, weight, transform, values=values, ranks=ranks)
        return cls(name, weight)


def total(columns: Sequence[FrozenQuality], values: np.ndarray) -> np.ndarray:
    """The quality of rows, float64 ``(n,)``: the sum over the columns; NaN where a value of one is not finite.

    Args:
        values: float64 ``(Q, n)``, a column each. A rank, or a column that was constant, would make an infinite one
            finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [column(of_column) for column, of_column in zip(columns, values, strict=True)]
        whole: np.ndarray = np.where(np.isfinite(values).all(axis=0), np.sum(parts, axis=0), np.nan)
    return whole
