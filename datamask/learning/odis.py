"""ODiS: the best by each component of several quality scores, in turn (He et al., arXiv 2510.18909)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.config import SelectionConfig
from datamask.learning.baselines import Baseline
from datamask.learning.problem import Problem

LEAST_VARIANCE = 1e-9
"""Of all variance together: components below are rounding, left by columns that say the same or nothing."""

LEVEL = 1e-9
"""A correlation with quality, or a share of a column, that is rounding and says nothing of where a component points."""


class Odis(Baseline):
    """The best row by each principal component of the standardised quality columns in turn, none taken twice.

    Columns that measure much the same are one component, so the best by a component are not again the best by the sum.
    As published, but for the scorers that are trained to predict the components: here every row has its scores. A
    component has no sign of its own; it points where quality (the weighted sum) rises with it, and where that says
    nothing, as between two standardised columns of equal weight, to the first column in it. Under a token budget, pins
    or quotas the order of taking is what is cut.
    """

    ending = "the best by each component in turn"

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        super().__init__(problem, config)
        if problem.columns is None:
            raise ValueError("Odis goes by single quality columns: give Problem(..., columns=...)")
        self.columns = problem.columns

    def scores(self) -> Tensor:
        problem = self.problem
        values = components(self.columns.double().cpu().numpy(), problem.joint.quality.scores.double().cpu().numpy())
        rows = problem.eligible.cpu().numpy()
        order = in_turn(values[rows], problem.ties.cpu().numpy()[rows])
        place = np.empty(len(rows))
        place[order] = np.arange(len(rows))
        return -torch.from_numpy(place).to(self.device)


def components(columns: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """Principal components of standardised columns, the widest first, each pointing to what is better.

    Args:
        columns: float64 ``(n, Q)``, on one scale. quality: float64 ``(n,)``, says which end is better.

    Returns:
        float64 ``(n, C)``, uncorrelated; C is the number of columns less those that others determine, at least 1.
    """
    columns = columns - columns.mean(0)  # a part of the rows they were standardised over has means of its own
    variances, axes = np.linalg.eigh(columns.T @ columns / len(columns))
    kept = np.flatnonzero(variances > LEAST_VARIANCE * max(float(variances.sum()), LEAST_VARIANCE))[::-1]
    if not len(kept):
        return np.zeros((len(columns), 1))
    # column by column: a matrix product may round equal rows differently, and their ties are for the hash
    values = np.zeros((len(columns), len(kept)))
    for column, loadings in zip(columns.T, axes[:, kept], strict=True):
        values += column[:, None] * loadings
    largest = float(np.abs(quality).max()) or 1.0
    better = quality / largest - (quality / largest).mean()
    agree = better @ values / np.maximum(np.sqrt((better**2).sum() * (values**2).sum(0)), np.finfo(float).tiny)
    first = axes[(np.abs(axes[:, kept]) > LEVEL).argmax(0), kept]
    values *= np.where(np.abs(agree) > LEVEL, np.sign(agree), np.sign(first))
    return values


def in_turn(values: np.ndarray, ties: np.ndarray) -> np.ndarray:
    """All rows in the order in which components take them, each its best row that is left: int64 ``(m,)``.

    Args:
        values: float64 ``(m, C)``, higher is earlier. ties: int64 ``(m,)``, cuts equal values, the smaller first.
    """
    lists = np.stack([np.lexsort((ties, -column)) for column in values.T])
    return _in_turn(lists)


@compiled
def _in_turn(lists: np.ndarray) -> np.ndarray:
    """From each component's own order ``(C, m)`` to the common one."""
    count, m = lists.shape
    order = np.empty(m, np.int64)
    taken = np.zeros(m, np.bool_)
    reached = np.zeros(count, np.int64)
    for pick in range(m):
        turn = pick % count
        while taken[lists[turn, reached[turn]]]:
            reached[turn] += 1
        row = lists[turn, reached[turn]]
        taken[row] = True
        order[pick] = row
    return order
