"""SemDeDup-style: cluster the pool, drop near neighbours inside clusters (Abbas et al., arXiv 2303.09540)."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.learning.baselines import Scored
from datamask.learning.problem import Problem
from datamask.learning.state import State
from datamask.objectives.contract import chunks
from datamask.polling import Poll

PASSES = 3
"""Passes of mini-batch k-means over the rows: the clusters only spare comparisons, they need not be the best ones."""

BATCH = 4_096
SIMILARITIES_AT_ONCE = 16_000_000
"""Similarities per dense chunk: 64 MB, and under 0.3 s on two cores at 384 dimensions."""

LEADER = 2.0
"""Score of a cluster's best row, which has nobody better to be near to: above every ``-cosine``."""


class SemDeDup(Scored):
    """Keep the S rows that are least near to a better one in their cluster; lambda and the objective play no part.

    About ``sqrt(m)`` clusters by k-means on the m eligible rows. Inside a cluster each row's nearest *better* row is
    found, dropped ones included, as in the published code: a row goes if that similarity is above a threshold, so no
    two kept rows of a cluster are nearer than the threshold. It is set where S rows are left, instead of by hand.
    Better means of higher quality, equal quality cut by the hash: SemDeDup keeps the row farthest from its cluster's
    centre instead, because a web corpus has no score to tell copies apart by; here there is one, and `--collapse` keeps
    the best of a family too. At most S clusters, so that the best row of each is always kept. A pinned row counts as
    better than any other, since it cannot be dropped; pins and quotas may keep a pair nearer than the threshold.
    """

    def __init__(self, problem: Problem, config: SelectionConfig) -> None:
        super().__init__(problem, config)
        m = len(self.problem.eligible)
        self.clusters = max(1, min(round(math.sqrt(m)), self.problem.size))

    def finished(self, state: State) -> str | None:
        """The threshold that left S rows."""
        if not state.step:
            return None
        if self.problem.limits.limited:
            return "near copies of better rows of a cluster dropped first, as far as pins and quotas allow"
        threshold = -float(state.logits.topk(self.problem.size).values[-1])
        return f"no two kept rows of a cluster are nearer than cosine {max(threshold, -1.0):.4f}"

    def scores_of(self, poll: Poll) -> Tensor:
        """Minus the similarity to the nearest better row of the cluster, ``(m,)``; `LEADER` where there is none."""
        label = torch.from_numpy(self.labels(poll)).to(self.device)
        problem = self.problem
        quality = problem.joint.quality.scores[problem.eligible].cpu().numpy()
        ties = problem.ties[problem.eligible].cpu().numpy()
        best_first = torch.from_numpy(np.lexsort((ties, -quality, ~problem.limits.pinned))).to(self.device)
        # a stable sort by cluster keeps the best first inside each
        by_cluster = best_first[label[best_first].argsort(stable=True)]
        score = torch.full((len(label),), LEADER, device=self.device)
        for members in torch.split(by_cluster, label.bincount(minlength=self.clusters).tolist()):
            score[members] = -self._nearest_better(members, poll)
        return score

    def _nearest_better(self, members: Tensor, poll: Poll) -> Tensor:
        """Largest similarity to an earlier one of `members`, ``(c,)``; ``-LEADER`` for the first."""
        features = self.features[self.problem.eligible[members]]
        nearest = torch.full((len(members),), -LEADER, device=self.device)
        place = torch.arange(len(members), device=self.device)
        for part in chunks(len(members), SIMILARITIES_AT_ONCE // max(len(members), 1)):
            poll()
            near = features[part] @ features[: part.stop].T
            near.masked_fill_(place[None, : part.stop] >= place[part, None], -LEADER)
            nearest[part] = near.amax(1)
        return nearest

    def labels(self, poll: Poll) -> np.ndarray:
        """Cluster of each eligible row, int64 ``(m,)``, by seeded mini-batch k-means."""
        # scikit-learn takes a second to import, which only this baseline should cost
        from sklearn.cluster import MiniBatchKMeans

        rows = self.features[self.problem.eligible].cpu().numpy()
        if self.clusters == 1:
            return np.zeros(len(rows), dtype=np.int64)
        rng = np.random.default_rng(self.config.seed)
        batch = max(BATCH, 3 * self.clusters)
        poll()
        model = MiniBatchKMeans(self.clusters, random_state=self.config.seed % 2**32, n_init=1)
        for _ in range(PASSES):
            order = rng.permutation(len(rows))
            for part in chunks(len(rows), batch):
                poll()
                model.partial_fit(rows[order[part]])
        label = np.empty(len(rows), dtype=np.int64)
        for part in chunks(len(rows), max(1, SIMILARITIES_AT_ONCE // self.clusters)):
            poll()
            label[part] = model.predict(rows[part])
        return label
