"""Facility location on neighbour lists, solved directly: lazy greedy and eager swaps, compiled.

Greedy is lazy because the function is submodular: a gain never grows, so a candidate whose refreshed gain still tops
the heap is the best (Minoux 1978). Swaps follow the eager scheme of FasterPAM (Schubert and Rousseeuw 2021): every row
knows its nearest and second-nearest member, every member what its removal would lose, so a candidate is judged against
all removals in one pass over its own rows, and the best swap is taken at once.

Symbols: s_vi listed similarity of row v and candidate i; U members; best, second of row v over U.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np


def reverse_lists(indices: np.ndarray, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Turn row -> listed candidates ``(n, K)`` into candidate -> rows: offsets ``(n + 1,)``, rows and similarities."""
    return _reverse(np.ascontiguousarray(indices, dtype=np.int32),
                    np.ascontiguousarray(similarities, dtype=np.float32))


@numba.njit(cache=True)
def _reverse(indices, similarities):
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


@numba.njit(cache=True)
def greedy(offsets, rows, near, bonus, size, order):
    """Lazy greedy: maximise ``sum over v of best_v + sum over members of bonus``.

    Args:
        offsets, rows, near: from `reverse_lists`.
        bonus: float64 ``(n,)``; ``-inf`` bars a candidate.
        size: S. order: int64 ``(n,)``, smaller goes first among equal gains.

    Returns:
        int64 ``(S,)``, members in the order of picking.
    """
    n = len(offsets) - 1
    best = np.zeros(n, dtype=np.float64)
    heap = [(0.0, np.int64(0), np.int64(0))]
    heap.pop()
    for i in range(n):
        if bonus[i] == -np.inf:
            continue
        gain = bonus[i]
        for e in range(offsets[i], offsets[i + 1]):
            gain += near[e]
        heap.append((-gain, order[i], np.int64(i)))
    heapq.heapify(heap)
    picks = np.empty(size, dtype=np.int64)
    for done in range(size):
        while True:
            _, _, i = heapq.heappop(heap)
            gain = bonus[i]
            for e in range(offsets[i], offsets[i + 1]):
                more = near[e] - best[rows[e]]
                if more > 0:
                    gain += more
            if len(heap) == 0 or (-gain, order[i]) <= (heap[0][0], heap[0][1]):
                break
            heapq.heappush(heap, (-gain, order[i], i))
        picks[done] = i
        for e in range(offsets[i], offsets[i + 1]):
            if near[e] > best[rows[e]]:
                best[rows[e]] = near[e]
    return picks


@numba.njit(cache=True)
def _look_up(indices, similarities, member, v, best, second, owner, other):
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


@numba.njit(cache=True)
def swaps(indices, similarities, offsets, rows, near, bonus, member, visit, start, quiet, budget):
    """Eager swaps from a subset, at most `budget` candidates in this call.

    Args:
        indices, similarities: lists ``(n, K)``, falling; offsets, rows, near: their reverse.
        bonus: float64 ``(n,)``; ``-inf`` bars a candidate from entering.
        member: bool ``(n,)``, changed in place.
        visit: int64 ``(n,)``, the order in which candidates are tried.
        start: position in `visit`; quiet: candidates in a row that found no swap; carried from call to call.
        budget: candidates to try before returning, so that the caller can poll.

    Returns:
        (position, quiet, swaps made); a subset with ``quiet >= n`` has no improving single swap over the lists.
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
    cheapest = -1
    for j in range(n):
        if member[j]:
            loss[j] += bonus[j]
            if cheapest < 0 or loss[j] < loss[cheapest]:
                cheapest = j
    spared = np.zeros(n, dtype=np.float64)
    touched = np.empty(n, dtype=np.int64)
    made = 0
    position = start
    for _ in range(budget):
        if quiet >= n:
            break
        i = visit[position]
        position = position + 1 if position + 1 < n else 0
        quiet += 1
        if member[i] or bonus[i] == -np.inf:
            continue
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
        out = cheapest
        price = loss[cheapest] - spared[cheapest]
        for t in range(count):
            j = touched[t]
            if loss[j] - spared[j] < price:
                price = loss[j] - spared[j]
                out = j
        for t in range(count):
            spared[touched[t]] = 0.0
        if not gain - price > 1e-9 * (1.0 + abs(gain)):
            continue
        member[out] = False
        member[i] = True
        loss[out] = 0.0
        loss[i] = bonus[i]
        # rows that knew the removed member, then rows that list the new one
        for which in range(2):
            who = out if which == 0 else i
            for e in range(offsets[who], offsets[who + 1]):
                v = rows[e]
                if which == 0 and owner[v] != out and other[v] != out:
                    continue
                if which == 1 and near[e] <= second[v] and other[v] >= 0:
                    continue
                if owner[v] >= 0 and member[owner[v]]:
                    loss[owner[v]] -= best[v] - second[v]
                _look_up(indices, similarities, member, v, best, second, owner, other)
                if owner[v] >= 0:
                    loss[owner[v]] += best[v] - second[v]
        cheapest = -1
        for j in range(n):
            if member[j] and (cheapest < 0 or loss[j] < loss[cheapest]):
                cheapest = j
        made += 1
        quiet = 0
    return position, quiet, made
