"""The bounds: how the best possible value of a problem is bounded from above, starting from a selection.

- `frank_wolfe_bound`: every term is concave in inclusion weights; the Frank-Wolfe gap bounds it.
- `newton_bound`: pair-wise similarity, and of many rows DiSF with fixed scale and their sum, by the dual of moments.
- `dual_bound`: facility location, alone or with concave terms; prices on neighbour lists bound it. On approximate lists
  the bound holds for the listed-neighbour objective only, and is labelled so.

A sum is bounded as a whole: concave terms are replaced by their tangent at the selection, which is never below them and
adds a fixed amount per member, and that amount enters the dual of the facility term as a bonus.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.learning.facility_dual import descend, product_error, proved
from datamask.learning.lists import Lists
from datamask.learning.moments import UNIT_ROUNDING
from datamask.learning.newton import QuadraticDual
from datamask.learning.problem import Problem
from datamask.learning.relaxation import bounded, concave
from datamask.learning.trace import Trace, TracePoint, no_trace
from datamask.objectives.facility import Facility
from datamask.objectives.joint import Term
from datamask.polling import Poll

FRANK_WOLFE_STEPS = 40
DUAL_STEPS = 300
ENOUGH = 1e-6
"""A gap, on the scale of the objective's attainable gain, that is not worth closing further."""

PROGRESS = 3e-5
"""What `facility_dual.LAST_STEPS` steps of a dual bound must bring at least, on the same scale, for it to go on. On
20,000 rows the steps that this leaves out would have closed 1 to 5 % of the gap."""


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


@dataclass(frozen=True)
class Effort:
    """What a bound may take.

    Attributes:
        dual_steps: of a dual bound; with 1, it is the bound of the prices as they are.
        prices: where a dual bound starts, float64 ``(n,)``; None: from the selection.
        trace: told of the steps.
    """

    dual_steps: int = DUAL_STEPS
    prices: np.ndarray | None = None
    trace: Trace = no_trace


def newton_bound(problem: Problem, mask: Tensor, value: float, poll: Poll, effort: Effort) -> Certificate:
    """The dual at the moments of the selection, and Newton steps from there where that leaves a gap."""
    dual, record = QuadraticDual(problem), _bound_recorder(effort.trace, value)
    y = dual.sum_of(mask, poll)
    bound = dual.upper_bound(y, poll)
    record(0, bound)
    if bound - value > ENOUGH:
        bound = min(bound, dual.bound(y, poll=poll, on_bound=record))
    return Certificate(bound, "exact", value)


def frank_wolfe_bound(problem: Problem, mask: Tensor, value: float, poll: Poll, effort: Effort) -> Certificate:
    """Frank-Wolfe from the selection until the gap is closed."""
    record = _bound_recorder(effort.trace, value)
    return Certificate(bounded(problem, mask.double(), FRANK_WOLFE_STEPS, ENOUGH, poll, record)[1], "exact", value)


def _bound_recorder(trace: Trace, value: float) -> Callable[[int, float], None]:
    """A function of the steps taken and a bound, which traces the lowest bound so far beside the value it bounds."""
    lowest = math.inf

    def record(steps: int, bound: float) -> None:
        nonlocal lowest
        lowest = min(lowest, max(bound, value))
        trace(TracePoint({"dual_steps": steps, "upper_bound": lowest, "joint": value}))

    return record


def facility_terms(problem: Problem) -> list[Term]:
    """The counting terms that prices on neighbour lists bound."""
    return [term for term in problem.joint.counting if term.function.priced]


def dual_bound(problem: Problem, mask: Tensor, value: float, poll: Poll, effort: Effort) -> Certificate:
    """The dual of the one facility term, with the tangent of what else counts as a bonus."""
    joint, dual = problem.joint, facility_terms(problem)[0]
    function, start = dual.function_of(Facility), effort.prices
    smooth, gradient = concave(problem, mask.double(), poll, without=(dual.name,))
    weight = (1 - joint.lamb) * dual.weight * dual.scale.slope
    # at the selection the tangent is exact, so what it adds beside its per-member part is one constant
    constant = smooth - float(gradient @ mask.double())
    bonus = torch.full_like(gradient, -torch.inf)
    bonus[problem.eligible] = gradient[problem.eligible] / weight
    del gradient
    if not function.exact_lists:
        value = smooth + weight * (function.listed_value(mask, poll) - dual.scale.zero)
    target = (value - constant) / weight + dual.scale.zero
    choose = None
    if problem.limits.limited:

        def choose(scores: np.ndarray) -> np.ndarray:
            return problem.vertex(torch.from_numpy(scores).to(joint.device)[problem.eligible]).cpu().numpy()

    if start is None:
        nearest = function.close_coverage(mask, poll, needed=1)
        start = ((nearest.best + nearest.second) / 2).cpu().numpy()
        del nearest  # of all rows, like what follows
    own, (indices, similarities) = bonus.cpu().numpy(), function.listed
    lists = Lists(indices, similarities)
    if function.order is not None:
        lists = Lists.in_steps(indices, similarities, function.place, function.order)
    step, zero = lists.step, lists.zero
    record = _bound_recorder(effort.trace, value)
    descent = descend(
        lists.indices,
        lists.near,
        problem.size,
        target / step + zero,
        lists.by_position(start) / step + zero,
        lists.by_position(own) / step,
        choose=None if choose is None else lambda scores: lists.by_position(choose(lists.by_row(scores))),
        steps=effort.dual_steps,
        tolerance=ENOUGH / weight / step,
        progress=PROGRESS / weight / step,
        poll=poll,
        on_bound=lambda steps, bound: record(steps, constant + weight * ((bound - zero) * step - dual.scale.zero)),
        zero=zero,
        exact_lists=function.exact_lists,
        threads=torch.get_num_threads(),
    )
    prices, error, unlisted = lists.by_row((descent.prices - zero) * step), product_error(function.d), None
    if function.exact_lists:
        unlisted = function.unlisted
        if unlisted is None:
            unlisted = similarities[:, -1].astype(np.float64) + error
    bound = proved(
        function.products,
        indices,
        similarities,
        problem.size,
        prices,
        own,
        error + function.listed_error,
        unlisted=unlisted,
        choose=choose,
        poll=poll,
    )
    return Certificate(
        constant + weight * (bound + 2 * UNIT_ROUNDING - dual.scale.zero),
        "exact" if function.exact_lists else "listed",
        value,
        prices,
        weight * error,
    )
