"""Inclusion weights: how much of each row belongs to what an estimator found, before it is cut to in and out.

A weight is from 0 to 1; over the rows that may be selected they add to S, or their tokens to the budget. Pinned rows
have 1. Of a learner, and of a baseline that draws by keys, a weight is the chance of being in a mask; of the relaxation
it is the variable that is solved for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.learning.masks import chances
from datamask.learning.problem import Problem

NOTHING = 1e-9
"""A smaller weight is none: a million rows of it are a thousandth of one."""

ROUNDS = 8
"""Of bringing a sum to its total; each closes what the one before left where weights met 0 or 1."""


def of_logits(problem: Problem, logits: Tensor) -> Tensor | None:
    """The chance of being in a mask drawn from softmax(logits), float64 ``(n,)``; None: there are quotas.

    The chances are those of exponential races that end at one time (`datamask.learning.masks.inclusion`): exact as the
    number of rows grows, and adding to S at any. Under quotas the end differs from group to group and from mask to
    mask, and nothing as short is known.

    Args:
        logits: ``(m,)``, finite, over the eligible rows.
    """
    limits, lengths = problem.limits, problem.lengths
    if limits.grouped:
        return None
    free = ~problem.pinned[problem.eligible]
    weights, left = (~free).double(), limits.most - limits.fixed
    free_lengths = None if lengths is None else lengths[free]
    if left > 0:
        drawn = chances(logits[free].double(), left, free_lengths)
        weights[free] = adding_to(drawn, left, free_lengths)
    return over_all(problem, weights)


def over_all(problem: Problem, weights: Tensor) -> Tensor:
    """Weights over the eligible rows ``(m,)`` as weights over all, float64 ``(n,)``."""
    whole = torch.zeros(problem.joint.n, dtype=torch.float64, device=weights.device)
    whole[problem.eligible] = weights.double()
    return whole


def adding_to(weights: Tensor, total: float, lengths: Tensor | None = None) -> Tensor:
    """Weights that add to their total to rounding, from some that nearly do.

    What is missing, or too much, goes to the rows in proportion to ``w (1 - w)``, as if the threshold between in and
    out were moved; only what these cannot take goes to the others.

    Args:
        weights: float64 ``(m,)``; those outside 0 to 1 are cut to it, those below `NOTHING` are nothing.
        total: what they add to, at most m. lengths: float64 ``(m,)``; then tokens are what adds up, and `total` is a
            number of tokens.

    Returns:
        float64 ``(m,)`` from 0 to 1.
    """
    weights = weights.double().clamp(0.0, 1.0)
    weights = torch.where(weights < NOTHING, 0.0, weights)
    counts = torch.ones_like(weights) if lengths is None else lengths.double()
    for _ in range(ROUNDS):
        missing = total - float(weights @ counts)
        if abs(missing) <= 1e-14 * abs(total):
            break
        room = 1.0 - weights if missing > 0 else weights
        undecided = weights * (1.0 - weights)
        share = undecided if float(undecided @ counts) >= abs(missing) else room
        available = float(share @ counts)
        if not available > 0:
            break
        moved = (share * (abs(missing) / available)).minimum(room)
        weights = weights + moved if missing > 0 else weights - moved
    return weights
