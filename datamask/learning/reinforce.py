"""REINFORCE over masks: the paper's method (Fan et al., arXiv 2512.24265, section on DATAMASK)."""

from __future__ import annotations

from torch import Tensor

from datamask.learning.estimators import reinforce_step, signal_to_noise
from datamask.learning.learner import Learner
from datamask.objectives.contract import Poll
from datamask.objectives.joint import Joint


class Reinforce(Learner):
    """Each of the G masks is scored as a whole, and its members share the credit: ``L += lr (1/G) sum_j A_j M_j``.

    One number per mask is a faint signal for n logits: a step's cosine with the exact gradient is about
    ``sqrt(G / (n + G))`` at equal logits. The final subset is the last readout, as in the paper.
    """

    def direction(self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll
                  ) -> tuple[Tensor, dict[str, float]]:
        values, quality, diversity = joint.values(masks, poll)
        metrics = {"snr": signal_to_noise(masks, values)}
        for name, of in (("joint", values), ("quality", quality), ("diversity", diversity)):
            metrics[f"batch_{name}_mean"] = float(of.mean())
            metrics[f"batch_{name}_std"] = float(of.std())
        return reinforce_step(masks, values)[moved], metrics
