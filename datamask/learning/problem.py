"""The problem that every learner, solver and certificate is given."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.learning.budget import Budget
from datamask.learning.masks import top
from datamask.learning.rules import Rules
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
        column: float64 ``(n,)``, one quality column, higher is better, where `top-quality:COLUMN` names it.
        rules: pins and quotas over the eligible rows; None: none, or a budget, which has its own.
        budget: tokens in the place of S rows, pins included; None: S rows.
    """

    joint: Joint
    size: int
    eligible: Tensor
    ties: Tensor
    features: Tensor | None = None
    rules: Rules | None = None
    column: Tensor | None = None
    budget: Budget | None = None

    @property
    def limits(self) -> Rules | Budget | None:
        """What beside the number S restricts the selection."""
        return self.rules or self.budget

    @property
    def limited(self) -> bool:
        """Whether more than the number S restricts the selection."""
        return self.limits is not None

    @property
    def grouped(self) -> bool:
        """Whether there are quotas."""
        if self.budget is not None:
            return self.budget.quotas is not None
        return self.rules is not None and len(self.rules.low) > 1

    @property
    def unreduced(self) -> bool:
        """Whether the eligible rows are all rows, in their order."""
        return torch.equal(self.eligible, torch.arange(self.joint.n, device=self.eligible.device))

    @property
    def pinned(self) -> Tensor:
        """Rows that are always in, bool ``(n,)``."""
        limits = self.limits
        return self.whole(
            self.eligible < 0 if limits is None else torch.from_numpy(limits.pinned).to(self.joint.device)
        )

    def subset(self, scores: Tensor) -> Tensor:
        """The mask ``(n,)`` of the S best eligible rows by ``scores`` ``(m,)``, given over the eligible rows."""
        return self.whole(self.cut(scores))

    def cut(self, scores: Tensor) -> Tensor:
        """The mask ``(m,)`` of the S best eligible rows that obey the rules, or of the best that fill the budget."""
        ties = self.ties[self.eligible]
        if self.budget is not None:
            return self.budget.fill(scores, ties)
        return top(scores, self.size, ties) if self.rules is None else self.rules.top(scores, self.size, ties)

    def vertex(self, gains: Tensor) -> Tensor:
        """Weights, float64 ``(n,)``, with the largest sum of ``gains`` ``(m,)``: no allowed selection has a larger one.

        A selection, unless there is a budget, which one row may fill in part.
        """
        if self.budget is None:
            return self.subset(gains).double()
        weights = torch.zeros(self.joint.n, dtype=torch.float64, device=gains.device)
        weights[self.eligible] = self.budget.vertex(gains)
        return weights

    def priority(self, gains: Tensor) -> Tensor:
        """In which order rows should be taken, ``(m,)``: by what they add, under a budget by that per token."""
        return gains if self.budget is None else self.budget.per_token(gains)

    def allowed(self, mask: Tensor) -> bool:
        """Whether a mask ``(n,)`` of eligible rows obeys the rules, or fills the budget."""
        inside = mask[self.eligible]
        if self.budget is not None:
            return self.budget.filled(inside)
        return int(mask.sum()) == self.size and (self.rules is None or self.rules.obeyed(inside))

    def whole(self, mask: Tensor) -> Tensor:
        """A mask over the eligible rows ``(m,)`` as one over all rows ``(n,)``."""
        whole = torch.zeros(self.joint.n, dtype=torch.bool, device=mask.device)
        whole[self.eligible[mask]] = True
        return whole
