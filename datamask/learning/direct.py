"""Direct scoring: quality against crowding in the pool, one number per sample, nothing learned."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.learning.baselines import Scored
from datamask.measured import Anchor
from datamask.objectives.contract import chunks
from datamask.objectives.joint import Scale
from datamask.polling import Poll

ROWS_AT_ONCE = 65_536
"""Rows per chunk of the float64 passes: 65 536 x 384 take some 30 ms."""


class Direct(Scored):
    """Score ``lambda * q_i - (1 - lambda) * c_i`` and keep the S highest; the objective plays no part.

    ``c_i`` is the mean similarity of i to all other rows of the pool. Both terms are on the run's scale: calibrated,
    each is 0 at its mean over the pool and 1 at the mean of its S best rows, so lambda weighs it as everywhere. Every
    sample is judged alone, so two samples that crowd each other are both kept or both left out: what a learner of the
    pair-wise objective gains over this is what learning is worth.
    """

    ending = "scored one by one"

    def scores_of(self, poll: Poll) -> Tensor:
        problem, lamb = self.problem, self.config.lamb
        quality = problem.joint.quality_scale(problem.joint.quality.scores)
        separation = -self.crowding(poll).to(quality.dtype)
        scale = Scale()
        if self.config.scale == "calibrated":
            best = float(separation.topk(problem.size).values.mean())
            scale = Scale.calibrated(Anchor(float(separation.mean()), best, "proved"))
        return (lamb * quality + (1 - lamb) * scale(separation))[problem.eligible]

    def crowding(self, poll: Poll) -> Tensor:
        """Mean similarity to all other rows, float64 ``(n,)``."""
        n, d = self.features.shape
        total = torch.zeros(d, dtype=torch.float64, device=self.device)
        for part in chunks(n, ROWS_AT_ONCE):
            poll()
            total += self.features[part].double().sum(0)
        near = torch.empty(n, dtype=torch.float64, device=self.device)
        for part in chunks(n, ROWS_AT_ONCE):
            poll()
            near[part] = self.features[part].double() @ total
        return (near - 1.0) / max(n - 1, 1)
