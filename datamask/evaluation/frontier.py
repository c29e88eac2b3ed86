"""The frontier: the best selection at each of many lambdas, with its proof, without run folders.

Everything that does not depend on lambda (anchors, bound objectives, rows that may be taken) is made once, and each
point starts from the one before.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from datamask import learning
from datamask.config import SelectionConfig
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem, pose
from datamask.learning.certificates import certify
from datamask.learning.loop import learn
from datamask.learning.solvers import solver_of
from datamask.objectives.joint import Joint
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work


@dataclass(frozen=True)
class FrontierPoint:
    """One lambda's selection.

    Attributes:
        lamb: lambda.
        quality, diversity, joint: exact values of the selection in float64, as shares of the attainable gain.
        raw_quality, raw_diversity: the same, raw.
        upper_bound, gap: no selection of this size has a higher joint value than `upper_bound`, and the selection is
            within `gap` of it; on the scale of the settings, None where there is no bound.
        steps: of the solver. seconds: for this point, bound included.
        mask: bool ``(N,)``, the selection.
    """

    lamb: float
    quality: float
    diversity: float
    joint: float
    raw_quality: float
    raw_diversity: float
    upper_bound: float | None
    gap: float | None
    steps: int
    seconds: float
    mask: np.ndarray


def frontier(
    pool: Pool,
    config: SelectionConfig,
    lambdas: Sequence[float],
    work: Work = UNWATCHED,
) -> list[FrontierPoint]:
    """Select at every lambda.

    Pair-wise similarity is solved directly (`datamask.learning.newton`), each lambda from the solution of the one
    before; every other objective by ``config.estimator``.

    Args:
        config: what to select; its lambda is not looked at.
        lambdas: each in [0, 1]; neighbours in value should be neighbours in the list.

    Raises:
        OptionError: a lambda is out of range, or the settings do not fit the pool. Stopped: from `work`.
    """
    poll = work.poll
    configs = [replace(config, lamb=float(lamb)) for lamb in lambdas]
    posed = pose(pool, config, poll)
    points: list[FrontierPoint] = []
    y: Tensor | None = None
    for place, point_config in enumerate(configs):
        work.report(place / len(configs), f"lambda {point_config.lamb:g}")
        start = time.perf_counter()
        at = at_lambda(posed, point_config.lamb)
        bound: float | None
        search = solver_of(at.problem).dual
        if search is not None:
            solution = search(at.problem).solve(y, poll=poll)
            mask, bound, steps, y = solution.mask, solution.upper_bound, solution.steps, solution.y
        else:
            mask, bound, steps = _learned(at, point_config, poll)
        values = at.problem.joint.evaluate(mask, poll)
        if bound is not None:
            bound = max(bound, values.joint)  # float64 rounding where the gap is closed
        shares = at.shares(values)
        assert shares.quality is not None and shares.diversity is not None and shares.joint is not None
        raw = sum(weight * values.raw_diversity[name] for name, weight in config.terms)
        points.append(
            FrontierPoint(
                point_config.lamb,
                shares.quality,
                shares.diversity,
                shares.joint,
                values.raw_quality,
                raw,
                bound,
                None if bound is None else bound - values.joint,
                steps,
                time.perf_counter() - start,
                mask.cpu().numpy(),
            )
        )
    work.report(1.0, "finishing")
    return points


def at_lambda(posed: PosedProblem, lamb: float) -> PosedProblem:
    """The same problem at another lambda; all that does not depend on it is shared."""

    def moved(joint: Joint) -> Joint:
        return Joint(joint.quality, joint.terms, lamb, joint.quality_scale)

    return replace(
        posed, problem=replace(posed.problem, joint=moved(posed.problem.joint)), calibrated=moved(posed.calibrated)
    )


def _learned(posed: PosedProblem, config: SelectionConfig, poll: Poll) -> tuple[Tensor, float | None, int]:
    """Mask, bound and steps of the settings' own estimator."""
    learned = learn(learning.load(config.estimator)(posed.problem, config), poll=poll)
    proof = certify(posed.problem, learned.mask, posed.problem.joint.evaluate(learned.mask, poll).joint, poll)
    return learned.mask, None if proof is None else proof.upper_bound, learned.state.step
