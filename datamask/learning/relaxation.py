"""Frank-Wolfe on inclusion weights: the problem without masks, and with a proof.

Where every term has a concave function F of inclusion weights that equals f on masks, then for any weights p in
[0, 1]^n that add to S, and the gradient g of F there, no selection of S eligible samples is worth more than

    F(p) + max over masks v of g . (v - p)

(the Frank-Wolfe gap; Jaggi 2013). The maximum is the sum of the S largest entries of g over the eligible rows (under
the rules, where there are any). Where F is at most quadratic, the line search is exact and the gradient after a step is
a mix of two known ones: a step costs one evaluation at the vertex; of the second moments of wide rows little of one,
once vertices differ in few rows (`SetFunction.bend`). Else a share of the way is tried that follows from
where the step before ended, and another where F's slope there says that it is far too short or too long: one evaluation
more in ten steps.
Under a token budget the maximum runs over fractional selections too (`datamask.learning.limits`), and is no smaller for
that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from datamask.learning.problem import Problem
from datamask.objectives.joint import Values
from datamask.polling import Poll, no_poll

REACH = 1.3
"""Of the way that the first step tries first: what exact line searches end at once they are ten, times the number of
steps. Where fewer rows than dimensions are selected they end at a third of it; so a step tries what the last one found.
"""

FLAT, SEARCHED, TRIALS = 0.4, 1e-4, 20
"""A line search ends where the slope is below this share of the first one, where it has found the place to this share
of the way, or after so many trials."""

MOST_STARTS, START_COST = 8, 3e7
"""Further selections from which swaps begin too: at most so many, and only while rows times squared dimensions, added
up over them, stay within the second. By where they begin, swaps end up to a fifth of the scale apart on 1,500 rows of
24 dimensions of which 20 are selected, some 1e-3 on 600 rows, some 1e-5 on 5,000."""


@dataclass(frozen=True)
class Iterate:
    """Inclusion weights p ``(n,)``, the gradient of F there ``(n,)`` and F(p), float64; the steps that led there, and
    the share of its way that the last one went, times their number; and the weights that F was last computed at, from
    where a vertex of few other rows is known sooner."""

    weights: Tensor
    gradient: Tensor
    value: float
    steps: int = 0
    reach: float = REACH
    known: Known | None = None


@dataclass(frozen=True)
class Known:
    """Weights ``(n,)``, F and its gradient ``(n,)`` there; float64."""

    weights: Tensor
    value: float
    gradient: Tensor


def relaxable(problem: Problem, without: Sequence[str] = ()) -> bool:
    """Whether every diversity term that counts, but those of the names given, is concave in inclusion weights."""
    empty = torch.zeros(problem.joint.n, dtype=torch.float64, device=problem.joint.device)
    return problem.joint.concave(empty, problem.size, wide=False, without=without) is not None


def concave(
    problem: Problem, weights: Tensor, poll: Poll = no_poll, wide: bool = True, without: Sequence[str] = ()
) -> tuple[float, Tensor]:
    """F and its gradient, float64 ``(n,)``, at weights ``(n,)``; see `Joint.concave`.

    Raises:
        ValueError: a term that counts is not concave in inclusion weights.
    """
    at_weights = problem.joint.concave(weights, problem.size, poll, wide, without)
    if at_weights is None:
        names = ", ".join(term.name for term in problem.joint.counting if term.name not in without)
        raise ValueError(
            f"every counting term must be concave in inclusion weights, got {names}; ask `relaxable` first"
        )
    return at_weights


def even_weights(problem: Problem) -> Tensor:
    """Weights of the eligible rows that obey the limits and are as even as these let them be, float64 ``(m,)``.

    Steps mix them with allowed selections and keep for good a part of where they began: weights that broke a rule there
    would break it ever after.
    """
    return torch.from_numpy(problem.limits.even()).to(problem.joint.device)


def begin(problem: Problem, weights: Tensor | None = None, poll: Poll = no_poll) -> Iterate:
    """The first iterate: the given weights ``(n,)``, or `even_weights`."""
    if weights is None:
        weights = torch.zeros(problem.joint.n, dtype=torch.float64, device=problem.joint.device)
        weights[problem.eligible] = even_weights(problem)
    weights = weights.double()
    value, gradient = concave(problem, weights, poll, wide=False)
    return Iterate(weights, gradient, value, known=Known(weights, value, gradient))


def advance(problem: Problem, iterate: Iterate, poll: Poll = no_poll) -> tuple[Iterate, float]:
    """One step, and the gap before it (to float32 rounding)."""
    vertex = problem.vertex(iterate.gradient[problem.eligible])
    gap = float(iterate.gradient @ (vertex - iterate.weights))
    if gap <= 0:
        return iterate, gap
    if problem.joint.quadratic:
        known = _known(problem, vertex, iterate.known, poll)
        return replace(mixed(iterate, vertex, gap, known.value, known.gradient), known=known), gap
    return _searched(problem, iterate, vertex, gap, poll), gap


def _known(problem: Problem, weights: Tensor, near: Known | None, poll: Poll) -> Known:
    """F at some weights ``(n,)``, where it is at most quadratic: by what few rows' weights change, or anew."""
    if near is not None:
        change = weights - near.weights
        rows = change.nonzero().squeeze(1)
        bent = problem.joint.bend(rows, change[rows], problem.size, poll)
        if bent is not None:
            gradient = near.gradient + bent
            return Known(weights, near.value + float((near.gradient + gradient)[rows] @ change[rows]) / 2, gradient)
    return Known(weights, *concave(problem, weights, poll, wide=False))


def bounded(
    problem: Problem,
    weights: Tensor | None,
    steps: int,
    tolerance: float,
    poll: Poll = no_poll,
    on_bound: Callable[[int, float], None] = lambda steps, bound: None,
) -> tuple[Iterate, float]:
    """Steps from weights ``(n,)`` until the gap is closed: where they end, and an upper bound, in float64.

    The gap does not fall at every step, so the weights with the lowest bound on the way are tried too, unless it is
    closed.
    """
    iterate = begin(problem, weights, poll)
    lowest, proving = math.inf, iterate.weights
    for done in range(1, steps + 1):
        after, gap = advance(problem, iterate, poll)
        bound = iterate.value + max(gap, 0.0)
        on_bound(done, bound)
        if bound < lowest:
            lowest, proving = bound, iterate.weights
        iterate = after
        if gap <= tolerance:
            return iterate, upper_bound(problem, iterate.weights, poll)
    return iterate, min(upper_bound(problem, each, poll) for each in (proving, iterate.weights))


def _searched(problem: Problem, iterate: Iterate, vertex: Tensor, gap: float, poll: Poll) -> Iterate:
    """A point between an iterate and a vertex where F is nearly as high as anywhere between them."""
    way, share = vertex - iterate.weights, min(1.0, iterate.reach / (iterate.steps + 1))
    low, high, falling = 0.0, 1.0, math.nan  # the best share lies between two; F's slope at the upper one, once known
    for _ in range(TRIALS):
        weights = iterate.weights + share * way
        value, gradient = concave(problem, weights, poll, wide=False)
        slope = float(gradient @ way)
        enough = abs(slope) <= FLAT * gap and value >= iterate.value
        if enough or high - low <= SEARCHED or (share == 1.0 and slope > 0):
            break
        if slope > 0:
            low = share
        else:
            high, falling = share, slope
        if math.isnan(falling):  # too short still: as far as the slope's fall so far says
            share = min(1.0, share * max(2.0, gap / max(gap - slope, SEARCHED * gap)))
        elif low > 0:  # at a selection of few rows F's slope has no end: a straight line between slopes would crawl
            share = math.sqrt(low * high)
        else:
            share = high * min(gap / (gap - falling), 1.0 if value > iterate.value else 0.25)
    return Iterate(weights, gradient, value, iterate.steps + 1, share * (iterate.steps + 1))


def mixed(iterate: Iterate, vertex: Tensor, gap: float, value: float, gradient: Tensor) -> Iterate:
    """The best point between an iterate and a vertex ``(n,)``.

    Args:
        gap: the gradient at the iterate along the way to the vertex. value, gradient: of F at the vertex.
    """
    # F(p + t (v - p)) = F(p) + t gap + t^2 bend, and F(v) tells the bend
    bend = min(value - iterate.value - gap, 0.0)
    share = min(1.0, gap / (-2.0 * bend)) if bend < 0 else 1.0
    return Iterate(
        iterate.weights + share * (vertex - iterate.weights),
        iterate.gradient + share * (gradient - iterate.gradient),
        iterate.value + share * gap + share * share * bend,
        iterate.steps + 1,
    )


def rounded(
    problem: Problem, iterate: Iterate, poll: Poll = no_poll, by_gradient: bool = True
) -> tuple[Tensor, Values]:
    """The rounding by the weights, or that by the gradient if it is better: a mask ``(n,)`` and its exact values.

    At the optimum all but some d samples are decided by the gradient; with more degrees of freedom than that (DiSF has
    d^2 / 2) many weights stay fractional, and the weights round better.
    """
    roundings: list[tuple[Tensor, Values]] = []
    first = [problem.limits.priority(iterate.gradient[problem.eligible])] if by_gradient else []
    for scores in (*first, iterate.weights[problem.eligible]):
        mask = problem.subset(scores)
        if not roundings or not torch.equal(mask, roundings[0][0]):
            roundings.append((mask, problem.joint.evaluate(mask, poll)))
    return max(roundings, key=lambda rounding: rounding[1].joint)


def further_starts(n: int, d: int) -> int:
    """How many selections of n rows of d dimensions swaps should begin from beside a rounding."""
    return min(MOST_STARTS, int(START_COST / (n * d * d)))


def upper_bound(problem: Problem, weights: Tensor, poll: Poll = no_poll) -> float:
    """No selection of S eligible samples has a higher value of the objective on these features. float64."""
    value, gradient = concave(problem, weights, poll)
    return value + float(gradient @ (problem.vertex(gradient[problem.eligible]) - weights.double()))
