"""Neighbour lists as solvers go through them: from rows to what they list, and from candidates to who lists them.

Greedy and swaps count similarities in whole steps below 1, of one size for all rows. Sums of them are exact, so what is
selected depends neither on the order of the rows nor on where the lists lie, and two bytes hold one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from datamask.compiling import compiled
from datamask.learning.medoids import reverse_lists
from datamask.places import MEMORY, Place

FEWEST_BITS, MOST_BITS, ONE = 16, 24, 65_535
"""A step is 1 divided by two to the power of so many bits; similarity 1 is the number of the last. Float32 products
resolve no more than the most."""


@dataclass(frozen=True)
class Lists:
    """Neighbour lists.

    Attributes:
        indices: int32 ``(n, K)``, what each row lists, itself first; near: ``(n, K)``, how near, falling: similarities
            of at least 0, or whole numbers of steps.
        step: the similarity that 1 of `near` stands for. zero: what similarity 0 is there.
        place: where what is made of them lies.
        order: int64 ``(n,)``, the row at each position, where they are those of positions: rows of one part of the
            corpus stand together, and list each other, so that little of a large file is looked at together. None:
            positions are the rows.
    """

    indices: np.ndarray
    near: np.ndarray
    step: float = 1.0
    zero: float = 0.0
    place: Place = MEMORY
    order: np.ndarray | None = None

    @classmethod
    def in_steps(
        cls, indices: np.ndarray, similarities: np.ndarray, place: Place = MEMORY, order: np.ndarray | None = None
    ) -> Lists:
        """Lists of rows, int32 and float32 ``(n, K)``, counted in steps, and in that order."""
        bits = bits_for(lowest(indices, similarities, 0))
        near = place.empty(indices.shape, np.uint16)
        if order is None:
            put_steps(similarities, bits, near)
            return cls(indices, near, *scale_of(bits), place)
        position = np.empty(len(order), np.int32)
        position[order] = np.arange(len(order), dtype=np.int32)
        placed = place.empty(indices.shape, np.int32)
        put_ordered(indices, similarities, order, position, bits, placed, near)
        return cls(placed, near, *scale_of(bits), place, order)

    def by_position(self, values: np.ndarray) -> np.ndarray:
        """Values of rows, ``(n,)``, in the order of positions."""
        return values if self.order is None else values[self.order]

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Values of positions, ``(n,)``, in the order of rows."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out

    @cached_property
    def reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Candidate -> rows, as from `medoids.reverse_lists`."""
        return reverse_lists(self.indices, self.near, self.place)

    @property
    def whole(self) -> bool:
        """Whether `near` counts whole steps, so that sums of it are exact."""
        return self.near.dtype.kind != "f"

    def uncovered(self) -> np.ndarray:
        """How near the nearest member of each row is while there is none: float64, or int32 of whole steps."""
        return np.full(len(self.indices), self.zero, np.int32 if self.whole else np.float64)


def bits_for(similarity: float) -> int:
    """The finest steps that reach from 1 down to a similarity, as bits."""
    span, bits = 1.0 - max(similarity, 0.0), MOST_BITS
    while bits > FEWEST_BITS and span * (1 << bits) > ONE:
        bits -= 1
    return bits


def scale_of(bits: int) -> tuple[float, float]:
    """`step` and `zero` of lists in steps of so many bits."""
    return 2.0**-bits, float(ONE - (1 << bits))


@compiled
def lowest(indices: np.ndarray, similarities: np.ndarray, first: int) -> float:
    """The lowest similarity in lists ``(n, K)`` of the rows from `first` on, at most 1."""
    least = np.float32(1.0)
    for v in range(indices.shape[0]):
        for c in range(indices.shape[1] - 1, -1, -1):
            # a short list ends with the row itself again
            if c == 0 or indices[v, c] != first + v:
                least = min(least, similarities[v, c])
                break
    return float(least)


@compiled
def _in_steps(similarity: np.float32, bits: int) -> np.uint16:
    at = np.rint((max(np.float64(similarity), 0.0) - 1.0) * 2.0**bits) + 65535.0
    return np.uint16(min(max(at, 0.0), 65535.0))


@compiled
def put_steps(similarities: np.ndarray, bits: int, near: np.ndarray) -> None:
    """Set how near in steps of ``2 ** -bits`` below 1, as uint16 ``(n, K)``, rounded."""
    for v in range(similarities.shape[0]):
        for c in range(similarities.shape[1]):
            near[v, c] = _in_steps(similarities[v, c], bits)


@compiled
def put_ordered(
    indices: np.ndarray,
    similarities: np.ndarray,
    order: np.ndarray,
    position: np.ndarray,
    bits: int,
    placed: np.ndarray,
    near: np.ndarray,
) -> None:
    """The same of lists in another order. position: int32 ``(n,)``, of each row; placed: filled with whom they list."""
    for p in range(len(order)):
        v = order[p]
        for c in range(similarities.shape[1]):
            placed[p, c] = position[indices[v, c]]
            near[p, c] = _in_steps(similarities[v, c], bits)
