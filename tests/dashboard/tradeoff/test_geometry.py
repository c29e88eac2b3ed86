"""The frontier's plane: half-planes against a grid, tangents against finite differences, labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamask.dashboard.tradeoff.geometry import (
    HalfPlane,
    Window,
    edge,
    price,
    spaced,
    tangent,
    window_of,
)

UNIT = Window(-0.1, 1.1, -0.1, 1.1)


def random_planes(seed: int) -> list[HalfPlane]:
    rng = np.random.default_rng(seed)
    lambdas = rng.choice(np.linspace(0, 1, 11), rng.integers(1, 8), replace=False)
    # bounds of a curve like a frontier's, with slack, so that some planes cut nothing
    return [HalfPlane(float(lamb), float(math.hypot(lamb, 1 - lamb) + rng.uniform(-0.1, 0.5))) for lamb in lambdas]


@pytest.mark.parametrize("seed", range(20))
def test_every_point_of_a_grid_is_on_its_side(seed):
    planes = random_planes(seed)
    across, height = edge(planes, UNIT)
    up = np.linspace(UNIT.y0, UNIT.y1, 303)[1:-1, None]
    room = np.min([p.bound - p.lamb * across - (1 - p.lamb) * up for p in planes], axis=0)
    assert ((up > height) == (room < 0))[np.abs(room) > 1e-9].all()


def test_nothing_proved_and_everything_excluded():
    for planes in ([], [HalfPlane(0.5, 9.0)]):
        assert (edge(planes, UNIT)[1] == UNIT.y1).all()
    assert (edge([HalfPlane(0.5, -5.0)], UNIT)[1] == UNIT.y0).all()


@pytest.mark.parametrize("lamb", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_along_the_tangent_the_joint_value_stays_and_its_slope_is_the_price(lamb):
    (x1, y1), (x2, y2) = tangent(0.7, 0.4, lamb, 0.2)
    assert math.dist((x1, y1), (x2, y2)) == pytest.approx(0.4)
    assert lamb * x1 + (1 - lamb) * y1 == pytest.approx(lamb * x2 + (1 - lamb) * y2)
    assert ((x1 + x2) / 2, (y1 + y2) / 2) == pytest.approx((0.7, 0.4))
    if lamb < 1:
        assert (y2 - y1) / (x2 - x1) == pytest.approx(-price(lamb)) == pytest.approx(-lamb / (1 - lamb))
    else:
        assert price(lamb) == math.inf and x1 == pytest.approx(x2)


def test_the_price_is_the_slope_of_a_smooth_frontier():
    # the quarter circle: at lambda the optimum is (lambda, 1 - lambda) / length
    def optimum(lamb):
        return np.array([lamb, 1 - lamb]) / math.hypot(lamb, 1 - lamb)

    for lamb in (0.3, 0.5, 0.8):
        step = optimum(lamb + 1e-6) - optimum(lamb - 1e-6)
        assert -step[1] / step[0] == pytest.approx(price(lamb), rel=1e-5)


def test_a_far_off_point_has_its_nearest_in_the_window():
    assert UNIT.nearest(0.9, -0.9) == (0.9, -0.1) and UNIT.nearest(-3.0, 2.0) == (-0.1, 1.1)
    assert UNIT.nearest(0.5, 0.5) == (0.5, 0.5)


def test_the_window_holds_what_is_near_and_not_what_is_far():
    window = window_of([(0.9, -0.15), (1.0, -0.9), (math.nan, 0.3)])
    assert window.holds(0.9, -0.15) and not window.holds(1.0, -0.9) and window.holds(1.0, 1.0) and window.y0 < -0.15


def test_labels_keep_apart_and_the_first_has_its_own():
    points = [(1.0, 0.0), *((x / 20, 0.0) for x in range(21))]
    chosen = spaced(points, 0.2)
    assert chosen[:2] == [0, 1] and np.diff(sorted(points[place][0] for place in chosen)).min() >= 0.2
