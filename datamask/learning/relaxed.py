"""Relaxed: no masks. Maximise a concave function of inclusion weights and round it; the proof comes with the answer."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.learner import State, StepRecord
from datamask.learning.polish import medoids, polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, relaxable, rounded
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import Facility

CLOSED = 1e-6
"""Gap, on the run's scale, at which there is nothing left to find."""


class Relaxed:
    """Frank-Wolfe for concave terms (pair-wise, DiSF with fixed scale); greedy and swaps for facility location.

    Facility needs no iterations: its relaxation is a linear programme whose dual `datamask.learning.certificates`
    solves, and lazy greedy with eager swaps ends within a fraction of a percent of it. The state is the weights and the
    step.
    """

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        self.problem, self.config = problem, config
        self.device = problem.joint.device
        terms = problem.joint.counting
        self._direct = len(terms) == 1 and isinstance(terms[0].function, Facility)
        if not self._direct and not relaxable(problem):
            fit = [e.name for e in catalogue.OBJECTIVES if e.proof == "relaxation"]
            raise OptionError(
                f"--estimator relaxed needs a concave objective, got --objective {config.objective}; use one or a sum "
                f"of {', '.join(fit)}, facility alone, or --estimator counterfactual")
        self._here = None

    def init(self) -> State:
        """Equal weights over the eligible rows."""
        m = len(self.problem.eligible)
        weights = torch.full((m,), self.problem.size / m, dtype=torch.float64, device=self.device)
        return State(weights, 0, torch.zeros(0, dtype=torch.uint8))

    def step(self, state: State, poll: Poll = no_poll) -> tuple[State, StepRecord]:
        """One Frank-Wolfe step; for facility, the whole direct solution."""
        joint = self.problem.joint
        if self._direct:
            mask = medoids(self.problem, poll)
            values = joint.evaluate(mask, poll)
            weights = mask.double()[self.problem.eligible]
            return (replace(state, logits=weights, step=1, subset=mask, best=mask, best_joint=values.joint),
                    StepRecord(1, {}, values))
        if self._here is None or self._here[0] != state.step:
            weights = torch.zeros(joint.n, dtype=torch.float64, device=self.device)
            weights[self.problem.eligible] = state.logits
            self._here = (state.step, begin(self.problem, weights, poll))
        here = self._here[1]
        after, gap = advance(self.problem, here, poll)
        mask, values = rounded(self.problem, here, poll)
        step = state.step + 1
        self._here = (step, after)
        changed = {} if state.subset is None else {
            "changed": float((mask & ~state.subset).sum()) / self.problem.size}
        better = values.joint > state.best_joint
        state = State(after.weights[self.problem.eligible], step, state.rng, mask, mask if better else state.best,
                      values.joint if better else state.best_joint, 1 if gap <= CLOSED else 0)
        return state, StepRecord(step, {"upper_bound": here.value + max(gap, 0.0), **changed}, values)

    def finished(self, state: State) -> str | None:
        """Done when the gap is closed, when facility is solved, or at the ceiling on steps."""
        if self._direct:
            return "greedy, then swaps until no single swap helped" if state.step else None
        if state.quiet:
            return f"the relaxation is solved to {CLOSED:g}"
        if state.step >= self.config.n_epochs:
            return f"all {self.config.n_epochs:,} steps done"
        return None

    def result(self, state: State, poll: Poll = no_poll) -> Tensor:
        """The best rounding met, polished by swaps, bool ``(n,)``."""
        if self._direct or self.config.polish == "none":
            return state.best
        return polish(self.problem, state.best, poll)

    def logits(self, state: State) -> Tensor | None:
        """None: inclusion weights are no logits."""
        return None
