"""Relaxed: no masks. Maximise a concave function of inclusion weights and round it; the proof comes with the answer."""

from __future__ import annotations

from torch import Tensor

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.learning.state import State, StepRecord
from datamask.learning.trace import Trace, no_trace
from datamask.learning.warm_start import WarmStart
from datamask.options.checks import required
from datamask.polling import Poll, no_poll


class Relaxed:
    """Newton steps on the dual for pair-wise; Frank-Wolfe for other concave terms; greedy and swaps for facility.

    Which of them, says the problem's solver (`datamask.learning.solvers`). The state's logits are no logits: what they
    keep stands in `datamask.learning.relaxed_steps`.
    """

    def __init__(self, problem: Problem, config: SelectionConfig, start: WarmStart | None = None) -> None:
        """Args: start: where another run ended, for a warm start; `warm` says after `init` whether it was taken up."""
        self.problem, self.config, self.device = problem, config, problem.joint.device
        steps = solver_of(problem).relaxed
        if steps is None:
            fit = [e.name for e in catalogue.OBJECTIVES if e.proof == "relaxation"]
            raise OptionError(
                f"--estimator relaxed needs a concave objective, got --objective {config.objective}; use one or a sum "
                f"of {', '.join(fit)}, facility alone, or --estimator counterfactual"
            )
        self._ceiling = required(config.n_epochs, "n_epochs")
        self._steps = steps(problem, self._ceiling, start)

    @property
    def warm(self) -> bool:
        """Whether `init` took up where another run ended."""
        return self._steps.warm

    @property
    def total_steps(self) -> int:
        """The ceiling on steps."""
        return self._ceiling

    def init(self) -> State:
        """The first state."""
        return self._steps.init()

    def check(self, state: State) -> None:
        """Refuse a state that is not of this solver on this problem.

        Raises:
            ValueError: what is wrong with it.
        """
        self._steps.check(state)

    def step(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> tuple[State, StepRecord]:
        """One step; for facility, the whole direct solution."""
        return self._steps.step(state, poll, trace)

    def finished(self, state: State) -> str | None:
        """Done when the gap is closed, when facility is solved, or at the ceiling on steps."""
        return self._steps.finished(state)

    def result(self, state: State, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
        """The best rounding met, polished by swaps, bool ``(n,)``."""
        best = self._steps.best(state, poll)
        if self.config.polish == "none" or not self._steps.polishes:
            return best
        return polish(self.problem, best, poll, trace)

    def logits(self, state: State) -> Tensor | None:
        """None: inclusion weights are no logits."""
        return None

    def inclusion(self, state: State, poll: Poll = no_poll) -> Tensor | None:
        """The inclusion weights that were solved for, float64 ``(n,)``; None for facility, which is solved without.

        Under a budget their tokens fill it, as a selection's do: up to the longest row less than all of it.
        """
        return self._steps.inclusion(state, poll)
