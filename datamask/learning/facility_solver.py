"""Facility location with quality, solved on the neighbour lists: lazy greedy, eager swaps, annealing, swaps again.

Under a token budget greedy picks by gain per token (`cost_benefit`), and after the swaps the tokens of the members that
are worth least are freed and spent anew, as long as that helps.

"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from datamask.learning.batch_swaps import LEAST_GAIN, ROUNDS
from datamask.learning.cost_benefit import Shares, cost_benefit_greedy
from datamask.learning.eager_swaps import EagerSwaps, SwapLimits
from datamask.learning.lists import Lists
from datamask.learning.medoids import Rules, greedy, pick_gains
from datamask.learning.problem import Problem
from datamask.learning.trace import PointSchedule, Trace, TracePoint, marks, no_trace
from datamask.objectives.facility import Facility
from datamask.polling import Poll, no_poll, poll_of

FEWEST_SWAPS = 1 / 500
"""On approximate lists, swaps end after a pass over all rows that swapped a smaller share of the members. On 1,000,000
rows a third pass did, and was worth 3e-7 of the value; the three to five more until no swap helps, 1e-7 together."""

FEWEST = 3
"""Picks before which there is nothing to tell."""

LENGTH_BANDS = 16
"""Bands of lengths, evenly filled, in which swaps under a token budget look for the cheapest member to give up."""

WEIGHT_BITS = 11
"""Binary digits of the weight of quality against coverage by which greedy and swaps go: the last digits of the ends of
the scale depend on the processor, and the same rows are to be selected. On 63,666 rows this costs 2e-9 of the joint
value. Values and bounds go by the exact weight."""

TEMPERATURES = tuple(float(each) for each in np.geomspace(0.25, 0.05, 5))
"""Of the passes of one round of annealing, which leaves the local optimum of swaps."""

MOST_ROUNDS, ROUND_ROWS, PATIENCE = 20, 100_000, 6
"""Rounds of annealing, each from the best selection so far: as many as look at so many rows, one at least, and no more
after so many in a row that found nothing better. On 2,000 to 8,000 rows of package descriptions, papers and movies this
ends as high as twelve rounds of ten hotter passes, in six tenths of their time; on 20,000, 2e-5 higher in as much."""

FREED, LEAST_FREED = 0.3, 0.01
"""Share of a token budget that is freed and spent anew, at first and at last."""


def medoids(problem: Problem, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """Lazy greedy for facility plus quality, eager swaps, annealing: the direct solution, bool ``(n,)``."""
    known, by_tokens = _Known(problem), problem.limits.by_tokens
    poll()
    # greedy goes on from what must be in anyway
    fixed = problem.pinned.cpu().numpy()
    if by_tokens:
        member = _mask(problem, known.spending(_shares(problem), fixed, poll))
        trace(TracePoint({"picks": int(member.sum())}, torch.from_numpy(member.copy()).to(problem.joint.device)))
    else:
        order = known.picks(problem.size, fixed, poll)
        picks = torch.from_numpy(order).to(problem.joint.device)
        _trace_picks(picks, problem.pinned, trace)
        # under rules: the best allowed cut of the greedy order, for the swaps to mend
        member = _best_allowed(problem, picks).cpu().numpy()
    return _improved(problem, known, member, poll, trace)


def improved(problem: Problem, mask: Tensor, poll: Poll = no_poll) -> Tensor:
    """What `medoids` does after greedy, from any allowed selection: swaps and annealing, bool ``(n,)``."""
    return _improved(problem, _Known(problem), mask.cpu().numpy().copy(), poll, no_trace)


def _improved(problem: Problem, known: _Known, member: np.ndarray, poll: Poll, trace: Trace) -> Tensor:
    swapped = _swapped(problem, known, member, poll, trace)
    swapped = _annealed(problem, known, swapped, poll, trace)
    return _refilled(problem, known, swapped, poll, trace) if problem.limits.by_tokens else swapped


def picks_in_order(problem: Problem, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """The picks of greedy within the quotas or the budget, int64, and what each covers more than those before it.

    Under quotas a group gets its least. The gains, float64, are sums of similarities.
    """
    known, limits = _Known(problem), problem.limits
    lists, begun = known.lists, problem.pinned.cpu().numpy()
    if limits.by_tokens:
        picks = known.spending(_shares(problem), begun, poll)
    else:
        group = lists.by_position(problem.group.cpu().numpy())
        rules = group, limits.groups.low.astype(np.int64), limits.groups.high.astype(np.int64)
        picks = known.picks(problem.size, begun, poll, rules)
    positions = picks if lists.order is None else np.argsort(lists.order)[picks]
    return picks, pick_gains(*lists.reverse, lists.uncovered(), positions) * lists.step


class _Known:
    """What greedy and swaps go by.

    Rows are called by their position in the lists; what goes in and comes out is by row.

    Attributes:
        lists: of the rows. bonus: float64 ``(n,)``, of a member, as their ``near`` counts. visit, place: int ``(n,)``,
            the seeded order of the rows, and where each row stands in it.
    """

    def __init__(self, problem: Problem) -> None:
        facility = problem.joint.counting[0].function_of(Facility)
        self.lists = Lists.in_steps(*facility.listed, facility.place, facility.order)
        self.bonus = self.lists.by_position(_bonus(problem)) / self.lists.step
        self.visit = np.argsort(self.lists.by_position(problem.ties.cpu().numpy()), kind="stable")
        self.place = np.empty_like(self.visit)
        self.place[self.visit] = np.arange(len(self.visit))

    def picks(self, size: int, fixed: np.ndarray, poll: Poll, rules: Rules = (None, None, None)) -> np.ndarray:
        """The picks of lazy greedy, int64, in order; fewer than `size` if it ran out of candidates.

        Args:
            fixed: bool ``(n,)``, rows that are in already. rules: as of `medoids.greedy`.
        """
        lists = self.lists
        begun = lists.by_position(fixed).nonzero()[0]
        picks = greedy(*lists.reverse, self.bonus, size, self.place, poll, begun, lists.uncovered(), rules)
        return picks if lists.order is None else lists.order[picks]

    def spending(self, shares: Shares, fixed: np.ndarray, poll: Poll) -> np.ndarray:
        """The picks of greedy by gain per token, int64, in order. fixed: as in `picks`."""
        lists = self.lists
        begun = lists.by_position(fixed).nonzero()[0]
        shares = replace(shares, lengths=lists.by_position(shares.lengths), group=lists.by_position(shares.group))
        best = lists.uncovered()
        picks = cost_benefit_greedy(*lists.reverse, self.bonus, shares, self.place, begun, poll, best=best)
        return picks if lists.order is None else lists.order[picks]


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
    if problem.limits.by_tokens:
        member = _mask(problem, cost_benefit_greedy(*reverse, bonus, _shares(problem), place, picks, poll))
        return torch.from_numpy(member).to(problem.joint.device)
    order = greedy(*reverse, bonus, problem.size, place, poll, picks)
    return _best_allowed(problem, torch.from_numpy(order).to(problem.joint.device))


def _mask(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Rows, int64, as a mask over all rows, bool ``(n,)``."""
    mask = np.zeros(problem.joint.n, dtype=bool)
    mask[rows] = True
    return mask


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
    known = _Known(problem)
    better = _swapped(problem, known, mask.cpu().numpy().copy(), poll, trace)
    if problem.limits.by_tokens:
        better = _refilled(problem, known, better, poll, trace)
    before, after = (problem.joint.evaluate(m, poll).joint for m in (mask, better))
    return better if after > before else mask


def _refilled(problem: Problem, known: _Known, mask: Tensor, poll: Poll, trace: Trace) -> Tensor:
    """Facility under a budget: free the tokens of the members that are worth least per token, spend them by greedy,
    swap; as long as that helps. Swaps of one for one cannot trade a long row for several short ones."""
    shares, limits, joint = _shares(problem), problem.limits, problem.joint
    value, share = joint.evaluate(mask, poll).joint, FREED
    for turn in range(1, ROUNDS + 1):
        quality, diversity = joint.final_marginals(mask, poll)
        gain = (joint.lamb * quality + (1 - joint.lamb) * diversity)[problem.eligible]
        worth = limits.priority(gain).cpu().numpy()
        rows = problem.eligible.cpu().numpy()
        free = mask[problem.eligible].cpu().numpy() & ~limits.pinned
        order = np.flatnonzero(free)[np.argsort(worth[free], kind="stable")]
        freed = np.cumsum(shares.lengths[rows[order]])
        leaving = rows[order[: int(np.searchsorted(freed, share * limits.most)) + 1]]
        remaining = mask.cpu().numpy().copy()
        remaining[leaving] = False
        # what a group lacks already others may hold
        low = np.minimum(shares.low, limits.held(mask[problem.eligible].cpu().numpy()))
        member = _mask(problem, known.spending(replace(shares, low=low), remaining, poll))
        trial = _swapped(problem, known, member, poll)
        values = joint.evaluate(trial, poll)
        if problem.allowed(trial) and values.joint > value + LEAST_GAIN * max(1.0, abs(value)):
            trace(TracePoint({"refills": turn}, values=values))
            mask, value = trial, values.joint
        elif share < LEAST_FREED:
            break
        else:
            share /= 2
    return mask


def _bonus(problem: Problem) -> np.ndarray:
    """What quality adds per member in the units of the summed similarities, float64 ``(n,)``; ``-inf`` bars a row."""
    joint = problem.joint
    term = joint.counting[0]
    weight = (1 - joint.lamb) * term.weight * term.scale.slope
    bonus = np.full(joint.n, -np.inf)
    eligible = problem.eligible.cpu().numpy()
    linear, _ = joint.quality.linear(problem.size)
    per_member = linear.double().cpu().numpy()
    if not problem.limits.by_tokens:  # a constant per member changes no swap, and centred sums keep their digits
        per_member = per_member - per_member.mean()
    bonus[eligible] = per_member[eligible] * _shortened(joint.lamb * joint.quality_scale.slope / weight * joint.n)
    return bonus


def _shortened(weight: float) -> float:
    """The nearest number of `WEIGHT_BITS` binary digits; what is infinite stays so."""
    mantissa, exponent = np.frexp(weight)
    return float(np.ldexp(np.rint(np.ldexp(mantissa, WEIGHT_BITS)), exponent - WEIGHT_BITS))


def _swapped(
    problem: Problem,
    known: _Known,
    member: np.ndarray,
    poll: Poll,
    trace: Trace = no_trace,
    temperatures: Sequence[float] = (),
    seed: int = 0,
) -> Tensor:
    """The members after swaps, bool ``(n,)``."""
    fewest = 0 if problem.joint.counting[0].function_of(Facility).true_neighbors else FEWEST_SWAPS * problem.size
    lists = known.lists
    inside = lists.by_position(member).copy()
    search = EagerSwaps(
        lists,
        known.bonus,
        inside,
        known.visit,
        _limits(problem, lists),
        fewest,
        temperatures=temperatures,
        seed=seed,
    )
    schedule, total, told = PointSchedule(), 0, 0
    while not search.finished:
        poll()
        before = None if trace is no_trace else lists.by_row(inside).copy()
        log = search.advance()
        total += len(log)
        if before is None:
            continue
        if lists.order is not None:
            log = np.where(log >= 0, lists.order[log], log)
        # several points of one call: small corpora are done within it
        last, earlier = 0, total - len(log)
        for count in marks(len(log)):
            for coming, leaving in log[last:count]:
                before[coming] = True
                if leaving >= 0:
                    before[leaving] = False
            last = count
            if schedule.due(earlier + count):
                mask = torch.from_numpy(before.copy()).to(problem.joint.device)
                trace(TracePoint({"swaps": earlier + count}, mask))
                told = earlier + count
    swapped = torch.from_numpy(lists.by_row(inside)).to(problem.joint.device)
    if total > told:
        trace(TracePoint({"swaps": total}, swapped))
    return swapped


def _annealed(problem: Problem, known: _Known, mask: Tensor, poll: Poll, trace: Trace) -> Tensor:
    """The best of a selection and of what rounds of annealing with swaps make of it, bool ``(n,)``."""
    value, since, turn = problem.joint.evaluate(mask, poll).joint, 0, 0
    rounds, threads = min(MOST_ROUNDS, max(1, ROUND_ROWS // len(problem.eligible))), torch.get_num_threads()
    stopping = threading.Event()

    def tried(start: Tensor, seed: int, poll: Poll) -> Tensor:
        return _swapped(problem, known, start.cpu().numpy().copy(), poll, temperatures=TEMPERATURES, seed=seed)

    def ahead(start: Tensor, seed: int) -> Tensor:
        return tried(start, seed, poll_of(lambda: stopping.is_set() or mask is not start))

    # a round that finds nothing leaves the next one its start: as many as there are threads begin together
    with ThreadPoolExecutor(threads) as pool:
        try:
            while turn < rounds and since < PATIENCE:
                last = min(turn + threads, rounds, turn + PATIENCE - since)
                later = [pool.submit(ahead, mask, seed) for seed in range(turn + 1, last)]
                for trial in itertools.chain((tried(mask, turn, poll),), (each.result() for each in later)):
                    turn, since = turn + 1, since + 1
                    values = problem.joint.evaluate(trial, poll)
                    if values.joint > value:
                        mask, value, since = trial, values.joint, 0
                        trace(TracePoint({"anneals": turn}, values=values))
                        break
        finally:
            stopping.set()
    return mask


def _limits(problem: Problem, lists: Lists) -> SwapLimits:
    """What restricts swaps, over all rows, in the order of the lists."""
    limits, by_position = problem.limits, lists.by_position
    pinned = by_position(problem.pinned.cpu().numpy())
    if not limits.by_tokens:
        group = by_position(problem.group.cpu().numpy().astype(np.int32))
        return SwapLimits.of_rows(pinned, group, limits.groups.low, limits.groups.high)
    shares, rows = _shares(problem), problem.eligible.cpu().numpy()
    band = np.zeros(problem.joint.n, dtype=np.int32)
    # the cheapest member of each band of lengths is among those that a candidate is swapped with
    edges = np.unique(np.quantile(limits.amounts, np.linspace(0, 1, LENGTH_BANDS + 1)[1:-1]))
    band[rows] = shares.group[rows] * LENGTH_BANDS + np.searchsorted(edges, limits.amounts)
    return SwapLimits(
        pinned,
        by_position(shares.group),
        shares.low,
        shares.high,
        by_position(band),
        LENGTH_BANDS * len(shares.low),
        by_position(shares.lengths),
        limits.least,
        limits.most,
    )


def _shares(problem: Problem) -> Shares:
    """A budget over all rows; those that may not be selected have no tokens."""
    lengths, of = np.zeros(problem.joint.n), np.zeros(problem.joint.n, dtype=np.int32)
    rows, (group, low, high, _) = problem.eligible.cpu().numpy(), problem.limits.groups
    lengths[rows], of[rows] = problem.limits.amounts, group
    return Shares(lengths, problem.limits.most, of, low, high)
