"""The table of solvers: for an objective under its rules or its budget, what solves, bounds and polishes a selection.

    solver_of(problem).polish(problem, mask, poll, trace)   # by the first entry of `SOLVERS` that fits the problem
    solver_of(problem).bound             # None: nothing bounds this problem

Every place that asks how a problem is best solved (estimators, polish, certificates, the ends of the scales, the live
lambda, the frontier) asks here. To add a solver, for an objective of the catalogue or a new one: write its parts, and
put one entry into `SOLVERS` before those it surpasses. What an entry leaves out is done as for any objective: swaps in
batches, no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import Tensor

from datamask.learning.batch_swaps import batch_swaps
from datamask.learning.block_swaps import polish_by_blocks
from datamask.learning.bounds import Certificate, Effort, dual_bound, facility_terms, frank_wolfe_bound, newton_bound
from datamask.learning.facility_solver import medoid_swaps, medoids
from datamask.learning.newton import QuadraticDual
from datamask.learning.own_scale_swaps import polish_on_own_scale
from datamask.learning.problem import Problem
from datamask.learning.relaxation import further_starts, relaxable
from datamask.learning.relaxed_steps import DirectSteps, FrankWolfeSteps, NewtonSteps, RelaxedSteps
from datamask.learning.settled import Settled, settled_by_pairwise
from datamask.learning.trace import Trace
from datamask.objectives.contract import SetFunction
from datamask.objectives.disf import DiSF
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.facility import Facility
from datamask.objectives.pairwise import Pairwise
from datamask.polling import Poll

Bound = Callable[[Problem, Tensor, float, Poll, Effort], Certificate]
"""From a selection and its exact joint value to the certificate that goes with it."""


@dataclass(frozen=True)
class Solver:
    """One entry.

    Attributes:
        name: for people who read the table.
        fits: whether this entry is for a problem, by its objective, its rules and its budget.
        polish: improves a selection by swaps, bool ``(n,)``; never worse in exact joint value.
        bound: the certificate of a selection and its value; None: nothing bounds these problems.
        relaxed: what a step of the estimator `relaxed` is, from the problem, the settings, a warm start and `polish`;
            None: it has none.
        direct: the whole solution at once, bool ``(n,)``.
        dual: a search whose `solve` goes on from the dual solution of a nearby problem.
        settled: which rows are in every selection as good as one and its value, or in none; None: it cannot tell.
        outdoes_masks: whether its polish ends higher than learned masks even where roundings are far from the bound;
            masks that it polishes are learned only until they stand still.
    """

    name: str
    fits: Callable[[Problem], bool]
    polish: Callable[[Problem, Tensor, Poll, Trace], Tensor] = batch_swaps
    bound: Bound | None = None
    relaxed: Callable[..., RelaxedSteps] | None = None
    direct: Callable[[Problem, Poll, Trace], Tensor] | None = None
    dual: Callable[..., QuadraticDual] | None = None
    settled: Callable[[Problem, Tensor, float, Poll], Settled] | None = None
    outdoes_masks: bool = False


def alone(problem: Problem, objective: type[SetFunction]) -> bool:
    """Whether this objective is the only diversity term that counts."""
    return [type(term.function) for term in problem.joint.counting] == [objective]


def _pairwise(problem: Problem) -> bool:
    """Pair-wise similarity, or no diversity at all, and nothing but S limits the selection."""
    return (not problem.joint.counting or alone(problem, Pairwise)) and not problem.limits.limited and problem.size > 1


def _second_moments(problem: Problem) -> bool:
    """DiSF with fixed scale, or its sum with pair-wise similarity, of so many rows that few of their weights are
    fractional at the end, some d^2 / 2, and that swaps need not begin from several selections."""
    terms = {type(term.function): term for term in problem.joint.counting}
    if problem.limits.limited or DiSFFixed not in terms or not terms.keys() <= {Pairwise, DiSFFixed}:
        return False
    dim = terms[DiSFFixed].function_of(DiSFFixed).d
    return problem.size >= dim**2 and further_starts(len(problem.eligible), dim) == 0


def _sum_with_facility(problem: Problem) -> bool:
    """One facility term in a sum of concave ones."""
    by_prices = [term.name for term in facility_terms(problem)]
    return len(by_prices) == 1 and relaxable(problem, without=by_prices)


SOLVERS: tuple[Solver, ...] = (
    Solver(
        "Newton's steps",
        _pairwise,
        bound=newton_bound,
        relaxed=NewtonSteps,
        dual=QuadraticDual,
        settled=settled_by_pairwise,
    ),
    Solver(
        "Newton's steps on second moments",
        lambda problem: alone(problem, DiSFFixed) and _second_moments(problem),
        polish=polish_by_blocks,
        bound=newton_bound,
        relaxed=NewtonSteps,
        dual=QuadraticDual,
        outdoes_masks=True,
    ),
    Solver("Newton's steps on a sum", _second_moments, bound=newton_bound, relaxed=NewtonSteps, dual=QuadraticDual),
    Solver(
        "greedy and swaps",
        lambda problem: alone(problem, Facility),
        polish=medoid_swaps,
        bound=dual_bound,
        relaxed=partial(DirectSteps, direct=medoids),
        direct=medoids,
    ),
    Solver(
        "swaps by blocks",
        lambda problem: alone(problem, DiSFFixed) and not problem.limits.by_tokens,
        polish=polish_by_blocks,
        bound=frank_wolfe_bound,
        relaxed=FrankWolfeSteps,
        outdoes_masks=True,
    ),
    Solver(
        "swaps by blocks, own scale",
        lambda problem: alone(problem, DiSF) and not problem.limits.by_tokens,
        polish=polish_on_own_scale,
        outdoes_masks=True,
    ),
    Solver("Frank-Wolfe", relaxable, bound=frank_wolfe_bound, relaxed=FrankWolfeSteps),
    Solver("prices in a sum", _sum_with_facility, bound=dual_bound),
)
"""In the order in which they are asked."""

MASKS = Solver("learned masks", lambda problem: True)
"""For whatever no entry fits."""


def solver_of(problem: Problem) -> Solver:
    """The first entry that fits the problem."""
    return next((entry for entry in SOLVERS if entry.fits(problem)), MASKS)
