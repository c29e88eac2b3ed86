"""Conditions and regions through an address and back: nothing changes, and nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datamask.dashboard.map import shared_view
from datamask.dashboard.map.filters import Among, Between, Filters, Holding, Inside
from datamask.dashboard.map.regions import Region

NAMES = st.text(min_size=1, max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
RANGES = st.builds(Between, NAMES, NUMBERS, NUMBERS)
CLASSES = st.builds(Among, NAMES, st.lists(st.text(max_size=12), min_size=1, max_size=4).map(tuple))


@settings(max_examples=60, deadline=None)
@given(st.lists(RANGES | CLASSES, max_size=4, unique_by=lambda one: one.name))
def test_ranges_and_classes_come_back_as_they_were(conditions):
    filters = Filters(tuple(conditions))
    text = shared_view.where_text(filters)
    assert (shared_view.where_of(text) if text else Filters()) == filters


def test_words_come_back_and_stand_apart():
    filters = Filters((Between("quality", 1.0, 2.0), Holding("a “b” & c"), Inside(())))
    assert shared_view.search_text(filters) == "a “b” & c" and "search" not in shared_view.where_text(filters)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 60), st.floats(1e-4, 1e4), st.floats(-1e3, 1e3))
@example(seed=0, corners=3, size=1e-4, middle=101.0)
def test_a_region_comes_back_within_a_step_of_what_was_drawn_and_then_as_it_is(seed, corners, size, middle):
    rng = np.random.default_rng(seed)
    drawn = Region("lasso", middle + size * rng.normal(size=(corners, 2)))
    _, (kept,) = shared_view.regions_of(shared_view.region_text("UMAP", [drawn]))
    extent = np.ptp(drawn.corners, axis=0)
    slack = 1e-6 * np.abs(drawn.corners).max()  # seven digits of the ends
    assert (np.abs(kept.corners - drawn.corners) <= 0.51 * extent / shared_view.GRID + slack).all()
    kind, (back,) = shared_view.regions_of(shared_view.region_text("UMAP", [kept]))
    assert kind == "UMAP" and back.kind == "lasso" and np.array_equal(back.corners, kept.corners)


def test_two_regions_share_a_text():
    regions = [Region.box([0, 2], [1, 5]), Region.lasso([0, 1, 1], [0, 0, 1])]
    kind, back = shared_view.regions_of(shared_view.region_text("PCA", regions))
    assert kind == "PCA" and [one.kind for one in back] == ["box", "lasso"]
    assert np.allclose(back[0].corners, regions[0].corners)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        "3",
        "[3]",
        '[["quality", 1]]',
        '[["quality", "a", 2]]',
        '[["a", []]]',
        '[["a", [1]]]',
        '[["quality", NaN, 2]]',
        '[["quality", 1, Infinity]]',
        "[" * 5000,
        "[" * 1700,
        '[["quality", ' + "9" * 400 + ", 1]]",
    ],
)
def test_nonsense_is_no_condition(text):
    with pytest.raises(ValueError):
        shared_view.where_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "UMAP",
        "UMAP.",
        "UMAP.lasso",
        "UMAP.lasso,0,0,1,1,000",
        "UMAP.star,0,0,1,1," + "0" * 18,
        "UMAP.lasso,0,0,nan,1,000000999000999999",
        "UMAP.lasso,0,0,1,1,00000099900099999x",
        "UMAP.lasso,0,0,0,1,000000999000999999",
        "UMAP.box,a,0,1,1,000000999000999999",
    ],
)
def test_nonsense_is_no_region(text):
    with pytest.raises(ValueError):
        shared_view.regions_of(text)
