"""Polish: swaps after any learner, until no single swap helps or the effort is spent.

Facility location has its own eager swaps on the neighbour lists (`datamask.learning.medoids`). For the others a round
pairs the worst members with the best of the rest by frozen-size marginals and swaps many at once, half as many if that
does not help; where the objective knows the exact second-order term of a swap, the last, single swaps are exact.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.learning.medoids import greedy, reverse_lists, swaps
from datamask.learning.problem import Problem
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import Facility

CANDIDATES_AT_ONCE = 20_000
ROUNDS = 40
PAIRS = 256
"""Worst members and best others whose pairs are looked at exactly in a round of single swaps."""

LEAST_GAIN = 1e-9
"""Relative gain below which a swap counts as rounding."""


def polish(problem: Problem, mask: Tensor, poll: Poll = no_poll) -> Tensor:
    """Improve a selection by swaps.

    Args:
        mask: bool ``(n,)``, S eligible members.

    Returns:
        bool ``(n,)``, never worse in exact joint value.
    """
    terms = problem.joint.counting
    if len(terms) == 1 and isinstance(terms[0].function, Facility):
        better = _medoid_swaps(problem, mask, poll)
        before, after = (problem.joint.evaluate(m, poll).joint for m in (mask, better))
        return better if after > before else mask
    return _batch_swaps(problem, mask, poll)


def medoids(problem: Problem, poll: Poll = no_poll) -> Tensor:
    """Lazy greedy for facility plus quality, then eager swaps: the direct solution, bool ``(n,)``."""
    indices, similarities, bonus, visit = _listed(problem)
    reverse = reverse_lists(indices, similarities)
    place = np.empty_like(visit)
    place[visit] = np.arange(len(visit))
    poll()
    # greedy goes on from what must be in anyway
    fixed = _rule_arrays(problem)[0].nonzero()[0]
    picks = torch.from_numpy(greedy(*reverse, bonus, problem.size, place, poll, fixed)).to(problem.joint.device)
    # under rules: the best allowed cut of the greedy order, for the swaps to mend
    rank = torch.zeros(problem.joint.n, device=problem.joint.device)
    rank[picks] = torch.arange(problem.size, 0, -1, device=problem.joint.device, dtype=torch.float32)
    member = problem.subset(rank[problem.eligible]).cpu().numpy()
    return _swapped(problem, indices, similarities, reverse, bonus, member, visit, poll)


def _medoid_swaps(problem: Problem, mask: Tensor, poll: Poll) -> Tensor:
    indices, similarities, bonus, visit = _listed(problem)
    reverse = reverse_lists(indices, similarities)
    return _swapped(problem, indices, similarities, reverse, bonus, mask.cpu().numpy().copy(), visit, poll)


def _listed(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists, bonus per member in the units of the summed similarities, and the seeded order of visits."""
    joint = problem.joint
    term = joint.counting[0]
    function = term.function
    weight = (1 - joint.lamb) * term.weight * term.scale.slope
    bonus = np.full(joint.n, -np.inf)
    eligible = problem.eligible.cpu().numpy()
    per_member = joint.lamb * joint.quality_scale.slope / problem.size
    centred = (joint.quality.scores - joint.quality.mean).double().cpu().numpy()
    bonus[eligible] = centred[eligible] * (per_member / weight * joint.n)
    visit = np.argsort(problem.ties.cpu().numpy(), kind="stable")
    return (function.indices.cpu().numpy().astype(np.int32, copy=False), function.similarities.cpu().numpy(), bonus,
            visit)


def _swapped(problem: Problem, indices, similarities, reverse, bonus, member, visit, poll: Poll) -> Tensor:
    position = quiet = 0
    rules = _rule_arrays(problem)
    while quiet < problem.joint.n:
        poll()
        position, quiet, _ = swaps(indices, similarities, *reverse, bonus, member, visit, position, quiet,
                                   CANDIDATES_AT_ONCE, *rules)
    return torch.from_numpy(member).to(problem.joint.device)


def _rule_arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pinned and group over all rows, low and high per group, as `medoids.swaps` takes them."""
    n, rules = problem.joint.n, problem.rules
    pinned, group = np.zeros(n, dtype=bool), np.zeros(n, dtype=np.int64)
    if rules is None:
        return pinned, group, np.zeros(1, dtype=np.int64), np.full(1, n)
    eligible = problem.eligible.cpu().numpy()
    pinned[eligible], group[eligible] = rules.pinned, rules.group
    return pinned, group, rules.low.astype(np.int64), rules.high.astype(np.int64)


def _batch_swaps(problem: Problem, mask: Tensor, poll: Poll) -> Tensor:
    joint, size = problem.joint, problem.size
    may = torch.zeros_like(mask)
    may[problem.eligible] = True
    fixed = torch.zeros_like(mask)
    if problem.rules is not None:
        fixed[problem.eligible] = torch.from_numpy(problem.rules.pinned).to(mask.device)
    value = joint.evaluate(mask, poll).joint
    width = min(size, len(problem.eligible) - size)
    for _ in range(ROUNDS):
        quality, diversity = joint.final_marginals(mask, poll)
        score = joint.lamb * quality + (1 - joint.lamb) * diversity
        inside = score.masked_fill(~mask | fixed, torch.inf).topk(min(width, size), largest=False)
        outside = score.masked_fill(mask | ~may, -torch.inf).topk(len(inside.values))
        promising = outside.values > inside.values
        count = min(width, int(promising.sum()))
        if count <= 1:
            swap = _best_pair(problem, mask, may, score, poll)
            if swap is None:
                break
            trial = mask.clone()
            trial[swap[0]], trial[swap[1]] = False, True
            count = 1
        else:
            trial = mask.clone()
            trial[inside.indices[:count]] = False
            trial[outside.indices[:count]] = True
            if problem.rules is not None and not problem.rules.obeyed(trial[problem.eligible]):
                width = count // 2
                continue
        after = joint.evaluate(trial, poll).joint
        if after > value + LEAST_GAIN * max(1.0, abs(value)):
            mask, value, width = trial, after, min(2 * count, width)
        elif count == 1:
            break
        else:
            width = count // 2
    return mask


def _best_pair(problem: Problem, mask: Tensor, may: Tensor, score: Tensor, poll: Poll) -> tuple[int, int] | None:
    """The best single swap (out, in) among the worst members and the best others; None if none promises a gain."""
    joint = problem.joint
    poll()
    worst = score.masked_fill(~mask, torch.inf).topk(min(PAIRS, problem.size), largest=False).indices
    others = int((may & ~mask).sum())
    best = score.masked_fill(mask | ~may, -torch.inf).topk(min(PAIRS, others)).indices
    gain = score[best][:, None] - score[worst][None, :]
    for term in joint.counting:
        second = term.function.interaction(worst, best, problem.size)
        if second is not None:
            gain = gain + (1 - joint.lamb) * term.weight * term.scale.slope * second
    if problem.rules is not None:
        position = torch.empty(joint.n, dtype=torch.int64, device=mask.device)
        position[problem.eligible] = torch.arange(len(problem.eligible), device=mask.device)
        allowed = problem.rules.swappable(position[worst], position[best], mask[problem.eligible])
        gain = gain.masked_fill(~allowed, -torch.inf)
    place = int(gain.argmax())
    row, column = divmod(place, len(worst))
    if not float(gain[row, column]) > 0:
        return None
    return int(worst[column]), int(best[row])
