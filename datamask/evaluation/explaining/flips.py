"""The lambdas at which a sample comes in or goes out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from datamask.config import SelectionConfig
from datamask.evaluation.frontier import frontier
from datamask.evaluation.pool import Pool
from datamask.objectives.contract import Poll, no_poll


def intervals(lambdas: Sequence[float], inside: Sequence[bool]) -> list[tuple[float, float]]:
    """The runs of lambdas at which a sample is in: ``(first, last)`` of each, in rising order.

    Args:
        lambdas: of a sweep, in any order; inside: whether the sample is in the selection at each.
    """
    order = np.argsort(lambdas, kind="stable")
    found: list[tuple[float, float]] = []
    before = False
    for place in order:
        here = float(lambdas[place])
        if inside[place]:
            found = [*found[:-1], (found[-1][0], here)] if before else [*found, (here, here)]
        before = bool(inside[place])
    return found


def flip_lambda(pool: Pool, config: SelectionConfig, row: int, low: float, high: float, tolerance: float = 1e-3,
                poll: Poll = no_poll, progress: Callable[[float, str], None] = lambda share, what: None) -> float:
    """A lambda between `low` and `high` at which the sample changes sides, by solving again and halving.

    Args:
        config: the selection's settings, lambda aside. low, high: lambdas at which the sample is on different sides.
        tolerance: the sample is on different sides at some two lambdas at most this far apart, around the result.
        progress: called before each solution.

    Raises:
        ValueError: the sample is on the same side at both ends.
    """
    total = 2 + max(0, math.ceil(math.log2(max((high - low) / tolerance, 1.0))))
    solved = 0

    def inside(lamb: float) -> bool:
        nonlocal solved
        progress(solved / total, f"solving at lambda {lamb:.4g}")
        solved += 1
        return bool(frontier(pool, replace(config, lamb=lamb), [lamb], poll=poll)[0].mask[row])

    at_low = inside(low)
    if inside(high) == at_low:
        raise ValueError(f"row {row} is {'in' if at_low else 'out'} at both ends, lambda {low:g} and {high:g}")
    while high - low > tolerance:
        middle = (low + high) / 2
        if inside(middle) == at_low:
            low = middle
        else:
            high = middle
    return (low + high) / 2
