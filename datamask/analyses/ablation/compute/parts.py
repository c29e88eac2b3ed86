"""Rows of each seed: the corpus dealt into a part for each seed, whole families of near-duplicates together.

Parts are disjoint, so seeds are independent: a set of rows that teaches more than its kind by luck does so in one seed
alone. Were all seeds to select from the same rows, that luck would come back in each of them and look like an effect.
Families stay whole so that a part is as redundant as the corpus.
"""

from __future__ import annotations

import numpy as np

from datamask.evaluation.holdout import hashed


def parts(units: np.ndarray, seeds: int, rows: int, seed: int = 0) -> list[np.ndarray]:
    """Rows of each seed, rising: int64, of disjoint parts.

    Args:
        units: int64 ``(N,)``, rows of one number stay together. seeds: J. rows: of a part at most.
        seed: of the dealing.

    Example:
        >>> [len(part) for part in parts(np.arange(1000) // 2, 4, 10_000)]
        [250, 250, 250, 250]
    """
    # one order of whole units, cut into pieces of equally many rows
    order = np.lexsort((np.arange(len(units)), units, hashed(units, 7_919 + seed)))
    first = np.flatnonzero(np.r_[True, np.diff(units[order]) != 0])
    sizes = np.diff(np.r_[first, len(units)])
    dealt = np.repeat(np.minimum(first * seeds // max(len(units), 1), seeds - 1), sizes)
    return [np.sort(order[dealt == j][:rows]) for j in range(seeds)]
