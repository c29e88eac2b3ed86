"""Which rows are settled by proof: in every selection that is as good as this one, or in none.

Where F is concave in inclusion weights and equals f on masks, its tangent at any weights p bounds every selection U of
S rows by a sum over its members, with g the gradient of F at p:

    f(U) <= F(p) + g . (U - p)

The largest such sum, over the S rows with the largest g, is the upper bound. Take row i from outside these S: a
selection with i has at most that bound less ``g_(S) - g_i``, where ``g_(S)`` is the S-th largest entry. If that is
below the value of the selection at hand, no selection as good has i. Likewise one without row i from inside has at most
the bound less ``g_i - g_(S+1)``, and if that is too little, every selection as good has i. How many rows are settled
depends on how close bound and value are, so Frank-Wolfe steps follow where the smoothed Newton steps of
`datamask.learning.newton` come to their end. Values are those of the rows as they are in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.learning.newton import QuadraticDual
from datamask.learning.problem import Problem
from datamask.learning.relaxation import Iterate, concave, mixed
from datamask.measured import RowClasses
from datamask.polling import Poll, no_poll

CLOSED = 1e-9
"""A gap, on the scale of the objective's attainable gain, that is not worth closing further."""

NEARLY = 1e-8
"""A gap from where Frank-Wolfe's steps are the quicker ones."""

STEPS, WORTHWHILE = 12, 0.95
"""Of Frank-Wolfe: at most so many, and no more once a step leaves more than this share of the gap."""

ROUNDING = 1e-12
"""Of sums in float64, relative to what is added up; rows that differ by less count as alike."""


@dataclass(frozen=True)
class Settled:
    """What is settled.

    Attributes:
        inside: bool ``(n,)``, in every selection of S eligible rows whose value is at least that of the selection.
        outside: bool ``(n,)``, eligible and in none of these.
        open: how many eligible rows are neither: there are, or may be, selections as good that differ in them.
        upper_bound: no selection has more, on the scale of the objective, also before float32 rounded the rows.
    """

    inside: np.ndarray
    outside: np.ndarray
    open: int
    upper_bound: float

    def counts(self) -> RowClasses:
        """Return how many rows there are of each kind."""
        return RowClasses(int(self.inside.sum()), int(self.outside.sum()), self.open)


def settled_by_pairwise(problem: Problem, mask: Tensor, value: float, poll: Poll = no_poll) -> Settled:
    """Settle the rows of pair-wise similarity, or of quality alone, limited by nothing but S.

    Args:
        mask: bool ``(n,)``, the selection; value: its exact joint value.

    Raises:
        Stopped: from `poll`.
    """
    dual = QuadraticDual(problem)
    bound, gradient, y = _tangent(dual, mask, value, poll)
    eligible = problem.eligible
    g = gradient[eligible]
    size = problem.size
    falling = g.topk(min(size + 1, len(g))).values
    gap = max(bound - value, 0.0) + ROUNDING * (1.0 + abs(value) + float(falling.abs().sum()))
    last = falling[size - 1]
    first_out = falling[size] if len(falling) > size else g.new_tensor(-math.inf)
    inside, outside = (torch.zeros(len(mask), dtype=torch.bool, device=g.device) for _ in range(2))
    inside[eligible] = g - first_out > gap
    outside[eligible] = last - g > gap
    return Settled(
        inside.cpu().numpy(),
        outside.cpu().numpy(),
        len(g) - int(inside.sum()) - int(outside.sum()),
        max(dual.upper_bound(y, poll), value),
    )


def _tangent(dual: QuadraticDual, mask: Tensor, value: float, poll: Poll) -> tuple[float, Tensor, Tensor]:
    """The lowest bound met on the way, the gradient that it comes from, float64 ``(n,)``, and the y of that tangent."""
    problem, eligible = dual.problem, dual.problem.eligible
    weights = mask.double()
    if not dual.modular:
        fractions = dual.weights(dual.sum_of(mask, poll), NEARLY, poll)
        weights[eligible] = fractions * (problem.size / float(fractions.sum()))
    at_start, gradient = concave(problem, weights, poll)
    iterate = Iterate(weights, gradient, at_start)
    lowest, tangent, touched = math.inf, gradient, weights
    for _ in range(STEPS):
        vertex = problem.vertex(iterate.gradient[eligible])
        gap = float(iterate.gradient @ (vertex - iterate.weights))
        bound = iterate.value + gap
        enough = bound - value > WORTHWHILE * (lowest - value)
        if bound < lowest:
            lowest, tangent, touched = bound, iterate.gradient, iterate.weights
        if gap <= CLOSED or enough:
            break
        iterate = mixed(iterate, vertex, gap, *concave(problem, vertex, poll))
    return lowest, tangent, dual.sum_of(touched, poll)
