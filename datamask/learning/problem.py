"""The problem that every learner, solver and certificate is given."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.learning.masks import top
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
    """

    joint: Joint
    size: int
    eligible: Tensor
    ties: Tensor
    features: Tensor | None = None

    def subset(self, scores: Tensor) -> Tensor:
        """The mask ``(n,)`` of the S best eligible rows by ``scores`` ``(m,)``, given over the eligible rows."""
        mask = torch.zeros(self.joint.n, dtype=torch.bool, device=scores.device)
        mask[self.eligible[top(scores, self.size, self.ties[self.eligible])]] = True
        return mask
