"""Words of a picture: they cover neither each other nor lines nor marks, on a large screen as on a small one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from datamask.dashboard.drawing.placement import LINE, Box, Words, around, compass, rings, width_of

PLANE = Box(-0.2, -0.2, 1.1, 1.1)
SCALES = (290.0, 345.0, 400.0)


def curve(count: int) -> np.ndarray:
    angles = np.linspace(0, math.pi / 2, count)
    return np.column_stack([np.sin(angles), np.cos(angles)])


def roads_of(points: np.ndarray) -> np.ndarray:
    return np.column_stack([points[:-1], points[1:]])


CASES = {
    "a frontier": curve(11),
    "a dense one": curve(41),
    "all at one point": np.full((11, 2), 0.5),
    "a straight line": np.column_stack([np.linspace(0, 1, 11), np.linspace(1, 0, 11)]),
    "along the edge": np.column_stack([np.full(5, 1.1), np.linspace(-0.2, 1.1, 5)]),
    "a tangle": np.random.default_rng(0).random((30, 2)),
    "one point": np.array([[0.3, 0.3]]),
    "nothing": np.zeros((0, 2)),
}


def boxes(words, places, scale):
    """Where the words lie at a scale, by arithmetic of this test's own."""
    for one, place in zip(words, places):
        if place is None:
            continue
        across, down, side = place
        wide = width_of(one.text)
        left = (one.x - PLANE.left) * scale + across - {"left": 0, "center": wide / 2, "right": wide}[side]
        top = (PLANE.bottom - one.y) * scale + down - LINE / 2
        yield one, (left, top, left + wide, top + LINE)


@pytest.mark.parametrize("scale", [*SCALES, 310.0, 377.0])
@pytest.mark.parametrize("case", CASES)
def test_words_cover_nothing_at_any_size_of_the_picture(case, scale):
    points = CASES[case]
    words = [Words(f"λ {place / 10:g}", *point, compass(1, 1)) for place, point in enumerate(points)]
    words.insert(0, Words("Top quality: diversity −119 %", 0.9, -0.2, rings(), needed=True))
    roads = roads_of(points) if len(points) else np.zeros((0, 4))
    places = around(words, PLANE, SCALES, roads, [tuple(point) for point in points])
    assert places[0] is not None
    lying = list(boxes(words, places, scale))
    flat = [box for _, box in lying]
    for k, (a, b, c, d) in enumerate(flat):
        for e, f, g, h in flat[k + 1 :]:
            # between the sizes that were looked at, a pixel may be lost
            assert min(c, g) - max(a, e) < 1 or min(d, h) - max(b, f) < 1, "words lie on words"
    along = np.linspace(0, 1, 400)[:, None]
    for one, (left, top, right, bottom) in lying:
        if one.needed and case == "a tangle":
            continue
        assert min(left, top) >= -1 and right <= (PLANE.right - PLANE.left) * scale + 1
        for x1, y1, x2, y2 in roads:
            at = np.array([x1, y1]) + along * np.array([x2 - x1, y2 - y1])
            x, y = (at[:, 0] - PLANE.left) * scale, (PLANE.bottom - at[:, 1]) * scale
            assert not ((x > left + 1) & (x < right - 1) & (y > top + 1) & (y < bottom - 1)).any(), one.text


def test_needed_words_stand_even_where_all_is_taken():
    roads = np.array([[x, -0.2, x, 1.1] for x in np.linspace(-0.2, 1.1, 80)])
    needed, other = around(
        [Words("must be said", 0.5, 0.5, rings(), needed=True), Words("need not", 0.2, 0.2, compass(1, 0))],
        PLANE,
        SCALES,
        roads,
    )
    assert needed is not None and other is None
    many = [Words("the same place", 0.5, 0.5, rings(), needed=True) for _ in range(6)]
    lying = [box for _, box in boxes(many, around(many, PLANE, SCALES, np.zeros((0, 4))), 400.0)]
    assert len(lying) == 6 and all(Box(*a).apart(Box(*b)) for k, a in enumerate(lying) for b in lying[k + 1 :])


def test_the_wished_direction_comes_first():
    assert compass(1, 0)[0][0] > 0 and compass(0, 1)[0][1] < 0 and compass(-1, 0)[0][2] == "right"
    (free,) = around([Words("here", 0.5, 0.5, compass(-1, 0))], PLANE, SCALES, np.zeros((0, 4)))
    assert free == compass(-1, 0)[0]


@pytest.mark.parametrize("seed", range(30))
def test_lines_through_a_box_are_those_that_points_along_them_find(seed):
    rng = np.random.default_rng(seed)
    box, roads = Box(0.3, 0.3, 0.6, 0.5), rng.random((40, 4))
    roads[:5, 2] = roads[:5, 0]
    along = np.linspace(0, 1, 4001)[:, None]
    for road, crossed in zip(roads, box.crossed(roads)):
        at = road[:2] + along * (road[2:] - road[:2])
        # a corner may be cut between two of the points
        larger, smaller = (
            ((at > [box.left - room, box.top - room]) & (at < [box.right + room, box.bottom + room])).all(axis=1).any()
            for room in (1e-3, -1e-3)
        )
        assert larger if crossed > 0 else not smaller
        within = ((at > [box.left, box.top]) & (at < [box.right, box.bottom])).all(axis=1).mean()
        assert crossed == pytest.approx(within * np.hypot(*(road[2:] - road[:2])), abs=2e-3)


def test_where_lines_run_everywhere_words_stand_where_they_hide_least():
    beside, below = (30.0, 0.0, "left"), (0.0, 30.0, "left")
    along, across = [-0.2, 0.5, 1.1, 0.5], [0.55, -0.2, 0.55, 1.1]
    (place,) = around(
        [Words("words", 0.5, 0.5, (beside, below), needed=True)], PLANE, (400.0,), np.array([along, across])
    )
    assert place == below  # a line across it, and not one along it
