"""A problem kept ready for a slider: posed once, answered at any lambda within a fraction of a second.

Two kinds of answers. `Live.solve` is the selection that a run would find, warm-started from the nearest lambda solved
before. `Live.answer` is quicker: an exact repeat where that lambda was solved; else, for pair-wise similarity, the best
selection at the interpolated dual solution of its neighbours, which comes with a bound of its own (every dual point has
one), and for facility location the lazy greedy without its swaps. Both are real selections with their own values.

Not thread-safe: one caller at a time (`datamask.dashboard.live` sees to it).
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.frontier import at_lambda
from datamask.evaluation.pool import Pool, Progress
from datamask.evaluation.posing import Posed, pose
from datamask.learning.device import resolve
from datamask.learning.medoids import LazyGreedy, reverse_lists
from datamask.learning.newton import PairwiseDual
from datamask.learning.polish import medoids
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.facility import Facility
from datamask.objectives.pairwise import Pairwise

GRID = (*(round(0.05 * k, 2) for k in range(20)), 0.99, 1.0)
"""Lambdas to solve first: the answers between them then stay within 1e-4 of the best for pair-wise similarity."""

KEPT = 64
"""Lambdas remembered: at a million rows 4 MB each, for the products; the masks are packed."""

TOLERANCE = 1e-4
"""Gap at which the warm-started dual search ends: a hundredth of what the page shows."""

EXACT_PAIRS = 5e7
"""Uncovered rows times members up to which facility's exact value is computed at once; beyond, the listed value."""


@dataclass(frozen=True)
class Answer:
    """A selection at one lambda.

    Attributes:
        lamb: lambda.
        mask: bool ``(n,)``.
        quality, diversity, joint: as shares of the attainable gain.
        gap: no selection has a joint value more than this above; None where nothing is proved.
        exact: whether diversity is the objective's value; false: facility's listed-neighbour value, never above it.
        solved: whether this is what a run finds, rather than the quick answer.
        seconds: it took.
    """

    lamb: float
    mask: np.ndarray
    quality: float
    diversity: float
    joint: float
    gap: float | None
    exact: bool
    solved: bool
    seconds: float


@dataclass
class _Known:
    """A solved lambda: its answer without the mask, which is packed, and for pair-wise the dual solution and its
    products with the rows."""

    answer: Answer
    bits: np.ndarray
    y: Tensor | None = None
    products: Tensor | None = None


def fits(config: SelectionConfig) -> bool:
    """Whether these settings can follow a slider: pair-wise similarity or facility location alone, without rules."""
    free = not config.ruled and config.budget is None
    return config.objective in ("pairwise", "facility") and free and config.scale == "calibrated"


def open_live(corpus: Corpus, config: SelectionConfig, cache_dir: Path, poll: Poll = no_poll,
              progress: Progress | None = None) -> Live:
    """Bind a corpus and pose the problem; the neighbour graph, where one is needed, reports its progress.

    Raises:
        OptionError, Stopped: as `Live`.
    """
    pool = Pool(corpus, resolve(config.device), cache_dir, poll=poll, progress=progress, center=config.center,
                neighbors=config.neighbors)
    return Live(pool, config, poll)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Compute on so many CPU threads, in this thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Live:
    """One posed problem and the lambdas solved so far.

    Args:
        pool: the corpus. config: what to select; its lambda is not looked at.

    Raises:
        OptionError: the settings cannot follow a slider, or do not fit the pool. Stopped: from `poll`.
    """

    def __init__(self, pool: Pool, config: SelectionConfig, poll: Poll = no_poll) -> None:
        if not fits(config):
            raise OptionError(f"a live lambda needs --objective pairwise or facility without rules, on the calibrated "
                              f"scale, got {config.objective}")
        self.posed: Posed = pose(pool, config, poll)
        self._known: OrderedDict[float, _Known] = OrderedDict()
        term = self.posed.calibrated.terms[0]
        self._term = term
        self._flat = term.scale.slope <= 0
        problem = self.posed.problem
        if isinstance(term.function, Pairwise):
            whole = len(problem.eligible) == problem.joint.n
            self._rows = term.function.features if whole else term.function.features[problem.eligible]
        elif isinstance(term.function, Facility):
            function = term.function
            self._lists = reverse_lists(function.indices.cpu().numpy(), function.similarities.cpu().numpy())
            self._order = np.empty(problem.joint.n, dtype=np.int64)
            self._order[np.argsort(problem.ties.cpu().numpy(), kind="stable")] = np.arange(problem.joint.n)

    @property
    def lambdas(self) -> list[float]:
        """The lambdas solved so far, rising."""
        return sorted(self._known)

    def solve(self, lamb: float, poll: Poll = no_poll) -> Answer:
        """The selection that a run would find; remembered.

        Raises:
            Stopped: from `poll`.
        """
        start = time.perf_counter()
        problem = at_lambda(self.posed, lamb).problem
        y = products = bound = None
        if not problem.joint.counting:
            mask, bound = self._by_quality(lamb)
        elif isinstance(self._term.function, Pairwise):
            dual = PairwiseDual(problem, self._rows)
            found = dual.solve(self._nearest(lamb), TOLERANCE, poll)
            mask, bound, y = found.mask, found.upper_bound, found.y
            products = self._rows @ y.float()
        else:
            mask = medoids(problem, poll)
        answer = self._answer(lamb, mask, bound, True, start)
        self._known[lamb] = _Known(replace(answer, mask=answer.mask[:0]), np.packbits(answer.mask), y, products)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return answer

    def answer(self, lamb: float, poll: Poll = no_poll) -> Answer:
        """The quickest honest answer at a lambda; solves it where nothing near is known.

        Raises:
            Stopped: from `poll`.
        """
        if (known := self._known.get(lamb)) is not None:
            return replace(known.answer, mask=np.unpackbits(known.bits, count=self.posed.problem.joint.n).astype(bool))
        start = time.perf_counter()
        if self._flat or lamb >= 1:
            return self.solve(lamb, poll)
        if isinstance(self._term.function, Facility):
            common = self._common(lamb)
            if common is None:
                return self.solve(lamb, poll)
            return self._answer(lamb, self._greedy(lamb, common, poll), None, False, start)
        between = self._between(lamb)
        if between is None:
            return self.solve(lamb, poll)
        y, products = between
        dual = PairwiseDual(at_lambda(self.posed, lamb).problem, self._rows)
        g = dual.b - 2 * dual.kappa * products
        bound = dual.constant + dual.kappa * float(y @ y) + float(g.topk(dual.problem.size).values.sum())
        return self._answer(lamb, dual.problem.subset(g), bound, False, start)

    def keeping(self, quality: float, poll: Poll = no_poll) -> Answer:
        """The answer at the smallest lambda, in thousandths, that keeps this share of the attainable quality.

        Quality rises with lambda along optima, so ten answers find it. At a share that none keeps: lambda 1.

        Raises:
            Stopped: from `poll`.
        """
        low, high, found = -1, 1_000, None
        while high - low > 1:
            middle = (low + high) // 2
            here = self.answer(middle / 1_000, poll)
            if here.quality >= quality:
                high, found = middle, here
            else:
                low = middle
        return found or self.answer(1.0, poll)

    # -- parts -------------------------------------------------------------------------------------------------

    def _by_quality(self, lamb: float) -> tuple[Tensor, float]:
        """The best selection where no diversity term counts, and its joint value, which nothing surpasses."""
        problem, joint = self.posed.problem, self.posed.calibrated
        scores = joint.quality.scores[problem.eligible]
        best = float(scores.topk(problem.size).values.double().mean())
        return problem.subset(scores), lamb * float(joint.quality_scale(best))

    def _nearest(self, lamb: float) -> Tensor | None:
        known = [(abs(other - lamb), found.y) for other, found in self._known.items() if found.y is not None]
        return min(known, key=lambda pair: pair[0])[1] if known else None

    def _between(self, lamb: float) -> tuple[Tensor, Tensor] | None:
        """The dual solution between the two solved neighbours, and its products with the rows; None: not two."""
        solved = [other for other, found in sorted(self._known.items()) if found.y is not None]
        below, above = [o for o in solved if o < lamb], [o for o in solved if o > lamb]
        if not below or not above:
            return None
        low, high = self._known[below[-1]], self._known[above[0]]
        share = (lamb - below[-1]) / (above[0] - below[-1])
        return torch.lerp(low.y, high.y, share), torch.lerp(low.products, high.products, share).double()

    def _common(self, lamb: float) -> np.ndarray | None:
        """Rows that both solved neighbours selected, int64; None: there are not two."""
        below, above = [o for o in self.lambdas if o < lamb], [o for o in self.lambdas if o > lamb]
        if not below or not above:
            return None
        both = self._known[below[-1]].bits & self._known[above[0]].bits
        return np.unpackbits(both, count=self.posed.problem.joint.n).nonzero()[0]

    def _greedy(self, lamb: float, common: np.ndarray, poll: Poll) -> Tensor:
        joint, problem = self.posed.calibrated, self.posed.problem
        eligible = problem.eligible.cpu().numpy()
        # quality per member, in the units of the summed similarities
        exchange = lamb / (1 - lamb) * joint.quality_scale.slope / self._term.scale.slope * joint.n / problem.size
        bonus = np.full(joint.n, -np.inf)
        bonus[eligible] = (joint.quality.scores - joint.quality.mean).double().cpu().numpy()[eligible] * exchange
        solver = LazyGreedy(*self._lists, bonus, problem.size, self._order, picks=common)
        while solver.done < problem.size:
            poll()
            solver.advance()
        mask = torch.zeros(joint.n, dtype=torch.bool, device=joint.device)
        mask[torch.from_numpy(solver.picks).to(joint.device)] = True
        return mask

    def _answer(self, lamb: float, mask: Tensor, bound: float | None, solved: bool, start: float) -> Answer:
        joint = self.posed.calibrated
        quality = float(joint.quality_scale(joint.quality.value(mask)))
        raw, exact = self._diversity(mask)
        diversity = float(self._term.scale(raw))
        value = lamb * quality + (1 - lamb) * diversity
        return Answer(lamb, mask.cpu().numpy(), quality, diversity, value,
                      None if bound is None else max(bound - value, 0.0), exact, solved, time.perf_counter() - start)

    def _diversity(self, mask: Tensor) -> tuple[float, bool]:
        """The raw value of the diversity term, and whether it is the exact one."""
        function = self._term.function
        if isinstance(function, Pairwise):
            return float(function.values(mask[None])[0]), True  # float32: good to a millionth, quick
        coverage = function.coverage(mask)
        open_rows = int((coverage.found == 0).sum())
        if open_rows * int(mask.sum()) <= EXACT_PAIRS:
            return function.value(mask), True
        return float(coverage.best.double().mean()), False
