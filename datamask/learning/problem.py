"""The problem that every learner, solver and certificate is given."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.learning.masks import top
from datamask.learning.rules import Rules
from datamask.objectives.joint import Joint


@dataclass(frozen=True)
class Problem:
    """What is to be solved.

    Attributes:
        joint: the objective on the whole pool of n samples.
        size: S.
        eligible: int64 ``(m,)``, the rows that may be selected (all, less pruning and collapsed copies); m > S.
        ties: int64 ``(n,)``, cuts equal scores (hash of seed and id).
        features: float32 ``(n, d)``, the pool's rows of unit length, for baselines that look past the objective.
        column: float64 ``(n,)``, one quality column, higher is better, where `top-quality:COLUMN` names it.
        rules: pins and quotas over the eligible rows; None: none.
    """

    joint: Joint
    size: int
    eligible: Tensor
    ties: Tensor
    features: Tensor | None = None
    rules: Rules | None = None
    column: Tensor | None = None

    def subset(self, scores: Tensor) -> Tensor:
        """The mask ``(n,)`` of the S best eligible rows by ``scores`` ``(m,)``, given over the eligible rows."""
        return self.whole(self.cut(scores))

    def cut(self, scores: Tensor) -> Tensor:
        """The mask ``(m,)`` of the S best eligible rows that obey the rules."""
        ties = self.ties[self.eligible]
        return top(scores, self.size, ties) if self.rules is None else self.rules.top(scores, self.size, ties)

    def whole(self, mask: Tensor) -> Tensor:
        """A mask over the eligible rows ``(m,)`` as one over all rows ``(n,)``."""
        whole = torch.zeros(self.joint.n, dtype=torch.bool, device=mask.device)
        whole[self.eligible[mask]] = True
        return whole
