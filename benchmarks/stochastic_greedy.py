"""Stochastic greedy for DiSF with quality: every pick is the best of a few candidates drawn by chance.

Plain greedy values all rows after every pick. Mirzasoleiman et al. 2015 ("Lazier than lazy greedy", arXiv 1409.7938)
value ``(N / S) log(1 / epsilon)`` rows drawn anew for every pick, which costs a submodular function at most epsilon of
greedy's guarantee. DiSF is not submodular, so how near to plain greedy it ends is measured (`benchmarks.disf`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datamask.objectives.disf import FLAT_VARIANCE

EPSILON = 0.01
FIRST = 3
"""Picks of highest quality to begin with: fewer rows have no correlations."""

Floats = NDArray[np.floating[Any]]


class Moments:
    """Mean and scatter of the members, and what each of some rows would add to DiSF's value.

    Args:
        rows: ``(k, d)``, standardised on the pool, the first members.
    """

    def __init__(self, rows: Floats) -> None:
        self.size, self.d = rows.shape
        self.mean = rows.mean(0, dtype=np.float64)
        deviations = rows - self.mean
        self.scatter = deviations.T @ deviations

    def add(self, row: Floats) -> None:
        """Take one more row, ``(d,)``, in."""
        deviation = row - self.mean
        self.size += 1
        self.mean += deviation / self.size
        self.scatter += np.outer(deviation, row - self.mean)

    def values_with(self, rows: Floats) -> Floats:
        """DiSF's value of the members with one of the rows each, ``(k, d)`` to ``(k,)``.

        A row changes the scatter by ``kappa z z'`` with ``kappa = S / (S + 1)``, all in units of the members'
        deviations; ``u`` scales the dimensions back to a variance of one.
        """
        deviations = self.scatter.diagonal()
        live = deviations > FLAT_VARIANCE * self.size
        scale = np.where(live, 1 / np.sqrt(np.where(live, deviations, 1.0)), 0.0)
        correlation = self.scatter * scale[:, None] * scale
        z = (rows - self.mean) * scale
        kappa = self.size / (self.size + 1)
        u = live / (1 + kappa * z * z)
        zu = z * u
        squares = ((u @ np.square(correlation)) * u).sum(1)
        squares += 2 * kappa * ((zu @ correlation) * zu).sum(1)
        squares += np.square(kappa * (z * zu).sum(1))
        return -(squares - live.sum()) / max(self.d * (self.d - 1), 1)


def fewest_candidates(n: int, size: int, epsilon: float = EPSILON) -> int:
    """How many rows the paper values for a pick."""
    return math.ceil(n / size * math.log(1 / epsilon))


def stochastic_greedy(
    standardised: Floats,
    quality: Floats,
    size: int,
    weights: tuple[float, float],
    candidates: int | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return the rows that are picked, int64 ``(S,)``, in their order.

    Args:
        standardised: ``(n, d)``, as `datamask.objectives.disf.standardise` makes them. quality: ``(n,)``.
        size: S. weights: of the mean quality and of DiSF's value.
        candidates: rows valued for a pick, all that are left where they are fewer; None: `fewest_candidates`.
    """
    rng = np.random.default_rng(seed)
    left = rng.permutation(len(quality))
    best = np.argsort(quality[left])[::-1][:FIRST]
    picks = list(left[best])
    left = np.delete(left, best)
    members, total = Moments(standardised[picks]), float(quality[picks].sum())
    drawn = candidates or fewest_candidates(len(quality), size)
    while len(picks) < size:
        places = rng.choice(len(left), min(drawn, len(left)), replace=False)
        rows = left[places]
        means = (total + quality[rows]) / (members.size + 1)
        pick = int(np.argmax(weights[0] * means + weights[1] * members.values_with(standardised[rows])))
        members.add(standardised[rows[pick]])
        total += float(quality[rows[pick]])
        picks.append(rows[pick])
        left[places[pick]] = left[-1]
        left = left[:-1]
    return np.array(picks, np.int64)
