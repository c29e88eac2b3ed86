"""Eager swaps for facility location on neighbour lists, compiled.

They follow the scheme of FasterPAM (Schubert and Rousseeuw 2021): every row knows its nearest and second-nearest
member, every member what its removal would lose, so a candidate is judged against all removals in one pass over its own
rows, and the best swap is taken at once.

Passes with a temperature come first, if any are asked for: simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983)
takes a swap that loses x with probability exp(-x / temperature), and so leaves a local optimum.

Symbols: s_vi listed similarity of row v and candidate i; U members; best, second of row v over U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.compiling import compiled
from datamask.learning import winner_tree
from datamask.learning.lists import Lists

PAIRS_AT_ONCE = 40_000_000
"""Listed pairs that swaps look at between two polls: about 0.2 s."""

SWAPS_AT_ONCE = 20_000
"""Swaps between two polls, at most."""


@dataclass(frozen=True)
class SwapLimits:
    """What beside the number of members restricts swaps.

    Attributes:
        pinned: bool ``(n,)``, members that stay.
        group: int ``(n,)``; low, high: float64 ``(C,)``, members per group, under a budget their tokens.
        band: int ``(n,)``, from 0 to below `bands`, each within one group: a swap is tried with the cheapest member of
            each band and with those that the candidate relieves.
        lengths: float64 ``(n,)``; least, most: tokens that the members hold together. A candidate that fits beside all
            of them is then added without a swap. None, -1 and inf: no budget.
    """

    pinned: np.ndarray
    group: np.ndarray
    low: np.ndarray
    high: np.ndarray
    band: np.ndarray
    bands: int
    lengths: np.ndarray | None = None
    least: float = -1.0
    most: float = np.inf

    @classmethod
    def of_rows(cls, pinned: np.ndarray, group: np.ndarray, low: np.ndarray, high: np.ndarray) -> SwapLimits:
        """By numbers of members."""
        return cls(pinned, group, low.astype(np.float64), high.astype(np.float64), group, len(low))


class EagerSwaps:
    """Swaps from a subset on, until none helps.

    Args:
        lists: of similarities. bonus: float64 ``(n,)``, what a member adds by itself, as `lists.near` counts; ``-inf``
            bars a candidate from entering.
        member: bool ``(n,)``, changed in place. visit: int ``(n,)``, the order in which candidates are tried; the first
            of equally cheap members leaves.
        fewest: end after a pass over all rows that made fewer swaps.
        temperatures: of the first passes over all rows, as shares of what the members' removals cost: the median less
            the cheapest. seed: of what these passes draw.

    Attributes:
        position: in `visit`. quiet: candidates in a row that found no swap: a subset with ``quiet >= n`` has no
            improving single swap over the lists, as far as under a budget the relieved members and the cheapest of each
            group tell. in_pass: swaps of this pass. finished: whether it has ended.
    """

    def __init__(
        self,
        lists: Lists,
        bonus: np.ndarray,
        member: np.ndarray,
        visit: np.ndarray,
        limits: SwapLimits,
        fewest: float = 0,
        *,
        temperatures: Sequence[float] = (),
        seed: int = 0,
    ) -> None:
        self.member, self.position, self.quiet, self.in_pass = member, 0, 0, 0
        self._fewest, self.finished = fewest, False
        n = len(member)
        self._visit = visit.astype(np.int32)
        place = np.empty(n, np.int32)
        place[self._visit] = np.arange(n, dtype=np.int32)
        self._lists = lists.indices, lists.near, *lists.reverse
        self._limits = limits
        self._amounts = np.ones(n) if limits.lengths is None else limits.lengths
        zero: Any = np.int64(lists.zero) if lists.whole else lists.near.dtype.type(0)
        best, second = lists.uncovered(), lists.uncovered()
        owner, other = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        loss, held = np.zeros(n), np.zeros(len(limits.low))
        trees = winner_tree.plant(limits.band, limits.bands, self._visit)
        self._tokens = _begin(
            *self._lists[:2],
            bonus,
            member,
            zero,
            limits.pinned,
            limits.group,
            self._amounts,
            best,
            second,
            owner,
            other,
            loss,
            held,
            trees[0],
            trees[1],
            trees[3],
        )
        longest = int(np.diff(lists.reverse[0]).max(initial=0))
        self._known = bonus, zero, place, best, second, owner, other, loss, held, *trees
        self._spared, self._touched = np.zeros(n), np.empty(3 * longest + 1, np.int32)
        costs = (loss + bonus)[member & ~limits.pinned & np.isfinite(bonus)] if temperatures else np.zeros(0)
        spread = float(np.median(costs) - costs.min()) if len(costs) else 0.0
        self._heat = [share * spread for share in temperatures]
        self._draws, self._slack = np.random.default_rng(seed), np.zeros(n)
        self._begin_pass()

    def _begin_pass(self) -> None:
        """Draw what a swap may lose: Metropolis' rule, the same for any number of calls that a pass takes."""
        self._hot = bool(self._heat)
        if self._hot:
            # in the order of visits, so that rows in another order are drawn the same
            self._slack[self._visit] = self._heat.pop(0) * self._draws.standard_exponential(len(self.member))
        else:
            self._slack[:] = 0.0

    def advance(self) -> np.ndarray:
        """Try candidates for about as long as `PAIRS_AT_ONCE` looks take.

        Returns:
            The swaps that were made, int64 ``(k, 2)``: the row that came in, and the one that left (-1: none).
        """
        n, began, limits = len(self.member), self.position, self._limits
        log = np.empty((min(n, SWAPS_AT_ONCE), 2), np.int64)
        swap: Any = _swap
        self.position, self.quiet, self._tokens, count = swap(
            *self._lists,
            self.member,
            self._visit,
            self.position,
            self.quiet,
            self._tokens,
            *self._known,
            self._spared,
            self._touched,
            limits.pinned,
            limits.group,
            limits.low,
            limits.high,
            limits.band,
            self._amounts,
            limits.least,
            limits.most,
            self._slack,
            n - began if self._hot else n,
            PAIRS_AT_ONCE,
            log,
        )
        self.in_pass += count
        passed = self.position <= began
        self.finished = not self._hot and (self.quiet >= n or (passed and self.in_pass < self._fewest))
        if passed:
            self.in_pass = 0
            self._begin_pass()
        return log[:count]


@compiled
def _look_up(
    indices: np.ndarray,
    near: np.ndarray,
    member: np.ndarray,
    v: int,
    zero: float,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    other: np.ndarray,
) -> None:
    """Set the two nearest listed members of row v."""
    best[v] = zero
    second[v] = zero
    owner[v] = -1
    other[v] = -1
    for c in range(indices.shape[1]):
        i = indices[v, c]
        if member[i]:
            if owner[v] < 0:
                owner[v] = i
                best[v] = max(near[v, c], zero)
            elif i != owner[v]:  # a short list ends with the row itself again
                other[v] = i
                second[v] = max(near[v, c], zero)
                return


@compiled
def _note(j: int, noted: np.ndarray, changed: np.ndarray, count: int) -> int:
    """Put a row among the `count` changed ones, unless it is; how many there are then."""
    if noted[j] == 0.0:
        noted[j] = 1.0
        changed[count] = j
        return count + 1
    return count


@compiled
def _begin(
    indices: np.ndarray,
    near: np.ndarray,
    bonus: np.ndarray,
    member: np.ndarray,
    zero: float,
    pinned: np.ndarray,
    group: np.ndarray,
    amounts: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    other: np.ndarray,
    loss: np.ndarray,
    held: np.ndarray,
    tree: np.ndarray,
    leaf: np.ndarray,
    root: np.ndarray,
) -> float:
    """Set what follows from the members; their number, or the tokens that they hold."""
    n = len(member)
    for v in range(n):
        _look_up(indices, near, member, v, zero, best, second, owner, other)
        if owner[v] >= 0:
            loss[owner[v]] += best[v] - second[v]
    tokens = 0.0
    for j in range(n):
        if member[j]:
            held[group[j]] += amounts[j]
            tokens += amounts[j]
            # a member's key is what removing it loses, that of all others infinite
            if not pinned[j] and not np.isnan(loss[j] + bonus[j]):
                tree[leaf[j]] = loss[j] + bonus[j]
    winner_tree.settle(tree, root)
    return tokens


@compiled
def _swap(
    indices: np.ndarray,
    near: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    listed_near: np.ndarray,
    member: np.ndarray,
    visit: np.ndarray,
    position: int,
    quiet: int,
    tokens: float,
    bonus: np.ndarray,
    zero: float,
    place: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    other: np.ndarray,
    loss: np.ndarray,
    held: np.ndarray,
    tree: np.ndarray,
    leaf: np.ndarray,
    row: np.ndarray,
    root: np.ndarray,
    spared: np.ndarray,
    touched: np.ndarray,
    pinned: np.ndarray,
    group: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    band: np.ndarray,
    amounts: np.ndarray,
    least: float,
    most: float,
    slack: np.ndarray,
    tries: int,
    looks: int,
    log: np.ndarray,
) -> tuple[int, int, float, int]:
    """Try at most so many candidates, and none twice.

    Args:
        slack: float64 ``(n,)``, what a swap with the candidate may lose; 0 everywhere: the first pass without a swap
            ends it.
        loss: float64 ``(n,)``, what removing a member loses beside its bonus; spared: float64 ``(n,)``, all 0.
        touched: int32, room for three times as many rows as list a candidate, and one more.
        amounts: float64 ``(n,)``, what a row counts for in `tokens`, `held` and the limits: 1, or its tokens.

    Returns:
        (position, quiet, tokens, swaps made).
    """
    n = len(member)
    cheapest = np.empty(len(root) - 1, dtype=np.int64)
    for g in range(len(cheapest)):
        cheapest[g] = winner_tree.winner(tree, row, root, g)
    count = looked = 0
    for _ in range(tries):
        if quiet >= n or looked > looks or count == len(log):
            break
        i = visit[position]
        position = position + 1 if position + 1 < n else 0
        quiet += 1
        if member[i] or bonus[i] == -np.inf:
            continue
        looked += 1 + offsets[i + 1] - offsets[i]
        gain = 0.0
        met = 0
        for e in range(offsets[i], offsets[i + 1]):
            v = rows[e]
            s = listed_near[e]
            if s <= second[v]:  # as at most rows that list i
                continue
            if s > best[v]:
                gain += s - best[v]
            # with i in, losing v's owner costs less: v falls back to i or to its second
            if owner[v] >= 0 and best[v] > second[v]:
                j = owner[v]
                if spared[j] == 0.0:
                    touched[met] = j
                    met += 1
                spared[j] += (s if s < best[v] else best[v]) - second[v]
        gain += bonus[i]
        out = -1
        to, amount = group[i], amounts[i]
        fits = most < np.inf and tokens + amount <= most and held[to] + amount <= high[to]
        price = 0.0 if fits else np.inf
        for t in range(met + len(cheapest)):
            j = touched[t] if t < met else cheapest[t - met]
            if j < 0 or pinned[j]:
                continue
            cost = loss[j] + bonus[j] - spared[j]
            if not (cost < price or (cost == price and out >= 0 and place[j] < place[out])):
                continue
            less, of = amounts[j], group[j]
            if not least <= tokens + amount - less <= most:
                continue
            if of != to:
                allowed = held[to] + amount <= high[to] and held[of] - less >= low[of]
            else:  # a group that lacks tokens, as greedy leaves it by less than a row, lacks no more afterwards
                after = held[to] + amount - less
                allowed = (after >= low[to] or amount >= less) and (after <= high[to] or amount <= less)
            if allowed:
                price = cost
                out = j
        for t in range(met):
            spared[touched[t]] = 0.0
        met = 0
        # nor is it if no row may leave: the price is infinite; rows that are added without a swap never leave again
        if not gain - price + (slack[i] if out >= 0 else 0.0) > 1e-9 * (1.0 + abs(gain)):
            continue
        held[to] += amount
        member[i] = True
        tokens += amount
        loss[i] = 0.0
        if out >= 0:
            held[group[out]] -= amounts[out]
            member[out] = False
            tokens -= amounts[out]
            winner_tree.change(tree, leaf, root[band[out]], out, np.inf)
            for e in range(offsets[out], offsets[out + 1]):
                v = rows[e]
                if listed_near[e] < second[v] or (owner[v] != out and other[v] != out):
                    continue
                loss[owner[v]] -= best[v] - second[v]
                met = _note(owner[v], spared, touched, met)
                _look_up(indices, near, member, v, zero, best, second, owner, other)
                if owner[v] >= 0:
                    loss[owner[v]] += best[v] - second[v]
                    met = _note(owner[v], spared, touched, met)
            loss[out] = 0.0
        met = _note(i, spared, touched, met)
        for e in range(offsets[i], offsets[i + 1]):
            v = rows[e]
            s = listed_near[e]
            if (s <= second[v] and other[v] >= 0) or owner[v] == i or other[v] == i:
                continue
            if owner[v] >= 0:
                loss[owner[v]] -= best[v] - second[v]
                met = _note(owner[v], spared, touched, met)
            if owner[v] < 0 or s > best[v]:
                second[v], other[v] = best[v], owner[v]
                best[v], owner[v] = s, i
            else:
                second[v], other[v] = s, i
            loss[owner[v]] += best[v] - second[v]
        for t in range(met):
            j = touched[t]
            spared[j] = 0.0
            if member[j] and not pinned[j]:
                winner_tree.change(tree, leaf, root[band[j]], j, loss[j] + bonus[j])
        for g in range(len(cheapest)):
            cheapest[g] = winner_tree.winner(tree, row, root, g)
        looked += 8 * (offsets[i + 1] - offsets[i])
        if out >= 0:
            looked += 8 * (offsets[out + 1] - offsets[out])
        log[count, 0], log[count, 1] = i, out
        count += 1
        quiet = 0
    return position, quiet, tokens, count
