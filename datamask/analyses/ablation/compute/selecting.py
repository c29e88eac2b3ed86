"""The selection at every lambda without the held-out text, by the quickest solver there is for the objective.

Lambda means what it means in a run: the calibrated scales are those of the whole corpus, which hardly differ from those
of the remaining rows and are the same for all holdouts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from datamask import learning
from datamask.analyses.ablation.compute.kept import NOTHING_KEPT, StudyCache
from datamask.config import SelectionConfig
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem, pose
from datamask.learning.loop import learn
from datamask.learning.newton import QuadraticDual
from datamask.learning.problem import Problem
from datamask.learning.solvers import solver_of
from datamask.learning.trace import no_trace
from datamask.objectives.joint import Joint, Term
from datamask.polling import Poll, no_poll

CLOSE = 1e-4
"""Gap at which the pair-wise solver ends, as a share of the attainable gain. Selections of equal joint value within ten
times that gap differed by up to 0.1 nats in one seed of a small pool."""

STEPS, PATIENCE = 25, 4
"""Steps at most, and steps without a smaller gap: with few members per dimension the gap stays open, whatever is
done."""


def settings(objective: str, ratio: float, seed: int) -> SelectionConfig:
    """The settings of one curve; its lambda is filled in point by point."""
    return SelectionConfig.from_options(objective=objective, select_ratio=ratio, seed=seed)


def scales(pool: Pool, config: SelectionConfig, poll: Poll = no_poll) -> PosedProblem:
    """The problem on the whole corpus, whose scales all holdouts share."""
    return pose(pool, config, poll)


def select_all(
    pool: Pool,
    whole: PosedProblem,
    config: SelectionConfig,
    lambdas: Sequence[float],
    poll: Poll = no_poll,
    tick: Callable[[float], None] = lambda lamb: None,
    kept: StudyCache = NOTHING_KEPT,
) -> list[np.ndarray]:
    """Select at every lambda from the remaining rows, each by itself: what is found at one depends on no other.

    Args:
        tick: called with each lambda before it is solved.
        kept: what an earlier search of this holdout and curve selected, and where this one's selections go.

    Returns:
        int64 ``(S,)`` rows of the pool for each lambda, rising.
    """
    size = config.size(len(pool))
    terms = tuple(
        Term(term.name, term.weight, pool.function(term.name, size), term.scale) for term in whole.problem.joint.terms
    )
    ordered = any(term.function.ordered for term in terms)
    ties, eligible = pool.ties(config.seed), pool.rows(np.ones(len(pool), bool), ordered)
    selections = []
    for lamb in lambdas:
        poll()
        tick(lamb)

        def selected(lamb: float = lamb) -> np.ndarray:
            joint = Joint(pool.quality, terms, lamb, whole.problem.joint.quality_scale)
            problem = Problem(joint, size, eligible, ties, pool.features)
            return np.flatnonzero(select_quickly(problem, replace(config, lamb=lamb), poll).cpu().numpy())

        selections.append(kept.selection(f"{lamb:g}", size, len(pool)).find_or_compute(selected))
    return selections


def select_quickly(problem: Problem, config: SelectionConfig, poll: Poll) -> Tensor:
    """The selection, bool ``(n,)``."""
    solver = solver_of(problem)
    if solver.dual is not None:
        return nearly_best(problem, solver.dual(problem), poll)
    if solver.direct is not None:
        return solver.direct(problem, poll, no_trace)
    return learn(learning.load(config.estimator)(problem, config), poll=poll).mask


def nearly_best(problem: Problem, dual: QuadraticDual, poll: Poll = no_poll) -> Tensor:
    """The selection within `CLOSE` of the best, bool ``(n,)``, cut off the relaxation's weights."""
    if dual.modular:
        return problem.subset(dual.b)
    best = point = dual.begin(None, poll)
    idle = 0
    for _ in range(STEPS):
        if best.gap <= CLOSE or idle >= PATIENCE:
            break
        point = dual.advance(point, poll)
        idle = 0 if point.gap < 0.95 * best.gap else idle + 1
        best = min(best, point, key=lambda candidate: candidate.gap)
    return problem.subset(best.weights)


DRAWS = 4
"""Random selections of a seed; their mean loss is what the others are compared with."""


def random_rows(remaining: np.ndarray, size: int, split: int, half: int, seed: int) -> list[np.ndarray]:
    """`DRAWS` random selections of `size` of the remaining rows."""
    generators = [np.random.default_rng([seed, 31, split, half, draw]) for draw in range(DRAWS)]
    return [generator.choice(remaining, size, replace=False) for generator in generators]
