"""Where a term is below random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from datamask.dashboard.tradeoff import below_random
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint


def point(lamb: float, quality: float = 0.5, diversity: float = 0.5, exact: bool = True) -> LambdaPoint:
    joint = lamb * quality + (1 - lamb) * diversity
    return LambdaPoint(lamb, quality, diversity, joint, 0.0, exact, None, np.packbits(np.ones(8, bool)), 8)


def test_stretches_below_random_are_those_of_solved_points():
    points = [point(0, -0.1), point(0.1, -0.02), point(0.2, 0.3), point(0.9, 0.9, -0.2), point(1, 1, -0.4, exact=False)]
    quality, diversity = below_random.marks(points)
    assert (quality.low, quality.high, diversity.low, diversity.high) == (0, 0.1, 0.9, 1)
    assert "λ 0 to 0.1: quality is below random (0 %), at worst −10" in quality.words
    assert "−40" in diversity.words and "listed neighbors" in diversity.words
    assert below_random.marks([point(0), point(1)]) == [] == below_random.marks([])
    # two stretches of one term, and one lambda alone
    first, second = below_random.marks([point(0, -1), point(0.5), point(1, -1)])
    assert (first.low, first.high, second.low, second.high) == (0, 0, 1, 1) and first.words.startswith(
        "λ 0: quality is −100"
    )


def test_a_lambda_is_below_random_where_the_solved_ones_on_both_sides_are():
    points = [point(0, -0.1), point(0.2, -0.02, -0.1), point(0.4, 0.3)]
    assert "At λ 0.1, quality is below a random selection" in below_random.below_at(points, 0.1)
    assert "quality and diversity are below" in below_random.below_at(points, 0.2)
    assert below_random.below_at(points, 0.3) == "" == below_random.below_at(points, 0.9)
    assert below_random.below_at([], 0.5) == ""
    assert below_random.below_at([replace(points[0], quality=-1e-7)], 0.0) == ""
