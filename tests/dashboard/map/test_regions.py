"""Regions against independent truth: a plain crossing count per point, and areas known in closed form."""

import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamask.dashboard.map.regions import Region, drawn_regions, inside, rows_inside


def crossing_count(point, corners) -> bool | None:
    """The textbook even-odd test in fractions, one point and one edge at a time; None: on an edge but for rounding."""
    x, y = map(Fraction, map(float, point))
    exact = [tuple(map(Fraction, map(float, corner))) for corner in corners]
    odd = False
    for (x0, y0), (x1, y1) in zip(exact, exact[1:] + exact[:1]):
        if (y0 > y) != (y1 > y):
            crossing = (x1 - x0) * (y - y0) / (y1 - y0) + x0
            if abs(crossing - x) < ROUNDING:
                return None
            odd ^= x < crossing
    return odd


ROUNDING = Fraction(1, 10**12)
"""Of coordinates up to 10 in float64; what lies nearer to an edge may come out on either side."""

coordinate = st.floats(-10, 10, allow_nan=False, width=32)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=12),
    st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=30),
)
def test_inside_is_the_plain_crossing_count(corners, points):
    region = Region.lasso(*zip(*corners))
    points = np.array(points) + 1e-7  # off the corners' own heights, where the two may round differently
    expected = [crossing_count(p, region.corners) for p in points]
    assert [answer for answer, truth in zip(inside(points, region).tolist(), expected) if truth is not None] == [
        truth for truth in expected if truth is not None
    ]


def test_box_corners_may_come_in_any_order():
    points = np.array([[0.5, 0.5], [1.5, 0.5], [np.nan, 0.5]])
    for xs, ys in (([0, 1], [0, 1]), ([1, 0], [1, 0]), ([1, 0], [0, 1])):
        assert inside(points, Region.box(xs, ys)).tolist() == [True, False, False]


def test_what_the_browser_sent_becomes_regions_and_their_union_counts_once():
    regions = drawn_regions([["lasso", [1, 3, 3, 1], [1, 1, 3, 3]], ["box", [0, 2, 2, 0], [2, 2, 0, 0]]])
    assert [r.kind for r in regions] == ["lasso", "box"]
    points = np.array([[0.5, 0.5], [1.5, 1.5], [2.5, 2.5], [5.0, 5.0]])
    assert rows_inside(points, regions).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "shapes",
    [
        None,
        [],
        {},
        "lasso",
        7,
        [None],
        [["lasso", [0, 1], [0, 1]]],
        [["box", [], []]],
        [["lasso", [0, 1, 2]]],
        [["box", [1, 1, 1], [0, 5, 9]]],
        [["lasso", [0, 1, float("nan")], [0, 1, 2]]],
        [["lasso", [0, 1, 2], [0, 1]]],
        [["lasso", ["a", "b", "c"], [0, 1, 2]]],
    ],
)
def test_shapes_that_enclose_nothing_are_no_regions(shapes):
    assert drawn_regions(shapes) == []


def test_a_long_lasso_over_many_points_is_quick():
    rng = np.random.default_rng(1)
    points = rng.standard_normal((400_000, 2)).astype(np.float32)
    angle = np.linspace(0, 2 * np.pi, 300, endpoint=False)
    radius = 1 + 0.3 * np.sin(9 * angle)
    region = Region.lasso(radius * np.cos(angle), radius * np.sin(angle))
    start = time.thread_time()
    found = inside(points, region)
    assert time.thread_time() - start < 2  # of one core, whoever else is at work: 0.15; points times corners takes 3
    assert 0.3 < found.mean() < 0.5
