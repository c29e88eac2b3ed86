"""Pose a problem: from a pool and a selection's settings to the objective, its scales and the rows that may be
taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from datamask.config import SelectionConfig
from datamask.corpus.copies import families
from datamask.errors import OptionError
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool
from datamask.learning.masks import top
from datamask.learning.problem import Problem
from datamask.objectives.contract import Poll, no_poll
from datamask.objectives.joint import Anchor, Joint, Scale, Term, Values

NEAR_COPY_NEIGHBORS = 64


@dataclass(frozen=True)
class Posed:
    """A problem with what is needed to report on it.

    Attributes:
        problem: with the objective on the scale of the settings.
        calibrated: the same objective on the calibrated scale.
        quality_anchor, diversity_anchors: the ends of the calibrated scales.
    """

    problem: Problem
    calibrated: Joint
    quality_anchor: Anchor
    diversity_anchors: dict[str, Anchor]

    def shares(self, values: Values) -> dict[str, float]:
        """Raw values as shares of the attainable gain: ``quality``, ``diversity``, ``joint``."""
        joint = self.calibrated
        quality = joint.quality_scale(values.raw_quality)
        diversity = sum(term.weight * term.scale(values.raw_diversity[term.name]) for term in joint.terms)
        return {"quality": quality, "diversity": diversity,
                "joint": joint.lamb * quality + (1 - joint.lamb) * diversity}

    def anchors(self) -> dict:
        """The anchors as plain values, as they are stored."""
        return {"quality": self.quality_anchor.to_dict(),
                "diversity": {name: anchor.to_dict() for name, anchor in self.diversity_anchors.items()}}

    def switched_off(self) -> list[str]:
        """A sentence for every term that no selection can change."""
        named = {"quality": self.quality_anchor, **self.diversity_anchors}
        return [f"{name} is the same for every selection of this size, so it is switched off"
                for name, anchor in named.items() if anchor.constant]


def pose(pool: Pool, config: SelectionConfig, poll: Poll = no_poll) -> Posed:
    """Bind the objectives, find the anchors, leave out pruned rows and collapsed copies.

    Raises:
        OptionError: the ratio selects none or all, or too few rows are left to select from.
    """
    size = config.size(len(pool))
    eligible = _eligible(pool, config, size)
    quality = quality_anchor(pool, size)
    diversity = {name: diversity_anchor(pool, name, size, poll) for name, _ in config.terms}

    def joint(calibrated: bool) -> Joint:
        def scale(anchor: Anchor) -> Scale:
            return Scale.calibrated(anchor) if calibrated else Scale()
        terms = tuple(Term(name, weight, pool.function(name, size), scale(diversity[name]))
                      for name, weight in config.terms)
        return Joint(pool.quality, terms, config.lamb, scale(quality))

    problem = Problem(joint(config.scale == "calibrated"), size, eligible, pool.ties(config.seed), pool.features)
    return Posed(problem, joint(True), quality, diversity)


def _eligible(pool: Pool, config: SelectionConfig, size: int) -> Tensor:
    """Rows that may be selected: all, less collapsed copies and the worst by quality."""
    n = len(pool)
    keep = np.ones(n, dtype=bool)
    if config.collapse != "none":
        graph = None if config.collapse == "exact" else pool.graph(NEAR_COPY_NEIGHBORS)
        keep &= families(pool.corpus, config.collapse, graph)
    if config.prune > 0:
        left = max(1, round((1.0 - config.prune) * n))
        keep &= top(pool.quality.scores, left, pool.ties(config.seed)).cpu().numpy()
    count = int(keep.sum())
    if count <= size:
        raise OptionError(
            f"--prune {config.prune:g} and --collapse {config.collapse} leave {count:,} of {n:,} rows, but {size:,} "
            "are to be selected; prune less, or lower --select_ratio")
    return torch.from_numpy(keep.nonzero()[0]).to(pool.device)
