"""Facility location on neighbour lists, solved directly: lazy greedy and eager swaps, compiled.

Greedy is lazy because the function is submodular: a gain never grows, so a candidate whose refreshed gain still tops
the heap is the best (Minoux 1978). Swaps follow the eager scheme of FasterPAM (Schubert and Rousseeuw 2021): every row
knows its nearest and second-nearest member, every member what its removal would lose, so a candidate is judged against
all removals in one pass over its own rows, and the best swap is taken at once.

Symbols: s_vi listed similarity of row v and candidate i; U members; best, second of row v over U.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from datamask.compiling import compiled
from datamask.learning import winner_tree


def reverse_lists(indices: np.ndarray, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn row -> listed candidates ``(n, K)`` into candidate -> rows: offsets ``(n + 1,)``, rows and similarities."""
    return _reverse(np.ascontiguousarray(indices, dtype=np.int32), np.ascontiguousarray(similarities, dtype=np.float32))


@compiled
def _reverse(indices: np.ndarray, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, k = indices.shape
    offsets = np.zeros(n + 1, dtype=np.int64)
    for v in range(n):
        for c in range(k):
            offsets[indices[v, c] + 1] += 1
    for i in range(n):
        offsets[i + 1] += offsets[i]
    place = offsets[:-1].copy()
    rows = np.empty(n * k, dtype=np.int32)
    near = np.empty(n * k, dtype=np.float32)
    for v in range(n):
        for c in range(k):
            i = indices[v, c]
            rows[place[i]] = v
            near[place[i]] = max(similarities[v, c], np.float32(0.0))
            place[i] += 1
    return offsets, rows, near


PAIRS_AT_ONCE = 20_000_000
"""Listed pairs that lazy greedy or swaps look at between two polls: about 0.1 s."""

PAIRS_PER_ROW = 60
"""Or so many for each row, where that is more: every call of lazy greedy begins with a heap of all rows."""


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
        best: float64, one for each row that `rows` names, how well it is covered from the start; changed in place.
            None: not at all, and rows and candidates are the same.

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
) -> np.ndarray:
    """All picks of `LazyGreedy`: int64 ``(S,)``, members in the order of picking; fewer if it ran out of candidates."""
    solver = LazyGreedy(offsets, rows, near, bonus, size, order, picks=picks, best=best)
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
    gain = bonus
    for e in range(offsets[i], offsets[i + 1]):
        more = near[e] - best[rows[e]]
        if more > 0:
            gain += more
    return gain


@compiled
def picked_gains(
    offsets: np.ndarray,
    listing: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    best: np.ndarray,
    picks: np.ndarray,
) -> np.ndarray:
    """What each pick added when it was made, float64; never above the one before, rounding included."""
    gains = np.empty(len(picks))
    last = np.inf
    for t in range(len(picks)):
        last = min(last, gain_of(offsets, listing, near, bonus[picks[t]], best, picks[t]))
        gains[t] = last
        cover(offsets, listing, near, best, picks[t])
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


@compiled
def _look_up(
    indices: np.ndarray,
    similarities: np.ndarray,
    member: np.ndarray,
    v: int,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    other: np.ndarray,
) -> None:
    """Set the two nearest listed members of row v."""
    best[v] = 0.0
    second[v] = 0.0
    owner[v] = -1
    other[v] = -1
    for c in range(indices.shape[1]):
        i = indices[v, c]
        if member[i]:
            if owner[v] < 0:
                owner[v] = i
                best[v] = max(similarities[v, c], np.float32(0.0))
            else:
                other[v] = i
                second[v] = max(similarities[v, c], np.float32(0.0))
                return


@compiled
def swaps(
    indices: np.ndarray,
    similarities: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    member: np.ndarray,
    visit: np.ndarray,
    start: int,
    quiet: int,
    budget: int,
    pinned: np.ndarray,
    group: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    lengths: np.ndarray,
    least: float,
    most: float,
    log: np.ndarray,
) -> tuple[int, int, int]:
    """Eager swaps from a subset, at most `budget` candidates in this call.

    Args:
        indices, similarities: lists ``(n, K)``, falling; offsets, rows, near: their reverse.
        bonus: float64 ``(n,)``; ``-inf`` bars a candidate from entering.
        member: bool ``(n,)``, changed in place.
        visit: int64 ``(n,)``, the order in which candidates are tried.
        start: position in `visit`; quiet: candidates in a row that found no swap; carried from call to call.
        budget: candidates to try before returning, so that the caller can poll; fewer where that took long.
        pinned: bool ``(n,)``, members that stay; group: int64 ``(n,)``; low, high: int64 ``(C,)``, members per group. A
            swap across groups is tried with the cheapest member of each group and with the touched ones.
        lengths: float64 ``(n,)``; least, most: tokens that the members hold together. A candidate that fits beside all
            of them is then added without a swap. Zeros, -1 and inf: no budget.
        log: int64 ``(budget, 2)``, filled with the swaps that are made: who came in, and who left (-1: nobody).

    Returns:
        (position, quiet, swaps made); a subset with ``quiet >= n`` has no improving single swap over the lists, as far
        as under a budget the touched members and the cheapest of each group tell.
    """
    n = len(member)
    best = np.zeros(n, dtype=np.float64)
    second = np.zeros(n, dtype=np.float64)
    owner = np.full(n, -1, dtype=np.int64)
    other = np.full(n, -1, dtype=np.int64)
    loss = np.zeros(n, dtype=np.float64)  # what removing a member loses, its bonus included
    for v in range(n):
        _look_up(indices, similarities, member, v, best, second, owner, other)
        if owner[v] >= 0:
            loss[owner[v]] += best[v] - second[v]
    held = np.zeros(len(low), dtype=np.int64)
    tokens = 0.0
    for j in range(n):
        if member[j]:
            loss[j] += bonus[j]
            held[group[j]] += 1
            tokens += lengths[j]
    # the cheapest member of each group, kept up to date: a member's key is its loss, that of all others infinite
    tree, leaf, row, root = winner_tree.plant(group, len(low))
    for j in range(n):
        if member[j] and not pinned[j] and not np.isnan(loss[j]):
            tree[leaf[j]] = loss[j]
    winner_tree.settle(tree, root)
    cheapest = np.empty(len(low), dtype=np.int64)
    for g in range(len(low)):
        cheapest[g] = winner_tree.winner(tree, row, root, g)
    spared = np.zeros(n, dtype=np.float64)
    touched = np.empty(n, dtype=np.int64)
    swap_count = 0
    position = start
    looked = 0
    for _ in range(budget):
        if quiet >= n or looked > 2 * PAIRS_AT_ONCE:
            break
        i = visit[position]
        position = position + 1 if position + 1 < n else 0
        quiet += 1
        if member[i] or bonus[i] == -np.inf:
            continue
        looked += 1 + offsets[i + 1] - offsets[i]
        gain = bonus[i]
        count = 0
        for e in range(offsets[i], offsets[i + 1]):
            v = rows[e]
            s = near[e]
            if s > best[v]:
                gain += s - best[v]
            # with i in, losing v's owner costs less: v falls back to i or to its second
            if owner[v] >= 0 and s > second[v]:
                j = owner[v]
                if spared[j] == 0.0:
                    touched[count] = j
                    count += 1
                spared[j] += min(float(s), best[v]) - second[v]
        out = -1
        fits = most < np.inf and tokens + lengths[i] <= most
        price = 0.0 if fits else np.inf
        to = group[i]
        room = held[to] < high[to]
        for t in range(count + len(low)):
            j = touched[t] if t < count else cheapest[t - count]
            if j < 0 or pinned[j] or loss[j] - spared[j] >= price:
                continue
            if not least <= tokens + lengths[i] - lengths[j] <= most:
                continue
            if group[j] == to or (room and held[group[j]] > low[group[j]]):
                price = loss[j] - spared[j]
                out = j
        for t in range(count):
            spared[touched[t]] = 0.0
        if not gain - price > 1e-9 * (1.0 + abs(gain)):  # nor is it if nobody may leave: the price is infinite
            continue
        held[to] += 1
        member[i] = True
        tokens += lengths[i]
        loss[i] = bonus[i]
        if out >= 0:
            held[group[out]] -= 1
            member[out] = False
            tokens -= lengths[out]
            loss[out] = 0.0
            winner_tree.change(tree, leaf, root[group[out]], out, np.inf)
        winner_tree.change(tree, leaf, root[to], i, loss[i] if not pinned[i] else np.inf)
        # rows that knew the removed member, then rows that list the new one
        for which in range(0 if out >= 0 else 1, 2):
            who = out if which == 0 else i
            for e in range(offsets[who], offsets[who + 1]):
                v = rows[e]
                if which == 0 and owner[v] != out and other[v] != out:
                    continue
                if which == 1 and near[e] <= second[v] and other[v] >= 0:
                    continue
                j = owner[v]
                if j >= 0 and member[j]:
                    loss[j] -= best[v] - second[v]
                    if not pinned[j]:
                        winner_tree.change(tree, leaf, root[group[j]], j, loss[j])
                _look_up(indices, similarities, member, v, best, second, owner, other)
                j = owner[v]
                if j >= 0:
                    loss[j] += best[v] - second[v]
                    if not pinned[j]:
                        winner_tree.change(tree, leaf, root[group[j]], j, loss[j])
        for g in range(len(low)):
            cheapest[g] = winner_tree.winner(tree, row, root, g)
        looked += 8 * (offsets[i + 1] - offsets[i])
        if out >= 0:
            looked += 8 * (offsets[out + 1] - offsets[out])
        log[swap_count, 0], log[swap_count, 1] = i, out
        swap_count += 1
        quiet = 0
    return position, quiet, swap_count
