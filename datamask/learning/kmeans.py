"""k-means for baselines: on whatever device the rows are, of one seed the same on any number of threads, stoppable.

scikit-learn's seeds all clusters in one call, which takes seconds for a thousand of them and cannot be stopped.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.objectives.contract import chunks
from datamask.polling import Poll

LEAST_FITTED, FITTED_PER_CLUSTER = 20_000, 64
"""Centres are found on a uniform sample of so many rows at least, and of so many per cluster."""

SEEDED = 20_000
"""Rows of that sample among which the first centres are looked for."""

ROUNDS = 6
"""Rounds of assigning rows and moving centres: clusters here say what is alike, they need not be the best ones."""

SIMILARITIES_AT_ONCE = 4_000_000
"""Similarities per dense chunk: 16 MB, and under 0.1 s on two cores at 384 dimensions."""

ALIKE = 1e-6
"""1 - cosine below which two rows are one point: float32 rounds the cosine of copies so far off 1."""


def kmeans_labels(rows: Tensor, clusters: int, seed: int, poll: Poll) -> Tensor:
    """Cluster of each row, int64 ``(m,)``, from 0 to `clusters` - 1; some have no rows where few rows differ.

    Lloyd's rounds from k-means++ seeds (Arthur and Vassilvitskii 2007), on a sample where there are many rows.

    Args:
        rows: float32 ``(m, d)``, of unit length. clusters: from 1 to m.

    Raises:
        Stopped: from `poll`.
    """
    poll()
    rng = np.random.default_rng(seed)
    fitted = _sample(rows, max(LEAST_FITTED, FITTED_PER_CLUSTER * clusters), rng)
    centres = _seeds(_sample(fitted, max(SEEDED, clusters), rng), clusters, rng, poll)
    labels = _nearest(fitted, centres, poll)
    for _ in range(ROUNDS):
        centres = _means(fitted, labels, centres, poll)
        before, labels = labels, _nearest(fitted, centres, poll)
        if torch.equal(before, labels):
            break
    return _nearest(rows, centres, poll)


def _sample(rows: Tensor, most: int, rng: np.random.Generator) -> Tensor:
    """So many random rows, or all there are."""
    if len(rows) <= most:
        return rows
    chosen = np.sort(rng.choice(len(rows), most, replace=False))
    return rows[torch.from_numpy(chosen).to(rows.device)]


def _seeds(rows: Tensor, clusters: int, rng: np.random.Generator, poll: Poll) -> Tensor:
    """Rows far apart, ``(c, d)``: each drawn in proportion to its squared distance from those before it.

    Fewer than `clusters` where there are no so many different rows.
    """
    chosen = [int(rng.integers(len(rows)))]
    apart = torch.full((len(rows),), torch.inf, device=rows.device)
    for _ in range(clusters - 1):
        poll()
        # of unit rows half the squared distance
        apart = torch.minimum(apart, 1 - rows @ rows[chosen[-1]])
        reach = np.cumsum(torch.where(apart > ALIKE, apart, 0.0).double().cpu().numpy())
        if not reach[-1] > 0:
            break
        chosen.append(int(np.searchsorted(reach, rng.random() * reach[-1], side="right")))
    return rows[torch.tensor(chosen, device=rows.device)]


def _nearest(rows: Tensor, centres: Tensor, poll: Poll) -> Tensor:
    """The nearest centre of each row, int64 ``(m,)``."""
    labels = torch.empty(len(rows), dtype=torch.int64, device=rows.device)
    half = centres.square().sum(1) / 2
    for part in chunks(len(rows), max(1, SIMILARITIES_AT_ONCE // len(centres))):
        poll()
        labels[part] = (rows[part] @ centres.T - half).argmax(1)
    return labels


def _means(rows: Tensor, labels: Tensor, centres: Tensor, poll: Poll) -> Tensor:
    """The mean of each cluster's rows, ``(c, d)``; where it has none, its centre as it was."""
    count = len(centres)
    sums = torch.zeros(centres.shape, dtype=torch.float64, device=rows.device)
    for part in chunks(len(rows), max(1, SIMILARITIES_AT_ONCE // count)):
        poll()
        sums += (_added if rows.device.type == "cpu" else _multiplied)(rows[part], labels[part], count)
    sizes = labels.bincount(minlength=count)
    means = (sums / sizes.clamp_min(1)[:, None]).to(centres)
    return torch.where(sizes[:, None] > 0, means, centres)


def _added(rows: Tensor, labels: Tensor, count: int) -> Tensor:
    """Sums of the rows of each label, float64 ``(count, d)``."""
    sums = torch.zeros(count, rows.shape[1], dtype=torch.float64, device=rows.device)
    return sums.index_add_(0, labels, rows.double())


def _multiplied(rows: Tensor, labels: Tensor, count: int) -> Tensor:
    """As `_added`, for a GPU, where that adds in an order of its own each time."""
    member = torch.zeros(len(rows), count, device=rows.device).scatter_(1, labels[:, None], 1.0)
    return (member.T @ rows).double()
