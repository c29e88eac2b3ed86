"""Certificates: how far a selection is from the best possible.

A certificate says exactly this: no selection of S samples (of the eligible ones; under a budget, none that fills it)
has a higher value of this objective on these features than ``upper_bound``. Which problems can be bounded, and how,
stands in `datamask.learning.solvers`; DiSF has no bound, and a sum with it has none.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from torch import Tensor

from datamask.learning.bounds import DUAL_STEPS, Certificate, Effort
from datamask.learning.problem import Problem
from datamask.learning.solvers import Bound, solver_of
from datamask.learning.trace import Trace, no_trace
from datamask.measured import is_bound
from datamask.polling import Poll, no_poll

log = logging.getLogger(__name__)


def provable(problem: Problem) -> bool:
    """Whether the best value can be bounded."""
    return _bound(problem) is not None


def _bound(problem: Problem) -> Bound | None:
    """What bounds a problem; None: nothing does.

    Where nothing counts, neither quality nor diversity, all selections are worth the same: there is nothing to prove.
    """
    joint = problem.joint
    if not joint.counting and not joint.lamb * joint.quality_scale.slope > 0:
        return None
    return solver_of(problem).bound


def certify(
    problem: Problem,
    mask: Tensor,
    value: float,
    poll: Poll = no_poll,
    dual_steps: int = DUAL_STEPS,
    prices: np.ndarray | None = None,
    trace: Trace = no_trace,
) -> Certificate | None:
    """Bound the best possible value, starting from a selection.

    Args:
        mask: bool ``(n,)``, the selection; value: its exact joint value.
        dual_steps, prices, trace: as in `datamask.learning.bounds.Effort`.

    Returns:
        None where there is no bound, or where rounding put it below the value (logged).
    """
    bound = _bound(problem)
    if bound is None:
        return None
    proof = bound(problem, mask, value, poll, Effort(dual_steps, prices, trace))
    if not np.isfinite(proof.upper_bound):
        return None
    if not is_bound(proof.upper_bound, proof.value, proof.rounding):
        log.warning(
            "a bound of %.12g lies below the value %.12g it should bound: not proved", proof.upper_bound, proof.value
        )
        return None
    return replace(proof, upper_bound=max(proof.upper_bound, proof.value))
