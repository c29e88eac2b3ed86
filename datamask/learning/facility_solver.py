"""Facility location with quality, solved on the neighbour lists: lazy greedy, then eager swaps (`medoids`).

Under a token budget greedy picks by gain per token (`cost_benefit`), and after the swaps the tokens of the members that
are worth least are freed and spent anew, as long as that helps.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.learning.batch_swaps import LEAST_GAIN, ROUNDS
from datamask.learning.budget import Budget
from datamask.learning.cost_benefit import cost_benefit_greedy
from datamask.learning.medoids import greedy, reverse_lists, swaps
from datamask.learning.problem import Problem
from datamask.learning.trace import PointSchedule, Trace, TracePoint, marks, no_trace
from datamask.objectives.facility import Facility
from datamask.polling import Poll, no_poll

CANDIDATES_AT_ONCE, CALLS_A_PASS = 20_000, 4
"""Candidates that swaps look at between two polls: at least so many, and above that so large a part of the rows that a
pass over all takes few calls, since each call begins by looking up the nearest members of every row."""

FEWEST_SWAPS = 1 / 500
"""On approximate lists, swaps end after a pass over all rows that swapped a smaller share of the members. On 1,000,000
rows a third pass did, and was worth 3e-7 of the value; the three to five more until no swap helps, 1e-7 together."""

FEWEST = 3
"""Picks before which there is nothing to tell."""

LENGTH_BANDS = 16
"""Bands of lengths, evenly filled, in which swaps under a token budget look for the cheapest member to give up."""

FREED, LEAST_FREED = 0.3, 0.01
"""Share of a token budget that is freed and spent anew, at first and at last."""


def medoids(problem: Problem, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """Lazy greedy for facility plus quality, then eager swaps: the direct solution, bool ``(n,)``."""
    indices, similarities, bonus, visit = facility_arrays(problem)
    reverse = reverse_lists(indices, similarities)
    place = np.empty_like(visit)
    place[visit] = np.arange(len(visit))
    poll()
    # greedy goes on from what must be in anyway
    fixed = problem.pinned.cpu().numpy().nonzero()[0]
    if (budget := problem.budget) is not None:
        room = budget.most - budget.fixed
        member = cost_benefit_greedy(*reverse, bonus, _lengths(problem, budget), room, place, fixed, poll)
        trace(TracePoint({"picks": int(member.sum())}, torch.from_numpy(member.copy()).to(problem.joint.device)))
        swapped = _eager_swaps(problem, indices, similarities, reverse, bonus, member, visit, poll, trace)
        return _refilled(problem, budget, swapped, poll, trace)
    picks = torch.from_numpy(greedy(*reverse, bonus, problem.size, place, poll, fixed)).to(problem.joint.device)
    _trace_picks(picks, problem.pinned, trace)
    # under rules: the best allowed cut of the greedy order, for the swaps to mend
    member = _best_allowed(problem, picks).cpu().numpy()
    return _eager_swaps(problem, indices, similarities, reverse, bonus, member, visit, poll, trace)


def greedily(
    problem: Problem,
    reverse: tuple[np.ndarray, np.ndarray, np.ndarray],
    place: np.ndarray,
    picks: np.ndarray,
    poll: Poll,
) -> Tensor:
    """Lazy greedy alone, from rows that are in already, within the rules or the budget: bool ``(n,)``.

    Args:
        reverse: from `medoids.reverse_lists`. place: int64 ``(n,)``, smaller goes first among equal gains.
        picks: int64, rows that some allowed selection holds together; all pinned ones are among them.
    """
    bonus = _bonus(problem)
    if (budget := problem.budget) is not None:
        lengths = _lengths(problem, budget)
        room = budget.most - lengths[picks].sum()
        member = cost_benefit_greedy(*reverse, bonus, lengths, room, place, picks, poll)
        return torch.from_numpy(member).to(problem.joint.device)
    order = greedy(*reverse, bonus, problem.size, place, poll, picks)
    return _best_allowed(problem, torch.from_numpy(order).to(problem.joint.device))


def _best_allowed(problem: Problem, picks: Tensor) -> Tensor:
    """The best allowed cut of an order of picking, bool ``(n,)``; where nothing limits it, the picks."""
    rank = torch.zeros(problem.joint.n, device=problem.joint.device)
    rank[picks] = torch.arange(len(picks), 0, -1, device=problem.joint.device, dtype=torch.float32)
    return problem.subset(rank[problem.eligible])


def _trace_picks(picks: Tensor, pinned: Tensor, trace: Trace) -> None:
    """Tell the subsets that greedy came by; pinned rows, its first picks, were in from the start."""
    for count in marks(len(picks)):
        if count >= max(FEWEST, int(pinned.sum())):
            mask = torch.zeros_like(pinned)
            mask[picks[:count]] = True
            trace(TracePoint({"picks": count}, mask))


def medoid_swaps(problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """Eager swaps from a selection, bool ``(n,)``; never worse in exact joint value."""
    indices, similarities, bonus, visit = facility_arrays(problem)
    reverse = reverse_lists(indices, similarities)
    better = _eager_swaps(problem, indices, similarities, reverse, bonus, mask.cpu().numpy().copy(), visit, poll, trace)
    if problem.budget is not None:
        better = _refilled(problem, problem.budget, better, poll, trace)
    before, after = (problem.joint.evaluate(m, poll).joint for m in (mask, better))
    return better if after > before else mask


def _refilled(problem: Problem, budget: Budget, mask: Tensor, poll: Poll, trace: Trace) -> Tensor:
    """Facility under a budget: free the tokens of the members that are worth least per token, spend them by greedy,
    swap; as long as that helps. Swaps of one for one cannot trade a long row for several short ones."""
    indices, similarities, bonus, visit = facility_arrays(problem)
    reverse = reverse_lists(indices, similarities)
    place = np.empty_like(visit)
    place[visit] = np.arange(len(visit))
    lengths, joint = _lengths(problem, budget), problem.joint
    value, share = joint.evaluate(mask, poll).joint, FREED
    for turn in range(1, ROUNDS + 1):
        quality, diversity = joint.final_marginals(mask, poll)
        gain = (joint.lamb * quality + (1 - joint.lamb) * diversity)[problem.eligible]
        worth = problem.priority(gain).cpu().numpy()
        rows = problem.eligible.cpu().numpy()
        free = mask[problem.eligible].cpu().numpy() & ~budget.pinned
        order = np.flatnonzero(free)[np.argsort(worth[free], kind="stable")]
        freed = np.cumsum(lengths[rows[order]])
        leaving = rows[order[: int(np.searchsorted(freed, share * budget.most)) + 1]]
        remaining = mask.cpu().numpy().copy()
        remaining[leaving] = False
        room = budget.most - lengths[remaining].sum()
        member = cost_benefit_greedy(*reverse, bonus, lengths, room, place, remaining.nonzero()[0], poll)
        trial = _eager_swaps(problem, indices, similarities, reverse, bonus, member, visit, poll)
        values = joint.evaluate(trial, poll)
        if values.joint > value + LEAST_GAIN * max(1.0, abs(value)):
            trace(TracePoint({"refills": turn}, values=values))
            mask, value = trial, values.joint
        elif share < LEAST_FREED:
            break
        else:
            share /= 2
    return mask


def facility_arrays(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lists, bonus per member in the units of the summed similarities, and the seeded order of visits."""
    function = problem.joint.counting[0].function_of(Facility)
    visit = np.argsort(problem.ties.cpu().numpy(), kind="stable")
    return (
        function.indices.cpu().numpy().astype(np.int32, copy=False),
        function.similarities.cpu().numpy(),
        _bonus(problem),
        visit,
    )


def _bonus(problem: Problem) -> np.ndarray:
    """What quality adds per member in the units of the summed similarities, float64 ``(n,)``; ``-inf`` bars a row."""
    joint = problem.joint
    term = joint.counting[0]
    weight = (1 - joint.lamb) * term.weight * term.scale.slope
    bonus = np.full(joint.n, -np.inf)
    eligible = problem.eligible.cpu().numpy()
    linear, _ = joint.quality.linear(problem.size)
    per_member = linear.double().cpu().numpy()
    if problem.budget is None:  # a constant per member changes no swap, and centred sums keep their digits
        per_member = per_member - per_member.mean()
    bonus[eligible] = per_member[eligible] * (joint.lamb * joint.quality_scale.slope / weight * joint.n)
    return bonus


def _eager_swaps(
    problem: Problem,
    indices: np.ndarray,
    similarities: np.ndarray,
    reverse: tuple[np.ndarray, np.ndarray, np.ndarray],
    bonus: np.ndarray,
    member: np.ndarray,
    visit: np.ndarray,
    poll: Poll,
    trace: Trace = no_trace,
) -> Tensor:
    position = quiet = total_swaps = pass_swaps = 0
    fewest = 0 if problem.joint.counting[0].function_of(Facility).exact_lists else FEWEST_SWAPS * problem.size
    pinned, group, low, high, lengths, least, most = _limits(problem)
    schedule = PointSchedule()
    candidates = max(CANDIDATES_AT_ONCE, problem.joint.n // CALLS_A_PASS)
    log = np.empty((candidates, 2), dtype=np.int64)
    while quiet < problem.joint.n:
        poll()
        before, began = member.copy(), position
        position, quiet, swap_count = swaps(
            indices,
            similarities,
            *reverse,
            bonus,
            member,
            visit,
            position,
            quiet,
            candidates,
            pinned,
            group,
            low,
            high,
            lengths,
            least,
            most,
            log,
        )
        # several points of one call: small corpora are done within it
        last = 0
        for count in marks(swap_count):
            for coming, leaving in log[last:count]:
                before[coming] = True
                if leaving >= 0:
                    before[leaving] = False
            last = count
            if schedule.due(total_swaps + count):
                mask = torch.from_numpy(before.copy()).to(problem.joint.device)
                trace(TracePoint({"swaps": total_swaps + count}, mask))
        total_swaps += swap_count
        pass_swaps += swap_count
        if position <= began:
            if pass_swaps < fewest:
                break
            pass_swaps = 0
    return torch.from_numpy(member).to(problem.joint.device)


def _limits(
    problem: Problem,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]:
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
        return pinned, group, bands, bands + n, _lengths(problem, budget), budget.least, budget.most
    if rules is None:
        return pinned, group, np.zeros(1, dtype=np.int64), np.full(1, n), *free
    group[eligible] = rules.group
    return pinned, group, rules.low.astype(np.int64), rules.high.astype(np.int64), *free


def _lengths(problem: Problem, budget: Budget) -> np.ndarray:
    """Tokens of all rows, float64 ``(n,)``; 0 for those that may not be selected."""
    lengths = np.zeros(problem.joint.n)
    lengths[problem.eligible.cpu().numpy()] = budget.lengths
    return lengths
