"""Facility location: every sample of the pool should have a close selected neighbour."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.measured import Estimate
from datamask.objectives import facility_kernels as kernels
from datamask.objectives.contract import Poll, SetFunction, chunks, no_poll, sampled_random_value
from datamask.objectives.estimate import ESTIMATE_ROWS, estimated
from datamask.places import MEMORY, Place

COLUMNS_AT_ONCE = 8
"""List columns looked at together: after some 1/ratio of them a row has met its first selected neighbour."""

SIMILARITIES_AT_ONCE = 16_000_000
"""Similarities per dense chunk: 64 MB, and under 0.3 s on two cores at 384 dimensions."""

FEW_SIMILARITIES = 200_000_000
"""Rows times members up to which they are all compared even where nothing else is exact: some two seconds."""

PROBES = 16
"""Cells whose members a row is compared with."""

ROUNDING = 1e-6
"""Cosines of the same pair may differ by so much, where they were computed by different products."""

ROWS_AT_ONCE = 250_000
"""Rows of the lists looked at together, so that the temporaries stay small whatever n."""


@dataclass
class Coverage:
    """Who covers the rows of the pool at one mask, as far as the lists tell.

    Attributes:
        best, second: float32 ``(n,)``, similarity to the nearest and second nearest listed member, at least 0.
        owner: int64 ``(n,)``, the nearest listed member; -1: none listed.
        member_count: int64 ``(n,)``, listed members met, counted up to 2.
    """

    best: Tensor
    second: Tensor
    owner: Tensor
    member_count: Tensor


class Facility(SetFunction):
    """``f(U) = (1/n) sum over v of max(0, max over j in U of x_v . x_j)``, on K-nearest-neighbour lists.

    It sees local coverage, hence copies. Steps use the listed-neighbour value, which counts a row without a listed
    member as 0 and so is never above f. `value`, `gains` and `final_marginals` are exact on exact lists: a row that
    lists a member no farther than an unlisted row can be has its true nearest member there; the others are measured
    against all members. On approximate lists a listed member may not be the nearest, so these three are of listed pairs
    and a little low: `value` is a lower bound of f, `estimate` compares a sample of the rows with all members,
    `exact_value` every row.
    """

    needs_neighbors = priced = drawn = True

    listed: tuple[np.ndarray, np.ndarray]
    """Int32 and float32 ``(n, K)``, falling: the lists by cosines of rounded rows. What is solved or proved on lists
    goes by them, so that it does not depend on the order of rows. Until `list_by` they are those of the objective."""

    listed_error: float
    """How far their cosines are from the products of the rows, at most, beside the rounding of products."""

    unlisted: np.ndarray | None
    """Float64 ``(n,)``: the highest product that a row may have with one that it does not list. None: such rows are no
    nearer than the last listed one."""

    place: Place = MEMORY
    """Where what is as large as the lists lies."""

    order: np.ndarray | None = None
    """Int64 ``(n,)``, the rows so that those that list each other mostly stand together; None: none is known."""

    true_neighbors: bool
    """Whether all pairs of rows, rounded for the lists, were compared. `exact_lists` says as well that the similarities
    are those of the rows as they are, which lists on disk cannot say."""

    def __init__(self, features: Tensor, indices: Tensor, similarities: Tensor, exact_lists: bool = True) -> None:
        self.features = features
        self.n, self.d = features.shape
        self.device = features.device
        self.indices = indices.contiguous()
        # lists fall, and those of a graph end at 0: a copy of them would take as much memory again
        below = bool((similarities[:, -1] < 0).any())
        self.similarities = (similarities.clamp_min(0.0) if below else similarities).contiguous()
        self.exact_lists = self.true_neighbors = exact_lists
        self.lower_bound = not exact_lists
        self.listed = self.indices.cpu().numpy().astype(np.int32, copy=False), self.similarities.cpu().numpy()
        self.listed_error, self.unlisted = 0.0, None
        self._lists = (self.indices.numpy(), self.similarities.numpy()) if self.device.type == "cpu" else None

    @classmethod
    def bind(cls, features: Tensor, lists: tuple[Tensor, Tensor] | None = None, exact_lists: bool = True) -> Facility:
        if lists is None:
            raise ValueError("facility needs neighbor lists: pass lists=(indices, similarities)")
        return cls(features, lists[0], lists[1], exact_lists)

    def list_by(
        self,
        indices: np.ndarray,
        cosines: np.ndarray,
        error: float,
        unlisted: np.ndarray,
        place: Place = MEMORY,
        order: np.ndarray | None = None,
    ) -> None:
        self.listed, self.listed_error, self.unlisted = (indices, cosines), error, unlisted
        self.place, self.order = place, order
        self._near_enough = torch.from_numpy((unlisted - ROUNDING).astype(np.float32)).to(self.device)

    def coverage(self, mask: Tensor, poll: Poll = no_poll) -> Coverage:
        """Look up the two nearest listed members of every row: O(n / ratio) rather than O(n K)."""
        if self._lists is not None:
            poll()
            return Coverage(*map(torch.from_numpy, kernels.cover(*self._lists, mask.numpy())))
        best = torch.zeros(self.n, device=self.device)
        second = torch.zeros(self.n, device=self.device)
        owner = torch.full((self.n,), -1, dtype=torch.int64, device=self.device)
        member_count = torch.zeros(self.n, dtype=torch.int64, device=self.device)
        for part in chunks(self.n, ROWS_AT_ONCE):
            active = torch.arange(part.start, part.stop, device=self.device)
            for columns in chunks(self.indices.shape[1], COLUMNS_AT_ONCE):
                poll()
                listed = self.indices[active, columns].long()
                hit = mask[listed]
                nearness = self.similarities[active, columns]
                count = hit.cumsum(1) + member_count[active, None]
                first, next_ = hit & (count == 1), hit & (count == 2)
                best[active] += (nearness * first).sum(1)
                second[active] += (nearness * next_).sum(1)
                owner[active] += ((listed + 1) * first).sum(1)
                member_count[active] = count[:, -1].clamp_max(2)
                active = active[member_count[active] < 2]
                if not len(active):
                    break
        return Coverage(best, second, owner, member_count)

    def values(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        out = torch.empty(len(masks), device=self.device)
        for j, mask in enumerate(masks):
            if self._lists is not None:
                poll()
                out[j] = kernels.covered(*self._lists, mask.numpy())
                continue
            total = 0.0
            for part in chunks(self.n, ROWS_AT_ONCE):
                active = torch.arange(part.start, part.stop, device=self.device)
                for columns in chunks(self.indices.shape[1], COLUMNS_AT_ONCE):
                    poll()
                    hit = mask[self.indices[active, columns].long()]
                    total += (self.similarities[active, columns] * hit).amax(1).sum(dtype=torch.float32)
                    active = active[~hit.any(1)]
                    if not len(active):
                        break
            out[j] = total / self.n
        return out

    def marginals(self, masks: Tensor, poll: Poll = no_poll) -> Tensor:
        total = torch.zeros(self.n, device=self.device)
        for mask in masks:
            total += self._listed_marginals(self.coverage(mask, poll), poll)
        return total / len(masks)

    def values_and_marginals(self, masks: Tensor, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
        values = torch.empty(len(masks), device=self.device)
        total = torch.zeros(self.n, device=self.device)
        for j, mask in enumerate(masks):
            coverage = self.coverage(mask, poll)
            values[j] = coverage.best.mean()
            total += self._listed_marginals(coverage, poll)
        return values, total / len(masks)

    def _listed_marginals(self, coverage: Coverage, poll: Poll) -> Tensor:
        """What each sample adds (outside U) or what would be lost without it (inside), over the listed pairs."""
        total = torch.zeros(self.n, device=self.device)
        covered = coverage.owner >= 0
        total.index_add_(0, coverage.owner[covered], (coverage.best - coverage.second)[covered])
        if self._lists is not None:
            poll()
            return (total + torch.from_numpy(kernels.surplus(*self._lists, coverage.best.numpy())).float()) / self.n
        for part in chunks(self.n, ROWS_AT_ONCE):
            active = torch.arange(part.start, part.stop, device=self.device)
            for columns in chunks(self.indices.shape[1], COLUMNS_AT_ONCE):
                poll()
                # lists fall, so a row with no gain in this block has none further on
                gain = (self.similarities[active, columns] - coverage.best[active, None]).clamp_min(0.0)
                total.index_add_(0, self.indices[active, columns].reshape(-1).long(), gain.reshape(-1))
                active = active[gain[:, -1] > 0]
                if not len(active):
                    break
        return total / self.n

    def features_of(self, rows: Tensor) -> Tensor:
        """Features of rows, float32 ``(r, d)``. rows: int64 ``(r,)``, rising."""
        return self.features[rows]

    def _nearest_members(self, rows: Tensor, members: Tensor, poll: Poll) -> tuple[Tensor, Tensor, Tensor]:
        """Best, second-best similarity (at least 0) and best member of `rows`, against all members."""
        best = torch.zeros(len(rows), device=self.device)
        second = torch.zeros(len(rows), device=self.device)
        owner = torch.empty(len(rows), dtype=torch.int64, device=self.device)
        candidates = self.features[members]
        for part in chunks(len(rows), SIMILARITIES_AT_ONCE // max(len(members), 1)):
            poll()
            nearest = (self.features[rows[part]] @ candidates.T).topk(min(2, len(members)), dim=1)
            best[part] = nearest.values[:, 0].clamp_min(0.0)
            if len(members) > 1:
                second[part] = nearest.values[:, 1].clamp_min(0.0)
            owner[part] = members[nearest.indices[:, 0]]
        return best, second, owner

    def close_coverage(self, mask: Tensor, poll: Poll = no_poll, needed: int = 2) -> Coverage:
        """`coverage`, with `_unsure` rows measured against other members too.

        Against all of them on exact lists, where the result is exact, and where these are few. On approximate lists,
        where nothing is exact, such rows may be most of the pool; then against members near them.
        """
        coverage = self.coverage(mask, poll)
        rows, members = self._unsure(coverage, needed), mask.nonzero().squeeze(1)
        if self.true_neighbors or len(rows) * len(members) <= FEW_SIMILARITIES:
            return self._measured(coverage, mask, rows, poll)
        best, second, owner = nearby_members(self.features_of, rows, members, poll)
        listed, listed_owner = coverage.best[rows], coverage.owner[rows]
        other = owner != listed_owner  # else the pair is counted already, by the other product
        ahead = other & (listed > best)
        second = torch.where(other, torch.maximum(torch.minimum(listed, best), second), second)
        coverage.best[rows] = torch.maximum(listed, best)
        coverage.second[rows] = torch.minimum(second, coverage.best[rows])
        coverage.owner[rows] = torch.where(ahead, listed_owner, owner)
        return coverage

    def _unsure(self, coverage: Coverage, needed: int) -> Tensor:
        """Rows, int64, that met fewer than `needed` listed members; on exact lists also those that may be nearer to a
        row that is not listed."""
        unsure = coverage.member_count < needed
        if self.exact_lists and self.unlisted is not None:
            unsure |= (coverage.best if needed == 1 else coverage.second) < self._near_enough
        return unsure.nonzero().squeeze(1)

    def exact_coverage(self, mask: Tensor, poll: Poll = no_poll, needed: int = 2) -> Coverage:
        """Exact on any lists: on approximate ones, every row is measured against all members."""
        if self.exact_lists:
            return self.close_coverage(mask, poll, needed)
        return self._measured(self.coverage(mask, poll), mask, torch.arange(self.n, device=self.device), poll)

    def row_values(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.close_coverage(mask, poll, needed=1).best

    def _measured(self, coverage: Coverage, mask: Tensor, rows: Tensor, poll: Poll) -> Coverage:
        if len(rows):
            members = mask.nonzero().squeeze(1)
            best, second, owner = self._nearest_members(rows, members, poll)
            coverage.best[rows], coverage.second[rows], coverage.owner[rows] = best, second, owner
        return coverage

    def value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self._mean(self.close_coverage(mask, poll, needed=1).best)

    def exact_value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        return self._mean(self.exact_coverage(mask, poll, needed=1).best)

    def estimate(self, mask: Tensor, seed: int = 0, poll: Poll = no_poll) -> Estimate | None:
        if self.exact_lists:
            return None
        listed = self.close_coverage(mask, poll, needed=1).best
        rows, nearest = self._drawn_rows(mask, seed, poll)
        shortfalls = nearest - listed[rows]
        shortfalls[shortfalls < ROUNDING] = 0.0
        return estimated(self._mean(listed), shortfalls.double().cpu().numpy(), float(1.0 - listed.min()))

    def sampled_value(self, mask: Tensor, seed: int = 0, poll: Poll = no_poll) -> float:
        """Where most rows list no member, as at top quality, the search of `value` for near ones finds two of three.

        So rows without a listed member count as the drawn ones of them do on average, and the others as listed, plus
        what the drawn ones of them fall short by.
        """
        if self.exact_lists:
            return self.value(mask, poll)
        coverage = self.coverage(mask, poll)
        rows, nearest = self._drawn_rows(mask, seed, poll)
        listed, closed = coverage.best.double(), coverage.member_count > 0
        value = float(listed.mean())
        for part in (closed, ~closed):
            if bool(part[rows].any()):
                value += float((nearest.double() - listed[rows])[part[rows]].mean()) * float(part.double().mean())
        return value

    def _drawn_rows(self, mask: Tensor, seed: int, poll: Poll) -> tuple[Tensor, Tensor]:
        """Rows drawn by a seed, int64 ``(r,)``, and their similarities to the nearest of all members, float32."""
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randperm(self.n, generator=generator)[:ESTIMATE_ROWS].to(self.device)
        return rows, self._nearest_members(rows, mask.nonzero().squeeze(1), poll)[0]

    def listed_value(self, mask: Tensor, poll: Poll = no_poll) -> float:
        """The listed-neighbour value, float64: rows without a listed member count as 0."""
        return self._mean(self.coverage(mask, poll).best)

    def products(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The product of each two rows, float64 ``(p,)``. left, right: int64 ``(p,)``."""
        return kernels.pair_products(self.features.cpu().numpy(), left, right)

    def _mean(self, best: Tensor) -> float:
        return float(best.double().mean())

    def gains(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        """Exact on exact lists: unlisted pairs matter only for rows whose nearest member may be farther; they meet all.

        On approximate lists, of listed pairs.
        """
        exact = self.close_coverage(mask, poll)
        total = self._listed_marginals(exact, poll).double() * self.n
        rows = torch.empty(0, dtype=torch.int64, device=self.device)
        if self.exact_lists:
            rows = self._unsure(self.coverage(mask, poll), 1)
        for part in chunks(len(rows), SIMILARITIES_AT_ONCE // self.n):
            poll()
            near = self.features[rows[part]] @ self.features.T
            gain = (near - exact.best[rows[part], None]).clamp_min(0.0)
            listed_here = self.indices[rows[part]].long()
            gain.scatter_(1, listed_here, 0.0)  # the listed pairs are already in the total
            total += gain.sum(0, dtype=torch.float64)
        # a member never gains; what the open rows added to members is rounding
        members = mask.nonzero().squeeze(1)
        loss = torch.zeros(self.n, dtype=torch.float64, device=self.device)
        loss.index_add_(0, exact.owner, (exact.best - exact.second).double())
        total[members] = loss[members]
        return total / self.n

    def final_marginals(self, mask: Tensor, poll: Poll = no_poll) -> Tensor:
        return self.gains(mask, poll)  # f does not depend on S, so the two marginals are one

    def batch(self, rows: Tensor, size: int) -> Facility:
        features = self.features[rows]
        k = min(len(rows), max(16, math.ceil(8.0 * len(rows) / max(size, 1))))
        return Facility(features, *exact_lists(features, k))

    def budgeted(self, lengths: Tensor, budget: float) -> Facility:
        """Itself: a sum over the pool, in which nothing depends on the number of members or on their lengths."""
        return self

    def random_value(self, size: int, generator: torch.Generator, poll: Poll = no_poll) -> float:
        return sampled_random_value(self, size, generator, poll)

    def missed(self, mask: Tensor) -> float:
        return float((self.coverage(mask).member_count == 0).float().mean())


def nearby_members(
    features_of: Callable[[Tensor], Tensor], rows: Tensor, members: Tensor, poll: Poll = no_poll
) -> tuple[Tensor, Tensor, Tensor]:
    """Nearest and second nearest member of rows, looked for among the members of the nearest cells.

    Every member belongs to the cell of its nearest pivot, and the pivots are members at even distances; a row is
    compared with the members of its `PROBES` nearest cells. With as many cells as a cell has members that costs
    ``PROBES / sqrt(members)`` of comparing it with all.

    Args:
        features_of: from rising rows to their unit features, float32 ``(k, d)``.
        rows: int64 ``(r,)``; members: int64 ``(m,)``; both rising.

    Returns:
        Best and second-best similarity float32 ``(r,)``, at least 0, and the best member int64 ``(r,)``. Never above
        the true ones.
    """
    step = max(1, math.isqrt(len(members)))
    pivots = features_of(members[::step])
    cells = torch.cat([(features_of(members[part]) @ pivots.T).argmax(1) for part in _parts(members, pivots, poll)])
    order = cells.argsort(stable=True)
    ends = torch.bincount(cells, minlength=len(pivots)).cumsum(0).tolist()
    probes = min(PROBES, len(pivots))
    probed = torch.cat(
        [(features_of(rows[part]) @ pivots.T).topk(probes, dim=1).indices for part in _parts(rows, pivots, poll)]
    )
    visits = probed.reshape(-1).argsort(stable=True)
    visit_ends = torch.bincount(probed.reshape(-1), minlength=len(pivots)).cumsum(0).tolist()
    best, second = torch.zeros(len(rows), device=rows.device), torch.zeros(len(rows), device=rows.device)
    owner = members[:1].repeat(len(rows))
    for cell in range(len(pivots)):
        candidates = members[order[ends[cell - 1] if cell else 0 : ends[cell]]]
        visitors = visits[visit_ends[cell - 1] if cell else 0 : visit_ends[cell]] // probes
        others = features_of(candidates).T
        for part in chunks(len(visitors), SIMILARITIES_AT_ONCE // max(len(candidates), 1)):
            poll()
            who = visitors[part]
            near = (features_of(rows[who]) @ others).topk(min(2, len(candidates)), dim=1)
            first = near.values[:, 0]
            runner_up = near.values[:, 1] if near.values.shape[1] > 1 else torch.zeros_like(first)
            before = best[who]
            second[who] = torch.maximum(torch.minimum(first, before), torch.maximum(second[who], runner_up))
            owner[who] = torch.where(first > before, candidates[near.indices[:, 0]], owner[who])
            best[who] = torch.maximum(first, before)
    return best, second, owner


def _parts(rows: Tensor, pivots: Tensor, poll: Poll) -> Iterator[slice]:
    for part in chunks(len(rows), SIMILARITIES_AT_ONCE // len(pivots)):
        poll()
        yield part


def exact_lists(features: Tensor, k: int, poll: Poll = no_poll) -> tuple[Tensor, Tensor]:
    """Exact k-nearest-neighbour lists inside a batch: indices and similarities ``(b, k)``, itself first."""
    b = len(features)
    indices = torch.empty(b, k, dtype=torch.int64, device=features.device)
    similarities = torch.empty(b, k, device=features.device)
    for part in chunks(b, SIMILARITIES_AT_ONCE // b):
        poll()
        near = features[part] @ features.T
        own = torch.arange(part.start, part.stop, device=features.device)
        near[own - part.start, own] = torch.inf
        similarities[part], indices[part] = near.topk(k, dim=1)
    similarities[:, 0] = 1.0
    return indices, similarities
