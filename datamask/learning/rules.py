"""Rules a selection must obey: pins, bans and quotas, and the one exact cut under them.

`Rules.top` is the primitive: the S highest scores that obey the rules. It is exact for any additive score (pins first,
the groups' minima by their best, then the best of what the maxima leave; a laminar family, where greedy is optimal), so
it serves the sampler (on Gumbel keys), the readout, every vertex of a relaxation and the top-S sum in every bound
alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.quotas import Groups, check_rules


@dataclass(frozen=True)
class Rules:
    """Over the eligible rows (bans are rows that are not eligible).

    Attributes:
        pinned: bool ``(m,)``, always in.
        group: int64 ``(m,)``, the quota group of a row, from 0.
        low, high: int64 ``(C,)``, at least and at most so many members per group.
        names: C names of the groups, for sentences.
        given: bool ``(m,)``, those of the pinned that one already has; None: none. They count in `low` and `high`, and
            sentences leave them out.
    """

    pinned: np.ndarray
    group: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]
    given: np.ndarray | None = None

    @property
    def groups(self) -> Groups:
        """Those of the quotas; without any, one that has no limits of its own."""
        return self.group, self.low, self.high, self.names

    def check(self, size: int) -> None:
        """Raise the reason why no selection of `size` can obey the rules.

        Args:
            size: S, the given rows among them.

        Raises:
            OptionError: too many pins, a minimum above what a group has, maxima that leave too few rows, and so on.
        """
        given = np.zeros_like(self.pinned) if self.given is None else self.given
        check_rules(self.groups, self.pinned, given, size)

    def top(self, scores: Tensor, size: int, ties: Tensor) -> Tensor:
        """The mask ``(m,)`` of the `size` highest scores that obey the rules; equal scores by the smaller tie value."""
        values, order_of_ties = scores.detach().double().cpu().numpy(), ties.cpu().numpy()
        m = len(values)
        mask = self.pinned.copy()
        count = np.bincount(self.group[mask], minlength=len(self.low))
        # free rows by group, best first, with their place in the group
        order = np.lexsort((order_of_ties, -values, self.group))
        order = order[~mask[order]]
        groups = self.group[order]
        starts = np.searchsorted(groups, np.arange(len(self.low)))
        place = np.arange(len(order)) - starts[groups]
        must = place < np.maximum(self.low - count, 0)[groups]
        may = ~must & (place < np.maximum(self.high - count, 0)[groups])
        mask[order[must.nonzero()[0]]] = True
        optional = order[may.nonzero()[0]]
        missing = size - int(mask.sum())
        best = np.lexsort((order_of_ties[optional], -values[optional]))[:missing]
        mask[optional[best]] = True
        assert mask.sum() == size and len(mask) == m, "rules that passed `check` leave enough rows"
        return torch.from_numpy(mask).to(scores.device)

    def even(self, size: int) -> np.ndarray:
        """Weights, float64 ``(m,)``, that obey the rules and add to `size`: 1 where pinned, else as even as can be.

        All free rows have one weight, but in groups whose least or most members ask for more or less of it.
        """
        return level_weights(np.ones(len(self.group)), self.pinned, self.groups, size)

    def swappable(self, inside: Tensor, outside: Tensor, mask: Tensor) -> Tensor:
        """Which single swaps keep the rules, bool ``(b, a)``: member ``inside[a]`` out, other ``outside[b]`` in.

        Args:
            inside, outside: positions among the eligible rows; mask: bool ``(m,)``, the selection.
        """
        count = np.bincount(self.group[mask.cpu().numpy()], minlength=len(self.low))
        leaving, coming = self.group[inside.cpu().numpy()], self.group[outside.cpu().numpy()]
        may_leave = ~self.pinned[inside.cpu().numpy()]
        other = (count > self.low)[leaving][None, :] & (count < self.high)[coming][:, None]
        allowed = may_leave[None, :] & (other | (leaving[None, :] == coming[:, None]))
        return torch.from_numpy(allowed).to(mask.device)

    def obeyed(self, mask: Tensor) -> bool:
        """Whether a mask ``(m,)`` obeys the rules."""
        chosen = mask.cpu().numpy()
        count = np.bincount(self.group[chosen], minlength=len(self.low))
        return bool(chosen[self.pinned].all() and (count >= self.low).all() and (count <= self.high).all())


def level_weights(amounts: np.ndarray, pinned: np.ndarray, groups: Groups, total: float) -> np.ndarray:
    """Weights, float64 ``(m,)``, whose amounts add to a total and obey the limits: 1 where pinned, else even as can be.

    Args:
        amounts: float64 ``(m,)``, what a row counts for: 1, or its tokens. groups: with limits in the same unit.
    """
    group, low, high, names = groups
    held, free = (np.bincount(group[rows], amounts[rows], len(names)) for rows in (pinned, ~pinned))
    least = np.clip(low - held, 0.0, free)
    most = np.clip(high - held, least, free)
    # what all groups hold is linear in the free rows' weight between the weights where a group meets a limit
    rows = np.where(free > 0, free, 1.0)
    levels = np.unique(np.concatenate([[0.0, 1.0], least / rows, most / rows]))
    level = np.interp(total - held.sum(), np.clip(levels[:, None] * free, least, most).sum(axis=1), levels)
    weights: np.ndarray = np.where(pinned, 1.0, (np.clip(level * free, least, most) / rows)[group])
    return weights
