"""REINFORCE over masks: the paper's method (Fan et al., arXiv 2512.24265, section on DATAMASK)."""

from __future__ import annotations

from torch import Tensor

from datamask.learning import diagnostics
from datamask.learning.estimators import reinforce_step
from datamask.learning.learner import Learner
from datamask.objectives.joint import Joint
from datamask.polling import Poll


class Reinforce(Learner):
    """Each of the G masks is scored as a whole, and its members share the credit: ``L += lr (1/G) sum_j A_j M_j``.

    One number per mask is a faint signal for n logits: a step's cosine with the exact gradient is about
    ``sqrt(G / (n + G))`` at equal logits. The final subset is the last readout, as in the paper.

    ``M_j`` is the gradient of the log-probability of masks drawn by the conditional Bernoulli law; ours are drawn one
    member after another, so the mean step is near the gradient of E f and not equal to it.
    """

    def direction(
        self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll
    ) -> tuple[Tensor, dict[str, float]]:
        mask_values = joint.values(masks, poll)
        values = mask_values.joint
        metrics = {
            **diagnostics.spreads(mask_values),
            **diagnostics.variance_shares(mask_values.parts),
            "flat": diagnostics.flat(values),
            **diagnostics.signal_to_noise(diagnostics.halves(masks, values)),
        }
        return reinforce_step(masks, values)[moved], metrics
