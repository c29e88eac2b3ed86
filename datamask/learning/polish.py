"""Polish: swaps after any learner, until no single swap helps or the effort is spent.

How, is the solver's (`datamask.learning.solvers`): eager swaps on neighbour lists for facility location, swaps by
blocks for the DiSF with fixed scale, batches of swaps for everything else.
"""

from __future__ import annotations

from torch import Tensor

from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.objectives.contract import Poll, no_poll


def polish(problem: Problem, mask: Tensor, poll: Poll = no_poll) -> Tensor:
    """Improve a selection by swaps.

    Args:
        mask: bool ``(n,)``, S eligible members.

    Returns:
        bool ``(n,)``, never worse in exact joint value.
    """
    return solver_of(problem).polish(problem, mask, poll)
