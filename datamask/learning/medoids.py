"""Facility location on neighbour lists: who lists whom, and lazy greedy, compiled.

Greedy is lazy because the function is submodular: a gain never grows, so a candidate whose refreshed gain still tops
the heap is the best (Minoux 1978). `datamask.learning.eager_swaps` goes on from its picks.

Similarities are float32, or whole steps of a fixed size (`datamask.learning.lists`): then sums of them are exact, so
what is selected does not depend on the order of the rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from datamask.compiling import compiled
from datamask.places import MEMORY, Place


def reverse_lists(
    indices: np.ndarray, similarities: np.ndarray, place: Place = MEMORY
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn row -> listed candidates ``(n, K)`` into candidate -> rows: offsets ``(n + 1,)``, rows and similarities."""
    kind = np.float32 if similarities.dtype.kind == "f" else similarities.dtype
    lists = indices.astype(np.int32, copy=False), similarities.astype(kind, copy=False)
    offsets = np.zeros(len(indices) + 1, dtype=np.int64)
    count_listed(lists[0], 0, offsets)
    np.cumsum(offsets, out=offsets)
    rows, listed = place.empty((int(offsets[-1]),), np.int32), place.empty((int(offsets[-1]),), kind)
    put_listed(*lists, 0, offsets[:-1].copy(), rows, listed)
    return offsets, rows, listed


@compiled
def count_listed(indices: np.ndarray, first: int, offsets: np.ndarray) -> None:
    """Add to ``offsets[i + 1]`` how many of the rows from `first` on list i."""
    for v in range(indices.shape[0]):
        for c in range(indices.shape[1]):
            i = indices[v, c]
            # a short list ends with the row itself again
            if c == 0 or i != first + v:
                offsets[i + 1] += 1


@compiled
def put_listed(
    indices: np.ndarray,
    near: np.ndarray,
    first: int,
    place: np.ndarray,
    listing: np.ndarray,
    listed_near: np.ndarray,
) -> None:
    """Set who lists each row, for the rows from `first` on, and how near: 0 at least.

    Args:
        place: int64 ``(N,)``, where the next entry of each row goes; raised.
    """
    for v in range(indices.shape[0]):
        for c in range(indices.shape[1]):
            i = indices[v, c]
            if c == 0 or i != first + v:
                listing[place[i]] = first + v
                listed_near[place[i]] = max(near[v, c], 0)
                place[i] += 1


PAIRS_AT_ONCE = 20_000_000
"""Listed pairs that lazy greedy looks at between two polls: about 0.1 s."""

PAIRS_PER_ROW = 60
"""Or so many for each row, where that is more: every call of lazy greedy begins with a heap of all rows."""


Rules = tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]
"""Group, low and high of `LazyGreedy`."""


class LazyGreedy:
    """Maximise ``sum over v of best_v + sum over members of bonus``, pick by pick, as far as the caller wants.

    What it knows follows from the picks alone, up to bounds on gains that are refreshed before they count: one that
    begins with some picks goes on exactly as the one that made them.

    Args:
        offsets, rows, near: from `reverse_lists`.
        bonus: float64 ``(n,)``; ``-inf`` bars a candidate, and so does a gain that is no number.
        size: S. order: int64 ``(n,)``, smaller goes first among equal gains.
        averaged: count a bonus as S / t at pick t: the sum's second part is then S times the mean bonus of the picks so
            far. Gains still never grow, as long as no bonus is negative (a constant added to all changes no pick).
        picks: int64, members already picked, in their order.
        group: int64 ``(n,)``; low, high: int64 ``(C,)``, members per group among the S; None: no such rules. No pick is
            made that would leave a minimum out of reach.
        best: one for each row that `rows` names, how well it is covered from the start, as `near` counts similarity;
            changed in place. None: 0, and rows and candidates are the same.

    Raises:
        ValueError: a bonus below 0 with `averaged`.

    Attributes:
        picks: int64 ``(S,)``, of which the first `done` are made.
    """

    def __init__(
        self,
        offsets: np.ndarray,
        rows: np.ndarray,
        near: np.ndarray,
        bonus: np.ndarray,
        size: int,
        order: np.ndarray,
        averaged: bool = False,
        picks: np.ndarray | None = None,
        group: np.ndarray | None = None,
        low: np.ndarray | None = None,
        high: np.ndarray | None = None,
        best: np.ndarray | None = None,
    ) -> None:
        if averaged and (bonus[bonus != -np.inf] < 0).any():
            raise ValueError(f"averaged bonuses must be at least 0, got {bonus[bonus != -np.inf].min():g}")
        self._lists, self._bonus, self._order, self._averaged = (offsets, rows, near), bonus, order, averaged
        n = len(offsets) - 1
        self._rules = (
            (np.zeros(n, dtype=np.int64), np.zeros(1, dtype=np.int64), np.full(1, size))
            if group is None
            else (group, low, high)
        )
        self.picks = np.empty(size, dtype=np.int64)
        self.done = 0 if picks is None else len(picks)
        self.picks[: self.done] = [] if picks is None else picks
        self._best = np.zeros(n) if best is None else best
        self._bounds = np.empty(n)
        _begin(*self._lists, bonus, averaged, self._best, self._bounds, self.picks, self.done)

    def advance(self, until: int | None = None) -> None:
        """At least one more pick, unless no candidate is left; returns after some `PAIRS_AT_ONCE` looks.

        Args: until: or once so many are made; None: S.
        """
        self.done = _pick(
            *self._lists,
            self._bonus,
            self._averaged,
            self._order,
            self._best,
            self._bounds,
            self.picks,
            self.done,
            len(self.picks) if until is None else until,
            max(PAIRS_AT_ONCE, PAIRS_PER_ROW * len(self._bounds)),
            *self._rules,
        )


def greedy(
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    size: int,
    order: np.ndarray,
    poll: Callable[[], None] = lambda: None,
    picks: np.ndarray | None = None,
    best: np.ndarray | None = None,
    rules: Rules = (None, None, None),
) -> np.ndarray:
    """All picks of `LazyGreedy`: int64 ``(S,)``, members in the order of picking; fewer if it ran out of candidates.

    Args:
        rules: of the groups.
    """
    group, low, high = rules
    solver = LazyGreedy(offsets, rows, near, bonus, size, order, False, picks, group, low, high, best)
    before = -1
    while before < solver.done < size:
        poll()
        before = solver.done
        solver.advance()
    return solver.picks[: solver.done]


@compiled
def cover(offsets: np.ndarray, rows: np.ndarray, near: np.ndarray, best: np.ndarray, i: int | np.int64) -> None:
    """Take i: its rows are covered at least as well as it does."""
    for e in range(offsets[i], offsets[i + 1]):
        if near[e] > best[rows[e]]:
            best[rows[e]] = near[e]


@compiled
def gain_of(
    offsets: np.ndarray, rows: np.ndarray, near: np.ndarray, bonus: float, best: np.ndarray, i: int | np.int64
) -> float:
    """What i would add now. Summed in one order, so that it never grows, rounding included, as others are taken."""
    gain = 0.0
    for e in range(offsets[i], offsets[i + 1]):
        more = near[e] - best[rows[e]]
        if more > 0:
            gain += more
    return gain + bonus


@compiled
def pick_gains(
    offsets: np.ndarray, rows: np.ndarray, near: np.ndarray, best: np.ndarray, picks: np.ndarray
) -> np.ndarray:
    """What each pick covered more than those before it, float64 ``(S,)``; `best` is changed in place."""
    gains = np.empty(len(picks))
    for t in range(len(picks)):
        gains[t] = gain_of(offsets, rows, near, 0.0, best, picks[t])
        cover(offsets, rows, near, best, picks[t])
    return gains


@compiled
def candidates(bounds: np.ndarray, order: np.ndarray) -> list[tuple[float, np.int64, np.int64]]:
    """A heap of ``(-bound, order, i)`` of all that may still be taken: the highest bound first, then the order."""
    heap = [(0.0, np.int64(0), np.int64(0))]  # tells the compiler what is in it
    heap.pop()
    for i in range(len(bounds)):
        if bounds[i] != -np.inf:
            heap.append((-bounds[i], order[i], np.int64(i)))
    heapq.heapify(heap)
    return heap


@compiled
def _begin(
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    averaged: bool,
    best: np.ndarray,
    bounds: np.ndarray,
    picks: np.ndarray,
    done: int,
) -> None:
    """Cover what the picks cover, then the gains of the rest; ``-inf`` for those that may not be taken any more."""
    for t in range(done):
        cover(offsets, rows, near, best, picks[t])
    share = len(picks) / (done + 1) if averaged else 1.0
    for i in range(len(bounds)):
        bounds[i] = -np.inf if bonus[i] == -np.inf else gain_of(offsets, rows, near, bonus[i] * share, best, i)
        if np.isnan(bounds[i]):  # nothing compares with it, so a heap that held it would have no order and no end
            bounds[i] = -np.inf
    for t in range(done):
        bounds[picks[t]] = -np.inf


@compiled
def _pick(
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    averaged: bool,
    order: np.ndarray,
    best: np.ndarray,
    bounds: np.ndarray,
    picks: np.ndarray,
    done: int,
    until: int,
    budget: int,
    group: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> int:
    """Pick `until` so many are made, or the budget of looks is spent.

    A bound is a gain of some earlier time, hence at least today's.
    """
    held = np.zeros(len(low), dtype=np.int64)
    for t in range(done):
        held[group[picks[t]]] += 1
    required = np.maximum(low - held, 0).sum()
    heap = candidates(bounds, order)
    looked = 0
    while done < until and looked < budget:
        share = len(picks) / (done + 1) if averaged else 1.0
        pick = np.int64(-1)
        while len(heap) > 0:
            _, _, i = heapq.heappop(heap)
            # a group that is full, or not required when every pick left is required elsewhere, stays closed
            if held[group[i]] >= high[group[i]] or (required == len(picks) - done and held[group[i]] >= low[group[i]]):
                bounds[i] = -np.inf
                continue
            gain = gain_of(offsets, rows, near, bonus[i] * share, best, i)
            looked += 1 + offsets[i + 1] - offsets[i]
            if np.isnan(gain):
                bounds[i] = -np.inf
                continue
            if len(heap) == 0 or (-gain, order[i]) <= (heap[0][0], heap[0][1]):
                pick = i
                break
            bounds[i] = gain
            heapq.heappush(heap, (-gain, order[i], i))
        if pick < 0:
            break
        if held[group[pick]] < low[group[pick]]:
            required -= 1
        held[group[pick]] += 1
        picks[done] = pick
        done += 1
        bounds[pick] = -np.inf
        cover(offsets, rows, near, best, pick)
    return done
