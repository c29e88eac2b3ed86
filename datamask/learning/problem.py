"""The problem that every learner, solver and certificate is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.learning.limits import Limits
from datamask.objectives.joint import Joint


@dataclass(frozen=True)
class Problem:
    """What is to be solved.

    Attributes:
        joint: the objective on the whole pool of n samples.
        size: S; under a budget the number of rows of average length that fill it, which is a guide and no rule.
        eligible: int64 ``(m,)``, the rows that may be selected (all, less pruning and collapsed copies); m > S. What is
            drawn goes by their order.
        ties: int64 ``(n,)``, cuts equal scores (hash of seed and id).
        features: float32 ``(n, d)``, the pool's rows of unit length, for baselines that look past the objective.
        limits: what a selection must obey, over the eligible rows; made of `size` where nothing else is given.
        column: float64 ``(n,)``, one quality column, higher is better, where `top-quality:COLUMN` names it.
    """

    joint: Joint
    size: int
    eligible: Tensor
    ties: Tensor
    features: Tensor | None = None
    limits: Limits = None  # type: ignore[assignment]
    column: Tensor | None = None

    def __post_init__(self) -> None:
        if self.limits is None:
            object.__setattr__(self, "limits", Limits(self.size, np.zeros(len(self.eligible), bool)))
        assert len(self.limits.pinned) == len(self.eligible), "limits are of the eligible rows"

    @property
    def unreduced(self) -> bool:
        """Whether the eligible rows are all rows, in their order."""
        return torch.equal(self.eligible, torch.arange(self.joint.n, device=self.eligible.device))

    @property
    def pinned(self) -> Tensor:
        """Rows that are always in, bool ``(n,)``."""
        return self.whole(torch.from_numpy(self.limits.pinned).to(self.joint.device))

    @property
    def group(self) -> Tensor:
        """The quota group of every row, int64 ``(n,)``; 0 where there are no quotas."""
        group = torch.zeros(self.joint.n, dtype=torch.int64, device=self.joint.device)
        if self.limits.grouped:
            group[self.eligible] = torch.from_numpy(self.limits.groups.group).to(group.device)
        return group

    @property
    def lengths(self) -> Tensor | None:
        """Tokens of the eligible rows under a budget, float64 ``(m,)``."""
        lengths = self.limits.lengths
        return None if lengths is None else torch.from_numpy(lengths).to(self.joint.device)

    def subset(self, scores: Tensor) -> Tensor:
        """The mask ``(n,)`` of the S best eligible rows by ``scores`` ``(m,)``, given over the eligible rows."""
        return self.whole(self.cut(scores))

    def cut(self, scores: Tensor) -> Tensor:
        """The mask ``(m,)`` of the best eligible rows that obey the limits: S rows, or those that fill the budget."""
        return self.limits.top(scores, self.ties[self.eligible])

    def vertex(self, gains: Tensor) -> Tensor:
        """Weights, float64 ``(n,)``, with the largest sum of ``gains`` ``(m,)``: no allowed selection has a larger one.

        A selection, unless there is a budget, which one row may fill in part.
        """
        if not self.limits.by_tokens:
            return self.subset(gains).double()
        weights = torch.zeros(self.joint.n, dtype=torch.float64, device=gains.device)
        weights[self.eligible] = self.limits.vertex(gains)
        return weights

    def allowed(self, mask: Tensor) -> bool:
        """Whether a mask ``(n,)`` holds eligible rows alone and obeys the limits."""
        inside = mask[self.eligible]
        return int(inside.sum()) == int(mask.sum()) and self.limits.allowed(inside)

    def whole(self, mask: Tensor) -> Tensor:
        """A mask over the eligible rows ``(m,)`` as one over all rows ``(n,)``."""
        whole = torch.zeros(self.joint.n, dtype=torch.bool, device=mask.device)
        whole[self.eligible[mask]] = True
        return whole
