"""What travels to the lambda slider: the masks that were solved, as the map draws them, and what stands beside them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from datamask.config import Quota, SelectionConfig
from datamask.dashboard.drawing import words
from datamask.dashboard.map.ends import common_ends
from datamask.dashboard.map.layers import Selection
from datamask.dashboard.map.marks import Seen, marks_of
from datamask.dashboard.map.places import place
from datamask.dashboard.tradeoff import lambda_points
from datamask.dashboard.tradeoff.answers import Units
from datamask.dashboard.tradeoff.lambda_point import LambdaPoint
from datamask.evaluation.live import fits
from tests.making.parcels import opened_parcel

N = 2_003
"""No multiple of eight, so that packed rows end within a byte."""


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(3)
    made = []
    for lamb in (0.0, 0.25, 0.5, 1.0):
        mask = rng.random(N) < 0.1 + 0.4 * lamb
        made.append(
            LambdaPoint(lamb, lamb, 1 - lamb, lamb**2 + (1 - lamb) ** 2, 2e-3, True, None, np.packbits(mask), N)
        )
    return made


@pytest.fixture(scope="module")
def coordinates():
    return np.random.default_rng(4).normal(size=(N, 2))


class Lengths:
    """What the parcel asks of a corpus: how many rows it has, their tokens and scores."""

    quality = np.random.default_rng(6).normal(size=N)
    lengths = np.random.default_rng(5).integers(1, 900, N).astype(float)

    def __len__(self) -> int:
        return N


def opened(points, places, **given):
    return opened_parcel(lambda_points.points_parcel(Lengths(), Units(), points, places, **given))


def test_the_bits_are_the_masks_of_the_drawn_samples(points, coordinates):
    places = place(coordinates, hexagons=False)
    parcel = opened(points, places)
    width = -(-N // 8)
    assert parcel["marks"] == N and len(parcel["bits"]) == len(points) * width
    for k, (point, said) in enumerate(zip(points, parcel["points"], strict=True)):
        # as the browser takes them apart: the highest bit first
        row = parcel["bits"][k * width : (k + 1) * width]
        unpacked = [(int(row[i >> 3]) >> (7 - (i & 7))) & 1 for i in range(N)]
        assert np.array_equal(unpacked, point.mask[places.drawn])
        tokens = words.short(Lengths.lengths[point.mask].sum())
        assert said["lamb"] == point.lamb and said["size"] == f"{point.mask.sum():,} of 2,003 rows · {tokens} tokens"
        assert [meter["share"] for meter in said["meters"]] == [point.quality, point.diversity]
        assert said["proof"] == "proved near the best for this λ ✓" and "0.20" in said["gap"]


def test_cells_are_drawn_as_a_selection_is_on_one_scale_and_under_a_filter(points, coordinates):
    places = place(coordinates, hexagons=True)
    shown = coordinates[:, 0] > 0
    for seen in (Seen(), Seen(shown, shown & (coordinates[:, 1] > 0))):
        parcel = opened(points, places, seen=seen)
        layers = [Selection("", point.mask) for point in points]
        seen = Seen(seen.shown, seen.counted, common_ends(layers, places.cells))
        for k, layer in enumerate(layers):
            look = marks_of(layer, places, seen=seen)
            part = slice(k * parcel["marks"], (k + 1) * parcel["marks"])
            assert np.array_equal(parcel["codes"][part], look.codes)
            assert np.array_equal(parcel["values"][part], look.values)
            assert parcel["points"][k]["bar"] == look.bar
        assert len({str(said["bar"]) for said in parcel["points"]}) == 1


def test_a_filter_changes_no_bit(points, coordinates):
    places = place(coordinates, hexagons=False)
    shown = coordinates[:, 0] > 0
    free, narrowed = (opened(points, places, seen=seen) for seen in (Seen(), Seen(shown, shown)))
    assert np.array_equal(free["bits"], narrowed["bits"]) and free["points"] == narrowed["points"]


def test_the_run_has_the_last_word_at_its_own_lambda(points):
    own = LambdaPoint(0.25, 0.9, 0.9, 0.9, None, True, None, points[3].bits, N, run=True)
    joined = lambda_points.with_stored(points, [own])
    assert [point.lamb for point in joined] == [0.0, 0.25, 0.5, 1.0] and joined[1] is own
    between = LambdaPoint(0.3, 0.9, 0.9, 0.9, None, True, None, points[3].bits, N, run=True)
    assert [point.lamb for point in lambda_points.with_stored(points, [between])] == [0.0, 0.25, 0.3, 0.5, 1.0]
    assert lambda_points.with_stored(points, []) == points
    # of stored ones the best, before them what is solved, and before all the shown one
    worse, better = (replace(own, run=False, stored="other", joint=joint) for joint in (0.95, 0.97))
    unsolved = [points[0], *points[2:]]
    assert lambda_points.with_stored(unsolved, [better, worse])[1] is better
    assert lambda_points.with_stored(points, [better, worse]) == points
    assert lambda_points.with_stored(points, [better, own, worse])[1] is own


def test_a_stored_run_stands_for_the_problem_of_the_slider_and_for_no_other():
    settings = lambda_points.settings_of(SelectionConfig.from_options(objective="pairwise", lamb=0.5))
    alike = [{}, {"lamb": 0.9}, {"device": "cpu"}]
    unlike = [
        {"select_ratio": 0.2},
        {"estimator": "counterfactual"},
        {"objective": "facility"},
        {"pin": "ids.txt"},
        {"ban": "ids.txt"},
        {"collapse": "exact"},
        {"scale": "raw"},
        {"budget": 1000.0},
        {"quotas": (Quota("source", "web", 0.1, 1.0),)},
        {"scratch_dir": "scratch"},
    ]
    for options, expected in (*((given, True) for given in alike), *((given, False) for given in unlike)):
        selection = SelectionConfig.from_options(**{"objective": "pairwise", **options})
        assert lambda_points.posed_alike(settings, selection) == expected, options
    pinned = SelectionConfig.from_options(objective="pairwise", pin="ids.txt")
    assert not lambda_points.posed_alike(lambda_points.settings_of(pinned), pinned)


def test_where_a_sample_is_selected_by_stretches(points):
    for row in range(200):
        inside = [bool(point.mask[row]) for point in points]
        kept = lambda_points.stretches(points, row)
        for point, is_in in zip(points, inside, strict=True):
            assert is_in == any(low <= point.lamb <= high for low, high in kept)
        assert len(kept) == sum(now and not before for before, now in zip([False, *inside], inside))
    everywhere = [LambdaPoint(lamb, 0, 0, 0, None, True, None, np.packbits(np.ones(N, bool)), N) for lamb in (0, 0.5)]
    marks = lambda_points.sample_marks("doc", everywhere, 1, 0.4123)
    assert [mark.kind for mark in marks] == ["flip", "sample"]
    assert "0.412" in marks[0].words and "at every λ solved" in marks[1].words
    assert lambda_points.sample_marks("doc", everywhere[:1], 1, None) == []


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"objective": "pairwise", "lamb": 0.2},
        {"objective": "disf_fixed", "estimator": "counterfactual"},
        {"objective": "vendi"},
        {"objective": "pairwise:1,facility:1"},
        {"objective": "pairwise", "quotas": (Quota("source", "web", 0.1, 1.0),)},
        {"objective": "facility", "estimator": "counterfactual", "scale": "raw"},
        {"objective": "facility", "budget": 1000.0},
    ],
)
def test_what_can_be_dragged_is_what_the_solver_takes(given):
    selection = SelectionConfig.from_options(**given)
    settings = lambda_points.settings_of(selection)
    assert bool(lambda_points.refusal(settings)) != fits(settings)
    assert (settings.objective, settings.scale, settings.budget) == (
        selection.objective,
        selection.scale,
        selection.budget,
    )
    # whatever it was searched by, the slider's problem is one
    assert settings == lambda_points.settings_of(settings)


def test_nothing_is_prepared_unasked_that_takes_long_or_that_nobody_knows():
    large, small = (SimpleNamespace(features=np.empty((rows, 256), np.float32)) for rows in (20_000, 2_000))
    pairwise, facility, disf = (SelectionConfig.from_options(objective=o) for o in ("pairwise", "facility", "disf"))
    assert lambda_points.expected_seconds(large, pairwise) > lambda_points.AT_ONCE
    assert lambda_points.expected_seconds(small, facility) < lambda_points.AT_ONCE
    assert lambda_points.prepared_unasked(small, facility) and not lambda_points.prepared_unasked(large, pairwise)
    assert lambda_points.expected_seconds(small, disf) is None and not lambda_points.prepared_unasked(small, disf)
    # rules take longer, and tokens longest
    pinned = SelectionConfig.from_options(objective="pairwise", pin="ids.txt")
    tokens = SelectionConfig.from_options(objective="pairwise", budget=1000.0)
    limited = [lambda_points.expected_seconds(large, settings) for settings in (pairwise, pinned, tokens)]
    assert limited == sorted(limited) and limited[0] < limited[1] < limited[2]
    assert lambda_points.refined(large, tokens)


def test_of_points_as_near_the_last_one_is_drawn(points):
    assert lambda_points.drawn_at(points, 0.1).lamb == 0.0
    assert lambda_points.drawn_at(points, 0.375).lamb == 0.5
    later = replace(points[1], quick=True)
    assert lambda_points.drawn_at([*points, later], 0.25) is later
