"""Pair-wise similarity or DiSF with fixed scale, with quality: the relaxation's dual by Newton steps, and its rounding.

Both see a subset only through s, the sum of phi over its members (`datamask.learning.moments`), so the relaxed problem

    max over p in [0, 1]^n, sum p = S, of   b . p - kappa ||s(p)||^2,      s(p) = sum of p_i phi_i

has a dual over y, of the length of phi, since ``-||s||^2 <= ||y||^2 - 2 y . s`` with equality at y = s:

    D(y) = kappa ||y||^2 + (sum of the S largest of g),      g_i = b_i - 2 kappa phi_i . y

Every D(y) is an upper bound on every selection; no y has to be optimal for that. What is bounded for pair-wise
similarity is the value on the rows as they are in float32, each divided by its exact length. The rows that they were
made from may differ from these by `UNIT_ROUNDING`, across their own direction, so `QuadraticDual.upper_bound` adds to
g_i what that makes at most in ``2 kappa x_i . y``; then it bounds the value on those rows too. Rows under ``center``
were rounded before the mean was subtracted, which magnifies that: there the bound is one of the centered rows as they
are, as it is of the standardised rows of DiSF.

D has kinks, so the steps are taken on a smoothed one: the top S become ``p = sigmoid((g - tau) / mu)`` with tau set by
sum p = S, and mu falls while the steps succeed. The Hessian is the covariance of phi near the threshold, of some
hundreds or thousands of rows; no matrix is formed, since some ten products with these rows solve a step at any width.
Frank-Wolfe mixes one vertex a step and slows down at about 1e-4 of the scale; here 10 to 20 steps reach 1e-5, and fewer
from the solution of a nearby lambda. Of many rows a uniform sample is solved first, for a start as good as that. At the
end all but some hundred rows (of second moments, some d^2 / 2) have a weight of 0 or 1, and those few are rounded with
care.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from datamask.learning.moments import Moments, OneMoment, SeveralMoments, moments_of
from datamask.learning.problem import Problem
from datamask.learning.rounding import swap_near
from datamask.polling import Poll, no_poll

STEPS = 60
TOLERANCE = 1e-5
"""Gap, on the scale of the objective, at which the steps end: a tenth of what rounding costs."""

FIRST_MU, WARM_MU, LAST_MU, MU_FALL = 0.1, 0.01, 1e-6, 4.0
"""The smoothing in standard deviations of g: at a cold start, at a warm one, at the end, and its fall per step."""

IDLE_STEPS, PROGRESS = 12, 0.95
"""After so many steps of which none left less than this share of the lowest gap, what is left is rounding."""

STEP_ERROR, MOST_PRODUCTS = 1e-3, 300
"""Of a step's equations, what may be left; and after how many products with the rows near the threshold they are left
as they are: a step half solved still leads down."""

SLOW = 60
"""Products after which the equations of few rows (`Block.formed`) are solved in as many unknowns. With `--center`
products may not do: on 20,000 rows the steps then end at a gap of 0.0034, with exact ones at 0.0031."""

NOTHING = 1e-4
"""What y takes from the objective, on its scale, below which it is no start: rows that may add up to nothing have a
slope in all directions, and steps from a y of sampling noise ended 0.01 below those from even weights."""

FLAT = 1e-12
"""Spread of g in units of g, below which it is rounding: all rows are alike."""

DECIDED = 1e-5
"""Rows with ``p (1 - p)`` below this have no say in a step."""

NEAR_ROWS = 750
"""Members that may be swapped for others, and as many of these: those of which the weights say least."""


@dataclass(frozen=True)
class DualPoint:
    """Where the dual search stands.

    Attributes:
        y: float64 ``(D,)``, stands for the sum of the members' phi.
        products: float64 ``(m,)``, phi_i . y over the eligible rows, kept from step to step.
        weights: float64 ``(m,)``, p. total: float64 ``(D,)``, s(p). mu: smoothing. tau: threshold.
        bound: D(y), on the scale of the objective. gap: D(y) - F(p).
    """

    y: Tensor
    products: Tensor
    weights: Tensor
    total: Tensor
    mu: float
    tau: float
    bound: float
    gap: float


@dataclass(frozen=True)
class DualSolution:
    """A selection, bool ``(n,)``, the bound that belongs to it (float64; it may be infinite where none was asked for),
    the y to start a neighbour from, the steps taken."""

    mask: Tensor
    upper_bound: float
    y: Tensor
    steps: int


class QuadraticDual:
    """The dual of one problem; see the module for the notation. Sizes: m eligible rows, S (`size`), D numbers in y."""

    def __init__(self, problem: Problem, known: OneMoment | None = None) -> None:
        """Args: known: phi of the eligible rows, from the dual of the same rows at another lambda; where not all rows
        are eligible, those of pair-wise similarity are copied without it."""
        joint, size = problem.joint, problem.size
        self.problem, self.size = problem, size
        scores = joint.quality.scores if problem.unreduced else joint.quality.scores[problem.eligible]
        self.b = scores.double() * (joint.lamb * joint.quality_scale.slope / size)
        # what value and bound have in common: the scales' zeros, and what is left where s is 0
        self.constant = -joint.lamb * joint.quality_scale.slope * joint.quality_scale.zero
        self.kappa, each, prices = 0.0, [], []
        for term in joint.counting:
            moments = (
                known
                if known is not None
                else moments_of(term.function, None if problem.unreduced else problem.eligible)
            )
            slope = (1 - joint.lamb) * term.weight * term.scale.slope
            each.append(moments)
            prices.append(slope * moments.per_square(size))
            self.constant += slope * (moments.most(size) - term.scale.zero)
        if each:
            self.phi: Moments = each[0]
            self.kappa = prices[0]
        if len(each) > 1:
            self.phi = SeveralMoments(each, [math.sqrt(price / self.kappa) for price in prices])

    def solve(
        self, start: Tensor | None = None, tolerance: float = TOLERANCE, poll: Poll = no_poll, prove: bool = True
    ) -> DualSolution:
        """Newton steps until the gap is closed, then a rounding.

        Args:
            start: y of a nearby problem on the same rows (another lambda), or None.
            tolerance: of the relaxation's gap, on the scale of the objective.
            prove: whether the bound is wanted.

        Raises:
            Stopped: from `poll`.
        """
        if self.modular:
            y = torch.zeros(0, dtype=torch.float64) if start is None else start
            return DualSolution(self.problem.subset(self.b), self.upper_bound(y, poll), y, 0)
        best, lowest, steps = self._search(start, tolerance, poll)
        bound = self.upper_bound(lowest.y, poll) if prove else math.inf
        return DualSolution(self.rounded(best.weights, poll), bound, best.y, steps)

    def bound(
        self,
        start: Tensor | None = None,
        tolerance: float = TOLERANCE,
        poll: Poll = no_poll,
        on_bound: Callable[[int, float], None] = lambda steps, bound: None,
    ) -> float:
        """The upper bound alone, without a selection; `on_bound` gets the steps taken and the bound so far.

        Args:
            start: y of a nearby problem, or the sum of the members of a selection; None: none is known.
        """
        if self.modular:
            return self.upper_bound(torch.zeros(0), poll)
        return self.upper_bound(self._search(start, tolerance, poll, on_bound)[1].y, poll)

    def weights(self, start: Tensor | None = None, tolerance: float = TOLERANCE, poll: Poll = no_poll) -> Tensor:
        """Inclusion weights of the eligible rows where the gap is closed, float64 ``(m,)``; they add to S, almost."""
        return self._search(start, tolerance, poll)[0].weights

    def sum_of(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        """s of weights or a mask ``(n,)`` over all rows, float64 ``(D,)``: the y of the tangent there."""
        return self.b.new_zeros(0) if self.modular else self.phi.sum(weights[self.problem.eligible], poll)

    @property
    def modular(self) -> bool:
        """Whether no diversity counts, so that the best selection is a sort and there is nothing to search."""
        return self.kappa <= 0

    @property
    def many(self) -> bool:
        """Whether a search without a start begins with that of a sample."""
        return len(self.b) >= self.phi.many_rows

    def _search(
        self,
        start: Tensor | None,
        tolerance: float,
        poll: Poll,
        on_bound: Callable[[int, float], None] = lambda steps, bound: None,
    ) -> tuple[DualPoint, DualPoint, int]:
        """The point of the smallest gap, that of the lowest bound, and the steps taken."""
        best = lowest = point = self.begin(start, poll)
        steps = idle = 0
        while best.gap > tolerance and steps < STEPS and idle < IDLE_STEPS:
            point = self.advance(point, poll)
            steps += 1
            on_bound(steps, point.bound)
            idle = 0 if point.gap < PROGRESS * best.gap else idle + 1
            if point.gap < best.gap:
                best = point
            if point.bound < lowest.bound:
                lowest = point
        return best, lowest, steps

    def begin(self, start: Tensor | None = None, poll: Poll = no_poll) -> DualPoint:
        """The first point: from a neighbour's y, else of many rows from a sample's, else from that of equal weights."""
        poll()
        if start is None and self.many:
            start = self._pilot(poll)
        if start is not None and self.leads(start):
            y, width = start, WARM_MU
        else:
            share = self.size / len(self.b)
            y, width = self.phi.sum(torch.full_like(self.b, share), poll), FIRST_MU
        along = self.phi.times(y, poll)
        g = self.scores(along)
        return self._weighed(y, along, width * _spread(g), float(g.topk(self.size, sorted=False).values.min()), poll)

    def leads(self, start: Tensor) -> bool:
        """Whether a y is a start."""
        return len(start) == self.phi.length and self.kappa * float(start @ start) >= NOTHING

    def _pilot(self, poll: Poll) -> Tensor:
        """The y of the same problem on a uniform sample of the rows, scaled so that its dual is about that of all."""
        count = self.phi.pilot_rows
        rows = self.problem.ties[self.problem.eligible].topk(count, largest=False, sorted=False).indices
        share, pilot = count / len(self.b), copy.copy(self)
        pilot.phi, pilot.b = self.phi.some(rows), self.b[rows] / share
        pilot.kappa, pilot.size = self.kappa / share**2, max(1, round(self.size * share))
        return pilot._search(None, TOLERANCE, poll)[0].y / share

    def at(self, y: Tensor, mu: float, tau: float, poll: Poll = no_poll) -> DualPoint:
        """The point that a checkpoint stands for."""
        return self._weighed(y, self.phi.times(y, poll), mu, tau, poll)

    def advance(self, point: DualPoint, poll: Poll = no_poll, fresh: bool = False) -> DualPoint:
        """One damped Newton step on the smoothed dual; after a whole one, mu falls.

        Args:
            fresh: products are computed anew, as `at` computes them, and not carried on: a small mu tells both apart.
        """
        g = self.scores(point.products)
        residual = point.total - point.y
        step = self._newton_step(point.weights, residual, point.mu / (2 * self.kappa), poll)
        along = self.phi.times(step, poll)
        value = self._smoothed(point.y, g, point.mu, point.tau)
        slope = -2 * self.kappa * float(residual @ step)
        share_of_step = 1.0
        while True:
            poll()
            y, after_step = point.y + share_of_step * step, point.products + share_of_step * along
            g_after = self.scores(after_step)
            tau = self._threshold(g_after, point.mu, point.tau)
            after = self._smoothed(y, g_after, point.mu, tau)
            if after <= value + 0.25 * share_of_step * slope or share_of_step < 1e-3:
                break
            share_of_step /= 2
        mu = max(point.mu / MU_FALL, LAST_MU * _spread(g)) if share_of_step == 1.0 else point.mu
        return self._weighed(y, self.phi.times(y, poll) if fresh else after_step, mu, tau, poll)

    def _newton_step(self, weights: Tensor, residual: Tensor, smooth: float, poll: Poll) -> Tensor:
        """v, float64 ``(D,)``, with ``(smooth + H) v = smooth residual`` to `STEP_ERROR`, by conjugate gradients.

        H is the covariance of phi by the weights ``p (1 - p)``, which is never formed: a few products with the rows
        near the threshold do, since its spectrum falls fast and `smooth` lifts what is left of it.
        """
        spread = weights * (1 - weights)
        rows = (spread > DECIDED).nonzero().squeeze(1)
        apart = math.ceil(len(rows) / self.phi.band_rows)
        if apart > 1 or 2 * len(rows) < len(spread):  # else a copy would take as much memory as the features
            count, rows = len(rows), rows[:: max(apart, 1)]
            near, spread = self.phi.block(rows), spread[rows] * (count / max(len(rows), 1))
        else:
            near = self.phi.block(None)
        spread = spread.to(near.dtype)
        center = near.sum(spread) / spread.sum().clamp_min(torch.finfo(spread.dtype).tiny)
        step, left = torch.zeros_like(residual), smooth * residual
        direction, square = left, float(left @ left)
        enough = STEP_ERROR**2 * square
        for products_done in range(MOST_PRODUCTS):
            if square <= enough:
                break
            poll()
            if products_done == SLOW and (formed := near.formed()) is not None:
                return self._solved(formed, spread.double(), residual, smooth)
            along = direction.to(spread.dtype)
            share = spread * (near.times(along) - center @ along)
            curved = (near.sum(share) - share.sum() * center).double() + smooth * direction
            length = square / float(direction @ curved)
            step, left = step + length * direction, left - length * curved
            square, before = float(left @ left), square
            direction = left + (square / before) * direction
        return step

    @staticmethod
    def _solved(rows: Tensor, spread: Tensor, residual: Tensor, smooth: float) -> Tensor:
        """The same v from few rows ``(k, d)``, exact: ``residual - B'(smooth + BB')^-1 B residual``, ``H = B'B``."""
        b = (rows - spread @ rows / spread.sum()) * spread.sqrt()[:, None]
        gram = b @ b.T
        gram.diagonal().add_(smooth)
        v: Tensor = residual - b.T @ torch.linalg.solve(gram, b @ residual)
        return v

    def upper_bound(
        self, y: Tensor, poll: Poll = no_poll, rounding: float | None = None, along: Tensor | None = None
    ) -> float:
        """No selection of S eligible samples has a higher value of the objective on these features.

        Args:
            y: float64 ``(D,)``, any; the lowest bound is that of the solution.
            rounding: how far the rows may lie from those that the bound is to hold for; 0: it holds for the rows as
                they are in float32; None: `Moments.rounding`.
            along: float64 ``(m,)``, phi_i . y where it is known; None: it is computed, in float64.
        """
        if self.modular:
            return self.constant + float(self.b.topk(self.size, sorted=False).values.sum())
        if along is None:
            along = self.phi.times(y, poll, wide=True)
        if rounding is None:
            rounding = self.phi.rounding
        g, square = self.scores(along), float(y @ y)
        if rounding:
            # a row moves across its own direction only, so y's part in that direction does not count
            g += 2 * self.kappa * rounding * (square - along.square()).clamp_min(0.0).sqrt()
        return self.constant + self.kappa * square + float(g.topk(self.size, sorted=False).values.sum())

    def scores(self, along: Tensor) -> Tensor:
        """g, float64 ``(m,)``: what each row is worth where phi_i . y are these."""
        return self.b - 2 * self.kappa * along

    # -- the smoothed top S ------------------------------------------------------------------------------------

    def _weighed(self, y: Tensor, along: Tensor, mu: float, tau: float, poll: Poll) -> DualPoint:
        g = self.scores(along)
        tau = self._threshold(g, mu, tau)
        weights = torch.sigmoid((g - tau) / mu)
        s = self.phi.sum(weights, poll)
        bound = self.upper_bound(y, poll, rounding=0.0, along=along)
        excess = float(weights.sum()) - self.size  # each row too many is worth tau
        gap = bound - self.constant - float(self.b @ weights) + tau * excess + self.kappa * float(s @ s)
        return DualPoint(y, along, weights, s, mu, tau, bound, gap)

    def _smoothed(self, y: Tensor, g: Tensor, mu: float, tau: float) -> float:
        over = torch.nn.functional.softplus((g - tau) / mu)
        return self.kappa * float(y @ y) + mu * float(over.sum()) + tau * self.size

    def _threshold(self, g: Tensor, mu: float, tau: float) -> float:
        """tau with ``sum sigmoid((g - tau) / mu) = S``: Newton's steps, kept between what is known to be too low and
        too high."""
        size, low, high = self.size, float(g.min()) - 50 * mu, float(g.max()) + 50 * mu
        tau = min(max(tau, low), high)
        for _ in range(80):
            p = torch.sigmoid((g - tau) / mu)
            excess = float(p.sum()) - size
            if abs(excess) <= 1e-6 * size:
                break
            low, high = (tau, high) if excess > 0 else (low, tau)
            fall = float((p * (1 - p)).sum()) / mu
            tau = tau + excess / fall if fall > 0 else low
            if not low < tau < high:
                tau = (low + high) / 2
        return tau

    # -- rounding ----------------------------------------------------------------------------------------------

    def rounded(self, weights: Tensor, poll: Poll = no_poll) -> Tensor:
        """A mask ``(n,)`` near weights ``(m,)``: the S largest, or S drawn by them where many rows are undecided, in
        both cases after the best swaps among the rows nearest to a half; whichever is worth more."""
        starts = weights, self._drawn(weights).double() + weights / 2
        masks = [self._swapped(self.problem.subset(start), weights, poll) for start in starts]
        return max(masks, key=lambda mask: self.problem.joint.evaluate(mask, poll).joint)

    def _swapped(self, mask: Tensor, weights: Tensor, poll: Poll) -> Tensor:
        """A selection ``(n,)`` after swaps among `NEAR_ROWS` members and as many others nearest to a half."""
        members, near = mask[self.problem.eligible], []
        for side in (members, ~members):
            rows = side.nonzero().squeeze(1)
            near.append(rows[(weights[rows] - 0.5).abs().topk(min(NEAR_ROWS, len(rows)), largest=False).indices])
        open_rows = torch.cat(near)
        inside = members[open_rows].cpu().numpy()
        members[open_rows] = False
        parts = self.phi.parts(self.kappa, open_rows, self.phi.sum(members, poll))
        swap_near(inside, self.b[open_rows].cpu().numpy(), parts, poll)
        members[open_rows] = torch.from_numpy(inside).to(members.device)
        return self.problem.whole(members)

    def _drawn(self, weights: Tensor) -> Tensor:
        """About S rows, bool ``(m,)``, each with its weight as the chance, evenly along the order that cuts ties."""
        order = self.problem.ties[self.problem.eligible].argsort()
        passed = weights[order].clamp(0.0, 1.0).cumsum(0)
        turns = (passed * (self.size / passed[-1]) + 0.5).floor()
        drawn = torch.zeros(len(weights), dtype=torch.bool, device=weights.device)
        drawn[order] = turns.diff(prepend=turns.new_zeros(1)) > 0
        return drawn


def _spread(g: Tensor) -> float:
    """Standard deviation, for g of any size; where all are equal, a little, so that the smoothing stays one."""
    spread, largest = float(g.std()), float(g.abs().max())
    if not math.isfinite(spread):  # the squares of very large numbers
        spread = largest * float((g / largest).std())
    return max(spread, FLAT * (largest if largest > 0 else 1.0))
