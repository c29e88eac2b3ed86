"""Counterfactual credit: the paper's sampler and logits, with each sample's own exact marginal as its credit."""

from __future__ import annotations

from torch import Tensor

from datamask.config import SelectionConfig
from datamask.learning import diagnostics
from datamask.learning.estimators import counterfactual_step
from datamask.learning.learner import Learner
from datamask.learning.problem import Problem
from datamask.learning.warm_start import WarmStart
from datamask.objectives.contract import Poll
from datamask.objectives.joint import Joint


class Counterfactual(Learner):
    """Instead of one number per mask, every sample gets what it would add to (or what its loss would cost) each mask.

    Known as difference rewards in the multi-agent literature (Wolpert and Tumer 2002). The marginals come in closed
    form for all samples at once, so a step costs about one evaluation and its signal does not fade with n. The reward
    is then the credit of each sample, and its variance over the samples is what the terms share. Under a token budget
    logits say in which order rows are drawn until it is spent, so the credit is what a sample adds per token.
    """

    keeps_best = True

    def __init__(
        self, problem: Problem, config: SelectionConfig, start: WarmStart | None = None, steps: int | None = None
    ) -> None:
        super().__init__(problem, config, start, steps)
        # drawn independently of the next step: what the two share tells signal from noise. Only a diagnostic, so no
        # part of the state; batches of different rows cannot be compared
        self._last_step: Tensor | None = None

    def direction(
        self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll, scores: Tensor | None = None
    ) -> tuple[Tensor, dict[str, float]]:
        values, credits = joint.values_and_marginals(masks, poll)
        credit = sum(credits.values(), joint.quality.scores.new_zeros(()))
        step = counterfactual_step(self.problem.priority(credit[moved]))
        moved_credits = {name: part[moved] for name, part in credits.items()}
        metrics = diagnostics.spreads(values) | diagnostics.variance_shares(moved_credits)
        if self._last_step is not None and joint is self.problem.joint:
            metrics |= diagnostics.signal_to_noise(diagnostics.agreement(self._last_step, step))
        self._last_step = step if joint is self.problem.joint else None
        return step, metrics
