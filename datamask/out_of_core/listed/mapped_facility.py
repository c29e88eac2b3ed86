"""Facility location on lists that are mapped from disk, over the rows of a scratch in the order of their cells.

What the lists say is in whole steps; values that are reported, and products that a bound is proved by, are taken from
the rows.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from datamask.compiling import compiled
from datamask.learning.lists import Lists
from datamask.objectives.facility import Coverage, Facility
from datamask.objectives.facility_kernels import pair_products
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.partition import Positions, unit_float32
from datamask.polling import Poll, no_poll

PAIRS_AT_ONCE = 1 << 16
"""Pairs of rows whose products are taken between two polls."""

ROWS_AT_ONCE, MEMBERS_AT_ONCE = 1 << 16, 1 << 13


class RowsOfCells:
    """Features of rows by position, read from the files of their blocks.

    Attributes:
        starts: int64 ``(B + 1,)``, the first position of each block.
    """

    def __init__(self, cells: CellBlocks) -> None:
        self.starts = np.asarray(cells.atlas[0]["block_starts"])
        self._files = [cells.block[number] for number in range(cells.blocks)]
        self._features = Positions([file["features"] for file in self._files], self.starts)

    def column(self, name: str) -> np.ndarray:
        """What is kept of every row by this name, ``(N,)``."""
        return np.concatenate([np.asarray(file[name]) for file in self._files])

    def features(self, positions: np.ndarray) -> np.ndarray:
        """Unit features of rows at rising positions, float32 ``(k, d)``."""
        return unit_float32(self._features[positions])

    def products(self, left: np.ndarray, right: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
        """The product of each two rows, float64 ``(p,)``. left, right: int64 ``(p,)``, positions."""
        out = np.empty(len(left))
        for low in range(0, len(left), PAIRS_AT_ONCE):
            poll()
            some = slice(low, low + PAIRS_AT_ONCE)
            positions, places = np.unique(np.concatenate([left[some], right[some]]), return_inverse=True)
            first, second = np.split(places, 2)
            out[some] = pair_products(self.features(positions), first, second)
        return out


class MappedFacility(Facility):
    """`Facility` on mapped lists. true_neighbors: whether all pairs were compared for them."""

    def __init__(self, rows: RowsOfCells, lists: Lists, dim: int, true_neighbors: bool = False) -> None:
        self.rows, self.lists = rows, lists
        self.n, self.d, self.device = len(lists.indices), dim, torch.device("cpu")
        self.exact_lists, self.lower_bound, self.true_neighbors = False, True, true_neighbors
        self.listed_error = lists.step

    def coverage(self, mask: Tensor, poll: Poll = no_poll) -> Coverage:
        best, second = np.zeros(self.n, np.float32), np.zeros(self.n, np.float32)
        owner, count = np.empty(self.n, np.int64), np.empty(self.n, np.int64)
        member = mask.numpy()
        for some in self._parts(poll):
            _cover(
                self.lists.indices[some],
                self.lists.near[some],
                self.lists.step,
                self.lists.zero,
                member,
                best[some],
                second[some],
                owner[some],
                count[some],
            )
        return Coverage(*(torch.from_numpy(each) for each in (best, second, owner, count)))

    def features_of(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.rows.features(rows.numpy()))

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        """The mean over all rows of the product with the nearest listed member; see `close_coverage`."""
        return self._mean_product(self.close_coverage(mask, poll, needed=1), poll)

    def listed_value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self._mean_product(self.coverage(mask, poll), poll)

    def _mean_product(self, coverage: Coverage, poll: Poll) -> float:
        best, owner = coverage.best.numpy(), coverage.owner.numpy()
        total = 0.0
        for some in self._parts(poll):
            covered = some.start + np.flatnonzero(owner[some] >= 0)
            total += float(np.maximum(self.rows.products(covered, owner[covered]), 0.0).sum())
            total += float(best[some][owner[some] < 0].sum(dtype=np.float64))
        return total / self.n

    def exact_value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        raise ValueError("the exact value over rows on disk is estimated; see `datamask.out_of_core.facility`")

    def products(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.rows.products(left, right)

    def _nearest_members(self, rows: Tensor, members: Tensor, poll: Poll) -> tuple[Tensor, Tensor, Tensor]:
        """As in memory, with some of the rows and members at a time."""
        features = self.features_of(rows).numpy()
        best, second = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
        owner = np.full(len(rows), members[0])
        for low in range(0, len(members), MEMBERS_AT_ONCE):
            poll()
            some = members[low : low + MEMBERS_AT_ONCE]
            others = self.features_of(some).numpy().T
            for first in range(0, len(rows), MEMBERS_AT_ONCE):
                part = slice(first, first + MEMBERS_AT_ONCE)
                near = features[part] @ others
                at = near.argmax(axis=1)
                most = np.maximum(near.max(axis=1), 0.0)
                near[np.arange(len(at)), at] = -1.0
                next_ = np.maximum(near.max(axis=1), np.minimum(most, best[part]))
                second[part] = np.maximum(second[part], next_)
                owner[part] = np.where(most > best[part], some.numpy()[at], owner[part])
                best[part] = np.maximum(best[part], most)
        return torch.from_numpy(best), torch.from_numpy(second), torch.from_numpy(owner)

    def _listed_marginals(self, coverage: Coverage, poll: Poll) -> Tensor:
        total = torch.zeros(self.n)
        covered = coverage.owner >= 0
        total.index_add_(0, coverage.owner[covered], (coverage.best - coverage.second)[covered])
        best = coverage.best.numpy().astype(np.float64) / self.lists.step + self.lists.zero
        more = np.zeros(self.n)
        for some in self._parts(poll):
            _surplus(self.lists.indices[some], self.lists.near[some], best[some], more)
        return (total + torch.from_numpy(more * self.lists.step).float()) / self.n

    def _parts(self, poll: Poll) -> list[slice]:
        poll()
        return [slice(low, min(low + ROWS_AT_ONCE, self.n)) for low in range(0, self.n, ROWS_AT_ONCE)]


@compiled
def _cover(
    indices: np.ndarray,
    near: np.ndarray,
    step: float,
    zero: float,
    member: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    count: np.ndarray,
) -> None:
    """Set who covers some rows, as in `Coverage`."""
    for v in range(indices.shape[0]):
        owner[v], count[v] = -1, 0
        for c in range(indices.shape[1]):
            i = indices[v, c]
            if member[i]:
                if owner[v] < 0:
                    owner[v] = i
                    best[v] = max((near[v, c] - zero) * step, 0.0)
                    count[v] = 1
                elif i != owner[v]:  # a short list ends with the row itself again
                    second[v] = max((near[v, c] - zero) * step, 0.0)
                    count[v] = 2
                    break


@compiled
def _surplus(indices: np.ndarray, near: np.ndarray, best: np.ndarray, total: np.ndarray) -> None:
    """Add what listed candidates have over the best of some rows, in steps."""
    for v in range(indices.shape[0]):
        for c in range(indices.shape[1]):
            more = near[v, c] - best[v]
            if more <= 0:
                break
            total[indices[v, c]] += more
