"""A warm start: where another run on the same corpus ended, brought under the rules of the problem at hand.

The rules, the number of rows, the rows that may be taken and lambda may all have changed. A start never decides what
a learner may end with: it is a point to go on from, and what is projected here obeys the new rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.learning.problem import Problem

SHARE_OF_STEPS = 1 / 3
"""A warm start enters a learner's steps at their last third: what the others would find is known already."""

MOST_MOVED = 0.15
"""Where more of the selection has to leave than this, learned logits and Frank-Wolfe start cold: they stand for another
selection. With a third of the members banned, or the largest source cut to a tenth, they ended 0.005 to 0.1 below a
cold start after as many steps. Facility's swaps and Newton's steps mind no distance."""


@dataclass(frozen=True)
class WarmStart:
    """Where a run ended.

    Attributes:
        mask: bool ``(n,)``, its selection, rows that were given to it among them.
        score: float64 ``(n,)``, its frozen-size marginals: in which order rows come in or leave.
        weights: float64 ``(n,)``, inclusion weights of a relaxation, 0 where a row could not be taken; None: none.
        logits: float32 ``(n,)``, NaN where a row could not be taken; None: none.
        y: float64, the dual solution (`datamask.learning.newton`); None: none.
    """

    mask: Tensor
    score: Tensor
    weights: Tensor | None = None
    logits: Tensor | None = None
    y: Tensor | None = None

    @classmethod
    def from_arrays(cls, device: torch.device, arrays: dict[str, np.ndarray]) -> WarmStart:
        """From arrays named as the attributes."""
        return cls(**{name: torch.from_numpy(np.ascontiguousarray(array)).to(device) for name, array in arrays.items()})

    def subset(self, problem: Problem) -> Tensor:
        """Its selection under the problem's rules, bool ``(n,)``: what may stay stays, then the best scores come in."""
        place = torch.empty_like(self.score)
        place[self.score.argsort(stable=True)] = torch.arange(len(place), dtype=place.dtype, device=place.device)
        keys = self.mask.double() + place / len(place)
        return problem.subset(keys[problem.eligible].to(self.score.dtype))

    def moved(self, subset: Tensor) -> float:
        """The share of the smaller of both selections that is not in the other."""
        least = min(int(self.mask.sum()), int(subset.sum()))
        return 1.0 - int((self.mask & subset).sum()) / max(least, 1)

    def inclusion(self, problem: Problem) -> Tensor:
        """Its weights under the problem's rules, float64 ``(n,)``: between its weights and its selection.

        Without rules and with the same number of rows, the weights of rows that may no longer be taken go to those of
        the best scores; otherwise only the selection is brought under the rules.
        """
        whole = self.subset(problem).double()
        if self.weights is None or problem.limits.limited:
            return whole
        weights = torch.zeros_like(self.weights)
        weights[problem.eligible] = self.weights[problem.eligible]
        missing = problem.size - float(weights.sum())
        order = problem.eligible[self.score[problem.eligible].argsort(descending=missing > 0, stable=True)]
        room = (1.0 - weights if missing > 0 else weights)[order]
        before = room.cumsum(0) - room
        moved = (abs(missing) - before).clamp_min(0.0).minimum(room)
        weights[order] += moved if missing > 0 else -moved
        return weights

    def dual(self, problem: Problem) -> Tensor | None:
        """Its y for as many rows as the problem asks for."""
        members = int(self.mask.sum())
        return None if self.y is None or not members else self.y * (problem.size / members)

    def spread(self, problem: Problem) -> Tensor | None:
        """Its logits over the eligible rows ``(m,)``, centred; rows without one get the average."""
        if self.logits is None:
            return None
        logits = self.logits[problem.eligible]
        learned = torch.isfinite(logits)
        if not bool(learned.any()):
            return None
        return torch.where(learned, logits - logits[learned].mean(), torch.zeros_like(logits))


def first_step(steps: int) -> int:
    """The step, from 0, at which a warm start enters so many."""
    return steps - max(1, round(steps * SHARE_OF_STEPS))
