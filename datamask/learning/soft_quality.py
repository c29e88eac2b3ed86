"""Soft quality sampling: the better a row, the more often it is drawn (QuRating, Wettig et al., arXiv 2402.09739)."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.learning.baselines import Baseline
from datamask.learning.inclusion_weights import of_logits
from datamask.learning.state import State
from datamask.options.checks import required
from datamask.polling import Poll, no_poll

LEAST_SPREAD = 1e-12
"""Standard deviation, as a share of the largest absolute score, below which all scores count as equal."""


class SoftQuality(Baseline):
    """S draws without replacement from ``softmax(z / temperature)`` over the eligible rows; z is quality, standardised.

    Quality is standardised over the whole pool first, as QuRating does its ratings, so that a temperature means the
    same on every corpus: 0 is top quality, without end it is random. The paper's models were trained at temperatures 1
    and 2, and on a mix of its criteria at 2 alone, hence the default. The draw is exact: the S largest of
    ``z + temperature * Gumbel(0, 1)`` (Kool et al. 2019). Under a token budget draws go on for as long as anything
    fits. Where pins or quotas bind, theirs are the best keys that obey them, as for every sampler in this program.
    """

    ending = "drawn at random, the better the more often"

    def scores(self) -> Tensor:
        problem = self.problem
        temperature = required(self.config.temperature, "temperature")
        better = standardised(problem.joint.quality.scores)[problem.eligible].cpu()
        generator = torch.Generator().manual_seed(self.config.seed)
        waiting = torch.empty(len(better), dtype=torch.float64).exponential_(generator=generator)
        noise = -waiting.clamp_min_(torch.finfo(waiting.dtype).tiny).log_()
        # the same order, divided by whichever keeps both terms finite
        keys = better + temperature * noise if temperature <= 1 else better / temperature + noise
        return keys.to(self.device)

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """The chance of each row to be drawn, float64 ``(n,)``; None under quotas."""
        temperature = required(self.config.temperature, "temperature")
        better = standardised(self.problem.joint.quality.scores)[self.problem.eligible]
        logits = better / temperature if temperature > 0 else torch.full_like(better, torch.inf)
        if not bool(torch.isfinite(logits).all()):  # so cold that nothing is left to chance
            return self.problem.subset(better).double()
        return of_logits(self.problem, logits)


def standardised(scores: Tensor) -> Tensor:
    """Scores ``(n,)`` less their mean, over their standard deviation, float64; zeros where they are all equal."""
    values = scores.double()
    largest = float(values.abs().max())
    # scaled first, so that the squares of scores near the end of float64's range are finite
    values = values / (largest if largest > 0 else 1.0)
    centred = values - values.mean()
    spread = float(centred.square().mean().sqrt())
    return centred / spread if spread > LEAST_SPREAD else torch.zeros_like(centred)
