"""Baselines: selections that learn nothing, with the learner's face so that they run, store and compare alike."""

from __future__ import annotations

import abc

import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.learning.inclusion_weights import of_logits
from datamask.learning.loop import Estimator
from datamask.learning.problem import Problem
from datamask.learning.state import State, StepRecord, check_finite, check_state
from datamask.learning.trace import Trace, no_trace
from datamask.polling import Poll, no_poll


class Baseline(Estimator):
    """Ends before its first step; the result is a cut of fixed scores over the eligible rows."""

    ending = "nothing to learn"
    total_steps = 0

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        self.problem = problem
        self.config = config
        self.device = problem.joint.device

    def scores(self) -> Tensor:
        """The fixed scores, ``(m,)`` over the eligible rows; higher is in."""
        raise NotImplementedError

    def init(self) -> State:
        """A state without anything learned."""
        return State(torch.zeros(0, device=self.device), 0)

    def check(self, state: State) -> None:
        """Refuse a state that is not of this baseline on this problem.

        Raises:
            ValueError: what is wrong with it.
        """
        scored = len(self.problem.eligible) if state.step else 0
        check_state(
            state, self.problem, logits=(scored,), kinds=(torch.float64, torch.float32), rng=0, steps=self.total_steps
        )
        check_finite(state.logits)

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """There is none to take: `finished` answers before it."""
        return state, StepRecord(0)

    def finished(self, state: State) -> str | None:
        """Always finished."""
        return self.ending

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The subset, bool ``(n,)``."""
        return self.problem.subset(self.scores())


class Scored(Baseline, abc.ABC):
    """A baseline whose scores take work: one step computes them and keeps them in the state, where a poll can stop it.

    The state's logits are the scores, float64 ``(m,)``; they are no logits, and nobody is shown them as such.
    """

    total_steps = 1

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        super().__init__(problem, config)
        if problem.features is None:
            raise ValueError(f"{type(self).__name__} looks at features: give Problem(..., features=...)")
        self.features = problem.features

    @abc.abstractmethod
    def scores_of(self, poll: Poll) -> Tensor:
        """The scores, ``(m,)`` over the eligible rows; higher is in."""

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """All there is to do.

        Raises:
            Stopped: from `poll`; the state is then as it was.
        """
        after = State(self.scores_of(poll), 1, state.rng)
        return after, StepRecord(1, {}, self.problem.joint.evaluate(self.result(after), poll))

    def finished(self, state: State) -> str | None:
        """Finished after the one step."""
        return self.ending if state.step else None

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The subset, bool ``(n,)``."""
        return self.problem.subset(state.logits)


class TopQuality(Baseline):
    """The best eligible samples by quality alone; equal scores are cut by the seeded hash.

    ``top-quality:COLUMN`` sorts by that one of several quality columns; it is measured on their weighted sum, like any
    run on the same corpus.
    """

    ending = "sorted by quality"

    def scores(self) -> Tensor:
        problem = self.problem
        scores = problem.joint.quality.scores if problem.column is None else problem.column
        return scores[problem.eligible]


class RandomSubset(Baseline):
    """A uniformly random subset of the eligible samples."""

    ending = "drawn at random"

    def scores(self) -> Tensor:
        generator = torch.Generator().manual_seed(self.config.seed)
        return torch.rand(len(self.problem.eligible), generator=generator, dtype=torch.float64).to(
            self.problem.joint.quality.scores
        )

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """The chance of each row to be drawn, float64 ``(n,)``; None under quotas."""
        return of_logits(self.problem, torch.zeros(len(self.problem.eligible), device=self.device))
