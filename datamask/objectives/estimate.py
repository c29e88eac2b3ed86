"""What a value on approximate neighbour lists leaves out, estimated from rows drawn at random.

A listed member is never nearer than the nearest member of all, so a value read off the lists is a lower bound. How far
below the exact value it lies is the mean of the rows' shortfalls: none of them negative, most of them 0. A sample of
rows, compared with all members, gives that mean and an interval for it.
"""

from __future__ import annotations

import numpy as np

from datamask.measured import Estimate

ESTIMATE_ROWS = 10_000
"""Rows that are compared with all members, drawn uniformly without replacement."""

CONFIDENCE = 0.95

TELLING = 30
"""Sampled rows with a shortfall from which on the largest of them stands for the largest of all rows."""


def estimated(lower_bound: float, shortfalls: np.ndarray, most: float) -> Estimate:
    """The exact value from the shortfalls of a uniform sample of rows.

    The interval is the gamma interval of Fay and Feuer 1997 ("Confidence intervals for directly standardized rates")
    for a mean of weighted counts. The normal interval is too short here: where the lists are good, a handful of rows
    out of ten thousand carry all of the shortfall.

    Args:
        lower_bound: the value read off the lists, a mean over all rows.
        shortfalls: float64 ``(m,)``, exact minus listed value of each sampled row, at least 0.
        most: the largest shortfall that a row can have; it bounds what was not met in the sample.
    """
    from scipy.stats import gamma

    m = len(shortfalls)
    weights = np.asarray(shortfalls, np.float64) / m
    mean, variance = float(weights.sum()), float((weights**2).sum())
    # the law asks for the largest shortfall of all rows; few rows with one do not show it
    heaviest = float(weights.max()) if np.count_nonzero(weights) >= TELLING else most / m
    tail = (1 - CONFIDENCE) / 2
    low = 0.0
    if mean > 0:
        low = float(gamma.ppf(tail, mean**2 / variance, scale=variance / mean))
    above, spread = mean + heaviest, variance + heaviest**2
    high = float(gamma.ppf(1 - tail, above**2 / spread, scale=spread / above)) if above > 0 else 0.0
    return Estimate(lower_bound + mean, lower_bound + low, lower_bound + high, m)
