"""What a step of `relaxed` is, for each way there is to solve a problem without masks.

NewtonSteps       pair-wise similarity, and of many rows DiSF with fixed scale and their sum: Newton steps on the dual;
                  logits keep y, mu and tau, ``(D + 2,)``
FrankWolfeSteps   concave terms: Frank-Wolfe on inclusion weights, which logits keep, with how far a step reached,
                  ``(m + 1,)``
DirectSteps       facility location: one step, the whole solution; its relaxation is a linear programme whose dual
                  `datamask.learning.bounds` solves; greedy, swaps and annealing end within a fraction of a percent of
                  it
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.learning.inclusion_weights import adding_to, over_all
from datamask.learning.limits import Limits
from datamask.learning.loop import Estimator
from datamask.learning.newton import TOLERANCE, DualPoint, QuadraticDual
from datamask.learning.problem import Problem
from datamask.learning.relaxation import (
    REACH,
    Iterate,
    advance,
    begin,
    even_weights,
    further_starts,
    rounded,
)
from datamask.learning.state import State, StepRecord, check_finite, check_state
from datamask.learning.trace import Trace, no_trace
from datamask.learning.warm_start import MOST_MOVED, WarmStart, first_step
from datamask.objectives.joint import Values
from datamask.options.checks import required
from datamask.polling import Poll, no_poll

Polish = Callable[[Problem, Tensor, Poll, Trace], Tensor]
"""Improves a selection, bool ``(n,)``, by swaps."""

CLOSED = 1e-6
"""Gap, on the run's scale, at which there is nothing left to find."""

IDLE_STEPS, PROGRESS = 12, 1e-5
"""Steps of Frank-Wolfe end, too, when so many in a row have raised the best rounding by no more than this each: where
many weights stay fractional, as with second moments, the gap never closes."""

FIRST_STEPS = 4
"""Of Frank-Wolfe, whose gradient rounds better than their weights may; after more, the weights do."""


class RelaxedSteps(Estimator, abc.ABC):
    """One way to solve a problem in inclusion weights. The state's logits are no logits: see the module.

    Args:
        start: where another run ended, for a warm start; `warm` says after `init` whether it was taken up.
        polish: improves a selection by swaps, as that of the problem's solver.
    """

    polishes = True
    """Whether swaps after the last step may still help."""

    tolerance = CLOSED
    """Gap at which the relaxation is solved."""

    def __init__(self, problem: Problem, config: SelectionConfig, start: WarmStart | None, polish: Polish) -> None:
        self.problem, self.config, self.start, self.device = problem, config, start, problem.joint.device
        self.polish = polish
        self.total_steps = required(config.n_epochs, "n_epochs")

    @abc.abstractmethod
    def init(self) -> State:
        """The first state: weights as even as the rules let them be; or the start under this problem's rules."""

    @abc.abstractmethod
    def check(self, state: State) -> None:
        """Refuse a state that none of these steps can have left. Raises ValueError: what is wrong with it."""

    @abc.abstractmethod
    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """One step; for facility, the whole direct solution."""

    def finished(self, state: State) -> str | None:
        """Done when the gap is closed, when facility is solved, or at the ceiling on steps."""
        if state.quiet:
            return f"the relaxation is solved to {self.tolerance:g}"
        if state.step >= self.total_steps:
            return f"all {self.total_steps:,} steps done"
        return None

    def best(self, state: State, poll: Poll) -> Tensor:
        """The best rounding met, bool ``(n,)``.

        Raises:
            ValueError: no step has met one yet.
        """
        if state.best is None:
            raise ValueError("a selection is there after the first step, and none was taken; call step first")
        return state.best

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The best rounding met, polished by swaps, bool ``(n,)``."""
        best = self.best(state, poll)
        if self.config.polish == "none" or not self.polishes:
            return best
        return self.polish(self.problem, best, poll, trace)

    def check_shape(self, state: State, length: int, steps: int) -> None:
        """Refuse a state whose arrays cannot be those of a problem with logits of that length."""
        check_state(state, self.problem, logits=(length,), kinds=(torch.float64,), rng=0, steps=steps)
        check_finite(state.logits)
        if state.step and state.best is None:
            raise ValueError(f"best must be there after step {state.step:,}")

    def stepped(
        self, state: State, logits: Tensor, mask: Tensor, values: Values, solved: bool, bound: float
    ) -> tuple[State, StepRecord]:
        """The next state and its record, from a rounding and the bound that goes with it."""
        changed = {} if state.subset is None else {"changed": float((mask & ~state.subset).sum() / mask.sum())}
        better = values.joint > state.best_joint
        after = State(
            logits,
            state.step + 1,
            state.rng,
            mask,
            mask if better else state.best,
            values.joint if better else state.best_joint,
            1 if solved else 0,
        )
        return after, StepRecord(after.step, {"upper_bound": bound, **changed}, values)


class NewtonSteps(RelaxedSteps):
    """Newton steps on the dual; a warm start goes on from the other run's y and needs fewer."""

    tolerance = TOLERANCE
    _reached: tuple[int, DualPoint] | None = None

    @functools.cached_property
    def _dual(self) -> QuadraticDual:
        return QuadraticDual(self.problem)

    def init(self) -> State:
        weights = torch.zeros(0, dtype=torch.float64, device=self.device)
        if not self._dual.modular:
            y = None if self.start is None else self.start.dual(self.problem)
            if self.start is not None and (y is None or len(y) != self._dual.phi.length):
                y = self._dual.sum_of(self.start.inclusion(self.problem))
            self.warm = y is not None and self._dual.leads(y)
            point = self._dual.begin(y)
            weights = _packed(point)
            self._reached = (0, point)
        return State(weights, 0)

    def check(self, state: State) -> None:
        modular = self._dual.modular
        self.check_shape(state, 0 if modular else self._dual.phi.length + 2, self.total_steps)
        if not modular and not float(state.logits[-2]) > 0:
            raise ValueError(f"mu, the last but one of the logits, must be above 0, got {float(state.logits[-2])}")

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        dual, joint = self._dual, self.problem.joint
        if dual.modular:
            mask = self.problem.subset(dual.b)
            return self.stepped(
                state, state.logits, mask, joint.evaluate(mask, poll), True, dual.upper_bound(state.logits, poll)
            )
        # as from the packed numbers alone, so that a resumed run takes the very same steps
        point = dual.advance(self._point(state, poll), poll, fresh=True)
        self._reached = (state.step + 1, point)
        mask = self.problem.subset(point.weights)
        return self.stepped(
            state,
            _packed(point),
            mask,
            joint.evaluate(mask, poll),
            point.gap <= TOLERANCE,
            dual.upper_bound(point.y, poll, along=point.products),
        )

    def best(self, state: State, poll: Poll) -> Tensor:
        if not self._dual.modular:
            careful = self._dual.rounded(self._point(state, poll).weights, poll)
            if self.problem.joint.evaluate(careful, poll).joint > state.best_joint:
                return careful
        return super().best(state, poll)

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        dual, problem = self._dual, self.problem
        if dual.modular:
            return problem.subset(dual.b).double()
        return over_all(problem, adding_to(self._point(state, poll).weights, problem.size))

    def _point(self, state: State, poll: Poll) -> DualPoint:
        """Where the search stands: what the step before left, or what a checkpoint stands for."""
        if self._reached is not None and self._reached[0] == state.step:
            return self._reached[1]
        return self._dual.at(*_unpacked(state.logits), poll)


class FrankWolfeSteps(RelaxedSteps):
    """Frank-Wolfe; a warm start enters the steps at the last third."""

    _reached: tuple[int, Iterate] | None = None

    def init(self) -> State:
        cold = State(_reaching(even_weights(self.problem), REACH), 0)
        if self.start is None:
            return cold
        best = self.start.subset(self.problem)
        self.warm = self.start.moved(best) <= MOST_MOVED
        if not self.warm:
            return cold
        weights, step = self.start.inclusion(self.problem)[self.problem.eligible], first_step(self.total_steps)
        return State(
            _reaching(weights, REACH), step, subset=best, best=best, best_joint=self.problem.joint.evaluate(best).joint
        )

    def check(self, state: State) -> None:
        self.check_shape(state, len(self.problem.eligible) + 1, self.total_steps)
        _check_weights(state.logits[:-1])
        if not float(state.logits[-1]) > 0:
            raise ValueError(
                f"how far steps reach, the last of the logits, must be above 0, got {float(state.logits[-1])}"
            )

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        if self._reached is not None and self._reached[0] == state.step:
            iterate = self._reached[1]
        else:
            weights = over_all(self.problem, state.logits[:-1])
            iterate = replace(begin(self.problem, weights, poll), steps=state.step, reach=float(state.logits[-1]))
            self._reached = (state.step, iterate)
        iterate_after, gap = advance(self.problem, iterate, poll)
        mask, values = rounded(self.problem, iterate, poll, by_gradient=state.step < FIRST_STEPS)
        self._reached = (state.step + 1, iterate_after)
        weights = _reaching(iterate_after.weights[self.problem.eligible], iterate_after.reach)
        solved = gap <= self.tolerance
        after, record = self.stepped(state, weights, mask, values, solved, iterate.value + max(gap, 0.0))
        idle = state.quiet + 1 if values.joint <= state.best_joint + PROGRESS else 0
        return replace(after, quiet=IDLE_STEPS + 1 if solved else idle), record

    def finished(self, state: State) -> str | None:
        if state.quiet == IDLE_STEPS:
            return f"the best rounding has stood still for {IDLE_STEPS} steps"
        return super().finished(replace(state, quiet=int(state.quiet > IDLE_STEPS)))

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        problem, weights, best = self.problem, state.logits[:-1], super().result(state, poll, trace)
        if self.config.polish == "none" or problem.features is None:
            return best
        others, generator = [], torch.Generator().manual_seed(0)
        for _ in range(further_starts(*problem.features.shape)):
            drawn = torch.rand(len(weights), generator=generator).to(weights) < weights
            others.append(self.polish(problem, problem.subset(drawn.double() + weights / 2), poll, no_trace))
        # where there are no others, as with many rows, nothing need be valued
        return max([best, *others], key=lambda mask: problem.joint.evaluate(mask, poll).joint) if others else best

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """Under a budget the tokens of the weights fill it, as a selection's do: up to the longest row less."""
        problem, weights = self.problem, state.logits[:-1].clamp(0.0, 1.0)
        # what fills a budget stays below it by what its last row would have been too much
        return over_all(problem, weights if problem.limits.by_tokens else _kept_sums(problem.limits, weights))


class DirectSteps(RelaxedSteps):
    """One step: the solver's direct solution; from a warm start, its swaps alone."""

    polishes = False

    def __init__(
        self,
        problem: Problem,
        config: SelectionConfig,
        start: WarmStart | None,
        polish: Polish,
        *,
        direct: Callable[[Problem, Poll, Trace], Tensor],
    ) -> None:
        super().__init__(problem, config, start, polish)
        self._solve = direct

    def init(self) -> State:
        even = even_weights(self.problem)
        self.warm = self.start is not None
        if self.start is None:
            return State(even, 0)
        best = self.start.subset(self.problem)
        # a part of the state: the run it comes from may be gone when this one is resumed
        return State(even, 0, subset=best, best=best, best_joint=self.problem.joint.evaluate(best).joint)

    def check(self, state: State) -> None:
        self.check_shape(state, len(self.problem.eligible), 1)
        _check_weights(state.logits)

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        mask = (
            self._solve(self.problem, poll, trace)
            if state.best is None
            else self.polish(self.problem, state.best, poll, trace)
        )
        values = self.problem.joint.evaluate(mask, poll)
        weights = mask.double()[self.problem.eligible]
        return (
            replace(state, logits=weights, step=1, subset=mask, best=mask, best_joint=values.joint),
            StepRecord(1, {}, values),
        )

    def finished(self, state: State) -> str | None:
        return "greedy, swaps and annealing, until no single swap helped" if state.step else None


def _kept_sums(limits: Limits, weights: Tensor) -> Tensor:
    """Weights ``(m,)`` without the smallest ones, which go to rows of the same quota group; pinned rows keep 1."""
    groups, free = (torch.from_numpy(rows).to(weights.device) for rows in (limits.groups.group, ~limits.pinned))
    kept = torch.ones_like(weights)
    for group in range(len(limits.groups.names)):
        members = free & (groups == group)
        total = float(weights[members].sum()) if limits.grouped else limits.most - limits.fixed
        kept[members] = adding_to(weights[members], total)
    return kept


def _check_weights(weights: Tensor) -> None:
    """Raises:
    ValueError: these are no inclusion weights.
    """
    if not bool(((weights >= -CLOSED) & (weights <= 1 + CLOSED)).all()):
        raise ValueError("inclusion weights must be from 0 to 1, and some are not")


def _reaching(weights: Tensor, reach: float) -> Tensor:
    return torch.cat([weights, weights.new_tensor([reach])])


def _packed(point: DualPoint) -> Tensor:
    return torch.cat([point.y, point.y.new_tensor([point.mu, point.tau])])


def _unpacked(logits: Tensor) -> tuple[Tensor, float, float]:
    return logits[:-2], float(logits[-2]), float(logits[-1])
