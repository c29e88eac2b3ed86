"""A token budget: which selections fill it, the cut that does, and the best that any of them could be worth.

A selection *fills* a budget of W tokens if it holds at most W, and at least W less the longest row that may be taken:
whoever takes rows until none fits any more ends there, and swaps keep it so. A bound has to hold for all of these, so
its inner maximiser runs over the linear programme

    maximise g . v   over   0 <= v <= 1,   W - (longest row) <= w . v <= W,   pinned v = 1

which is a sort by gain per token with one fractional row (Dantzig 1957): take what has the most gain per token until
the budget is spent, or until gains turn negative once the lower end is reached. It is never below the best filling set,
and above the set that it rounds down to by no more than that one row's gain.

Under quotas a group holds at most its high, and at least its low less its longest row; all may then stay below W by the
longest row of each group. The programme has the same limits: groups within one budget are a laminar family, where
taking by gain per token, each group's least first, stays optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.errors import OptionError
from datamask.learning.rules import level_weights
from datamask.quotas import SLACK, Groups, check_tokens, tokens_by_group


@dataclass(frozen=True)
class Budget:
    """Over the eligible rows.

    Attributes:
        lengths: float64 ``(m,)``, tokens, at least 0.
        most: W, the pinned rows' tokens included.
        pinned: bool ``(m,)``, always in.
        given: tokens of those of the pinned that one already has, which sentences leave out.
        quotas: the groups and their tokens; None: there are none.
    """

    lengths: np.ndarray
    most: float
    pinned: np.ndarray
    given: float = 0.0
    quotas: Groups | None = None

    @classmethod
    def within(
        cls,
        tokens: float,
        lengths: np.ndarray,
        eligible: np.ndarray,
        pinned: np.ndarray,
        given: np.ndarray,
        groups: Groups | None = None,
    ) -> tuple[np.ndarray, Budget]:
        """The rows that fit into a budget at all, int64 ``(m,)``, and the budget over them.

        Args:
            tokens: to select beside the given rows. eligible: int64, rows that may be selected.
            lengths, pinned, given, groups: of all rows; the given ones are pinned too, and count in the groups' limits.

        Raises:
            OptionError: nothing can fill it, or there is nothing to choose.
        """
        of_given = float(lengths[given].sum())
        most = tokens + of_given
        room = np.full(len(lengths), most - lengths[pinned].sum())
        if groups is not None:
            group, low, high, _ = groups
            room = np.minimum(room, (high - tokens_by_group(group[pinned], lengths[pinned], len(low)))[group])
        rows = eligible[pinned[eligible] | (lengths[eligible] <= room[eligible])]
        quotas = None if groups is None else (groups[0][rows], *groups[1:])
        budget = cls(lengths[rows], most, pinned[rows], of_given, quotas)
        budget.check()
        if quotas is not None:
            check_tokens(quotas, budget.lengths, budget.pinned, given[rows], most)
        return rows, budget

    @property
    def wanted(self) -> float:
        """Tokens to select beside the given ones."""
        return self.most - self.given

    @property
    def fixed(self) -> float:
        """Tokens of the pinned rows."""
        return float(self.lengths[self.pinned].sum())

    @property
    def groups(self) -> Groups:
        """Those of the quotas; without any, one that has no limits of its own."""
        if self.quotas is not None:
            return self.quotas
        return np.zeros(len(self.lengths), np.int64), np.zeros(1), np.full(1, np.inf), ("all",)

    @cached_property
    def _longest(self) -> np.ndarray:
        """Of each group's rows that are not pinned."""
        group, low, _, _ = self.groups
        longest = np.zeros(len(low))
        np.maximum.at(longest, group[~self.pinned], self.lengths[~self.pinned])
        return longest

    @cached_property
    def least(self) -> float:
        """A filling selection holds at least this: it is never empty."""
        return max(self.most - float(self._longest.sum()), self.fixed, float(self.lengths.min()))

    @cached_property
    def floors(self) -> np.ndarray:
        """A filling selection holds at least this of each group, float64 ``(C,)``."""
        floors: np.ndarray = np.maximum(self.groups[1] - self._longest, 0.0)
        return floors

    def held(self, rows: np.ndarray) -> np.ndarray:
        """Tokens of some rows by group, float64 ``(C,)``. rows: bool ``(m,)``."""
        group, low, _, _ = self.groups
        return tokens_by_group(group[rows], self.lengths[rows], len(low))

    def check(self) -> None:
        """Raise the reason why there is nothing to choose.

        Raises:
            OptionError: the pins alone are too long, or no row fits beside them, or every row does.
        """
        if self.fixed > self.most:
            raise OptionError(
                f"--pin names rows of {self.fixed - self.given:,.0f} tokens, but the budget is "
                f"{self.wanted:,.0f}; raise --budget"
            )
        if self.pinned.all() or self.lengths[~self.pinned].min() > self.most - self.fixed:
            raise OptionError(
                f"--budget of {self.wanted:,.0f} tokens leaves {self.most - self.fixed:,.0f} to choose, "
                "which no row fits in; raise it"
            )
        if self.lengths.sum() <= self.most:
            raise OptionError(
                f"--budget of {self.wanted:,.0f} tokens holds all {self.lengths.sum() - self.given:,.0f} "
                "that may be selected; lower it, prune less, or ban fewer"
            )

    def fill(self, scores: Tensor, ties: Tensor) -> Tensor:
        """The mask ``(m,)`` of the highest scores that fit, one after another; what no longer fits is skipped.

        Equal scores go by the smaller tie value. The scores say in which order: per token, where they are gains.
        """
        order = np.lexsort((ties.cpu().numpy(), -scores.detach().double().cpu().numpy()))
        mask, (group, low, high, _) = self.pinned.copy(), self.groups
        _fill(order, self.lengths, self.most - self.fixed, group, low, high, self.held(mask), mask)
        return torch.from_numpy(mask).to(scores.device)

    def vertex(self, gains: Tensor) -> Tensor:
        """The weights v, float64 ``(m,)``, that maximise ``gains . v`` over the linear programme above."""
        gain = gains.detach().double().cpu().numpy()
        weights = self.pinned.astype(np.float64)
        free = np.flatnonzero(~self.pinned)
        with np.errstate(divide="ignore", invalid="ignore"):
            # a row without tokens is free of charge: in if it helps, else never
            rate = np.where(
                self.lengths[free] > 0, gain[free] / self.lengths[free], np.where(gain[free] > 0, np.inf, -np.inf)
            )
        group, _, high, _ = self.groups
        fixed = self.held(self.pinned)
        # of each row what its group must have, and what it may have beside that, best rows first
        inside = np.lexsort((-rate, group[free]))
        rows = free[inside]
        lengths, of = self.lengths[rows], group[rows]
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
        """Weights, float64 ``(m,)``, whose tokens are the budget, within the quotas: 1 where pinned, else as even as
        these let them be."""
        return level_weights(self.lengths, self.pinned, self.groups, self.most)

    def per_token(self, gains: Tensor) -> Tensor:
        """Gains ``(m,)`` per token, the order in which a budget is best filled; per row where rows have no tokens."""
        lengths = torch.from_numpy(self.lengths).to(gains)
        return gains / torch.where(lengths > 0, lengths, 1.0)

    def filled(self, mask: Tensor) -> bool:
        """Whether a mask ``(m,)`` fills the budget and every group's part of it, and holds the pinned rows."""
        chosen = mask.cpu().numpy()
        shared = all(self._shares(self.held(chosen), np.arange(len(self.floors))))
        return self.holds(float(self.lengths[chosen].sum())) and shared and bool(chosen[self.pinned].all())

    @overload
    def holds(self, tokens: float) -> bool: ...

    @overload
    def holds(self, tokens: np.ndarray) -> np.ndarray: ...

    def holds(self, tokens: float | np.ndarray) -> bool | np.ndarray:
        """Whether so many tokens fill the budget, to the rounding of their sum."""
        slack = SLACK * self.most
        return (tokens <= self.most + slack) & (tokens >= self.least - slack)

    def _shares(self, tokens: np.ndarray, group: np.ndarray) -> np.ndarray:
        """Whether so many tokens fill a group's part of the budget. group: int64, which broadcasts with them."""
        slack = SLACK * self.most
        filled: np.ndarray = (tokens <= self.groups[2][group] + slack) & (tokens >= self.floors[group] - slack)
        return filled

    def swappable(self, inside: Tensor, outside: Tensor, mask: Tensor) -> Tensor:
        """Which single swaps keep the budget filled, bool ``(b, a)``: ``inside[a]`` out, ``outside[b]`` in."""
        chosen, leaving, coming = mask.cpu().numpy(), inside.cpu().numpy()[None, :], outside.cpu().numpy()[:, None]
        fewer, more = self.lengths[leaving], self.lengths[coming]
        allowed = self.holds(float(self.lengths[chosen].sum()) - fewer + more) & ~self.pinned[leaving]
        if self.quotas is not None:
            held, (group, _, _, _) = self.held(chosen), self.quotas
            same, (old, new) = group[leaving] == group[coming], (group[leaving], group[coming])
            allowed &= self._shares(held[old] - fewer + same * more, old)
            allowed &= self._shares(held[new] + more - same * fewer, new)
        return torch.from_numpy(allowed).to(mask.device)

    def addable(self, outside: Tensor, mask: Tensor) -> Tensor:
        """Which of the rows ``outside`` fit beside all members, bool ``(b,)``."""
        return self._alone(outside.cpu().numpy(), 1, mask)

    def removable(self, inside: Tensor, mask: Tensor) -> Tensor:
        """Which of the members ``inside`` may leave alone, bool ``(a,)``."""
        rows = inside.cpu().numpy()
        return self._alone(rows, -1, mask) & torch.from_numpy(~self.pinned[rows]).to(mask.device)

    def _alone(self, rows: np.ndarray, sign: int, mask: Tensor) -> Tensor:
        """Whether the budget is filled still where one of these rows comes in (1), or leaves (-1)."""
        chosen, (group, _, _, _) = mask.cpu().numpy(), self.groups
        change = sign * self.lengths[rows]
        allowed = self.holds(float(self.lengths[chosen].sum()) + change)
        allowed &= self._shares(self.held(chosen)[group[rows]] + change, group[rows])
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
