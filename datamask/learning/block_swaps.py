"""Swaps for the DiSF with fixed scale: block after block, each swap exact given all those before it.

With ``A`` the off-diagonal part of ``sum over U of y y'`` the value is ``-||A||^2 / (S^2 d (d - 1))``, and a swap
changes ``||A||^2`` by what two rows' crowding ``c_i = y_i' A y_i`` and three kernel entries say. Swapping the worst
members with the best others all at once overshoots: they crowd each other, and most rounds are spent on halving. Here A
follows every swap, so a block of some hundred rows sees those of the block before. On 18 000 texts of 256 dimensions,
ratio 0.3, six passes take 0.7 s from a random subset to -4.93e-5 (random -5.25e-4); 60 learned steps and 40 rounds of
joint swaps took 13 s to -5.73e-5.

Blocks of random rows rarely hold the best swap there is, above all where few rows are selected. So the last blocks hold
the members and the others with the best prices among all rows, until such a block has no swap left.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.learning.batch_swaps import batch_swaps
from datamask.learning.problem import Problem
from datamask.learning.trace import Trace, TracePoint, no_trace
from datamask.objectives.disf_fixed import Crowding, DiSFFixed
from datamask.polling import Poll, no_poll

BLOCK = 256
"""Rows per block: their kernel is 256 KB, and a tenth of them or more changes sides in the first pass."""

MANY_ROWS = 20_000
"""Rows above which a pass leaves out those that no swap can change: of 1,000,000 near the optimum nearly all."""

PASSES = 30
ENOUGH = 2e-4
"""A pass that improves the sum of squares by less than this share is the last."""

ROUNDS = 40
"""Blocks after the passes, at most."""

ENOUGH_OF_A_ROUND = 1e-5
"""Such a block of `MANY_ROWS` that improves the sum of squares by less than this share is the last: each costs the
prices of all rows, and of 4,000,000 rows forty took half of all swaps' time for 1e-5."""

DEAREST, CHEAPEST = 256, 2048
"""Rows of such a block, at most: the members that cost most, and the others that cost least, of which there are more
where there are few members. A price leaves out how alike two rows are, which decides swaps among few."""

PRICED = 8192
"""Rows whose prices are computed at a time."""

LEAST_GAIN = 1e-6
"""In units of the mean kernel of a row with itself: below it a swap is float32 rounding."""


def polish_by_blocks(problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """`block_swaps`, then swaps across quota groups; bool ``(n,)``, never worse in exact joint value."""
    better = block_swaps(problem, mask, poll, trace)
    if problem.limits.grouped:
        better = batch_swaps(problem, better, poll, trace)
    before, after = (problem.joint.evaluate(m, poll).joint for m in (mask, better))
    return better if after > before else mask


def block_swaps(problem: Problem, mask: Tensor, poll: Poll = no_poll, trace: Trace = no_trace) -> Tensor:
    """Swap members with others of the same quota group until a pass gains little, then the best among all rows.

    Args:
        problem: one whose only counting diversity term is this one, without a token budget.
        mask: bool ``(n,)``, eligible members that obey the rules.

    Returns:
        bool ``(n,)``; as good as the mask, to float32 rounding.
    """
    joint = problem.joint
    term = joint.counting[0]
    function = term.function_of(DiSFFixed)
    y, device = function.y, joint.device
    size = int(mask.sum())
    # everything in the units of ||A||^2, which is to fall: what a row's quality is worth there
    unit = (1 - joint.lamb) * term.weight * term.scale.slope / (size * size * function.pairs)
    linear, _ = joint.quality.linear(size)
    worth = (linear.double() * (joint.lamb * joint.quality_scale.slope / unit)).float()
    own = function.own(torch.float32)
    least = LEAST_GAIN * float(own.mean())
    group, free = problem.group, problem.eligible[~problem.pinned[problem.eligible]]
    mask, total_swaps = mask.clone(), 0
    generator = torch.Generator().manual_seed(0)

    def prices(rows: Tensor, members: Crowding) -> Tensor:
        """What the sum of squares has from a member, or would get from another; quality pays for both."""
        inside, crowding = mask[rows], 2.0 * members.of(rows)
        return torch.where(inside, crowding - own[rows], crowding + own[rows]) - worth[rows]

    def all_prices(members: Crowding) -> Tensor:
        return torch.cat([prices(rows, members) for rows in torch.split(free, PRICED)])

    def hopeful(members: Crowding) -> Tensor:
        """The free rows that some single swap may change: a swap of i for j gains price_i - price_j + 2 k_ij, and
        k_ij is at most sqrt(k_ii k_jj)."""
        price, inside = all_prices(members), mask[free]
        if bool(inside.all()) or not bool(inside.any()):
            return free[:0]
        reach = 2.0 * (own[free] * own.max()).sqrt()
        least_outside, most_inside = price[~inside].min(), price[inside].max()
        return free[torch.where(inside, price + reach > least_outside, price - reach < most_inside)]

    def total_of(members: Crowding) -> float:
        return members.total - float(worth[mask].double().sum())

    def swap(rows: Tensor, members: Crowding) -> int:
        """Swap inside a block; mask and crowding are changed with it. How many swaps there were."""
        block = y[rows]
        swap_pairs = torch.from_numpy(
            best_swaps(
                prices(rows, members).cpu().numpy(),
                function.kernel(block, block).cpu().numpy(),
                mask[rows].cpu().numpy(),
                group[rows].cpu().numpy(),
                least,
            )
        ).to(device)
        if len(swap_pairs):
            leaving, coming = rows[swap_pairs[:, 0]], rows[swap_pairs[:, 1]]
            members.swap(leaving, coming)
            mask[leaving] = False
            mask[coming] = True
        return len(swap_pairs)

    before, many = np.inf, len(free) > MANY_ROWS
    for _ in range(PASSES):
        members = Crowding(function, mask, torch.float32, poll)
        total = total_of(members)
        if before - total < ENOUGH * abs(before) and before < np.inf:
            break
        before, swap_count = total, 0
        tried = hopeful(members) if many else free
        if not len(tried):
            break
        for rows in torch.split(tried[torch.randperm(len(tried), generator=generator).to(device)], BLOCK):
            poll()
            swap_count += swap(rows, members)
        if not swap_count:
            break
        total_swaps += swap_count
        trace(TracePoint({"swaps": total_swaps}, mask.clone()))
    # a pass leaves swaps between rows that never shared a block: the best of all rows share one now
    before = np.inf
    for _ in range(ROUNDS):
        members = Crowding(function, mask, torch.float32, poll)
        total = total_of(members)
        if many and before - total < ENOUGH_OF_A_ROUND * abs(before) and before < np.inf:
            break
        before = total
        price, inside = all_prices(members), mask[free]
        dearest = min(DEAREST, int(inside.sum()))
        cheapest = min(DEAREST**2 // max(dearest, 1), CHEAPEST, int((~inside).sum()))
        leaving = price.masked_fill(~inside, -torch.inf).topk(dearest).indices
        coming = price.masked_fill(inside, torch.inf).topk(cheapest, largest=False).indices
        swap_count = swap(free[torch.cat([leaving, coming])], members)
        if not swap_count:
            break
        total_swaps += swap_count
        trace(TracePoint({"swaps": total_swaps}, mask.clone()))
    return mask


@compiled
def best_swaps(
    price: np.ndarray, kernel: np.ndarray, inside: np.ndarray, group: np.ndarray, least: float
) -> np.ndarray:
    """The swaps inside one block, the best first, each after those before it: int64 ``(k, 2)``, leaving and coming.

    Args:
        price: float32 ``(b,)``, what the sum of squares has from a member, or would get from another.
        kernel: float32 ``(b, b)``, off-diagonal ones of the rows. inside: bool ``(b,)``. group: int64 ``(b,)``.
        least: gains at most this large end it.
    """
    members, others = np.flatnonzero(inside), np.flatnonzero(~inside)
    pairs = np.empty((min(len(members), len(others)), 2), dtype=np.int64)
    moved = np.zeros(len(price), dtype=np.bool_)
    price = price.copy()
    count = 0
    while count < len(pairs):
        best, leaving, coming = least, np.int64(-1), np.int64(-1)
        for j in members:
            if moved[j]:
                continue
            for i in others:
                if moved[i] or group[i] != group[j]:
                    continue
                gain = price[j] - price[i] + 2.0 * kernel[i, j]
                if gain > best:
                    best, leaving, coming = gain, j, i
        if leaving < 0:
            break
        pairs[count, 0], pairs[count, 1] = leaving, coming
        count += 1
        moved[leaving] = moved[coming] = True
        for x in range(len(price)):
            price[x] += 2.0 * (kernel[x, coming] - kernel[x, leaving])
    return pairs[:count]
