"""Certificates: how far a selection is from the best possible.

A certificate says exactly this: no selection of S samples (of the eligible ones; under a budget, none that fills it)
has a higher value of this objective on these features than ``upper_bound``. Which terms can be bounded stands in
`datamask.catalogue` (``proof``):

- ``relaxation``: concave in inclusion weights; the Frank-Wolfe gap bounds it.
- ``dual``: facility location; prices on neighbour lists bound it. On approximate lists the bound holds for the
  listed-neighbour objective only, and is labelled so.
- nothing: DiSF and graph cut have none, and a sum with them has none.

A sum is bounded as a whole: concave terms are replaced by their tangent at the selection, which is never below them and
adds a fixed amount per member, and that amount enters the dual of the facility term as a bonus.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue
from datamask.learning.facility_dual import descend, product_error, proved
from datamask.learning.newton import PairwiseDual, solvable
from datamask.learning.problem import Problem
from datamask.learning.relaxation import advance, begin, upper_bound
from datamask.objectives.contract import CountingRows, Poll, no_poll

log = logging.getLogger(__name__)

ROUNDING = 1e-9
"""A bound may lie below its value by float64 rounding, relative; more is a fault, and the bound is dropped."""

FRANK_WOLFE_STEPS = 40
DUAL_STEPS = 300
ENOUGH = 1e-6
"""A gap, on the scale of the objective's attainable gain, that is not worth closing further."""


@dataclass(frozen=True)
class Certificate:
    """An upper bound, and what it is a bound of.

    Attributes:
        upper_bound: no subset has more.
        holds_for: ``exact`` (the objective) or ``listed`` (its value over listed neighbours).
        value: what the selection itself has of that, so that ``upper_bound - value`` is its gap.
        prices: float64 ``(n,)``, of a dual bound: they bound the same problem at every other lambda too.
        rounding: by how much `value` may lie above the exact one, because it comes from float32 products.
    """

    upper_bound: float
    holds_for: str
    value: float
    prices: np.ndarray | None = None
    rounding: float = 0.0


def provable(problem: Problem) -> bool:
    """Whether every diversity term that counts can be bounded, and at most one of them by its dual.

    Where nothing counts, neither quality nor diversity, all selections are worth the same: there is nothing to prove.
    """
    terms = problem.joint.counting
    if not terms and not problem.joint.lamb * problem.joint.quality_scale.slope > 0:
        return False
    if any(isinstance(term.function, CountingRows) for term in terms):
        return False
    proofs = [catalogue.objective(term.name).proof for term in terms]
    return all(proofs) and proofs.count("dual") <= 1


def certify(problem: Problem, mask: Tensor, value: float, poll: Poll = no_poll, dual_steps: int = DUAL_STEPS,
            prices: np.ndarray | None = None) -> Certificate | None:
    """Bound the best possible value, starting from a selection.

    Args:
        mask: bool ``(n,)``, the selection; value: its exact joint value.
        dual_steps: of a dual bound; with 1, it is the bound of the prices as they are.
        prices: where a dual bound starts, float64 ``(n,)``; None: from the selection.

    Returns:
        None where there is no bound, or where rounding put it below the value (logged).
    """
    if not provable(problem):
        return None
    terms = problem.joint.counting
    dual = next((term for term in terms if catalogue.objective(term.name).proof == "dual"), None)
    if dual is None:
        found = Certificate(_relaxed(problem, mask, poll), "exact", value)
    else:
        found = _with_dual(problem, mask, value, dual, poll, dual_steps, prices)
    if not np.isfinite(found.upper_bound):
        return None
    if found.upper_bound < found.value - found.rounding - ROUNDING * max(1.0, abs(found.value)):
        log.warning("a bound of %.12g lies below the value %.12g it should bound: not proved", found.upper_bound,
                    found.value)
        return None
    return replace(found, upper_bound=max(found.upper_bound, found.value))


def _relaxed(problem: Problem, mask: Tensor, poll: Poll) -> float:
    """Frank-Wolfe from the selection until the gap is closed; the proof itself in float64."""
    if solvable(problem):
        return PairwiseDual(problem).bound(poll=poll)
    here = begin(problem, mask.double(), poll)
    for _ in range(FRANK_WOLFE_STEPS):
        here, gap = advance(problem, here, poll)
        if gap <= ENOUGH:
            break
    return upper_bound(problem, here.weights, poll)


def _with_dual(problem: Problem, mask: Tensor, value: float, dual, poll: Poll, steps: int,
               start: np.ndarray | None) -> Certificate:
    joint, function = problem.joint, dual.function
    smooth, gradient = joint.concave(mask.double(), problem.size, poll, wide=True, without=(dual.name,))
    weight = (1 - joint.lamb) * dual.weight * dual.scale.slope
    # at the selection the tangent is exact, so what it adds beside its per-member part is one constant
    constant = smooth - float(gradient @ mask.double())
    bonus = torch.full_like(gradient, -torch.inf)
    bonus[problem.eligible] = gradient[problem.eligible] / weight
    if not function.exact_lists:
        value = smooth + weight * (function.listed_value(mask, poll) - dual.scale.zero)
    target = (value - constant) / weight + dual.scale.zero
    choose = None
    if problem.limited:
        def choose(scores: np.ndarray) -> np.ndarray:
            return problem.vertex(torch.from_numpy(scores).to(joint.device)[problem.eligible]).cpu().numpy()
    if start is None:
        nearest = function.close_coverage(mask, poll, needed=1)
        start = ((nearest.best + nearest.second) / 2).cpu().numpy()
    lists = function.indices.cpu().numpy(), function.similarities.cpu().numpy()
    own = bonus.cpu().numpy()
    found = descend(*lists, problem.size, target, start, own, choose=choose, steps=steps, tolerance=ENOUGH / weight,
                    poll=poll)
    bound = proved(function.features.cpu().numpy(), *lists, problem.size, found.prices, own, choose=choose,
                   exact_lists=function.exact_lists, poll=poll)
    return Certificate(constant + weight * (bound - dual.scale.zero),
                       "exact" if function.exact_lists else "listed", value, found.prices,
                       weight * product_error(function.d))
