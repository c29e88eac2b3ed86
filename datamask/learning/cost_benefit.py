"""Facility location under a token budget: lazy greedy by gain per token, compiled.

A gain never grows as others are taken, and lengths stay what they are, so a candidate whose refreshed gain per token
still tops the heap is the best (Sviridenko 2004 calls it the cost-benefit rule; alone it guarantees nothing, which is
what `datamask.learning.eager_swaps` is for). What no longer fits is dropped: the room only shrinks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.compiling import compiled
from datamask.learning.medoids import PAIRS_AT_ONCE, candidates, cover, gain_of
from datamask.quotas import SLACK, amount_by_group

SHORTEST = 1e-9
"""Tokens that a row without any is taken to have, so that it has a gain per token."""


@dataclass(frozen=True)
class Shares:
    """A budget, and what each group may have of it.

    Attributes:
        lengths: float64 ``(n,)``, tokens of the rows; most: of all members together.
        group: int ``(n,)``; low, high: float64 ``(C,)``, tokens per group.
    """

    lengths: np.ndarray
    most: float
    group: np.ndarray
    low: np.ndarray
    high: np.ndarray


def cost_benefit_greedy(
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    shares: Shares,
    order: np.ndarray,
    picks: np.ndarray,
    poll: Callable[[], None] = lambda: None,
    *,
    best: np.ndarray | None = None,
) -> np.ndarray:
    """Take the candidate with the highest gain per token that fits, until none fits: the picks in their order, int64.

    It fits beside what other groups lack of their least, and within the most of its own.

    Args:
        offsets, rows, near: from `medoids.reverse_lists`.
        bonus: float64 ``(n,)``; ``-inf`` bars a candidate.
        shares: what is spent, the picks included.
        order: int64 ``(n,)``, smaller goes first among equals. picks: int64, rows that are in anyway.
        best: as of `medoids.LazyGreedy`.
    """
    lengths, group, low = np.maximum(shares.lengths, SHORTEST), shares.group, shares.low
    best = np.zeros(len(bonus)) if best is None else best
    member, taken, done = np.zeros(len(bonus), dtype=np.bool_), np.empty(len(bonus), np.int64), len(picks)
    member[picks], taken[:done] = True, picks
    for i in picks:
        cover(offsets, rows, near, best, i)
    bounds = np.full(len(bonus), np.inf)
    bounds[member | (bonus == -np.inf)] = -np.inf
    held = amount_by_group(group, shares.lengths, member, len(low))
    room, slack, looking = shares.most - float(held.sum()), SLACK * shares.most, True
    while looking:
        poll()
        room, looking, done = _pick_by_rate(
            *(offsets, rows, near, bonus, lengths, room, slack, group, low, shares.high, held),
            *(order, best, bounds, taken, done, PAIRS_AT_ONCE),
        )
    return taken[:done]


@compiled
def _pick_by_rate(
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    lengths: np.ndarray,
    room: float,
    slack: float,
    group: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    held: np.ndarray,
    order: np.ndarray,
    best: np.ndarray,
    bounds: np.ndarray,
    taken: np.ndarray,
    done: int,
    budget: int,
) -> tuple[float, bool, int]:
    """Pick until the budget of looks is spent or nothing fits; a bound is a gain per token of some earlier time."""
    heap = candidates(bounds, order)
    lacking = np.maximum(low - held, 0.0).sum()
    looked = 0
    while looked < budget:
        if len(heap) == 0:
            return room, False, done
        _, _, i = heapq.heappop(heap)
        g = group[i]
        own = max(low[g] - held[g], 0.0)
        if lengths[i] > min(room - lacking + own, high[g] - held[g]) + slack:
            bounds[i] = -np.inf
            continue
        rate = gain_of(offsets, rows, near, bonus[i], best, i) / lengths[i]
        looked += 1 + offsets[i + 1] - offsets[i]
        if np.isnan(rate):  # nothing compares with it
            bounds[i] = -np.inf
            continue
        if len(heap) > 0 and (-rate, order[i]) > (heap[0][0], heap[0][1]):
            bounds[i] = rate
            heapq.heappush(heap, (-rate, order[i], i))
            continue
        taken[done] = i
        done += 1
        bounds[i] = -np.inf
        room -= lengths[i]
        held[g] += lengths[i]
        lacking += max(low[g] - held[g], 0.0) - own
        cover(offsets, rows, near, best, i)
    return room, True, done
