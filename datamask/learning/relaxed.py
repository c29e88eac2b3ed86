"""Relaxed: no masks. Maximise a concave function of inclusion weights and round it; the proof comes with the answer."""

from __future__ import annotations

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.problem import Problem
from datamask.learning.relaxed_steps import RelaxedSteps
from datamask.learning.solvers import solver_of
from datamask.learning.warm_start import WarmStart


def relaxed(problem: Problem, config: SelectionConfig, start: WarmStart | None = None) -> RelaxedSteps:
    """Newton steps on the dual where there is one; Frank-Wolfe for other concave terms; greedy and swaps for facility.

    Which of them, says the problem's solver (`datamask.learning.solvers`).

    Args:
        start: where another run ended, for a warm start; `warm` says after `init` whether it was taken up.

    Raises:
        OptionError: the objective is not concave in inclusion weights.
    """
    solver = solver_of(problem)
    if solver.relaxed is None:
        fit = [e.name for e in catalogue.OBJECTIVES if e.proof == "relaxation"]
        raise OptionError(
            f"--estimator relaxed needs a concave objective, got --objective {config.objective}; use one or a sum "
            f"of {', '.join(fit)}, facility alone, or --estimator counterfactual"
        )
    return solver.relaxed(problem, config, start, solver.polish)
