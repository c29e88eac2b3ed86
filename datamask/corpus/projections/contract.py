"""What a projection is: two coordinates for each row of a corpus, and what may be read off them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.work.context import Report

Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, int, Report], np.ndarray]
"""Coordinates float32 ``(M, 2)`` of M rows from: points float32 ``(M, c)``, their first principal components; indices
and similarities ``(M, k)``, their nearest rows by cosine, the row itself first; a seed; and who is told of progress.
Runs in a process of its own, which is killed to stop it."""


@dataclass(frozen=True)
class Projection:
    """Two dimensions to look at.

    Attributes:
        name: in controls, captions and addresses; without blanks and dots.
        key: of its layouts in the cache; lower-case letters. version: raise it when the same corpus is laid out anew.
        about: a sentence for whoever chooses between projections.
        reading: half a sentence for below the map: what sizes and gaps mean.
        at_once: coordinates float32 ``(N, 2)`` of features ``(N, d)``, where that takes no waiting; such a projection
            stands in for the others until they are there.
        fit: for all others. A module's own function: the process that runs it finds it by its name.
        fit_all: up to so many rows without copies are fitted (None: any number); of more, a uniform sample of
            fit_sample is, and the others are placed beside their nearest fitted rows.
    """

    name: str
    key: str
    about: str
    reading: str
    version: int = 1
    at_once: Callable[[np.ndarray], np.ndarray] | None = None
    fit: Fit | None = None
    fit_all: int | None = None
    fit_sample: int | None = None

    def coordinates(self, features: np.ndarray) -> np.ndarray:
        """What `at_once` gives.

        Raises:
            ValueError: this projection has to be fitted.
        """
        if self.at_once is None:
            raise ValueError(f"{self.name} has to be fitted first")
        return self.at_once(features)
