"""Mean and variance of every feature dimension, gathered batch by batch in float64.

Parts are combined by the update of Chan, Golub and LeVeque (1983), which keeps its digits where the mean is large
against the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.recipes.learned import inverse_sd_of


@dataclass(frozen=True)
class FeatureMoments:
    """Moments of some rows.

    Attributes:
        rows: how many. mean: float64 ``(d,)``. squares: float64 ``(d,)``, sums of squared distances from the mean.

    Example:
        >>> FeatureMoments.of(np.array([[1.0, 0.0], [3.0, 0.0]])).mean
        array([2., 0.])
    """

    rows: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def none(cls, dim: int) -> FeatureMoments:
        """The moments of no rows."""
        return cls(0, np.zeros(dim), np.zeros(dim))

    @classmethod
    def of(cls, rows: np.ndarray) -> FeatureMoments:
        """The moments of rows, float64 ``(n, d)``."""
        if not len(rows):
            return cls.none(rows.shape[1])
        mean = rows.mean(axis=0)
        return cls(len(rows), mean, np.square(rows - mean).sum(axis=0))

    def after(self, before: FeatureMoments) -> FeatureMoments:
        """The moments of the rows of `before` and these together."""
        rows = before.rows + self.rows
        if not before.rows or not self.rows:
            return self if self.rows else before
        apart = self.mean - before.mean
        return FeatureMoments(
            rows,
            before.mean + apart * (self.rows / rows),
            before.squares + self.squares + np.square(apart) * (before.rows * self.rows / rows),
        )

    def standardisation(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and inverse standard deviation of every dimension, float64 ``(d,)`` each; 0 for dead dimensions."""
        return self.mean, inverse_sd_of(np.sqrt(self.squares / max(self.rows, 1)))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"rows": self.rows, "mean": self.mean.tolist(), "squares": self.squares.tolist()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> FeatureMoments:
        """What `to_dict` gave."""
        return cls(int(record["rows"]), np.array(record["mean"], float), np.array(record["squares"], float))
