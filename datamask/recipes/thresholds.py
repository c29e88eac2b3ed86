"""Where a rule parts the rows that are kept from the others: one threshold, or one for each group under a quota."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from datamask.errors import InputError
from datamask.quotas import binding, quota_groups
from datamask.recipes.learned import LearningSelection
from datamask.recipes.recipe import Thresholds

OFF_SIZE = 0.005
"""The threshold may keep so much more or less than the selection holds, where that puts more rows on their side."""


def thresholds_of(
    learned: LearningSelection, scores: np.ndarray, quality: np.ndarray, amounts: np.ndarray
) -> tuple[Thresholds, np.ndarray]:
    """The thresholds, and that of every row, float64 ``(N,)``, infinite where none of its kind is kept."""
    config, n = learned.config, len(scores)
    free = learned.eligible & ~learned.pinned
    least = None
    if config.prune > 0:
        falling = np.sort(quality)[::-1]
        left = max(1, round((1.0 - config.prune) * n))
        # between the two, so that the rounding of a weighted sum moves nobody across
        least = float(falling[left - 1] / 2 + falling[min(left, n - 1)] / 2)
    if not config.quotas:
        tau = threshold(scores[free], learned.selected[free], amounts[free])
        return Thresholds(tau, least_quality=least), np.full(n, tau)
    mask, given = learned.selected | learned.given, learned.given
    lengths = None if config.budget is None else amounts
    size = int(mask.sum()) if config.budget is None else config.budget + float(amounts[given].sum())
    groups = quota_groups(config.quotas, learned.corpus, size, given, lengths)
    group, low, high, _ = groups
    loose = ~binding(groups, mask, free, lengths)
    common = free & loose[group]
    shared = threshold(scores[common], learned.selected[common], amounts[common]) if common.any() else None
    taus: list[float | None] = []
    for number in range(len(low)):
        rows = free & (group == number)
        if loose[number] or (
            high[number] > 0 and not rows.any()
        ):  # a value that the corpus has no rows of binds nobody
            taus.append(shared)
        elif not learned.selected[rows].any():
            taus.append(None)
        elif learned.selected[rows].all():
            taus.append(float(scores[rows].min()))
        else:
            taus.append(threshold(scores[rows], learned.selected[rows], amounts[rows]))
    column = config.quotas[0].column
    is_truth = pa.types.is_boolean(learned.corpus.metadata[column].type)
    values = [quota.value.lower() if is_truth else quota.value for quota in config.quotas]
    needed = np.array([np.inf if tau is None else tau for tau in taus])[group]
    return Thresholds(taus[0], column, dict(zip(values, taus[1:])), least), needed


def threshold(scores: np.ndarray, inside: np.ndarray, amounts: np.ndarray) -> float:
    """The score that parts members from others with the fewest rows on the wrong side.

    Among the cuts that keep as much as the members are, to `OFF_SIZE`; of equal ones the nearest to that amount. Half
    way between two scores.

    Args:
        scores, amounts: float64 ``(m,)``; inside: bool ``(m,)``.

    Raises:
        InputError: all scores are the same.
    """
    order = np.argsort(-scores, kind="stable")
    falling, members, sizes = scores[order], inside[order], amounts[order]
    cuts = np.flatnonzero(falling[:-1] > falling[1:])  # a cut behind this place
    if not len(cuts):
        raise InputError(
            "no threshold tells rows apart: all rows that can be selected have the same score under this rule; select "
            "in memory, or by another objective"
        )
    taken = np.cumsum(members)[cuts]
    wrong = (cuts + 1 - taken) + (members.sum() - taken)
    off = np.abs(np.cumsum(sizes)[cuts] - sizes[members].sum())
    near = off <= max(OFF_SIZE * float(sizes[members].sum()), float(off.min()))
    best = cuts[near][np.lexsort((off[near], wrong[near]))[0]]
    high, low = float(falling[best]), float(falling[best + 1])
    middle = low + (high - low) / 2
    return middle if middle > low else high
