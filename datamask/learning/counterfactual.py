"""Counterfactual credit: the paper's sampler and logits, with each sample's own exact marginal as its credit."""

from __future__ import annotations

from torch import Tensor

from datamask.config import SelectionConfig
from datamask.learning import diagnostics
from datamask.learning.estimators import counterfactual_step
from datamask.learning.learner import STILL, Learner
from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.learning.state import State
from datamask.learning.warm_start import WarmStart
from datamask.objectives.joint import Joint
from datamask.polling import Poll

BEFORE_SWAPS = 12
"""Steps after which swaps that outdo learned masks go on. On sparse features steps overshoot for long: on 100,000 texts
of 384 dimensions by TF-IDF they still change 1 % of the selection after 50, and swaps need no good start."""

LONG_STEPS = 1
"""The same where a step takes longer than a pass of swaps over all rows: on 30,000 rows of 1,024 dimensions swaps end
as high after one step as after six."""


class Counterfactual(Learner):
    """Instead of one number per mask, every sample gets what it would add to (or what its loss would cost) each mask.

    Known as difference rewards in the multi-agent literature (Wolpert and Tumer 2002). The marginals come in closed
    form for all samples at once, so a step costs about one evaluation and its signal does not fade with n. The reward
    is then the credit of each sample, and its variance over the samples is what the terms share. Under a token budget
    logits say in which order rows are drawn until it is spent, so the credit is what a sample adds per token.

    Where swaps follow that outdo learned masks, learning stops once a step changes less than 0.5 % of the selection,
    or after `BEFORE_SWAPS` steps (`LONG_STEPS`).
    """

    keeps_best = True

    def __init__(
        self, problem: Problem, config: SelectionConfig, start: WarmStart | None = None, steps: int | None = None
    ) -> None:
        super().__init__(problem, config, start, steps)
        # drawn independently of the next step: what the two share tells signal from noise. Only a diagnostic, so no
        # part of the state; batches of different rows cannot be compared
        self._last_step: Tensor | None = None
        long = any(term.function.long_steps for term in problem.joint.counting)
        self._before_swaps = LONG_STEPS if long else BEFORE_SWAPS
        self._swaps_find_the_rest = (
            config.polish == "swaps" and not config.steps_chosen and solver_of(problem).outdoes_masks
        )

    def finished(self, state: State) -> str | None:
        """Finished with the last step, or where the selection stands still and swaps find the rest."""
        if self._swaps_find_the_rest:
            if state.quiet:
                return f"a step changed less than {STILL:.1%} of the selection; swaps go on from there"
            if state.step >= self._before_swaps:
                return f"{self._before_swaps} step{'' if self._before_swaps == 1 else 's'} done; swaps go on from there"
        return super().finished(state)

    def direction(
        self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll
    ) -> tuple[Tensor, dict[str, float]]:
        values, credits = joint.values_and_marginals(masks, poll)
        credit = sum(credits.values(), joint.quality.scores.new_zeros(()))
        step = counterfactual_step(self.problem.limits.priority(credit[moved]))
        moved_credits = {name: part[moved] for name, part in credits.items()}
        metrics = diagnostics.spreads(values) | diagnostics.variance_shares(moved_credits)
        if self._last_step is not None and joint is self.problem.joint:
            metrics |= diagnostics.signal_to_noise(diagnostics.agreement(self._last_step, step))
        self._last_step = step if joint is self.problem.joint else None
        return step, metrics
