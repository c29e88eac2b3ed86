"""Cluster-balanced: equal shares of k-means clusters, none used up beyond a clip (Shao et al., arXiv 2402.14526)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.baselines import Scored
from datamask.learning.kmeans import kmeans_labels
from datamask.learning.problem import Problem
from datamask.learning.state import State
from datamask.options.checks import number_text, required
from datamask.polling import Poll
from datamask.quotas import unit_and_option

ROUNDING = 1e-9
"""Of a cluster's size: a share of it that is a whole number of rows may miss that by so much."""


class ClusterBalanced(Scored):
    """Take from every cluster equally, in rounds; whoever is used up to the clip drops out. Lambda plays no part.

    ClusterClip draws training texts from clusters of equal weight, and clips how often those of a small cluster are
    repeated. A selection holds each row at most once, so the clip is a share of the cluster here: 1 is each row once,
    and towards the select ratio equal shares turn into proportional ones. The share is rounded up to whole rows, so
    that every cluster may give one. Inside a cluster rows come at random, as in the paper, or the best by quality
    first; where the last round has more clusters than rows are missing, the same order decides. Clusters are of the
    eligible rows, by k-means, and at most as many as these.

    Under a token budget shares are of tokens, and the last of them, into which nothing within the clip fits any more,
    may be filled from beyond it. A pinned row counts as the first of its cluster; pins and quotas come before equal
    shares, and before the clip.
    """

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        super().__init__(problem, config)
        self.clusters = min(required(config.clusters, "clusters"), len(problem.eligible))
        self.clip = required(config.clip, "clip")
        self.best_first = required(config.inside, "inside") == "best"

    def finished(self, state: State) -> str | None:
        """Equal shares of how many clusters, and what bent them."""
        if not state.step:
            return None
        shares = f"equal shares of at most {self.clusters:,} cluster{'' if self.clusters == 1 else 's'}"
        clip = f", none used beyond {number_text(self.clip)} of it" if self.clip < 1 else ""
        bent = self.problem.limits.grouped or bool(self.problem.pinned.any())
        return shares + clip + (", as far as pins and quotas allow" if bent else "")

    def scores_of(self, poll: Poll) -> Tensor:
        """Minus the place in the order in which rows are taken, float64 ``(m,)``.

        Raises:
            OptionError: the clip leaves less than is to be selected.
        """
        problem = self.problem
        labels = kmeans_labels(self.features[problem.eligible], self.clusters, self.config.seed, poll).cpu().numpy()
        poll()
        m, limits = len(labels), problem.limits
        quality = problem.joint.quality.scores[problem.eligible].double().cpu().numpy()
        order, within = balanced_order(
            labels,
            limits.amounts,
            quality if self.best_first else np.zeros(m),
            problem.ties[problem.eligible].cpu().numpy(),
            limits.pinned,
            self.clip,
        )
        self._check_enough(within)
        place = np.empty(m)
        place[order] = np.arange(m)
        return -torch.from_numpy(place).to(self.device)

    def _check_enough(self, within: np.ndarray) -> None:
        """Refuse a clip that leaves too little. `within`: bool ``(m,)``, the rows that it leaves."""
        limits = self.problem.limits
        left, total = limits.total(within), limits.total(np.ones_like(within))
        if left < limits.most:
            unit, option = unit_and_option(limits.lengths)
            raise OptionError(
                f"--clip {number_text(self.clip)} leaves {left:,.0f} of {total:,.0f} {unit}, but {limits.most:,.0f} "
                f"are to be selected; raise it to {_enough(limits.most / total)}, or lower {option}"
            )


def balanced_order(
    labels: np.ndarray, weights: np.ndarray, quality: np.ndarray, ties: np.ndarray, pinned: np.ndarray, clip: float
) -> tuple[np.ndarray, np.ndarray]:
    """The order in which rows are taken so that, wherever it is cut, clusters have given about equally.

    A row's level is what its cluster has given before it; rows are taken by rising level, at one level the best first.

    Args:
        labels: int64 ``(m,)``, clusters. weights: float64 ``(m,)``, above 0: what counts as given, rows (1) or tokens.
        quality: ``(m,)``, higher is earlier. ties: int64 ``(m,)``, cuts equal quality, the smaller first.
        pinned: bool ``(m,)``, first of their cluster.
        clip: a row is taken as long as its cluster has given less than this share of itself.

    Returns:
        The rows in their order, int64 ``(m,)``, those beyond the clip last; and which are within it, bool ``(m,)``.
    """
    inside = np.lexsort((ties, -quality, ~pinned, labels))
    given = np.cumsum(weights[inside]) - weights[inside]
    starts = np.r_[True, np.diff(labels[inside]) != 0]
    cluster = np.cumsum(starts) - 1
    level = np.empty(len(labels))
    level[inside] = given - given[starts][cluster]
    total = np.empty(len(labels))
    total[inside] = np.bincount(cluster, weights[inside])[cluster]
    within = pinned | (level < (clip - ROUNDING) * total) if clip < 1 else np.ones(len(labels), bool)
    return np.lexsort((ties, -quality, level, ~within)), within


def _enough(share: float) -> str:
    """A clip of which a share of everything is left, in three digits rounded up."""
    return number_text(float(np.ceil(share * 1000) / 1000))
