"""Members of a selection of a scratch as sums, and which rows near the threshold are among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from datamask.out_of_core.scratch import Scratch
from datamask.polling import Poll, no_poll
from datamask.recipes.recipe import ScoreRule
from datamask.recipes.weights import Weights, moment_pairs


@dataclass
class Members:
    """Sums over `size` members, changed as rows come and go.

    Attributes:
        quality: sum of qualities. total: float64 ``(d,)``, sum of unit features; moments: ``(d, d)``, of y y' without
            its diagonal; None: the objective has no such part. rule: standardises.
    """

    size: int
    quality: float
    total: np.ndarray | None
    moments: np.ndarray | None
    rule: ScoreRule

    @property
    def mean(self) -> np.ndarray | None:
        return None if self.total is None else self.total / self.size

    @property
    def moment(self) -> np.ndarray | None:
        return None if self.moments is None else self.moments / self.size

    def value(self, weights: Weights) -> float:
        """The joint value."""
        return weights.value(self.size, self.quality / self.size, self.mean, self.moment)

    def raw(self) -> dict[str, float]:
        """Each term as its objective defines it: ``quality``, ``pairwise``, ``disf_fixed``; those that there are."""
        raw, size = {"quality": self.quality / self.size}, self.size
        if (mean := self.mean) is not None:
            raw["pairwise"] = -(size * float(mean @ mean) - 1.0) / (size - 1)
        if (moment := self.moment) is not None:
            raw["disf_fixed"] = -float((moment * moment).sum()) / moment_pairs(moment)
        return raw

    def add(self, units: np.ndarray | None, quality: np.ndarray, signs: np.ndarray) -> None:
        """Take in (1) or out (-1) rows.

        Args:
            units: float64 ``(n, d)``, None where nothing looks at them. quality, signs: float64 ``(n,)``.
        """
        self.quality += float(quality @ signs)
        if units is not None and self.total is not None:
            self.total = self.total + signs @ units
        if units is not None and self.moments is not None:
            y = self.rule.standardised(units)
            moment = y.T @ (y * signs[:, None])
            np.fill_diagonal(moment, 0.0)
            self.moments = self.moments + moment

    def join(self, other: Members) -> None:
        """Take in the sums over other members."""
        self.quality += other.quality
        if self.total is not None and other.total is not None:
            self.total = self.total + other.total
        if self.moments is not None and other.moments is not None:
            self.moments = self.moments + other.moments


def rounded(
    scratch: Scratch,
    members: Members,
    selected: np.ndarray,
    near: np.ndarray,
    weights: Weights,
    poll: Poll = no_poll,
) -> tuple[Members, int]:
    """The members after swaps among the rows near the threshold, and how many swaps; `selected`, bool ``(N,)``, is
    changed with them.

    Args:
        near: int64, rising, the rows that may change sides. members: the sums before, which stay as they are.

    Raises:
        Stopped: from `poll`; `selected` is as it was.
    """
    # not at the top: light modules of `learning` may be used here, and what they lie beside loads torch
    from datamask.learning.rounding import Part, swap_near

    after, size = replace(members), members.size
    if not members.rule.needs_features or len(near) < 2:
        return after, 0
    units, quality, inside = scratch.rows_at(near).astype(np.float64), scratch.quality[near], selected[near]
    after.add(units[inside], quality[inside], -np.ones(int(inside.sum())))
    parts = []
    if after.total is not None:
        parts.append(Part(weights.pairs / (size * (size - 1)), units, after.total))
    if after.moments is not None:
        weight = weights.moments / (size * size * moment_pairs(after.moments))
        parts.append(Part(weight, members.rule.standardised(units), after.moments))
    swaps = swap_near(inside, weights.quality / size * quality, parts, poll)
    after.add(units[inside], quality[inside], np.ones(int(inside.sum())))
    selected[near] = inside
    return after, swaps
