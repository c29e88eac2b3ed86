"""Neighbour lists as solvers go through them: from rows to what they list, and from candidates to who lists them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from datamask.learning.medoids import reverse_lists


@dataclass(frozen=True)
class Lists:
    """Neighbour lists.

    Attributes:
        indices: int32 ``(n, K)``, what each row lists, itself first; near: ``(n, K)``, how near, falling: similarities
            of at least 0, or whole numbers of steps.
        step: the similarity that 1 of `near` stands for. zero: what similarity 0 is there.
    """

    indices: np.ndarray
    near: np.ndarray
    step: float = 1.0
    zero: float = 0.0

    @cached_property
    def reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Candidate -> rows, as from `medoids.reverse_lists`."""
        return reverse_lists(self.indices, self.near)

    @property
    def whole(self) -> bool:
        """Whether `near` counts whole steps, so that sums of it are exact."""
        return self.near.dtype.kind != "f"

    def uncovered(self) -> np.ndarray:
        """How near the nearest member of each row is while there is none: float64, or int32 of whole steps."""
        return np.full(len(self.indices), self.zero, np.int32 if self.whole else np.float64)

    def similarity(self, near: np.ndarray) -> np.ndarray:
        """What `near` stands for, float64."""
        return (near.astype(np.float64) - self.zero) * self.step
