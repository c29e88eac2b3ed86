"""What a selection must obey: S rows or a token budget, pins and quotas; the cut under them, and the best of all cuts.

A selection *fills* a budget of W tokens if it holds at most W, and at least W less the longest row that may be taken:
whoever takes rows until none fits any more ends there, and swaps keep it so. Under quotas a group holds at most its
high, and at least its low less its longest row; all may then stay below W by the longest row of each group. Rows are
tokens of which each row has one, and nothing is left over: S rows are held exactly, and so is every low.

`Limits.top` takes the best rows one after another as long as they fit. Of S rows it is exact for any additive score
(groups are a laminar family, where greedy is optimal), so it serves the sampler (on Gumbel keys), the readout, every
vertex of a relaxation and the top-S sum in every bound alike. Under a budget a bound has to hold for all filling
selections, so its inner maximiser runs over the linear programme

    maximise g . v   over   0 <= v <= 1,   W - (longest row) <= w . v <= W,   pinned v = 1

which is a sort by gain per token with one fractional row (Dantzig 1957): take what has the most gain per token until
the budget is spent, or until gains turn negative once the lower end is reached. It is never below the best filling set,
and above the set that it rounds down to by no more than that one row's gain. With quotas the programme has their limits
too, and taking by gain per token, each group's least first, stays optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.learning.masks import top
from datamask.quotas import SLACK, Groups, amount_by_group, check_groups


@dataclass(frozen=True)
class Limits:
    """Over the eligible rows (bans are rows that are not eligible).

    Attributes:
        most: S rows, or W tokens; pinned and given rows are part of it.
        pinned: bool ``(m,)``, always in.
        lengths: float64 ``(m,)``, tokens, at least 0, where a budget counts them; None: rows are counted.
        quotas: the groups and their limits; None: there are none.
        given: bool ``(m,)``, those of the pinned that one already has; None: none. They count in `quotas`, and
            sentences leave them out.
    """

    most: float
    pinned: np.ndarray
    lengths: np.ndarray | None = None
    quotas: Groups | None = None
    given: np.ndarray | None = None

    @classmethod
    def within(
        cls,
        most: float,
        eligible: np.ndarray,
        pinned: np.ndarray,
        given: np.ndarray,
        lengths: np.ndarray | None = None,
        groups: Groups | None = None,
    ) -> tuple[np.ndarray, Limits]:
        """The rows that fit into a budget at all, int64 ``(m,)``, and the limits over them; of S rows all fit.

        Args:
            most: rows or tokens to select, the given ones among them. eligible: int64, rows that may be selected.
            pinned, given, lengths, groups: of all rows; the given ones are pinned too.

        Raises:
            OptionError: no selection obeys these limits, or there is nothing to choose.
        """
        rows = eligible
        if lengths is not None:
            room = np.full(len(lengths), most - lengths[pinned].sum())
            if groups is not None:
                group, _, high, names = groups
                room = np.minimum(room, (high - amount_by_group(group, lengths, pinned, len(names)))[group])
            rows = rows[pinned[rows] | (lengths[rows] <= room[rows])]
        limits = cls(
            most,
            pinned[rows],
            None if lengths is None else lengths[rows],
            None if groups is None else groups._replace(group=groups.group[rows]),
            given[rows],
        )
        limits.check()
        return rows, limits

    @property
    def by_tokens(self) -> bool:
        """Whether there is a token budget."""
        return self.lengths is not None

    @cached_property
    def limited(self) -> bool:
        """Whether more than the number S restricts the selection."""
        return self.by_tokens or self.quotas is not None or bool(self.pinned.any())

    @property
    def grouped(self) -> bool:
        """Whether there are several groups."""
        return self.quotas is not None and len(self.quotas.names) > 1

    @cached_property
    def groups(self) -> Groups:
        """Those of the quotas, limits as float64; without any, one that has no limits of its own."""
        if self.quotas is None:
            high = np.inf if self.by_tokens else self.most
            return Groups(np.zeros(len(self.pinned), np.int64), np.zeros(1), np.full(1, high, np.float64), ("all",))
        return self.quotas._replace(low=self.quotas.low.astype(float), high=self.quotas.high.astype(float))

    @cached_property
    def amounts(self) -> np.ndarray:
        """What each row counts for, float64 ``(m,)``: 1, or its tokens."""
        return np.ones(len(self.pinned)) if self.lengths is None else self.lengths

    @cached_property
    def fixed(self) -> float:
        """Rows or tokens that are pinned."""
        return self.total(self.pinned)

    @property
    def wanted(self) -> float:
        """Rows or tokens to select next to the given ones."""
        return self.most if self.given is None else self.most - self.total(self.given)

    @cached_property
    def _longest(self) -> np.ndarray:
        """By how much each group may stay below its low: the most tokens of a row that is not pinned, or nothing."""
        longest = np.zeros(len(self.groups.names))
        if self.lengths is not None:
            np.maximum.at(longest, self.groups.group[~self.pinned], self.lengths[~self.pinned])
        return longest

    @cached_property
    def least(self) -> float:
        """A selection holds at least this: it is never empty."""
        return max(self.most - float(self._longest.sum()), self.fixed, float(self.amounts.min()))

    @cached_property
    def floors(self) -> np.ndarray:
        """A selection holds at least this of each group, float64 ``(C,)``."""
        floors: np.ndarray = np.maximum(self.groups.low - self._longest, 0.0)
        return floors

    def total(self, rows: np.ndarray) -> float:
        """How many rows, or tokens, some rows are. rows: bool ``(m,)``."""
        return float(rows.sum() if self.lengths is None else self.lengths[rows].sum())

    def held(self, rows: np.ndarray) -> np.ndarray:
        """Rows or tokens by group, float64 ``(C,)``. rows: bool ``(m,)``."""
        return amount_by_group(self.groups.group, self.lengths, rows, len(self.groups.names))

    def check(self) -> None:
        """Raise the reason why no selection obeys these limits, or there is nothing to choose.

        Raises:
            OptionError: as `check_groups`.
        """
        given = np.zeros_like(self.pinned) if self.given is None else self.given
        check_groups(self.groups, self.pinned, given, self.most, self.lengths)

    def top(self, scores: Tensor, ties: Tensor) -> Tensor:
        """The mask ``(m,)`` of the highest scores that fit, one after another; what does not fit is skipped.

        Equal scores go by the smaller tie value. The scores say in which order: per token, where they are gains.
        """
        if not self.limited:
            return top(scores, int(self.most), ties)
        order = np.lexsort((ties.cpu().numpy(), -scores.detach().double().cpu().numpy()))
        mask, (group, low, high, _) = self.pinned.copy(), self.groups
        _fill(order, self.amounts, self.most - self.fixed, group, low, high, self.held(mask), mask)
        assert self.by_tokens or mask.sum() == self.most, "limits that passed `check` leave enough rows"
        return torch.from_numpy(mask).to(scores.device)

    def vertex(self, gains: Tensor) -> Tensor:
        """The weights v, float64 ``(m,)``, that maximise ``gains . v`` over the linear programme above."""
        gain = gains.detach().double().cpu().numpy()
        weights = self.pinned.astype(np.float64)
        free = np.flatnonzero(~self.pinned)
        lengths = self.amounts[free]
        with np.errstate(divide="ignore", invalid="ignore"):
            # a row without tokens is free of charge: in if it helps, else never
            rate = np.where(lengths > 0, gain[free] / lengths, np.where(gain[free] > 0, np.inf, -np.inf))
        group, _, high, _ = self.groups
        fixed = self.held(self.pinned)
        # of each row what its group must have, and what it may have beside that, best rows first
        inside = np.lexsort((-rate, group[free]))
        rows = free[inside]
        lengths, of = lengths[inside], group[rows]
        before = np.cumsum(lengths) - lengths
        first = np.maximum.accumulate(np.where(np.diff(of, prepend=-1), np.arange(len(of)), 0))
        before -= before[first]
        must = np.clip((self.floors - fixed)[of] - before, 0.0, lengths)
        may = np.clip((high - fixed)[of] - before, must, lengths) - must
        order = np.argsort(-rate[inside], kind="stable")
        rows, lengths, must, may, rate = rows[order], lengths[order], must[order], may[order], rate[inside][order]
        taken = self.fixed + float(must.sum())
        helping = taken + float(may[rate > 0].sum())
        room = min(max(helping, self.least), self.most) - taken
        part = must + np.clip(room - (np.cumsum(may) - may), 0.0, may)
        weights[rows] = np.divide(part, lengths, out=(gain[rows] > 0).astype(np.float64), where=lengths > 0)
        return torch.from_numpy(weights).to(gains.device)

    def even(self) -> np.ndarray:
        """Weights, float64 ``(m,)``, that add to `most` within the quotas: 1 where pinned, else as even as can be.

        All free rows have one weight, but in groups whose least or most ask for more or less of it.
        """
        if not self.limited:
            return np.full(len(self.pinned), self.most / len(self.pinned))
        group, low, high, _ = self.groups
        held, free = self.held(self.pinned), self.held(~self.pinned)
        least = np.clip(low - held, 0.0, free)
        most = np.clip(high - held, least, free)
        # what all groups hold is linear in the free rows' weight between the weights where a group meets a limit
        rows = np.where(free > 0, free, 1.0)
        levels = np.unique(np.concatenate([[0.0, 1.0], least / rows, most / rows]))
        level = np.interp(self.most - held.sum(), np.clip(levels[:, None] * free, least, most).sum(axis=1), levels)
        weights: np.ndarray = np.where(self.pinned, 1.0, (np.clip(level * free, least, most) / rows)[group])
        return weights

    def priority(self, gains: Tensor) -> Tensor:
        """In which order rows should be taken, ``(m,)``: by what they add, under a budget by that per token."""
        if self.lengths is None:
            return gains
        lengths = torch.from_numpy(self.lengths).to(gains)
        return gains / torch.where(lengths > 0, lengths, 1.0)

    def allowed(self, mask: Tensor) -> bool:
        """Whether a mask ``(m,)`` is of S rows, or fills the budget, obeys the quotas and holds the pinned rows."""
        chosen = mask.cpu().numpy()
        shared = all(self.shares(self.held(chosen), np.arange(len(self.floors))))
        return self.holds(self.total(chosen)) and shared and bool(chosen[self.pinned].all())

    @overload
    def holds(self, total: float) -> bool: ...

    @overload
    def holds(self, total: np.ndarray) -> np.ndarray: ...

    def holds(self, total: float | np.ndarray) -> bool | np.ndarray:
        """Whether so many rows are S, or so many tokens fill the budget, to the rounding of their sum."""
        slack = SLACK * self.most
        return (total <= self.most + slack) & (total >= self.least - slack)

    def shares(self, held: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Whether a group may hold so many rows or tokens. group: int64, which broadcasts with them."""
        slack = SLACK * self.most
        allowed: np.ndarray = (held <= self.groups.high[group] + slack) & (held >= self.floors[group] - slack)
        return allowed

    def swappable(self, inside: Tensor, outside: Tensor, mask: Tensor) -> Tensor:
        """Which single swaps stay allowed, bool ``(b, a)``: member ``inside[a]`` out, other ``outside[b]`` in.

        Args:
            inside, outside: positions among the eligible rows; mask: bool ``(m,)``, the selection.
        """
        chosen, leaving, coming = mask.cpu().numpy(), inside.cpu().numpy()[None, :], outside.cpu().numpy()[:, None]
        fewer, more, held, group = self.amounts[leaving], self.amounts[coming], self.held(chosen), self.groups.group
        same, old, new = group[leaving] == group[coming], group[leaving], group[coming]
        allowed = self.holds(self.total(chosen) - fewer + more) & ~self.pinned[leaving]
        allowed &= self.shares(held[old] - fewer + same * more, old)
        allowed &= self.shares(held[new] + more - same * fewer, new)
        return torch.from_numpy(allowed).to(mask.device)

    def addable(self, outside: Tensor, mask: Tensor) -> Tensor:
        """Which of the rows ``outside`` fit next to all members, bool ``(b,)``."""
        return self._alone(outside.cpu().numpy(), 1, mask)

    def removable(self, inside: Tensor, mask: Tensor) -> Tensor:
        """Which of the members ``inside`` may leave alone, bool ``(a,)``."""
        rows = inside.cpu().numpy()
        return self._alone(rows, -1, mask) & torch.from_numpy(~self.pinned[rows]).to(mask.device)

    def _alone(self, rows: np.ndarray, sign: int, mask: Tensor) -> Tensor:
        """Whether a selection stays allowed where one of these rows comes in (1), or leaves (-1)."""
        chosen, group = mask.cpu().numpy(), self.groups.group[rows]
        change = sign * self.amounts[rows]
        allowed = self.holds(self.total(chosen) + change) & self.shares(self.held(chosen)[group] + change, group)
        return torch.from_numpy(allowed).to(mask.device)


@compiled
def _fill(
    order: np.ndarray,
    lengths: np.ndarray,
    room: float,
    group: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    held: np.ndarray,
    mask: np.ndarray,
) -> None:
    """Take rows in order as long as they fit, beside what other groups lack; what does not fit once never will.

    A rounding of the sums never keeps out what fits exactly.
    """
    slack = SLACK * room
    lacking = np.maximum(low - held, 0.0).sum()
    for i in order:
        g = group[i]
        own = max(low[g] - held[g], 0.0)
        if not mask[i] and lengths[i] <= min(room - lacking + own, high[g] - held[g]) + slack:
            mask[i] = True
            room -= lengths[i]
            held[g] += lengths[i]
            lacking += max(low[g] - held[g], 0.0) - own
