"""Neighbour lists as solvers go through them: from rows to what they list, and from candidates to who lists them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datamask.learning.medoids import reverse_lists


@dataclass(frozen=True)
class Lists:
    """Neighbour lists, forward and reverse.

    Attributes:
        indices: int32 ``(n, K)``, what each row lists, itself first; near: ``(n, K)``, how near, falling.
        reverse: candidate -> rows, as from `medoids.reverse_lists`.
        step: the similarity that 1 of `near` stands for. zero: what similarity 0 is there.
    """

    indices: np.ndarray
    near: np.ndarray
    reverse: tuple[np.ndarray, np.ndarray, np.ndarray]
    step: float = 1.0
    zero: float | int = 0.0

    @classmethod
    def of(cls, indices: np.ndarray, similarities: np.ndarray) -> Lists:
        """Lists of float32 similarities, at least 0."""
        return cls(indices, similarities, reverse_lists(indices, similarities))

    @property
    def rows(self) -> int:
        """n."""
        return len(self.indices)

    def uncovered(self) -> np.ndarray:
        """How near the nearest member of each row is while there is none: float64, or int32 where near is whole."""
        return np.full(self.rows, self.zero, np.float64 if self.near.dtype.kind == "f" else np.int32)
