"""The contract of a set function: what an objective must give so that learners, scoreboard and tests can use it.

Notation, used in every file of this folder:

    n       samples in the pool            U        a subset, given as a mask
    d       feature dimensions             S        its size
    G       masks scored together          x_i      feature of sample i, unit length

A set function is bound to a pool. Masks are boolean tensors on the pool's device: ``(G, n)`` for the masks of one step,
``(n,)`` for one subset. All functions are maximised.
"""

from __future__ import annotations

import abc

import numpy as np
import torch
from torch import Tensor

from datamask.measured import Estimate
from datamask.places import MEMORY, Place
from datamask.polling import Poll as Poll
from datamask.polling import no_poll as no_poll  # both belong to the contract


class SetFunction(abc.ABC):
    """A diversity objective bound to a pool of n samples.

    `values` and `marginals` serve the steps: float32, and for list-based objectives the listed-neighbour value. `value`
    and `final_marginals` are what is reported: on the whole pool and accumulated in float64; exact, but where lists are
    only approximate. There `value` is a lower bound, `estimate` says how far below the exact value it lies, and
    `exact_value` takes the time that the exact one takes.
    """

    n: int
    device: torch.device
    needs_neighbors: bool = False
    """Whether `bind` is given neighbour lists; the catalogue says so too."""

    lower_bound: bool = False
    """Whether `value` is a lower bound of `exact_value`, as it is on approximate lists; then there is an `estimate`."""

    priced: bool = False
    """Whether prices on its neighbour lists bound it."""

    drawn: bool = False
    """Whether the random end of its scale is the mean over subsets that hashes of the ids draw."""

    ordered: bool = False
    """Whether it is solved on rows in the order of their ids, so that their order in the corpus decides nothing."""

    long_steps: bool = False
    """Whether a learned step takes longer than swaps, where they outdo learned masks, take to make up for it."""

    quadratic: bool = True
    """Whether the concave function, where there is one, is at most quadratic in the weights."""

    @classmethod
    def working_bytes(cls, n: int, d: int) -> int:
        """What it takes at least, bound and at work, beside features ``(n, d)``; asked before `bind`, which is refused
        where there is less. 0: nothing that grows faster than the features."""
        return 0

    @classmethod
    @abc.abstractmethod
    def bind(
        cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True
    ) -> SetFunction:
        """Bind the objective to a pool.

        Args:
            features: float32 ``(n, d)``, rows of unit length, on the device of the work.
            lists: for objectives on neighbours: indices ``(n, K)`` and similarities ``(n, K)``, each row by falling
                similarity with the sample itself first.
            exact_lists: whether those are the true K nearest.
        """

    @classmethod
    def bind_polled(
        cls, features: Tensor, lists: tuple[Tensor, Tensor] | None, exact_lists: bool, poll: Poll
    ) -> SetFunction:
        """`bind` that can be stopped; overridden where binding is work of more than 0.3 s on a large pool."""
        return cls.bind(features, lists, exact_lists)

    @abc.abstractmethod
    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        """f of each mask: bool ``(G, n)`` to float32 ``(G,)``."""

    @abc.abstractmethod
    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        """Frozen-size marginals, averaged over the masks: bool ``(G, n)`` to float32 ``(n,)``. Higher: rather in."""

    def values_and_marginals(self, masks: Tensor, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        """`values` and `marginals` of the same masks; overridden where they share work."""
        return self.values(masks, poll), self.marginals(masks, poll)

    @abc.abstractmethod
    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        """f of one mask ``(n,)``, accumulated in float64: exact, unless the lists are approximate."""

    def exact_value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        """Exact f of one mask even on approximate lists, at any price: every row may meet every member."""
        return self.value(mask, poll)

    def estimate(self, mask: Tensor, seed: int = 0, poll: Poll = no_poll) -> Estimate | None:
        """What `exact_value` would be, from rows drawn by `seed`; None where `value` is exact already."""
        return None

    def sampled_value(self, mask: Tensor, seed: int = 0, poll: Poll = no_poll) -> float:
        """f of one mask, from rows drawn by `seed` where `value` is a lower bound that takes most of a run's time."""
        return self.value(mask, poll)

    def list_by(  # noqa: B027 - most have no lists
        self,
        indices: np.ndarray,
        cosines: np.ndarray,
        error: float,
        unlisted: np.ndarray,
        place: Place = MEMORY,
        order: np.ndarray | None = None,
    ) -> None:
        """Take note of the lists by which the objective is solved and proved; overridden where that is.

        Args:
            indices, cosines: int32 and float32 ``(n, K)``, falling, of rows that were rounded.
            error: how far from the product of the rows the cosine of any pair may be, at most.
            unlisted: float64 ``(n,)``, the highest product that a row may have with one that it does not list.
            place: where what is as large as the lists is to lie.
            order: int64 ``(n,)``, the rows so that those that list each other mostly stand together; None: unknown.
        """

    def order_by(self, order: Tensor) -> None:  # noqa: B027 - most need none
        """Add rows up in this order, int64 ``(n,)``, whatever their numbers; overridden where `ordered`."""

    @abc.abstractmethod
    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """Add / remove differences, float64 ``(n,)``: f(U + i) - f(U) outside U, f(U) - f(U - i) inside; as `value`."""

    @abc.abstractmethod
    def batch(self, rows: Tensor, size: int) -> SetFunction:
        """The same objective on the pool of `rows` alone, for masks of about `size` members."""

    @abc.abstractmethod
    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        """Expected value of a uniformly random subset of `size`: in closed form where there is one."""

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """Frozen-size marginals at one mask as they are reported: float64 ``(n,)``."""
        return self.marginals(mask[None], poll).double()

    def budgeted(self, lengths: Tensor, budget: float) -> SetFunction:
        """The same objective for subsets that fill a token budget, which differ in their number of rows.

        Args:
            lengths: float64 ``(n,)``, tokens per row; budget: W.

        Returns:
            Unless overridden, this objective counting rows, whatever their lengths, by its exact `gains`.
        """
        return CountingRows(self)

    def concave(
        self, weights: Tensor, size: int, poll: Poll = no_poll, wide: bool = True
    ) -> tuple[float, Tensor] | None:
        """Value and gradient ``(n,)`` at inclusion weights of a concave function that equals f on masks.

        Where it is more than quadratic in the weights, `quadratic` must be False.

        Args:
            weights: ``(n,)`` in [0, 1], adding up to about `size`.
            size: S.
            wide: evaluate in float64, as a proof needs; else in float32, as steps may.

        Returns:
            None where there is no such smooth function; then there is no Frank-Wolfe bound either.
        """
        return None

    def bend(self, rows: Tensor, change: Tensor, size: int, poll: Poll = no_poll) -> Tensor | None:
        """How the gradient of `concave`, ``(n,)``, changes with the weights of few rows, where that is known sooner.

        Args:
            rows: int64 ``(r,)``. change: float64 ``(r,)``, by how much their weights change. size: S.

        Returns:
            None where it is as quick to ask `concave` anew, or where that is more than quadratic.
        """
        return None

    def interaction(self, inside: Tensor, outside: Tensor, size: int) -> Tensor | None:
        """What `final_marginals` miss of a swap: ``f(U - j + i) - f(U) = D_i - D_j + I_ij`` exactly.

        Args:
            inside: int64 ``(a,)``, members j; outside: int64 ``(b,)``, others i. size: S.

        Returns:
            ``(b, a)``, or None where there is no such exact second-order term.
        """
        return None

    def interaction_at(self, mask: Tensor, inside: Tensor, outside: Tensor, size: int) -> Tensor | None:
        """`interaction` where it depends on the mask ``(n,)`` too; else as that."""
        return self.interaction(inside, outside, size)

    def missed(self, mask: Tensor) -> float:
        """Share of the pool whose value the steps cannot see at this mask; 0 where there are no lists."""
        return 0.0

    def row_values(self, mask: Tensor, poll: Poll = no_poll) -> Tensor | None:
        """What every row of the pool has of a mask, ``(n,)``, where exact f is their mean over the pool; else None."""
        return None


def sampled_random_value(
    function: SetFunction, size: int, generator: torch.Generator, poll: Poll = no_poll, draws: int = 32
) -> float:
    """Mean value of `draws` uniformly random subsets: the random end where there is no closed form."""
    total = 0.0
    for _ in range(draws):
        poll()
        mask = torch.zeros(function.n, dtype=torch.bool)
        mask[torch.randperm(function.n, generator=generator)[:size]] = True
        total += function.value(mask.to(function.device), poll)
    return total / draws


def chunks(total: int, size: int) -> list[slice]:
    """Slices of at most `size` that cover ``range(total)``."""
    size = max(1, int(size))
    return [slice(start, min(start + size, total)) for start in range(0, total, size)]


class CountingRows(SetFunction):
    """An objective that counts rows, whatever their lengths, on subsets whose number of rows is not fixed.

    Its own marginals say what a member adds while S stays; here they are replaced by its exact add and remove
    differences. It has no concave function, since that would be another one for every number of rows.
    """

    def __init__(self, inner: SetFunction) -> None:
        self.inner, self.n, self.device, self.ordered = inner, inner.n, inner.device, inner.ordered

    @classmethod
    def bind(
        cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True
    ) -> CountingRows:
        raise ValueError("bind the objective to the pool first, then call its `budgeted`")

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        return torch.cat([self.inner.values(mask[None], poll) for mask in masks])

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        total = torch.zeros(self.n, device=self.device)
        for mask in masks:
            total += self.inner.gains(mask, poll).float()
        return total / len(masks)

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self.inner.value(mask, poll)

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.inner.gains(mask, poll)

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.inner.gains(mask, poll).double()

    def batch(self, rows: Tensor, size: int) -> SetFunction:
        raise ValueError("a budget holds for the whole selection, not for a batch of it")

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        return self.inner.random_value(size, generator, poll)

    def missed(self, mask: Tensor) -> float:
        return self.inner.missed(mask)
