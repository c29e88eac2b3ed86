"""A proof for facility location: the Lagrangian dual on exact neighbour lists (Cornuejols, Fisher, Nemhauser 1977).

For any prices ``theta_v >= max(0, last listed similarity of v)`` no subset of S members is worth more than

    mean_v theta_v + (1/n) * (sum of the S largest over i of  n bonus_i + sum over v of max(0, s_vi - theta_v))

because every row pays its price or its surplus over it, and unlisted pairs have no surplus. The prices descend by
Polyak steps towards the best value known, along deflected subgradients (Camerini, Fratta, Maffioli 1975). A row's price
settles between its best and second-best member's similarity, so that only the head of its list has a surplus: a step
costs a few entries per row, not K.

The lists hold float32 products. Where features nearly coincide, their rounding exceeds what selections differ by, so
the descent only finds the prices: `proved` evaluates the bound at them in float64, from the features.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from datamask.compiling import compiled
from datamask.polling import Poll, no_poll

ROWS_AT_ONCE = 20_000
"""Rows whose listed products are taken anew between two polls: some 0.05 s at a few per row."""

HALVED_FROM = 200_000
"""Rows from which on a step goes through two halves, however many threads there are: sums do not depend on them."""

MOST = 1.0 + 2e-6
"""No product of two rows is above, whose lengths are 1 to rounding."""

STEPS_AT_ONCE = 10
PATIENCE = 10
"""Steps without a better bound after which the step length is halved."""

LAST_STEPS = 30
"""Steps over which the descent's progress is looked at."""

MEMORY = 0.5
"""Share of the last direction that the next one keeps: subgradients zigzag, and their running sum does so less."""


@dataclass(frozen=True)
class DualBound:
    """Where the descent ended.

    Attributes:
        upper_bound: no subset of S members is worth more (float64), given exact lists.
        prices: float64 ``(n,)``, theta there.
        steps: Polyak steps taken.
    """

    upper_bound: float
    prices: np.ndarray
    steps: int


def descend(
    indices: np.ndarray,
    similarities: np.ndarray,
    size: int,
    value: float,
    start: np.ndarray,
    bonus: np.ndarray | None = None,
    *,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    steps: int = 400,
    tolerance: float = 0.0,
    progress: float = 0.0,
    poll: Poll = no_poll,
    on_bound: Callable[[int, float], None] = lambda steps, bound: None,
    zero: float = 0.0,
    exact_lists: bool = True,
    threads: int = 1,
) -> DualBound:
    """Lower the dual bound towards `value`.

    Args:
        indices, similarities: lists ``(n, K)``, falling, itself first; float32, or whole numbers.
        size: S. value: the best known value, the target of the steps.
        start: float64 ``(n,)``, first prices, e.g. halfway between each row's best and second-best similarity under a
            good subset: a third fewer steps than from the best.
        bonus: float64 ``(n,)``, what a member adds by itself; ``-inf`` bars it.
        choose: from scores ``(n,)`` to the weights ``(n,)`` in [0, 1] of the best allowed subset, where rules or a
            budget restrict it, or of a relaxed one that no allowed subset surpasses; None: S largest.
        steps, tolerance: stop after so many steps, or once ``bound - value`` is at most the tolerance.
        progress: stop where `LAST_STEPS` steps lowered the bound by less.
        on_bound: gets the steps taken and the lowest bound so far; after the first `STEPS_AT_ONCE`, of every tenth.
        exact_lists: whether unlisted pairs count too, which are no nearer than the last listed one.
        zero: what similarity 0 is; value, prices and bound count from where `similarities` do.
        threads: above one, the halves of many rows are gone through side by side; the bound is the same.
    """
    n, k = indices.shape
    if similarities.dtype.kind == "f":
        similarities = np.ascontiguousarray(similarities, dtype=np.float32)
    indices = np.ascontiguousarray(indices, dtype=np.int32)
    # a list that is shorter than the pool says nothing of the pairs behind its end
    ended = exact_lists and k < n
    floor = np.maximum(zero, similarities[:, -1].astype(np.float64)) if ended else np.float64(zero)
    theta = np.maximum(start.astype(np.float64, copy=False), floor)
    own = np.zeros(n) if bonus is None else bonus.astype(np.float64, copy=False)
    best, best_theta = np.inf, theta.copy()
    direction = None
    length, stalled, step_count = 1.0, 0, 0
    bounds: list[float] = []
    """The lowest bound after every `STEPS_AT_ONCE` steps."""
    heads = np.empty(n, dtype=np.int32)
    half = n // 2 if n >= HALVED_FROM else n
    parts = [slice(0, half), slice(half, n)] if half < n else [slice(0, n)]

    def surplus_of(part: slice) -> np.ndarray:
        return _surplus(indices[part], similarities[part], theta[part], n, heads[part])

    def slope_of(part: slice) -> np.ndarray:
        return _slope(indices[part], heads[part], member_weights)

    with ThreadPoolExecutor(max(1, threads)) as pool:
        # with one thread, or one part, the caller's own is the quickest
        each_of = pool.map if threads > 1 and n >= HALVED_FROM else map
        while step_count < steps:
            poll()
            bounds.append(float(best))
            if len(bounds) > LAST_STEPS // STEPS_AT_ONCE and bounds[-1 - LAST_STEPS // STEPS_AT_ONCE] - best < progress:
                break
            for _ in range(min(STEPS_AT_ONCE, steps - step_count)):
                scores = functools.reduce(np.add, each_of(surplus_of, parts))
                scores /= n
                scores += own
                member_weights = _largest(scores, size) if choose is None else choose(scores)
                members = np.flatnonzero(member_weights)  # barred rows have a score of -inf
                bound = theta.mean() + scores[members] @ member_weights[members]
                step_count += 1
                stalled += 1
                if bound < best:
                    # a gain of a millionth of what is left to gain is no progress
                    if best == np.inf or bound <= best - 1e-6 * (best - value):
                        stalled = 0
                    best = bound
                    best_theta[:] = theta
                if step_count <= STEPS_AT_ONCE or step_count % STEPS_AT_ONCE == 0:
                    on_bound(step_count, best)
                if best - value <= tolerance:
                    return DualBound(best, best_theta, step_count)
                if stalled > PATIENCE:
                    length, stalled = length / 2, 0
                    theta, direction = best_theta.copy(), None
                    continue
                slope = np.concatenate(list(each_of(slope_of, parts)))
                # a price at its floor cannot fall further
                slope[(theta <= floor) & (slope > 0)] = 0.0
                if not slope.any():
                    return DualBound(best, best_theta, step_count)
                if direction is not None:
                    direction *= MEMORY
                    slope += direction
                direction, square = slope, float(slope @ slope)
                if square == 0.0:  # the two cancel: begin anew from here
                    direction = None
                    continue
                step = length * n * (bound - value) / square
                theta -= step * direction
                np.maximum(theta, floor, out=theta)
    return DualBound(best, best_theta, step_count)


def product_error(dimensions: int) -> float:
    """How far a float32 product of two rows of unit length may lie from the exact one, in whatever order it is summed.

    ``gamma_d = d u / (1 - d u)`` with ``u = 2^-24`` (Higham 2002, section 3.1), times ``|x| . |y| <= 1``; the 1.001
    covers lengths that are 1 to rounding only.
    """
    rounding = dimensions * 2.0**-24
    return 1.001 * rounding / (1.0 - rounding)


Products = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From rows, int64 ``(p,)`` and as many others, to the exact product of each two, float64 ``(p,)``."""


def proved(
    products: Products,
    indices: np.ndarray,
    similarities: np.ndarray,
    size: int,
    prices: np.ndarray,
    bonus: np.ndarray,
    error: float,
    *,
    unlisted: np.ndarray | None = None,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    poll: Poll = no_poll,
) -> float:
    """The bound of some prices in float64, on the exact products of the rows.

    No price may be below what an unlisted pair may have. Of the listed pairs, those that may exceed the price are
    multiplied anew.

    Args:
        indices, similarities: lists, as in `descend`. prices: float64 ``(n,)``, similarities. bonus: as in `descend`.
        error: how far a listed similarity may lie from the exact product.
        unlisted: float64 ``(n,)``, the highest product of a row with one that it does not list; None: such pairs do not
            count, so the bound is of the listed ones.
    """
    n = len(indices)
    theta = np.maximum(prices.astype(np.float64, copy=False), 0.0)
    if unlisted is not None:
        theta = np.maximum(theta, np.minimum(unlisted, MOST))
    total = np.zeros(n)
    for first in range(0, n, ROWS_AT_ONCE):
        poll()
        last = min(first + ROWS_AT_ONCE, n)
        rows, listed = _above(indices[first:last], similarities[first:last], theta[first:last] - error, first)
        _add_surplus(listed, products(rows, listed) - theta[rows], total)
    scores = bonus.astype(np.float64, copy=False) + total / n
    member_weights = _largest(scores, size) if choose is None else choose(scores)
    members = np.flatnonzero(member_weights)
    return float(theta.mean() + scores[members] @ member_weights[members])


def _largest(scores: np.ndarray, size: int) -> np.ndarray:
    """Weight 1 on the `size` largest scores."""
    member_weights = np.zeros(len(scores))
    member_weights[np.argpartition(-scores, size - 1)[:size]] = 1.0
    return member_weights


@compiled
def _surplus(indices: np.ndarray, similarities: np.ndarray, theta: np.ndarray, n: int, heads: np.ndarray) -> np.ndarray:
    """sum over v of max(0, s_vi - theta_v), float64 ``(n,)``; a falling list ends at its first non-positive surplus.

    Args:
        indices, similarities, theta: of the rows v of a part. n: rows in all.
        heads: int32, as many as rows of the part: filled with how many of a list's entries have a surplus.
    """
    rows, k = indices.shape
    total = np.zeros(n)
    for v in range(rows):
        price = theta[v]
        heads[v] = k
        for c in range(k):
            more = similarities[v, c] - price
            if more <= 0.0:
                heads[v] = c
                break
            total[indices[v, c]] += more
    return total


@compiled
def _above(indices: np.ndarray, near: np.ndarray, least: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Listed pairs of the rows from `first` on that are nearer than `least`."""
    count = 0
    rows, listed = np.empty(0, np.int64), np.empty(0, np.int64)
    for filling in range(2):
        count = 0
        for v in range(len(least)):
            for c in range(indices.shape[1]):
                if near[v, c] <= least[v]:
                    break
                if c == 0 or indices[v, c] != first + v:  # a short list ends with the row itself again
                    if filling:
                        rows[count] = first + v
                        listed[count] = indices[v, c]
                    count += 1
        if not filling:
            rows, listed = np.empty(count, np.int64), np.empty(count, np.int64)
    return rows, listed


@compiled
def _add_surplus(listed: np.ndarray, more: np.ndarray, total: np.ndarray) -> None:
    """Add what pairs have above the price to what they list."""
    for e in range(len(listed)):
        if more[e] > 0.0:
            total[listed[e]] += more[e]


@compiled
def _slope(indices: np.ndarray, heads: np.ndarray, member_weights: np.ndarray) -> np.ndarray:
    """Subgradient of n times the bound, of a part: 1 minus the weights of the members in the heads of its lists."""
    rows = len(heads)
    slope = np.ones(rows)
    for v in range(rows):
        for c in range(heads[v]):
            slope[v] -= member_weights[indices[v, c]]
    return slope
