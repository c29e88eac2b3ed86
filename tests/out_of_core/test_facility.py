"""Facility location over a whole corpus: values and ends of the scale, against definitions."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.config import SelectionConfig
from datamask.corpus.list_length import list_length
from datamask.errors import InputError, OptionError
from datamask.out_of_core import facility as facilities
from datamask.out_of_core import neighbour_lists
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.facility_values import recall
from datamask.out_of_core.partition import unit_float32
from datamask.work.context import UNWATCHED, Work
from tests.making.shards import SerialEngine, clustered, scratch_of, with_stops
from tests.reference import truth

ROWS, SIZE = 1500, 150


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    features, quality = clustered(ROWS, seed=7)
    return scratch_of(tmp_path_factory.mktemp("corpus"), features, quality)


def config_of(**options) -> SelectionConfig:
    return SelectionConfig.from_options(**{"objective": "facility", "lamb": 0.0} | options)


def solved(scratch, config, engine=None, size=SIZE, work=UNWATCHED, block_rows=400):
    """The solution, and what its steps told."""
    steps: list[dict[str, float]] = []
    solution = solve_facility(
        scratch, config, size, engine or SerialEngine(), work, steps.append, listed_rows=block_rows
    )
    return solution, steps


@pytest.fixture(scope="module")
def exact(scratch):
    """Features as float64, as the lists see them."""
    return unit_float32(scratch.rounded_at(np.arange(scratch.rows))).astype(np.float64)


@pytest.mark.parametrize("options", [{}, {"lamb": 0.5}, {"lamb": 0.5, "scale": "raw"}])
def test_values_and_ends_of_the_scale_are_those_of_the_definition(scratch, exact, options):
    config = config_of(**options)
    solution, (step,) = solved(scratch, config)
    members = np.flatnonzero(solution.selected)
    assert len(members) == SIZE
    covers = truth.facility(exact, members)
    # all rows are sampled, so the estimate is the value
    assert solution.estimate.rows == ROWS and solution.estimate.value == pytest.approx(covers, abs=2e-6)
    assert solution.raw["quality"] == pytest.approx(scratch.quality[members].mean())
    ends = {"quality": solution.anchors["quality"], **solution.anchors["diversity"]}
    draws = [truth.facility(exact, np.random.default_rng(seed).choice(ROWS, SIZE, replace=False)) for seed in range(40)]
    assert ends["facility"]["random"] == pytest.approx(np.mean(draws), abs=4 * np.std(draws) / np.sqrt(3))
    assert ends["quality"]["random"] == pytest.approx(scratch.quality.mean())
    assert ends["quality"]["best"] == pytest.approx(np.sort(scratch.quality)[-SIZE:].mean())
    raw = config.scale == "raw"
    share = [
        value if raw else (value - ends[name]["random"]) / (ends[name]["best"] - ends[name]["random"])
        for name, value in (
            ("quality", solution.raw["quality"]),
            ("facility", solution.raw["facility"]),
        )
    ]
    assert solution.joint == pytest.approx(config.lamb * share[0] + (1 - config.lamb) * share[1])
    assert step["raw_quality"] == pytest.approx(solution.raw["quality"])
    assert (
        step["raw_diversity"] == pytest.approx(solution.raw["facility"]) and solution.raw["facility"] <= covers + 1e-6
    )
    assert step["joint"] == pytest.approx(solution.joint)


def test_without_quality_it_ends_at_the_best_end_of_the_scale_above_greedy(scratch, exact):
    """As near as swaps of pairs come to it in memory: above greedy over all rows, each gain computed anew."""
    solution, _ = solved(scratch, config_of())
    assert solution.joint == pytest.approx(1.0) and solution.graph.recall == 1.0
    nearness, best, members = np.maximum(exact @ exact.T, 0), np.zeros(ROWS), []
    for _ in range(SIZE):
        members.append(int(np.maximum(nearness - best, 0).sum(axis=1).argmax()))
        best = np.maximum(best, nearness[members[-1]])
    assert truth.facility(exact, np.flatnonzero(solution.selected)) > truth.facility(exact, members)


def test_quality_is_bought_for_diversity(scratch):
    without, some, more = (solved(scratch, config_of(lamb=lamb))[0] for lamb in (0.0, 0.3, 0.7))
    assert without.raw["quality"] < some.raw["quality"] < more.raw["quality"]
    assert without.estimate.value > some.estimate.value > more.estimate.value


def test_the_share_of_neighbours_that_lists_hold_is_measured(scratch, exact, monkeypatch):
    monkeypatch.setattr(neighbour_lists, "cells_needed", lambda *_, **__: 1)
    monkeypatch.setattr(neighbour_lists, "NEAREST", 0)
    cells = facilities.CellBlocks(scratch, 400, 12)
    engine = SerialEngine()
    cells.prepare(engine)
    measured = recall(cells, engine)
    products = exact @ exact.T
    np.fill_diagonal(products, -2)
    nearest = np.argsort(-products, axis=1)[:, :11]
    rows = np.concatenate([cells.block[number]["rows"] for number in range(cells.blocks)])
    lists = np.concatenate([cells.lists[number]["positions"] for number in range(cells.blocks)])
    held = np.array([np.isin(nearest[row], rows[listed[1:]]).mean() for row, listed in zip(rows, lists, strict=True)])
    assert 0.2 < held.mean() < 0.97
    # 400 rows of the 1,500
    assert measured == pytest.approx(held.mean(), abs=4 * held.std() / np.sqrt(400))


@pytest.mark.parametrize(("size", "listed"), [(150, 80), (60, 200), (600, 64)])
def test_lists_are_as_long_as_in_memory(tmp_path, size, listed):
    assert list_length(size / ROWS, ROWS) == listed
    scratch = scratch_of(tmp_path, *clustered(ROWS))
    solution, _ = solved(scratch, config_of(polish="none"), size=size)
    assert solution.graph.k == listed


def test_the_shares_that_are_reported_rise_to_the_end(tmp_path):
    features, quality = clustered(600, seed=8)
    seen: list[tuple[float, str]] = []
    work = Work(report=lambda share, what: seen.append((share, what)))
    solved(scratch_of(tmp_path, features, quality), config_of(lamb=0.4), size=60, work=work, block_rows=200)
    shares = [share for share, _ in seen]
    assert shares == sorted(shares) and shares[0] == 0.0 and 0.9 < shares[-1] <= 1.0
    assert seen[0][1] == "Cells of a sample" and seen[-1][1] == "What the selected rows cover"
    assert [what for _, what in seen if what.startswith("Lists: ")][-1] == "Lists: 3 of 3"


def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path):
    features, quality = clustered(600, seed=8)
    config = config_of(lamb=0.4)
    unbroken = SerialEngine()
    expected, steps = solved(scratch_of(tmp_path / "unbroken", features, quality), config, unbroken, 60, block_rows=200)
    scratch = scratch_of(tmp_path / "broken", features, quality)
    (solution, told), calls = with_stops(
        lambda engine, work: solved(scratch, config, engine, 60, work, 200), 10, more=3
    )
    assert np.array_equal(solution.selected, expected.selected) and told == steps
    assert (solution.joint, solution.estimate, solution.anchors) == (
        expected.joint,
        expected.estimate,
        expected.anchors,
    )
    assert sorted(calls) == sorted(unbroken.calls)


def test_what_lists_of_all_rows_cannot_solve_is_refused(scratch, monkeypatch):
    with pytest.raises(OptionError, match="a lambda below 1"):
        solved(scratch, config_of(lamb=1.0))
    with pytest.raises(InputError, match="from 1 to 1,499, got 1,500"):
        solved(scratch, config_of(), size=ROWS)
    monkeypatch.setattr(facilities, "MOST_LISTED", ROWS - 1)
    with pytest.raises(OptionError, match=r"takes at most 1,499, and the corpus has 1,500; .*--rows N"):
        solved(scratch, config_of())


@pytest.mark.parametrize(("rows", "block_rows", "size"), [(2, 2, 1), (5, 2, 4), (30, 4, 3), (40, 39, 20)])
def test_small_corpora_and_blocks_without_members_have_exactly_so_many_rows(tmp_path, rows, block_rows, size):
    features, quality = clustered(rows, 3, 2, seed=rows)
    scratch = scratch_of(tmp_path, features, quality)
    solution, _ = solved(scratch, config_of(lamb=0.5, scale="raw"), size=size, block_rows=block_rows)
    assert solution.selected.sum() == size
    exact = unit_float32(scratch.rounded_at(np.arange(rows))).astype(np.float64)
    value = truth.facility(exact, np.flatnonzero(solution.selected))
    assert solution.estimate.value == pytest.approx(value, abs=1e-6)


def test_of_rows_that_are_all_the_same_so_many_are_selected_and_quality_is_weighed_against_nothing(tmp_path):
    features, quality = np.ones((300, 4), np.float32) / 2, np.zeros(300)
    scratch = scratch_of(tmp_path, features, quality)
    for options in ({}, {"seed": 1}, {"polish": "none"}):  # the ends' own solution, and others
        solution, _ = solved(scratch, config_of(**options), size=30, block_rows=100)
        assert solution.selected.sum() == 30 and solution.estimate.value == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(InputError, match="no selection covers the rows better than a random one"):
        solved(scratch, config_of(lamb=0.5), size=30, block_rows=100)
