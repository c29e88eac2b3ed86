"""The frontier's plane: half-planes against a grid, the price against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamask.dashboard.tradeoff.geometry import HalfPlane, edge, price

LOW, HIGH = -0.1, 1.1
ACROSS = np.linspace(LOW, HIGH, 601)


def random_planes(seed: int) -> list[HalfPlane]:
    rng = np.random.default_rng(seed)
    lambdas = rng.choice(np.linspace(0, 1, 11), rng.integers(1, 8), replace=False)
    # bounds of a curve like a frontier's, with slack, so that some planes cut nothing
    return [HalfPlane(float(lamb), float(math.hypot(lamb, 1 - lamb) + rng.uniform(-0.1, 0.5))) for lamb in lambdas]


@pytest.mark.parametrize("seed", range(20))
def test_every_point_of_a_grid_is_on_its_side(seed):
    planes = random_planes(seed)
    height = edge(planes, ACROSS, LOW, HIGH)
    up = np.linspace(LOW, HIGH, 303)[1:-1, None]
    room = np.min([p.bound - p.lamb * ACROSS - (1 - p.lamb) * up for p in planes], axis=0)
    assert ((up > height) == (room < 0))[np.abs(room) > 1e-9].all()


def test_nothing_proved_and_everything_excluded():
    for planes in ([], [HalfPlane(0.5, 9.0)]):
        assert (edge(planes, ACROSS, LOW, HIGH) == HIGH).all()
    assert (edge([HalfPlane(0.5, -5.0)], ACROSS, LOW, HIGH) == LOW).all()


def test_the_price_is_the_slope_of_a_smooth_frontier():
    # the quarter circle: at lambda the optimum is (lambda, 1 - lambda) / length
    def optimum(lamb):
        return np.array([lamb, 1 - lamb]) / math.hypot(lamb, 1 - lamb)

    for lamb in (0.3, 0.5, 0.8):
        step = optimum(lamb + 1e-6) - optimum(lamb - 1e-6)
        assert -step[1] / step[0] == pytest.approx(price(lamb), rel=1e-5)
    assert price(1.0) == math.inf
