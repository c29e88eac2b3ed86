"""Counterfactual credit: the paper's sampler and logits, with each sample's own exact marginal as its credit."""

from __future__ import annotations

from torch import Tensor

from datamask.learning.estimators import counterfactual_step
from datamask.learning.learner import Learner
from datamask.objectives.contract import Poll
from datamask.objectives.joint import Joint


class Counterfactual(Learner):
    """Instead of one number per mask, every sample gets what it would add to (or what its loss would cost) each mask.

    Known as difference rewards in the multi-agent literature (Wolpert and Tumer 2002). The marginals come in closed
    form for all samples at once, so a step costs about one evaluation and its signal does not fade with n.
    """

    keeps_best = True

    def direction(self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll
                  ) -> tuple[Tensor, dict[str, float]]:
        (values, quality, diversity), marginals = joint.values_and_marginals(masks, poll)
        metrics = {}
        for name, of in (("joint", values), ("quality", quality), ("diversity", diversity)):
            metrics[f"batch_{name}_mean"] = float(of.mean())
            if len(masks) > 1:
                metrics[f"batch_{name}_std"] = float(of.std())
        return counterfactual_step(marginals[moved]), metrics
