"""The frontier's plane: half-planes against scipy and a grid, tangents against finite differences, arrows, labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection

from datamask.dashboard.tradeoff.geometry import (
    Arrow,
    HalfPlane,
    Window,
    edge_arrow,
    exits,
    price,
    reachable,
    spaced,
    tangent,
    unreachable,
    window_of,
)

UNIT = Window(-0.1, 1.1, -0.1, 1.1)


def random_planes(seed: int) -> list[HalfPlane]:
    rng = np.random.default_rng(seed)
    lambdas = rng.choice(np.linspace(0, 1, 11), rng.integers(1, 8), replace=False)
    # bounds of a curve like a frontier's, with slack, so that some planes cut nothing
    return [HalfPlane(float(lamb), float(math.hypot(lamb, 1 - lamb) + rng.uniform(-0.1, 0.5))) for lamb in lambdas]


def area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def inside(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Even-odd rule, one ray to the right."""
    hit = np.zeros(len(points), bool)
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0)):
        if y1 != y2:
            crosses = (points[:, 1] < y1) != (points[:, 1] < y2)
            hit ^= crosses & (points[:, 0] < x1 + (points[:, 1] - y1) / (y2 - y1) * (x2 - x1))
    return hit


@pytest.mark.parametrize("seed", range(20))
def test_the_reachable_part_is_scipys_intersection(seed):
    planes = random_planes(seed)
    rows = [[plane.lamb, 1 - plane.lamb, -plane.bound] for plane in planes]
    rows += [[-1, 0, UNIT.x0], [1, 0, -UNIT.x1], [0, -1, UNIT.y0], [0, 1, -UNIT.y1]]
    # 0, 0 is a random subset: no bound ever excludes it
    theirs = HalfspaceIntersection(np.array(rows), np.zeros(2)).intersections
    ours = reachable(planes, UNIT)
    assert area(ours) == pytest.approx(ConvexHull(theirs).volume, rel=1e-9)
    distance = np.linalg.norm(theirs[:, None] - ours[None], axis=2)
    assert distance.min(axis=1).max() < 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_every_point_of_a_grid_is_on_its_side(seed):
    planes = random_planes(seed)
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.1, 1.1, (2_000, 2))
    excluded = np.min([plane.room(points) for plane in planes], axis=0) < 0
    shaded = unreachable(planes, UNIT)
    found = inside(shaded, points) if len(shaded) else np.zeros(len(points), bool)
    assert (found == excluded).all()


def test_nothing_proved_and_everything_excluded():
    assert len(unreachable([], UNIT)) == 0 and len(reachable([], UNIT)) == 4
    assert len(unreachable([HalfPlane(0.5, 9.0)], UNIT)) == 0
    nothing = [HalfPlane(0.5, -5.0)]
    assert len(reachable(nothing, UNIT)) == 0 and area(unreachable(nothing, UNIT)) == pytest.approx(1.44)


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


def test_far_off_points_become_arrows():
    assert edge_arrow(0.5, 0.5, UNIT) is None and edge_arrow(math.nan, 0.5, UNIT) is None
    assert edge_arrow(0.9, -0.9, UNIT) == Arrow(0.9, -0.1, 0, -1)
    corner = edge_arrow(-3.0, 2.0, UNIT)
    assert (corner.x, corner.y) == (-0.1, 1.1) and (corner.right, corner.up) == pytest.approx((-(0.5**0.5), 0.5**0.5))


def test_a_line_leaves_the_window_where_its_arrow_stands():
    # two points beyond at its end, one in its middle, and a line that is nowhere inside
    ((arrow, beyond),) = exits([(0.5, 0.5), (0.9, 0.1), (1.0, -0.3), (1.0, -0.9)], UNIT)
    assert beyond == [2, 3] and (arrow.x, arrow.y) == pytest.approx((0.95, -0.1))
    assert (arrow.right, arrow.up) == pytest.approx((0.1 / math.hypot(0.1, 0.4), -0.4 / math.hypot(0.1, 0.4)))
    first, middle = exits([(-1.0, 0.0), (0.0, 0.5), (0.5, 2.0), (0.6, 0.6)], UNIT)
    assert first[1] == [0] and (first[0].x, first[0].y) == pytest.approx((-0.1, 0.45)) and first[0].right < 0
    assert middle[1] == [2] and middle[0].y == pytest.approx(1.1)
    ((lost, beyond),) = exits([(2.0, 0.5), (1.2, 0.4)], UNIT)
    assert beyond == [0, 1] and (lost.x, lost.y, lost.right, lost.up) == (1.1, 0.4, 1, 0)
    # out of a corner, along an edge, through an edge from a point on it; nothing beyond, nothing at all
    ((corner, _),) = exits([(1.1, 1.1), (1.2, 1.3)], UNIT)
    assert (corner.x, corner.y) == (1.1, 1.1)
    ((along, _),) = exits([(0.0, -0.1), (5.0, -0.1)], UNIT)
    assert (along.x, along.y, along.right) == (1.1, -0.1, 1)
    assert exits([(0.1, 0.1), (math.nan, 0.2)], UNIT) == exits([], UNIT) == []


@pytest.mark.parametrize("seed", range(20))
def test_arrows_stand_on_the_edge_and_on_the_line(seed):
    rng = np.random.default_rng(seed)
    points = [tuple(point) for point in rng.normal(0.5, 0.9, (12, 2))]
    for arrow, beyond in exits(points, UNIT):
        assert not any(UNIT.holds(*points[place]) for place in beyond) and UNIT.holds(arrow.x, arrow.y)
        assert min(abs(arrow.x + 0.1), abs(arrow.x - 1.1), abs(arrow.y + 0.1), abs(arrow.y - 1.1)) < 1e-9
        assert math.hypot(arrow.right, arrow.up) == pytest.approx(1)
        before, after = beyond[0] - 1, beyond[-1] + 1
        inside = next((place for place in (before, after) if 0 <= place < 12 and UNIT.holds(*points[place])), None)
        if inside is not None:
            end = points[beyond[0] if inside == before else beyond[-1]]
            detour = math.dist(points[inside], (arrow.x, arrow.y)) + math.dist((arrow.x, arrow.y), end)
            assert detour == pytest.approx(math.dist(points[inside], end))


def test_the_window_holds_what_is_near_and_not_what_is_far():
    window = window_of([(0.9, -0.15), (1.0, -0.9), (math.nan, 0.3)])
    assert window.holds(0.9, -0.15) and not window.holds(1.0, -0.9) and window.holds(1.0, 1.0) and window.y0 < -0.15


def test_labels_keep_apart_and_the_first_has_its_own():
    points = [(1.0, 0.0), *((x / 20, 0.0) for x in range(21))]
    chosen = spaced(points, 0.2)
    assert chosen[:2] == [0, 1] and np.diff(sorted(points[place][0] for place in chosen)).min() >= 0.2
