"""A token budget: which selections fill it, the cut that does, and the best that any of them could be worth.

A selection *fills* a budget of W tokens if it holds at most W, and at least W less the longest row that may be taken:
whoever takes rows until none fits any more ends there, and swaps keep it so. A bound has to hold for all of these, so
its inner maximiser runs over the linear programme

    maximise g . v   over   0 <= v <= 1,   W - (longest row) <= w . v <= W,   pinned v = 1

which is a sort by gain per token with one fractional row (Dantzig 1957): take what has the most gain per token until
the budget is spent, or until gains turn negative once the lower end is reached. It is never below the best filling set,
and above the set that it rounds down to by no more than that one row's gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.errors import OptionError


@dataclass(frozen=True)
class Budget:
    """Over the eligible rows.

    Attributes:
        lengths: float64 ``(m,)``, tokens, at least 0.
        most: W, the pinned rows' tokens included.
        pinned: bool ``(m,)``, always in.
        given: tokens of those of the pinned that one already has, which sentences leave out.
    """

    lengths: np.ndarray
    most: float
    pinned: np.ndarray
    given: float = 0.0

    @property
    def wanted(self) -> float:
        """Tokens to select beside the given ones."""
        return self.most - self.given

    @property
    def fixed(self) -> float:
        """Tokens of the pinned rows."""
        return float(self.lengths[self.pinned].sum())

    @property
    def least(self) -> float:
        """A filling selection holds at least this."""
        free = self.lengths[~self.pinned]
        return max(self.most - (float(free.max()) if len(free) else 0.0), self.fixed)

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
        mask = self.pinned.copy()
        _fill(order, self.lengths, self.most - self.fixed, mask)
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
        order = free[np.argsort(-rate, kind="stable")]
        lengths = self.lengths[order]
        helping = self.fixed + float(lengths[np.sort(rate)[::-1] > 0].sum())
        room = min(max(helping, self.least), self.most) - self.fixed
        before = np.cumsum(lengths) - lengths
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(lengths > 0, (room - before) / lengths, np.where(gain[order] > 0, 1.0, 0.0))
        weights[order] = np.clip(part, 0.0, 1.0)
        return torch.from_numpy(weights).to(gains.device)

    def even(self) -> np.ndarray:
        """Weights, float64 ``(m,)``, whose tokens are the budget: 1 where pinned, else all the same."""
        return np.where(self.pinned, 1.0, (self.most - self.fixed) / float(self.lengths[~self.pinned].sum()))

    def per_token(self, gains: Tensor) -> Tensor:
        """Gains ``(m,)`` per token, the order in which a budget is best filled; per row where rows have no tokens."""
        lengths = torch.from_numpy(self.lengths).to(gains)
        return gains / torch.where(lengths > 0, lengths, 1.0)

    def filled(self, mask: Tensor) -> bool:
        """Whether a mask ``(m,)`` fills the budget and holds the pinned rows."""
        chosen = mask.cpu().numpy()
        return self.holds(float(self.lengths[chosen].sum())) and bool(chosen[self.pinned].all())

    @overload
    def holds(self, tokens: float) -> bool: ...

    @overload
    def holds(self, tokens: np.ndarray) -> np.ndarray: ...

    def holds(self, tokens: float | np.ndarray) -> bool | np.ndarray:
        """Whether so many tokens fill the budget, to the rounding of their sum."""
        slack = 1e-12 * self.most
        return (tokens <= self.most + slack) & (tokens >= self.least - slack)

    def swappable(self, inside: Tensor, outside: Tensor, mask: Tensor) -> Tensor:
        """Which single swaps keep the budget filled, bool ``(b, a)``: ``inside[a]`` out, ``outside[b]`` in."""
        tokens = float(self.lengths[mask.cpu().numpy()].sum())
        leaving, coming = inside.cpu().numpy(), outside.cpu().numpy()
        after = tokens - self.lengths[leaving][None, :] + self.lengths[coming][:, None]
        return torch.from_numpy(self.holds(after) & ~self.pinned[leaving][None, :]).to(mask.device)

    def addable(self, outside: Tensor, mask: Tensor) -> Tensor:
        """Which of the rows ``outside`` fit beside all members, bool ``(b,)``."""
        after = float(self.lengths[mask.cpu().numpy()].sum()) + self.lengths[outside.cpu().numpy()]
        return torch.from_numpy(self.holds(after)).to(mask.device)

    def removable(self, inside: Tensor, mask: Tensor) -> Tensor:
        """Which of the members ``inside`` may leave alone, bool ``(a,)``."""
        leaving = inside.cpu().numpy()
        after = float(self.lengths[mask.cpu().numpy()].sum()) - self.lengths[leaving]
        return torch.from_numpy(self.holds(after) & ~self.pinned[leaving]).to(mask.device)


@compiled
def _fill(order: np.ndarray, lengths: np.ndarray, room: float, mask: np.ndarray) -> None:
    """Take rows in order as long as they fit; a rounding of the sums never keeps out what fits exactly."""
    slack = 1e-12 * room
    for i in order:
        if not mask[i] and lengths[i] <= room + slack:
            mask[i] = True
            room -= lengths[i]
