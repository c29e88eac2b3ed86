"""Polish: swaps after any learner, until no single swap helps or the effort is spent.

How, is the solver's (`datamask.learning.solvers`): eager swaps on neighbour lists for facility location, swaps by
blocks for both DiSFs, batches of swaps for everything else.
"""

from __future__ import annotations

from torch import Tensor

from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.learning.trace import Trace, no_trace
from datamask.polling import Poll, no_poll


def polish(problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """Improve a selection by swaps.

    Args:
        mask: bool ``(n,)``, S eligible members. trace: told of swaps made.

    Returns:
        bool ``(n,)``, never worse in exact joint value.
    """
    return solver_of(problem).polish(problem, mask, poll, trace)
