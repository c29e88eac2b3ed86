"""Where a term is below random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datamask.dashboard.tradeoff import below_random
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint


def point(lamb: float, quality: float = 0.5, diversity: float = 0.5, exact: bool = True) -> LambdaPoint:
    joint = lamb * quality + (1 - lamb) * diversity
    return LambdaPoint(lamb, quality, diversity, joint, 0.0, exact, None, np.packbits(np.ones(8, bool)), 8)


def test_a_lambda_is_below_random_where_the_solved_ones_on_both_sides_are():
    points = [point(0, -0.1), point(0.2, -0.02, -0.1), point(0.4, 0.3)]
    assert "At λ 0.1, quality is below a random selection" in below_random.below_at(points, 0.1)
    assert "quality and diversity are below" in below_random.below_at(points, 0.2)
    assert below_random.below_at(points, 0.3) == "" == below_random.below_at(points, 0.9)
    assert below_random.below_at([], 0.5) == ""
    assert below_random.below_at([replace(points[0], quality=-1e-7)], 0.0) == ""
