"""What random rows and the best scores are worth under the rules of a problem: what its selections are held against."""

from __future__ import annotations

import numpy as np
import torch

from datamask.evaluation.problems import PosedProblem
from datamask.measured import BASELINE_DRAWS, Baselines, BaselineValues
from datamask.polling import Poll, no_poll


def baselines_of(posed: PosedProblem, poll: Poll = no_poll) -> Baselines:
    """Value the baselines `random`, with seeds from 0, and `top-quality`, each under the rules or the token budget.

    Args:
        posed: of one objective; values of a sum of several have no common unit.
    """
    problem, ((name, anchor),) = posed.problem, posed.diversity_anchors.items()
    scores = problem.joint.quality.scores[problem.eligible]
    draws = []
    for seed in range(BASELINE_DRAWS):
        keys = torch.rand(len(scores), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        draws.append(_values(posed, keys.to(scores), poll))
    values = [[draw.score, draw.raw, draw.quality, draw.diversity] for draw in draws]
    score, raw, quality, diversity = np.mean(values, axis=0).tolist()
    return Baselines(
        name,
        (anchor.random, anchor.best),
        not posed.calibrated.terms[0].function.lower_bound,
        BaselineValues(score, raw, quality, diversity, draws[0].bits),
        _values(posed, scores, poll),
    )


def _values(posed: PosedProblem, scores: torch.Tensor, poll: Poll) -> BaselineValues:
    """Of the rows with the highest scores under the rules, the given ones aside where rows are counted."""
    poll()
    mask = posed.problem.subset(scores)
    joint = posed.calibrated
    term = joint.terms[0]
    diversity = term.function.value(mask, poll)
    rows = mask.cpu().numpy() & ~posed.given
    quality, lengths = joint.quality.scores.cpu().numpy()[rows], None
    if posed.problem.limits.lengths is not None:
        lengths = np.zeros(len(mask))
        lengths[posed.problem.eligible.cpu().numpy()] = posed.problem.limits.lengths
        lengths = lengths[rows]
    share = joint.quality_scale(joint.quality.value(mask))
    score, gain = float(np.average(quality, weights=lengths)), float(term.scale(diversity))
    return BaselineValues(score, diversity, float(share), gain, np.packbits(rows).tobytes())
