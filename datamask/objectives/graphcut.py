"""Graph cut: selected samples should not be each other's near neighbours (Boether et al., arXiv 2402.16442)."""

from __future__ import annotations

import torch
from torch import Tensor

from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll
from datamask.objectives.facility import ROWS_AT_ONCE, exact_lists


class GraphCut(SetFunction):
    """``f(U) = -(1/S) sum over i in U, over j in U listed by i (j != i), of max(0, x_i . x_j)``.

    How much similarity a member finds among its own listed neighbours that are selected too: it sees copies, costs
    O(n K), and looks no further than the lists, which are part of its definition.
    """

    needs_neighbors = True

    def __init__(self, features: Tensor, indices: Tensor, similarities: Tensor) -> None:
        """Args: features: ``(n, d)``, for batches; indices, similarities: ``(n, K)``, the sample itself first."""
        self.features = features
        self.indices = indices[:, 1:]
        self.similarities = similarities[:, 1:].clamp_min(0.0)
        self.n = len(indices)
        self.device = similarities.device

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> GraphCut:
        if lists is None:
            raise ValueError("graphcut needs neighbor lists: pass lists=(indices, similarities)")
        return cls(features, *lists)

    def _crowding(self, weights: Tensor, poll: Poll) -> Tensor:
        """Similarity to weighted neighbours, listed by either side: float ``(n,)`` in the weights' type."""
        total = torch.zeros(self.n, dtype=weights.dtype, device=self.device)
        for part in chunks(self.n, ROWS_AT_ONCE):
            poll()
            listed = self.indices[part].long()
            near = self.similarities[part].to(weights.dtype)
            total[part] += (near * weights[listed]).sum(1)
            total.index_add_(0, listed.reshape(-1), (near * weights[part, None]).reshape(-1))
        return total

    def _inside(self, mask: Tensor, poll: Poll, dtype: torch.dtype) -> Tensor:
        """Sum over listed pairs with both ends in U."""
        return self._crowding(mask.to(dtype), poll)[mask].sum() / 2

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        return torch.stack([-self._inside(mask, poll, torch.float32) / mask.sum() for mask in masks])

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        return -self._crowding(masks.float().mean(0), poll) / masks[0].sum()

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return -float(self._inside(mask, poll, torch.float64)) / max(int(mask.sum()), 1)

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return -self._crowding(mask.to(torch.float64), poll) / mask.sum()

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = int(mask.sum())
        crowding = self._crowding(mask.to(torch.float64), poll)
        inside = float(crowding[mask].sum()) / 2
        value_at_mask = -inside / max(size, 1)
        added = -(inside + crowding) / (size + 1) - value_at_mask
        removed = value_at_mask + (inside - crowding) / max(size - 1, 1)
        return torch.where(mask, removed, added)

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        def listed(rows: Tensor, others: Tensor) -> Tensor:
            place = torch.full((self.n,), -1, dtype=torch.int64, device=self.device)
            place[others] = torch.arange(len(others), device=self.device)
            where = place[self.indices[rows].long()]
            out = torch.zeros(len(rows), len(others) + 1, device=self.device)
            out.scatter_add_(1, where.remainder(len(others) + 1), self.similarities[rows] * (where >= 0))
            return out[:, :-1]

        return (listed(outside, inside) + listed(inside, outside).T) / size

    def batch(self, rows: Tensor, size: int) -> GraphCut:
        features = self.features[rows]
        return GraphCut(features, *exact_lists(features, min(len(rows), self.indices.shape[1] + 1)))

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        # each listed pair is inside with probability S (S - 1) / (n (n - 1))
        total = float(self.similarities.to(torch.float64).sum())
        return -total * (size - 1) / (self.n * max(self.n - 1, 1))
