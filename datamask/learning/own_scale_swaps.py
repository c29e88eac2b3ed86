"""Swaps for DiSF: block after block, each swap priced given all those before it.

With ``A`` the off-diagonal part of ``sum over U of z z'``, z standardised on U, the value is ``-||A||^2 / (S^2 d (d -
1))``. A row costs its crowding ``z' A z``, less ``sum_a z_a^2 w_a`` because it changes the scale too (``w_a = sum over
b of A_ab^2 / S``), and a swap also the kernel of its two rows, as for the DiSF with fixed scale
(`datamask.learning.block_swaps`). Prices are of second order in what a block swaps; the next block sees the new scale.

On 30,000 texts of 384 dimensions, ratio 0.3, lambda 0.5, 8 learned steps (5.9 s of one core) and four passes (1.3 s)
end at a joint value of 0.76014; 60 learned steps and 40 rounds of swaps in batches at 0.76015; the passes alone, from a
random subset (1.8 s), at 0.76013.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from datamask.learning.batch_swaps import batch_swaps
from datamask.learning.block_swaps import BLOCK, LEAST_GAIN, MANY_ROWS, PASSES, best_swaps
from datamask.learning.problem import Problem
from datamask.learning.trace import Trace, TracePoint, no_trace
from datamask.objectives.disf import Correlations, DiSF, FewCorrelations
from datamask.objectives.disf_fixed import DiSFFixed
from datamask.objectives.joint import Joint
from datamask.polling import Poll, no_poll

ENOUGH = 1e-5
"""A pass that improves the sum of squares by less than this share is the last. With 2e-4, runs from different starts
ended up to 5e-4 of the range apart, with 1e-5 within 2e-5. A pass costs half as much as a learned step."""

TRIED = 16
"""Of more than `MANY_ROWS` rows, passes over few of them follow a pass over all. For each swap of the pass before, they
try so many members and as many others, whose prices are nearest to each other. Where they gain little, all are tried
again; where both together gain little, swaps end."""

FEW_ROWS = 2_000
"""Up to so many rows exact swaps follow, and a second start from what diversity alone selects. Few members are too few
for prices of second order, and local optima lie far apart: at 0.64 and 0.68 of the joint range on 600 rows in nine
clouds. A round over so few rows takes milliseconds."""


class Moments:
    """First and second moments of a selection of S rows, which follow its swaps.

    Attributes:
        correlations: of the dimensions on U.
    """

    def __init__(self, function: DiSF, mask: Tensor, poll: Poll = no_poll) -> None:
        self._y, self._members = function.y, function.members(mask)
        few = function.few(len(self._members))
        self._sums = None if few else function.sums(self._members, torch.float32, poll)
        self._correlate()

    def _correlate(self) -> None:
        members, sums = self._members, self._sums
        self.correlations: Correlations = (
            FewCorrelations(self._y[members]) if sums is None else Correlations(*sums, len(members))
        )

    @property
    def total(self) -> float:
        """``||A||^2``."""
        return float(self._off_sums().sum()) * self.correlations.size**2

    def _off_sums(self) -> Tensor:
        return self.correlations.sums() - self.correlations.own.square()

    def block(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Crowding ``(b,)`` and kernel ``(b, b)`` of rows ``(b,)``.

        ``||A||^2`` grows by crowding and own kernel where a row comes in, falls by their difference where it leaves.
        """
        known = self.correlations
        z = (self._y[rows] - known.mean) * known.scale
        crowding = known.form(z) - z.square() @ (known.own + self._off_sums())
        return 2.0 * known.size * crowding, DiSFFixed.kernel(z, z)

    def swap(self, leaving: Tensor, coming: Tensor) -> None:
        """Take these members ``(k,)`` out and those ``(k,)`` in."""
        self._members = torch.cat([self._members[~torch.isin(self._members, leaving)], coming])
        if self._sums is not None:
            out, into = self._y[leaving], self._y[coming]
            self._sums[0].add_(into.sum(0) - out.sum(0))
            self._sums[1].add_(into.T @ into - out.T @ out)
        self._correlate()


def polish_on_own_scale(problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """`own_scale_swaps`; then exact swaps where quotas name groups, and where rows are few, with a second start.

    Returns:
        bool ``(n,)``, never worse in exact joint value.
    """
    joint, few = problem.joint, problem.joint.n <= FEW_ROWS
    grouped = problem.limits.grouped

    last = 0

    def counted(point: TracePoint) -> None:
        nonlocal last
        last = int(point.metrics["swaps"])
        trace(point)

    def better(best: Tensor, start: Tensor, trace: Trace) -> Tensor:
        swapped, swap_count = own_scale_swaps(problem, start, poll, trace)
        if few or grouped:
            swapped = batch_swaps(problem, swapped, poll, _counting_from(swap_count, trace))
        return max(best, swapped, key=lambda candidate: joint.evaluate(candidate, poll).joint)

    best = better(mask, mask, counted)
    if few and joint.lamb > 0:
        diversity = replace(problem, joint=Joint(joint.quality, joint.terms, 0.0, joint.quality_scale))
        second = better(best, own_scale_swaps(diversity, mask, poll)[0], no_trace)
        if swaps := int((second & ~best).sum()):  # what is traced ends at what is returned
            trace(TracePoint({"swaps": last + swaps}, second))
        best = second
    return best


def _counting_from(swap_count: int, trace: Trace) -> Trace:
    """A trace of swaps after so many others."""
    return lambda point: trace(replace(point, metrics={"swaps": swap_count + point.metrics["swaps"]}))


def own_scale_swaps(
    problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace
) -> tuple[Tensor, int]:
    """Swap members with others of the same quota group until a pass gains little.

    Args:
        problem: one whose only counting diversity term is DiSF, without a token budget.
        mask: bool ``(n,)``, eligible members that obey the rules.

    Returns:
        bool ``(n,)``, as good as the mask but for what prices of second order leave out; and how many swaps were made.
    """
    joint, device, size = problem.joint, problem.joint.device, int(mask.sum())
    term = joint.counting[0]
    function = term.function_of(DiSF)
    # everything in the units of ||A||^2, which is to fall: what a row's quality is worth there
    unit = (1 - joint.lamb) * term.weight * term.scale.slope / (size * size * function.pairs)
    linear, _ = joint.quality.linear(size)
    worth = (linear.double() * (joint.lamb * joint.quality_scale.slope / unit)).float()
    group, free = problem.group, problem.eligible[~problem.pinned[problem.eligible]]
    mask, before, total_swaps = mask.clone(), np.inf, 0
    lowest, best, before_all, looked = np.inf, mask, np.inf, 0
    many, tried, prices = len(free) > MANY_ROWS and not problem.limits.grouped, free, torch.zeros_like(worth)
    generator = torch.Generator().manual_seed(0)
    while True:
        if all_tried := len(tried) == len(free):
            # summed anew: what swaps have added up to in float32 is forgotten
            moments = Moments(function, mask, poll)
        total = moments.total - float(worth[mask].double().sum())
        if total < lowest:  # prices of second order can mislead a pass
            lowest, best = total, mask.clone()
        if looked >= PASSES * len(free):
            break
        if before < np.inf and before - total <= ENOUGH * abs(before):
            if all_tried or before_all - total <= ENOUGH * abs(before_all):
                break
            tried, before = free, np.inf
            continue
        before_all = total if all_tried else before_all
        before, swap_count, looked = total, 0, looked + len(tried)
        for rows in torch.split(tried[torch.randperm(len(tried), generator=generator).to(device)], BLOCK):
            poll()
            inside, (crowding, kernel) = mask[rows], moments.block(rows)
            own = kernel.diagonal()
            prices[rows] = price = torch.where(inside, crowding - own, crowding + own) - worth[rows]
            block = [values.cpu().numpy() for values in (price, kernel, inside, group[rows])]
            pairs = best_swaps(block[0], block[1], block[2], block[3], LEAST_GAIN * float(own.mean()))
            if not len(pairs):
                continue
            leaving, coming = rows[torch.from_numpy(pairs).to(device)].T
            moments.swap(leaving, coming)
            mask[leaving], mask[coming] = False, True
            swap_count += len(pairs)
        if not swap_count and all_tried:
            break
        if many:
            tried = _nearest(free, mask, prices, TRIED * swap_count)
        if swap_count:
            total_swaps += swap_count
            trace(TracePoint({"swaps": total_swaps}, mask.clone()))
    return best, total_swaps


def _nearest(free: Tensor, mask: Tensor, prices: Tensor, count: int) -> Tensor:
    """The so many free members that cost most and the so many others that cost least, in their order."""
    price, inside = prices[free], mask[free]
    near = torch.zeros_like(inside)
    for side, signed in ((inside, price), (~inside, -price)):
        places = side.nonzero().squeeze(1)
        near[places[signed[places].topk(min(count, len(places))).indices]] = True
    return free[near]
