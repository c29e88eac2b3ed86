"""Where a group's name stands: against a count of every pair of samples and cells, and what gets no name."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.dashboard.linked.region_names import BINS, ENOUGH, region_names, short_names

VIEW = (-3.0, 3.0, -3.0, 3.0)


def named(points, codes, names=None):
    count = int(codes.max()) + 1
    return region_names(points, VIEW, codes, names or tuple(f"{k + 1} · word{k}" for k in range(count)))


def test_a_name_stands_where_its_group_is_densest_of_where_it_is_the_commonest():
    rng = np.random.default_rng(0)
    points = np.clip(rng.normal(size=(3000, 2)), -2.99, 2.99).astype(np.float32)
    # halves of the plane, with strangers in each
    codes = np.where(rng.random(3000) < 0.9, points[:, 0] > 0, points[:, 0] <= 0).astype(np.int32)
    codes[rng.random(3000) < 0.1] = -1
    answer = {region.code: region for region in named(points, codes)}
    assert sorted(answer) == [0, 1] and answer[0].x < 0 < answer[1].x
    # by brute force: samples of each group in the nine cells around each cell
    across, up = ((points.astype(float) + 3) / 6 * BINS).astype(int).T
    around = np.zeros((2, BINS, BINS))
    for code in (0, 1):
        for y in range(BINS):
            for x in range(BINS):
                near = (np.abs(across - x) <= 1) & (np.abs(up - y) <= 1)
                around[code, y, x] = (near & (codes == code)).sum()
    for code, region in answer.items():
        home = np.where(around[code] > around[1 - code], around[code], 0)
        y, x = np.unravel_index(home.argmax(), home.shape)
        near = (np.abs(across - x) <= 1) & (np.abs(up - y) <= 1) & (codes == code)
        assert (region.x, region.y) == pytest.approx(np.median(points[near], axis=0))
        assert region.n == (codes == code).sum() and region.name == f"{code + 1} · word{code}"


def test_the_largest_come_first_and_a_group_that_is_nowhere_the_commonest_has_no_name():
    rng = np.random.default_rng(1)
    places = np.repeat([[-2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [50, 300, 40, 3], axis=0)
    points = (places + 0.01 * rng.normal(size=places.shape)).astype(np.float32)
    codes = np.repeat([0, 1, 2, 3], [50, 300, 40, 3]).astype(np.int32)
    assert [region.code for region in named(points, codes)] == [1, 0]
    assert ENOUGH > 3, "the fourth group is left out for its size"


def test_groups_beyond_the_view_and_samples_without_a_group_are_not_named():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(size=(40, 2)) * 0.1, [9.0, 9.0] + rng.normal(size=(40, 2)) * 0.1])
    codes = np.repeat([0, 1], 40).astype(np.int32)
    assert [region.code for region in named(points.astype(np.float32), codes)] == [0]
    assert region_names(points, VIEW, np.full(80, -1, np.int32), ("a",)) == []


def test_a_column_s_value_keeps_its_spelling():
    assert short_names(["3 · cat, dog", "web · 2024", "plain"]) == ["cat, dog", "web · 2024", "plain"]


def test_no_two_regions_have_one_name():
    names = ["1 · plot, axis", "2 · cat, dog", "3 · plot, axis"]
    assert short_names(names) == ["1 · plot, axis", "cat, dog", "3 · plot, axis"]
