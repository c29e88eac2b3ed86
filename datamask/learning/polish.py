"""Polish: swaps after any learner, until no single swap helps or the effort is spent.

Facility location has its own eager swaps on the neighbour lists (`datamask.learning.medoids`), the DiSF with fixed
scale its own by blocks (`datamask.learning.block_swaps`). For the others a round pairs the worst members with the best
of the rest by frozen-size marginals and swaps many at once, half as many if that does not help; where the objective
knows the exact second-order term of a swap, the last, single swaps are exact. Under a token budget rows are ranked by
what they add per token, a swap may leave the budget as full as before or a row short of it, and a single row may come
in or leave alone where there is room.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.learning import block_swaps
from datamask.learning.medoids import greedy, reverse_lists, swaps
from datamask.learning.problem import Problem
from datamask.learning.spending import spend
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import Facility

CANDIDATES_AT_ONCE = 20_000
ROUNDS = 40
PAIRS = 256
"""Worst members and best others whose pairs are looked at exactly in a round of single swaps."""

LENGTH_BANDS = 16
"""Bands of lengths, evenly filled, in which swaps under a token budget look for the cheapest member to give up."""

FREED, LEAST_FREED = 0.3, 0.01
"""Share of a token budget that is freed and spent anew, at first and at last."""

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
        if problem.budget is not None:
            better = _spent_anew(problem, better, poll)
        before, after = (problem.joint.evaluate(m, poll).joint for m in (mask, better))
        return better if after > before else mask
    if block_swaps.fits(problem):
        better = block_swaps.block_swaps(problem, mask, poll)
        if problem.rules is not None and len(problem.rules.low) > 1:  # swaps across quota groups
            better = _batch_swaps(problem, better, poll)
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
    fixed = problem.pinned.cpu().numpy().nonzero()[0]
    if problem.budget is not None:
        room = problem.budget.most - problem.budget.fixed
        member = spend(*reverse, bonus, _lengths(problem), room, place, fixed, poll)
        return _spent_anew(problem, _swapped(problem, indices, similarities, reverse, bonus, member, visit, poll), poll)
    picks = torch.from_numpy(greedy(*reverse, bonus, problem.size, place, poll, fixed)).to(problem.joint.device)
    # under rules: the best allowed cut of the greedy order, for the swaps to mend
    rank = torch.zeros(problem.joint.n, device=problem.joint.device)
    rank[picks] = torch.arange(len(picks), 0, -1, device=problem.joint.device, dtype=torch.float32)
    member = problem.subset(rank[problem.eligible]).cpu().numpy()
    return _swapped(problem, indices, similarities, reverse, bonus, member, visit, poll)


def _medoid_swaps(problem: Problem, mask: Tensor, poll: Poll) -> Tensor:
    indices, similarities, bonus, visit = _listed(problem)
    reverse = reverse_lists(indices, similarities)
    return _swapped(problem, indices, similarities, reverse, bonus, mask.cpu().numpy().copy(), visit, poll)


def _spent_anew(problem: Problem, mask: Tensor, poll: Poll) -> Tensor:
    """Facility under a budget: free the tokens of the members that are worth least per token, spend them by greedy,
    swap; as long as that helps. Swaps of one for one cannot trade a long row for several short ones."""
    indices, similarities, bonus, visit = _listed(problem)
    reverse = reverse_lists(indices, similarities)
    place = np.empty_like(visit)
    place[visit] = np.arange(len(visit))
    lengths, joint = _lengths(problem), problem.joint
    value, share = joint.evaluate(mask, poll).joint, FREED
    for _ in range(ROUNDS):
        quality, diversity = joint.final_marginals(mask, poll)
        gain = (joint.lamb * quality + (1 - joint.lamb) * diversity)[problem.eligible]
        worth = problem.priority(gain).cpu().numpy()
        rows = problem.eligible.cpu().numpy()
        free = mask[problem.eligible].cpu().numpy() & ~problem.budget.pinned
        order = np.flatnonzero(free)[np.argsort(worth[free], kind="stable")]
        freed = np.cumsum(lengths[rows[order]])
        leaving = rows[order[:int(np.searchsorted(freed, share * problem.budget.most)) + 1]]
        kept = mask.cpu().numpy().copy()
        kept[leaving] = False
        room = problem.budget.most - lengths[kept].sum()
        member = spend(*reverse, bonus, lengths, room, place, kept.nonzero()[0], poll)
        trial = _swapped(problem, indices, similarities, reverse, bonus, member, visit, poll)
        after = joint.evaluate(trial, poll).joint
        if after > value + LEAST_GAIN * max(1.0, abs(value)):
            mask, value = trial, after
        elif share < LEAST_FREED:
            break
        else:
            share /= 2
    return mask


def _listed(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists, bonus per member in the units of the summed similarities, and the seeded order of visits."""
    joint = problem.joint
    term = joint.counting[0]
    function = term.function
    weight = (1 - joint.lamb) * term.weight * term.scale.slope
    bonus = np.full(joint.n, -np.inf)
    eligible = problem.eligible.cpu().numpy()
    per_member, _ = joint.quality.linear(problem.size)
    per_member = per_member.double().cpu().numpy()
    if problem.budget is None:  # a constant per member changes no swap, and centred sums keep their digits
        per_member = per_member - per_member.mean()
    bonus[eligible] = per_member[eligible] * (joint.lamb * joint.quality_scale.slope / weight * joint.n)
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


def _rule_arrays(problem: Problem) -> tuple:
    """Pinned and group over all rows, low and high per group, lengths and their limits, as `medoids.swaps` takes
    them."""
    n, rules, budget = problem.joint.n, problem.rules, problem.budget
    pinned, group = problem.pinned.cpu().numpy(), np.zeros(n, dtype=np.int64)
    eligible = problem.eligible.cpu().numpy()
    free = np.zeros(n), -1.0, np.inf
    if budget is not None:
        # the cheapest member of each band of lengths is among those that a candidate is swapped with
        edges = np.unique(np.quantile(budget.lengths, np.linspace(0, 1, LENGTH_BANDS + 1)[1:-1]))
        group[eligible] = np.searchsorted(edges, budget.lengths)
        bands = np.zeros(LENGTH_BANDS, dtype=np.int64)
        return pinned, group, bands, bands + n, _lengths(problem), budget.least, budget.most
    if rules is None:
        return pinned, group, np.zeros(1, dtype=np.int64), np.full(1, n), *free
    group[eligible] = rules.group
    return pinned, group, rules.low.astype(np.int64), rules.high.astype(np.int64), *free


def _lengths(problem: Problem) -> np.ndarray:
    """Tokens of all rows, float64 ``(n,)``; 0 for those that may not be selected."""
    lengths = np.zeros(problem.joint.n)
    lengths[problem.eligible.cpu().numpy()] = problem.budget.lengths
    return lengths


def _batch_swaps(problem: Problem, mask: Tensor, poll: Poll) -> Tensor:
    joint, size = problem.joint, problem.size
    may = torch.zeros_like(mask)
    may[problem.eligible] = True
    fixed = problem.pinned
    value = joint.evaluate(mask, poll).joint
    size = size if problem.budget is None else int(mask.sum())
    width = min(size, len(problem.eligible) - size)
    for _ in range(ROUNDS):
        quality, diversity = joint.final_marginals(mask, poll)
        gain = joint.lamb * quality + (1 - joint.lamb) * diversity
        score = gain.clone()
        score[problem.eligible] = problem.priority(gain[problem.eligible])
        pairs = min(width, int(mask.sum()), int((may & ~mask).sum()))
        inside = score.masked_fill(~mask | fixed, torch.inf).topk(pairs, largest=False)
        outside = score.masked_fill(mask | ~may, -torch.inf).topk(pairs)
        promising = outside.values > inside.values
        count = min(width, int(promising.sum()))
        if count <= 1:
            trial = _best_move(problem, mask, may, score, gain, poll)
            if trial is None:
                break
            count = 1
        elif problem.budget is not None:
            # the rest of the members first, then whoever adds most per token, those that left last
            order = score.masked_fill(mask, torch.inf).index_fill(0, inside.indices[:count], -torch.inf)
            trial = problem.subset(order[problem.eligible])
        else:
            trial = mask.clone()
            trial[inside.indices[:count]] = False
            trial[outside.indices[:count]] = True
            if problem.limited and not problem.allowed(trial):
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


def _best_move(problem: Problem, mask: Tensor, may: Tensor, score: Tensor, gain: Tensor, poll: Poll) -> Tensor | None:
    """The mask after the best single swap among the worst members and the best others; None if none promises a gain.

    Under a budget one row may also come in alone, or leave alone.

    Args:
        may: bool ``(n,)``, eligible. score: ``(n,)``, who is looked at. gain: ``(n,)``, marginals on the run's scale.
    """
    joint, budget = problem.joint, problem.budget
    poll()
    members, others = int(mask.sum()), int((may & ~mask).sum())
    worst = score.masked_fill(~mask, torch.inf).topk(min(PAIRS, members), largest=False).indices
    best = score.masked_fill(mask | ~may, -torch.inf).topk(min(PAIRS, others)).indices
    change = gain[best][:, None] - gain[worst][None, :]
    for term in joint.counting:
        second = term.function.interaction(worst, best, problem.size)
        if second is not None:
            change = change + (1 - joint.lamb) * term.weight * term.scale.slope * second
    if problem.limited:
        position = torch.empty(joint.n, dtype=torch.int64, device=mask.device)
        position[problem.eligible] = torch.arange(len(problem.eligible), device=mask.device)
        inside, outside, chosen = position[worst], position[best], mask[problem.eligible]
        by = problem.rules or budget
        change = change.masked_fill(~by.swappable(inside, outside, chosen), -torch.inf)
        if budget is not None:
            alone = torch.where(budget.addable(outside, chosen), gain[best], -torch.inf)
            change = torch.cat([change, alone[:, None]], 1)
            leaving = torch.where(budget.removable(inside, chosen), -gain[worst], -torch.inf)
            change = torch.cat([change, torch.cat([leaving, leaving.new_full((1,), -torch.inf)])[None, :]], 0)
    row, column = divmod(int(change.argmax()), change.shape[1])
    if not float(change[row, column]) > 0:
        return None
    trial = mask.clone()
    trial[worst[column:column + 1]] = False
    trial[best[row:row + 1]] = True
    return trial
