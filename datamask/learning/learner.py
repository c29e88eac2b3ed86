"""The learner: init, step, terminate over an explicit state. No files, no threads, no printing.

The hyper-parameters live in the learner, the running state is a value, and a step is a function of it: a checkpoint is
the state written down, resuming is stepping on, and a step that was stopped half-way leaves the state as it was.
"""

from __future__ import annotations

import abc
from dataclasses import replace

import torch
from torch import Tensor

from datamask.catalogue import NOT_FINITE
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.inclusion_weights import of_logits
from datamask.learning.loop import Estimator
from datamask.learning.masks import gumbel_top_k, inclusion
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.state import State, StepRecord, check_finite, check_state
from datamask.learning.trace import Trace, no_trace
from datamask.learning.warm_start import MOST_MOVED, WarmStart, first_step
from datamask.objectives.joint import Joint, Values
from datamask.options.checks import required
from datamask.polling import Poll, no_poll

EVALUATIONS = 100
"""Whole-corpus evaluations per run, evenly spread: enough for a curve, few enough to cost little."""

DECIDED = 0.05
"""A sample is decided once its inclusion probability is within this of 0 or 1."""


STILL = 0.005
"""A selection stands still where an evaluation finds less than this share of its rows changed since the last one, of
the rows that steps look at. Swaps by blocks then find what is left in less time than another two steps."""


class Learner(Estimator, abc.ABC):
    """Learns one logit per eligible sample by sampled masks; the subclass says how a batch turns into a step.

    Attributes:
        total_steps: the ceiling on steps. masks_per_step: G. partial: share of the eligible rows in a step.
        learning_rates: of the first step and of the last.
    """

    keeps_best = False
    """Whether the final subset is the best evaluated readout rather than the last one."""

    def __init__(
        self, problem: Problem, config: SelectionConfig, start: WarmStart | None = None, steps: int | None = None
    ) -> None:
        """Start from nothing, or from where another run ended.

        Args:
            start: that end, for a warm start; `warm` says after `init` whether it was taken up.
            steps: the ceiling on steps; None: as the settings plan it for so many rows.
        """
        self.problem = problem
        self.config = config
        self.start = start
        self.device = problem.joint.device
        planned = config.planned_steps(len(problem.eligible)) if steps is None else steps
        self.total_steps = required(planned, "n_epochs")
        self.masks_per_step = required(config.n_rollout, "n_rollout")
        self.partial = required(config.partial, "partial")
        self.learning_rates = required(config.max_lr, "max_lr"), required(config.min_lr, "min_lr")
        self.evaluate_every = max(1, self.total_steps // EVALUATIONS)
        self._cut = problem.cut if problem.limits.limited else None
        self._moved = slice(None) if problem.unreduced else problem.eligible
        if problem.limits.limited and self.partial < 1:
            raise OptionError(
                f"--pin, --quota, --given and --budget need --partial 1, got {self.partial:g}: a batch "
                "cannot keep rules that hold for the whole selection"
            )

    def init(self) -> State:
        """The first state: logits all equal, or proportional to quality (z-scored), and the seeded generator.

        A warm start has the other run's logits at the last third of the steps, and its selection as the best so far.
        """
        m = len(self.problem.eligible)
        if (warmed := self._warmed()) is not None:
            return warmed
        logits = torch.zeros(m, device=self.device)
        if self.config.init == "quality":
            scores = self.problem.joint.quality.scores
            spread = float(scores.std())
            if spread > 0:
                logits = ((scores - scores.mean()) / spread)[self.problem.eligible].float()
        generator = torch.Generator(self.device).manual_seed(self.config.seed)
        return State(logits, 0, generator.get_state())

    def _warmed(self) -> State | None:
        """The first state of a warm start; None where there is none, or too much of its selection has to leave."""
        if self.start is None or (logits := self.start.spread(self.problem)) is None:
            return None
        best = self.start.subset(self.problem)
        if self.start.moved(best) > MOST_MOVED:
            return None
        step = first_step(self.total_steps)
        generator = torch.Generator(self.device).manual_seed(self.config.seed)
        self.warm = True
        return State(logits.float(), step, generator.get_state(), best, best, self.problem.joint.evaluate(best).joint)

    def learning_rate(self, step: int) -> float:
        """Step size of step `step` (from 0): linear from max_lr to min_lr."""
        first, last = self.learning_rates
        share = step / max(self.total_steps - 1, 1)
        return first + (last - first) * share

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """One step: masks, credit, logits; and, every `evaluate_every` steps, the value of the readout on the corpus.

        Raises:
            Stopped: from `poll`; the state is then as it was.
        """
        problem = self.problem
        generator = torch.Generator(self.device)
        generator.set_state(state.rng)
        m = len(problem.eligible)
        b = min(m, max(2, round(self.partial * m)))
        where: Tensor | slice = slice(None)
        moved: Tensor | slice = slice(None)
        if b < m:
            where = torch.randperm(m, generator=generator, device=self.device)[:b].sort().values
            size = min(b - 1, max(1, round(problem.size * b / m)))
            joint = problem.joint.batch(problem.eligible[where], size)
        else:
            size, joint = problem.size, problem.joint
            moved = self._moved
        masks = gumbel_top_k(state.logits[where], size, self.masks_per_step, generator, poll, self._cut)
        if b == m and not isinstance(moved, slice):
            # rows that may not be selected still belong to the pool: facility wants them covered
            whole = torch.zeros(len(masks), joint.n, dtype=torch.bool, device=self.device)
            whole[:, moved] = masks
            masks = whole
        direction, metrics = self.direction(joint, masks, moved, poll)
        logits = state.logits.clone()
        lr = self.learning_rate(state.step)
        logits[where] += lr * direction
        state = replace(state, logits=logits, step=state.step + 1, rng=generator.get_state())
        metrics["lr"] = lr
        values = None
        if state.step % self.evaluate_every == 0 or state.step == self.total_steps:
            state, values, diagnostics = self.evaluate(state, poll)
            metrics |= diagnostics
        return state, StepRecord(state.step, metrics, values)

    def check(self, state: State) -> None:
        """Refuse a state that is not of this learner on this problem.

        Raises:
            ValueError: what is wrong with it.
        """
        generator = torch.Generator(self.device)
        check_state(
            state,
            self.problem,
            logits=(len(self.problem.eligible),),
            kinds=(torch.float32,),
            rng=len(generator.get_state()),
            steps=self.total_steps,
        )
        check_finite(state.logits)
        try:
            generator.set_state(state.rng)
        except RuntimeError as error:
            raise ValueError(f"rng must be the state of a generator: {error}") from error

    @abc.abstractmethod
    def direction(
        self, joint: Joint, masks: Tensor, moved: Tensor | slice, poll: Poll
    ) -> tuple[Tensor, dict[str, float]]:
        """From an objective and masks on its pool to a step direction.

        Args:
            joint: on the whole pool, or on the batch's own; masks: bool ``(G, n)`` on that pool.
            moved: the rows of that pool whose logits move.

        Returns:
            The direction for those rows, and metrics.
        """

    def evaluate(self, state: State, poll: Poll = no_poll) -> tuple[State, Values, dict[str, float]]:
        """The readout's exact values on the whole corpus, and the diagnostics that go with it."""
        mask = self.readout(state)
        values = self.problem.joint.evaluate(mask, poll)
        chance = inclusion(state.logits, self.problem.limits.most, self.problem.lengths)
        diagnostics = {
            "decided": float(((chance < DECIDED) | (chance > 1 - DECIDED)).float().mean()),
            "missed": self.problem.joint.missed(mask),
        }
        if state.subset is not None:
            diagnostics["changed"] = float((mask & ~state.subset).sum() / mask.sum())
        quiet = state.quiet + 1 if diagnostics.get("changed", 1.0) < STILL * self.partial else 0
        state = replace(state, subset=mask, quiet=quiet)
        if values.joint > state.best_joint:
            state = replace(state, best=mask, best_joint=values.joint)
        return state, values, diagnostics

    def readout(self, state: State) -> Tensor:
        """The subset that the logits stand for: the top S, bool ``(n,)``."""
        return self.problem.subset(state.logits)

    def finished(self, state: State) -> str | None:
        """The sentence with which it ended, or None to go on."""
        if state.step >= self.total_steps:
            return f"all {self.total_steps:,} steps done"
        if not bool(torch.isfinite(state.logits).all()):
            return NOT_FINITE
        return None

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The final subset, bool ``(n,)``, polished by swaps if so configured."""
        if self.keeps_best and state.best is not None:
            mask = state.best
        else:
            mask = self.readout(state)
        if self.config.polish == "swaps":
            mask = polish(self.problem, mask, poll, trace)
        return mask

    def logits(self, state: State) -> Tensor | None:
        """The logits over all n rows, NaN where not eligible; None for a learner without logits."""
        full = torch.full((self.problem.joint.n,), torch.nan, device=self.device)
        full[self.problem.eligible] = state.logits
        return full

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """The chance of each row to be in a mask, float64 ``(n,)``; None under quotas, or where a logit is none."""
        return of_logits(self.problem, state.logits) if bool(torch.isfinite(state.logits).all()) else None
