"""Pair-wise similarity: minus the mean cosine between the members (the paper's Pair_simi)."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from datamask.objectives.budgeted import BudgetedPairwise
from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll

ELEMENTS_AT_ONCE = 2**20
"""Numbers per chunk of the float64 passes, 8 MB."""

FEW = 16
"""Members of less than one in so many rows are taken out before they are added up."""


def row_parts(rows: int, dim: int) -> list[slice]:
    """Slices of at most `ELEMENTS_AT_ONCE` numbers that cover so many rows of `dim` features."""
    return chunks(rows, ELEMENTS_AT_ONCE // max(dim, 1))


def row_lengths(features: Tensor, poll: Poll = no_poll) -> Tensor:
    """The exact lengths of rows ``(n, d)`` that float32 made 1 to rounding only, float64 ``(n,)``."""
    out = torch.empty(len(features), dtype=torch.float64, device=features.device)
    for part, rows in widened(features, poll):
        out[part] = rows.norm(dim=1)
    return out


def widened(features: Tensor, poll: Poll = no_poll) -> Iterator[tuple[slice, Tensor]]:
    """Rows ``(n, d)`` in parts, each as float64 in the same memory: to get it anew for each, and to have several
    threads wait for each other over each, took ten times what the products do."""
    parts = row_parts(*features.shape)
    longest = parts[0].stop if parts else 0
    memory = torch.empty(longest, features.shape[1], dtype=torch.float64, device=features.device)
    for part in parts:
        poll()
        rows = memory[: part.stop - part.start]
        if features.device.type == "cpu":
            np.copyto(rows.numpy(), features[part].numpy())
        else:
            rows.copy_(features[part])
        yield part, rows


def products(features: Tensor, lengths: Tensor, direction: Tensor, poll: Poll = no_poll) -> Tensor:
    """``x_i . direction`` with x_i the rows divided by their lengths, float64 ``(n,)``."""
    out = torch.empty(len(features), dtype=torch.float64, device=features.device)
    for part, rows in widened(features, poll):
        out[part] = rows @ direction
    return out.div_(lengths)


def weighted_sum(features: Tensor, lengths: Tensor, weights: Tensor, poll: Poll = no_poll) -> Tensor:
    """``sum of weights_i x_i`` with x_i the rows divided by their lengths, float64 ``(d,)``."""
    total = torch.zeros(features.shape[1], dtype=torch.float64, device=features.device)
    scaled = weights.double() / lengths
    for part, rows in widened(features, poll):
        total += scaled[part] @ rows
    return total


class Pairwise(SetFunction):
    """``f(U) = -(||s||^2 - S) / (S (S - 1))`` with ``s = sum of x over U``.

    It sees the first moment alone: over-full directions. A copy of a member changes the crowding ``x.s`` by about 1/S,
    so at large S it is blind to near-copies. A subset of one member has no pair: its value is 0, so with S = 1 nothing
    tells one subset from another. Source: arXiv 2512.24265 (Pair_simi), method in closed form.

    In float32 a row is of unit length to some 1e-8 only. Where all rows have a large direction in common, that adds to
    every cosine more than one subset differs from another, so what float64 accumulates divides by `exact_lengths`.
    """

    def __init__(self, features: Tensor) -> None:
        self.features = features
        self.n, self.d = features.shape
        self.device = features.device

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> Pairwise:
        return cls(features)

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        poll()
        sums = masks.float() @ self.features  # (G, d)
        size = masks.sum(1).float()
        return torch.where(size > 1, -((sums * sums).sum(1) - size) / (size * (size - 1)).clamp_min(1.0), 0.0)

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        # linear in the mask, so the mean over masks is the marginal at the mean mask
        poll()
        mean_mask = masks.float().mean(0)
        return -_per_pair(int(masks[0].sum())) * (self.features @ (mean_mask @ self.features) - mean_mask)

    @functools.cached_property
    def exact_lengths(self) -> Tensor:
        """The exact length of every row as it is in float32, float64 ``(n,)``."""
        return row_lengths(self.features)

    def member_sum(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """s of a mask ``(n,)``, float64 ``(d,)``."""
        members = mask.nonzero().squeeze(1)
        if len(members) * FEW < self.n:
            features, lengths = self.features[members], self.exact_lengths[members]
            return weighted_sum(features, lengths, torch.ones_like(lengths), poll)
        return weighted_sum(self.features, self.exact_lengths, mask, poll)

    def _similarity_to(self, direction: Tensor, poll: Poll) -> Tensor:
        """x_i . direction for all i, float64 ``(n,)``."""
        return products(self.features, self.exact_lengths, direction, poll)

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        size = int(mask.sum())
        s = self.member_sum(mask, poll)
        return float(-(s @ s - size) / (size * (size - 1))) if size > 1 else 0.0

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = int(mask.sum())
        crowding = self._similarity_to(self.member_sum(mask, poll), poll) - mask.double()
        return -_per_pair(size) * crowding

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        size = int(mask.sum())
        s = self.member_sum(mask, poll)
        pairs = float(s @ s) - size  # sum of x_a.x_b over ordered pairs of members
        crowding = self._similarity_to(s, poll)  # x_i.s, the sample itself included for members
        before = -pairs / (size * (size - 1)) if size > 1 else 0.0
        added = -(pairs + 2.0 * crowding) / ((size + 1) * size) - before
        if size > 2:
            removed = before + (pairs - 2.0 * (crowding - 1.0)) / ((size - 1) * (size - 2))
        else:
            removed = torch.full_like(added, before)  # one member or none is left: no pair, value 0
        return torch.where(mask, removed, added)

    def concave(self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True) -> tuple[float, Tensor]:
        """``F(p) = -(||X'p||^2 - S) / (S (S - 1))``: not the mean of f under independent draws."""
        per_pair = _per_pair(size)
        if not wide:
            poll()
            near = weights.float() @ self.features
            return float(near.double() @ near.double() - size) * (-per_pair / 2), (self.features @ near) * -per_pair
        s = weighted_sum(self.features, self.exact_lengths, weights, poll)
        return float(s @ s - size) * (-per_pair / 2), self._similarity_to(s, poll) * -per_pair

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor:
        return self.features[outside] @ self.features[inside].T * _per_pair(size)

    def batch(self, rows: Tensor, size: int) -> Pairwise:
        return Pairwise(self.features[rows])

    def budgeted(self, lengths: Tensor, budget: float) -> BudgetedPairwise:
        """Minus the mean cosine between tokens of different samples."""
        return BudgetedPairwise(self.features, lengths, budget)

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        # every pair of the pool is equally likely to be a pair of the subset, where that has any
        return self.value(torch.ones(self.n, dtype=torch.bool, device=self.device), poll) if size > 1 else 0.0


def _per_pair(size: int) -> float:
    """What a pair's cosine costs a subset of `size`: ``2 / (S (S - 1))``; 0 where there are no pairs."""
    return 2.0 / (size * (size - 1)) if size > 1 else 0.0
