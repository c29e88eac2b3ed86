"""Relaxed: no masks. Maximise a concave function of inclusion weights and round it; the proof comes with the answer."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.learner import State, StepRecord, check_finite, check_state
from datamask.learning.newton import TOLERANCE, PairwiseDual, Point, solvable
from datamask.learning.polish import medoids, polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, even_weight, relaxable, rounded
from datamask.learning.start import MOST_MOVED, Start, first_step
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import Facility
from datamask.objectives.joint import Values

CLOSED = 1e-6
"""Gap, on the run's scale, at which there is nothing left to find."""


class Relaxed:
    """Newton steps on the dual for pair-wise; Frank-Wolfe for other concave terms; greedy and swaps for facility.

    Facility needs no iterations: its relaxation is a linear programme whose dual `datamask.learning.certificates`
    solves, and lazy greedy with eager swaps ends within a fraction of a percent of it.

    The state's logits are no logits: Frank-Wolfe keeps its weights there, ``(m,)``; Newton's steps keep y, mu and tau,
    ``(d + 2,)``.
    """

    def __init__(self, problem: Problem, config: SelectionConfig, start: Start | None = None) -> None:
        """Args: start: where another run ended, for a warm start; `warm` says after `init` whether it was taken up."""
        self.warm = False
        self.problem, self.config, self.start = problem, config, start
        self._dual = PairwiseDual(problem) if solvable(problem) else None
        self.device = problem.joint.device
        terms = problem.joint.counting
        self._direct = len(terms) == 1 and isinstance(terms[0].function, Facility)
        if not self._direct and not relaxable(problem):
            fit = [e.name for e in catalogue.OBJECTIVES if e.proof == "relaxation"]
            raise OptionError(
                f"--estimator relaxed needs a concave objective, got --objective {config.objective}; use one or a sum "
                f"of {', '.join(fit)}, facility alone, or --estimator counterfactual")
        self._here = None

    @property
    def total_steps(self) -> int:
        """The ceiling on steps."""
        return self.config.n_epochs

    def init(self) -> State:
        """Equal weights over the eligible rows; or the start under this problem's rules.

        Newton's steps go on from the other run's y and need fewer; Frank-Wolfe enters its steps at the last third.
        """
        m, start = len(self.problem.eligible), self.start
        rng = torch.zeros(0, dtype=torch.uint8)
        if self._dual is not None:
            weights = torch.zeros(0, dtype=torch.float64, device=self.device)
            if not self._dual.modular:
                y = None if start is None else start.dual(self.problem)
                self.warm = y is not None
                weights = _packed(self._dual.begin(y))
            return State(weights, 0, rng)
        best = None if start is None else start.subset(self.problem)
        self.warm = best is not None and (self._direct or start.moved(best) <= MOST_MOVED)
        even = torch.full((m,), even_weight(self.problem), dtype=torch.float64, device=self.device)
        if not self.warm:
            return State(even, 0, rng)
        value = self.problem.joint.evaluate(best).joint
        if self._direct:  # a part of the state: the run it comes from may be gone when this one is resumed
            return State(even, 0, rng, best, best, value)
        return State(start.inclusion(self.problem)[self.problem.eligible], first_step(self.config.n_epochs), rng, best,
                     best, value)

    def check(self, state: State) -> None:
        """Refuse a state that is not of this solver on this problem.

        Raises:
            ValueError: what is wrong with it.
        """
        newton = self._dual is not None and not self._dual.modular
        shape = len(self.problem.eligible) if self._dual is None else (self._dual.x.shape[1] + 2 if newton else 0)
        check_state(state, self.problem, logits=(shape,), kinds=(torch.float64,), rng=0,
                    steps=1 if self._direct else self.config.n_epochs)
        check_finite(state.logits)
        if newton and not float(state.logits[-2]) > 0:
            raise ValueError(f"mu, the last but one of the logits, must be above 0, got {float(state.logits[-2])}")
        if self._dual is None and not bool(((state.logits >= -CLOSED) & (state.logits <= 1 + CLOSED)).all()):
            raise ValueError("inclusion weights must be from 0 to 1, and some are not")
        if state.step and state.best is None:
            raise ValueError(f"best must be there after step {state.step:,}")

    def step(self, state: State, poll: Poll = no_poll) -> tuple[State, StepRecord]:
        """One step; for facility, the whole direct solution."""
        joint = self.problem.joint
        if self._dual is not None:
            return self._dual_step(state, poll)
        if self._direct:
            mask = medoids(self.problem, poll) if state.best is None else polish(self.problem, state.best, poll)
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
        self._here = (state.step + 1, after)
        return self._stepped(state, after.weights[self.problem.eligible], mask, values, gap <= CLOSED,
                             here.value + max(gap, 0.0))

    def _dual_step(self, state: State, poll: Poll) -> tuple[State, StepRecord]:
        dual = self._dual
        if dual.modular:
            mask = self.problem.subset(dual.b)
            return self._stepped(state, state.logits, mask, self.problem.joint.evaluate(mask, poll), True,
                                 dual.upper_bound(state.logits, poll))
        # from the packed numbers alone, so that a resumed run takes the very same steps
        here = dual.advance(dual.at(*_unpacked(state.logits), poll), poll)
        mask = self.problem.subset(here.weights)
        return self._stepped(state, _packed(here), mask, self.problem.joint.evaluate(mask, poll),
                             here.gap <= TOLERANCE, dual.upper_bound(here.y, poll))

    def _stepped(self, state: State, logits: Tensor, mask: Tensor, values: Values, solved: bool, bound: float
                 ) -> tuple[State, StepRecord]:
        changed = {} if state.subset is None else {
            "changed": float((mask & ~state.subset).sum() / mask.sum())}
        better = values.joint > state.best_joint
        after = State(logits, state.step + 1, state.rng, mask, mask if better else state.best,
                      values.joint if better else state.best_joint, 1 if solved else 0)
        return after, StepRecord(after.step, {"upper_bound": bound, **changed}, values)

    def finished(self, state: State) -> str | None:
        """Done when the gap is closed, when facility is solved, or at the ceiling on steps."""
        if self._direct:
            return "greedy, then swaps until no single swap helped" if state.step else None
        if state.quiet:
            return f"the relaxation is solved to {CLOSED if self._dual is None else TOLERANCE:g}"
        if state.step >= self.config.n_epochs:
            return f"all {self.config.n_epochs:,} steps done"
        return None

    def result(self, state: State, poll: Poll = no_poll) -> Tensor:
        """The best rounding met, polished by swaps, bool ``(n,)``."""
        best = state.best
        if self._dual is not None and not self._dual.modular:
            careful = self._dual.rounded(self._dual.at(*_unpacked(state.logits), poll), poll)
            if self.problem.joint.evaluate(careful, poll).joint > state.best_joint:
                best = careful
        if self._direct or self.config.polish == "none":
            return best
        return polish(self.problem, best, poll)

    def logits(self, state: State) -> Tensor | None:
        """None: inclusion weights are no logits."""
        return None


def _packed(point: Point) -> Tensor:
    return torch.cat([point.y, point.y.new_tensor([point.mu, point.tau])])


def _unpacked(logits: Tensor) -> tuple[Tensor, float, float]:
    return logits[:-2], float(logits[-2]), float(logits[-1])
