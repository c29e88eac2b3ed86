"""How a live lambda is solved and answered between solved ones, for each kind of objective.

PairwiseMethod    Newton's steps from the nearest lambda; between two, at their interpolated dual solution
RelaxedMethod     pair-wise similarity under rules or tokens: Frank-Wolfe from the nearest lambda's inclusion weights,
                  rounded and swapped; between two, the best allowed cut at their interpolated weights
CurvedMethod      Vendi: as those, but between two nothing at once
FacilityMethod    greedy and swaps; between two, greedy alone from the rows that both selected
LearnedMethod     the settings' own estimator, from the nearest lambda; between two, nothing at once
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue, learning
from datamask.config import SelectionConfig
from datamask.evaluation.lambda_path import DualProducts, LambdaPath, SolvedLambda
from datamask.evaluation.problems import PosedProblem
from datamask.learning.certificates import certify
from datamask.learning.facility_solver import greedily, medoids
from datamask.learning.loop import learn
from datamask.learning.medoids import reverse_lists
from datamask.learning.moments import moments_of
from datamask.learning.newton import QuadraticDual
from datamask.learning.polish import polish
from datamask.learning.problem import Problem
from datamask.learning.relaxation import bounded, concave, rounded
from datamask.learning.warm_start import WarmStart
from datamask.objectives.budgeted import BudgetedPairwise
from datamask.objectives.contract import SetFunction
from datamask.objectives.facility import Facility
from datamask.objectives.pairwise import Pairwise
from datamask.objectives.vendi import BudgetedVendi, Vendi
from datamask.polling import Poll

FARTHEST = 0.2
"""In lambda: a learner starts from no farther."""

TOLERANCE = 1e-4
"""Gap at which the warm-started dual search ends: a hundredth of what the page shows."""

RELAXED_STEPS = 60
"""Of Frank-Wolfe at most per lambda, as many as the estimator `relaxed` takes; from a neighbour's weights some ten."""

RELAXED_TOLERANCE = 1e-5
"""Gap of the relaxation at which Frank-Wolfe ends; rounding costs as much."""

WORTH_SWAPS = 5e-5
"""Distance of a rounding from its bound above which swaps follow: half of what the page shows. On 20,000 rows they took
as long as all steps, and found 0 under quotas and 2e-5 under a token budget."""

EXACT_PAIRS = 5e7
"""Uncovered rows times members up to which facility's exact value is computed at once; beyond, the listed value."""


@dataclass(frozen=True)
class Solution:
    """A selection, bool ``(n,)``, its bound where it comes with one, and what the next lambda can start from.

    Attributes: as those of `SolvedLambda`.
    """

    mask: Tensor
    upper: float | None = None
    dual: DualProducts | None = None
    logits: Tensor | None = None
    weights: Tensor | None = None


class LiveMethod(abc.ABC):
    """Solves one posed problem at any lambda.

    Args:
        posed: the problem, on the calibrated scale. path: the lambdas solved so far.
    """

    quick = True
    """Whether it can answer at once between two solved lambdas."""

    def __init__(self, posed: PosedProblem, config: SelectionConfig, path: LambdaPath) -> None:
        self.posed, self.config, self.path = posed, config, path
        self.term = posed.calibrated.terms[0]

    @abc.abstractmethod
    def solve(self, problem: Problem, lamb: float, poll: Poll) -> Solution:
        """What a run would find."""

    def between(self, problem: Problem, lamb: float, poll: Poll) -> Solution | None:
        """What can be made at once between two solved lambdas; None: nothing, or there are not two."""
        return None

    def bound(self, problem: Problem, mask: Tensor, joint: float, lamb: float, poll: Poll) -> float | None:
        """What bounds an answer made at once, where the answer brought no bound; None: nothing."""
        return None

    def diversity(self, mask: Tensor) -> tuple[float, bool]:
        """The raw value of the diversity term, and whether it is the exact one."""
        return self.term.function.value(mask), True

    def whole(self, solved: SolvedLambda) -> np.ndarray:
        """A solved selection with the given rows, as problems know it: bool ``(n,)``."""
        members: np.ndarray = solved.mask | self.posed.given
        return members

    @property
    def provable(self) -> bool:
        """Whether bounds are of the objective itself."""
        return True


class PairwiseMethod(LiveMethod):
    """Pair-wise similarity, in d unknowns."""

    def __init__(self, posed: PosedProblem, config: SelectionConfig, path: LambdaPath) -> None:
        super().__init__(posed, config, path)
        function, problem = self.term.function_of(Pairwise), posed.problem
        self._rows = moments_of(function, None if problem.unreduced else problem.eligible)

    def solve(self, problem: Problem, lamb: float, poll: Poll) -> Solution:
        near = self.path.nearest(lamb, lambda solved: solved.dual)
        solution = QuadraticDual(problem, self._rows).solve(None if near is None else near[1].y, TOLERANCE, poll)
        products = DualProducts(solution.y, self._rows.times(solution.y, poll).float())
        return Solution(solution.mask, solution.upper_bound, products)

    def between(self, problem: Problem, lamb: float, poll: Poll) -> Solution | None:
        pair = self.path.bracket(lamb, lambda solved: solved.dual)
        if pair is None:
            return None
        (below, low), (above, high) = pair
        share = (lamb - below) / (above - below)
        y, products = torch.lerp(low.y, high.y, share), torch.lerp(low.products, high.products, share).double()
        dual = QuadraticDual(problem, self._rows)
        upper = dual.upper_bound(y, poll, rounding=0.0, along=products)
        return Solution(dual.problem.subset(dual.scores(products)), upper)

    def diversity(self, mask: Tensor) -> tuple[float, bool]:
        return float(self.term.function.values(mask[None])[0]), True  # float32: good to a millionth, quick


class RelaxedMethod(LiveMethod):
    """Concave objectives, as pair-wise similarity under rules or a token budget, in a weight per eligible row."""

    def solve(self, problem: Problem, lamb: float, poll: Poll) -> Solution:
        near = self.path.nearest(lamb, lambda solved: solved.weights)
        start = None if near is None else self._spread(near[1])
        iterate, upper = bounded(problem, start, RELAXED_STEPS, RELAXED_TOLERANCE, poll)
        mask, values = rounded(problem, iterate, poll)
        if upper - values.joint > WORTH_SWAPS:
            mask = polish(problem, mask, poll)
        return Solution(mask, upper, weights=iterate.weights[problem.eligible].float())

    def between(self, problem: Problem, lamb: float, poll: Poll) -> Solution | None:
        pair = self.path.bracket(lamb, lambda solved: solved.weights)
        if pair is None:
            return None
        (below, low), (above, high) = pair
        weights = self._spread(torch.lerp(low, high, (lamb - below) / (above - below)))
        value, gradient = concave(problem, weights, poll)
        gains = gradient[problem.eligible]
        mask = problem.subset(problem.limits.priority(gains))
        # under rules the best cut by gains is a selection already, and sorting takes as long as the gains themselves
        vertex = problem.vertex(gains) if problem.limits.by_tokens else mask.double()
        return Solution(mask, value + float(gradient @ (vertex - weights)))

    def _spread(self, weights: Tensor) -> Tensor:
        """Weights ``(m,)`` of the eligible rows as float64 ``(n,)``."""
        problem = self.posed.problem
        whole = torch.zeros(problem.joint.n, dtype=torch.float64, device=weights.device)
        whole[problem.eligible] = weights.double()
        return whole


class CurvedMethod(RelaxedMethod):
    """Vendi, whose gradient takes too long for an answer at once: a second for 60,000 rows of 384 dimensions."""

    quick = False

    def between(self, problem: Problem, lamb: float, poll: Poll) -> Solution | None:
        return None


class FacilityMethod(LiveMethod):
    """Facility location, on its neighbour lists."""

    def __init__(self, posed: PosedProblem, config: SelectionConfig, path: LambdaPath) -> None:
        super().__init__(posed, config, path)
        problem = posed.problem
        self._facility = self.term.function_of(Facility)
        self._lists = reverse_lists(self._facility.indices.cpu().numpy(), self._facility.similarities.cpu().numpy())
        self._order = np.empty(problem.joint.n, dtype=np.int64)
        self._order[np.argsort(problem.ties.cpu().numpy(), kind="stable")] = np.arange(problem.joint.n)

    def solve(self, problem: Problem, lamb: float, poll: Poll) -> Solution:
        return Solution(medoids(problem, poll))

    def between(self, problem: Problem, lamb: float, poll: Poll) -> Solution | None:
        pair = self.path.bracket(lamb, lambda solved: solved)
        if pair is None:
            return None
        common = (self.whole(pair[0][1]) & self.whole(pair[1][1])).nonzero()[0]
        return Solution(greedily(problem, self._lists, self._order, common, poll))

    def bound(self, problem: Problem, mask: Tensor, joint: float, lamb: float, poll: Poll) -> float | None:
        pair = self.path.bracket(lamb, lambda solved: solved.prices)
        if pair is None:
            return None
        (low, below), (high, above) = pair
        share = np.float32((lamb - low) / (high - low))
        prices = ((1 - share) * below + share * above).astype(np.float64)
        # one step of the dual: the bound of these prices as they are
        proof = certify(problem, mask, joint, poll, 1, prices)
        return None if proof is None else proof.upper_bound

    def diversity(self, mask: Tensor) -> tuple[float, bool]:
        function = self._facility
        coverage = function.coverage(mask)
        open_rows = int((coverage.member_count == 0).sum())
        if open_rows * int(mask.sum()) <= EXACT_PAIRS:
            return function.value(mask), function.exact_lists  # of listed pairs, and a little low, on approximate ones
        return float(coverage.best.double().mean()), False

    @property
    def provable(self) -> bool:
        return self._facility.exact_lists


class LearnedMethod(LiveMethod):
    """Any other objective."""

    quick = False

    def solve(self, problem: Problem, lamb: float, poll: Poll) -> Solution:
        """By the settings' estimator, from the nearest solved lambda on."""
        config = replace(self.config, lamb=lamb)
        weights = config.estimator == "relaxed"
        near, start = self.path.nearest(lamb, lambda solved: solved.logits, FARTHEST), None
        if near is not None and catalogue.objective(config.objective).warm:
            solved, logits = near
            start = WarmStart(
                torch.from_numpy(self.whole(solved)).to(logits.device),
                logits.double().nan_to_num(-torch.inf),
                logits.double() if weights else None,
                None if weights else logits,
            )
        estimator = learning.load(config.estimator)(problem, config, start=start)
        learned = learn(estimator, poll=poll)
        if not weights:
            return Solution(learned.mask, logits=estimator.logits(learned.state))
        reached = estimator.inclusion(learned.state, poll)
        return Solution(learned.mask, logits=None if reached is None else reached.float())


METHODS: dict[type[SetFunction], type[LiveMethod]] = {
    Pairwise: PairwiseMethod,
    BudgetedPairwise: RelaxedMethod,
    Vendi: CurvedMethod,
    BudgetedVendi: CurvedMethod,
    Facility: FacilityMethod,
}
"""Objective -> its method; any other is learned."""


def method_of(problem: Problem) -> type[LiveMethod]:
    """The method for a problem: by its one objective, and by whether rules limit it."""
    method = METHODS.get(type(problem.joint.terms[0].function), LearnedMethod)
    return RelaxedMethod if method is PairwiseMethod and problem.limits.limited else method
