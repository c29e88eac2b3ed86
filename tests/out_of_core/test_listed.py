"""Facility location on lists that are mapped from disk: against the solver in memory, brute force and a killed run."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from datamask.config import SelectionConfig
from datamask.errors import Stopped
from datamask.learning import eager_swaps, facility_solver, medoids
from datamask.learning.facility_solver import _bonus
from datamask.learning.facility_solver import medoids as solve
from datamask.learning.lists import Lists, bits_for
from datamask.learning.problem import Problem
from datamask.objectives import facility
from datamask.objectives.facility import Facility
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.facility import solve_facility
from datamask.out_of_core.listed import solve as listed
from datamask.out_of_core.listed.solve import Limits, ListedRows
from datamask.out_of_core.listed.whole_lists import WholeLists
from datamask.work.context import UNWATCHED, Work
from tests.making.shards import SerialEngine, clustered, scratch_of
from tests.reference import truth

ROWS = 1200


def solved(scratch, size, block_rows=400, work=UNWATCHED, **options):
    config = SelectionConfig.from_options(objective="facility", **options)
    return solve_facility(scratch, config, size, SerialEngine(), work, listed_rows=block_rows)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Blocks, their lists of 32 as they were before they were removed, and all rows on whole lists."""
    scratch = scratch_of(tmp_path_factory.mktemp("corpus"), *clustered(ROWS, seed=5))
    cells, engine = CellBlocks(scratch, 400, 32), SerialEngine()
    cells.prepare(engine)
    of_blocks = [
        np.concatenate([cells.lists[number][name] for number in range(cells.blocks)])
        for name in ("positions", "similarities")
    ]
    rows, facts = ListedRows.opened(WholeLists(cells), lambda: {"recall": 1.0}, UNWATCHED)
    assert facts == {"recall": 1.0} and not cells.lists.whole
    return rows, *of_blocks


def test_whole_lists_are_those_of_the_blocks_in_steps(corpus):
    rows, positions, similarities = corpus
    lists = rows.function.lists
    np.testing.assert_array_equal(lists.indices, positions)
    assert np.abs(lists.similarity(lists.near) - np.maximum(similarities, 0)).max() <= lists.step / 2
    offsets, listing, near = lists.reverse
    for row in range(0, ROWS, 97):
        where = np.argwhere(positions == row)
        some = slice(offsets[row], offsets[row + 1])
        np.testing.assert_array_equal(listing[some], where[:, 0])
        np.testing.assert_array_equal(near[some], lists.near[where[:, 0], where[:, 1]])


@pytest.mark.parametrize(("lowest", "bits"), [(-0.3, 16), (0.0, 16), (0.4, 16), (0.6, 17), (0.999, 24), (1.0, 24)])
def test_steps_are_as_fine_as_the_lowest_similarity_allows(lowest, bits):
    assert bits_for(lowest) == bits
    assert (1 - max(lowest, 1 / 65536)) * 2**bits <= 65535


@pytest.mark.parametrize("lamb", [0.0, 0.5])
def test_the_selection_is_that_of_memory_on_the_same_lists_whatever_the_order_of_the_rows(corpus, lamb):
    rows, positions, similarities = corpus
    limits = Limits.of(rows, 120, None)
    problem = Problem(rows.joint(limits, lamb), 120, torch.arange(ROWS), rows.ties(3))
    order = np.random.default_rng(0).permutation(ROWS)
    place = np.argsort(order)
    features = torch.from_numpy(rows.rows.features(np.arange(ROWS))[order])
    lists = torch.from_numpy(place[positions[order]].astype(np.int32)), torch.from_numpy(similarities[order])
    joint = Joint(Quality(rows.quality[order]), (Term("facility", 1.0, Facility(features, *lists, False)),), lamb)
    memory = solve(Problem(joint, 120, torch.arange(ROWS), rows.ties(3)[order]))
    mapped = solve(problem, lists=rows.function.lists)
    np.testing.assert_array_equal(mapped.numpy()[order], memory.numpy())
    assert problem.joint.evaluate(mapped).joint == pytest.approx(joint.evaluate(memory).joint, abs=1e-6)
    for mine, other in zip(problem.joint.final_marginals(mapped), joint.final_marginals(memory), strict=True):
        np.testing.assert_allclose(mine[order], other, atol=2e-5)


def test_rows_without_a_listed_member_find_one_nearby_as_in_memory(corpus, monkeypatch):
    rows, positions, similarities = corpus
    features = torch.from_numpy(rows.rows.features(np.arange(ROWS)))
    memory = Facility(features, torch.from_numpy(positions[:, :6]), torch.from_numpy(similarities[:, :6]), False)
    mapped, lists = rows.function, rows.function.lists
    few_listed = (np.ascontiguousarray(part[:, :6]) for part in (lists.indices, lists.near))
    monkeypatch.setattr(mapped, "lists", Lists(*few_listed, lists.step, lists.zero))
    mask = torch.zeros(ROWS, dtype=torch.bool)
    mask[torch.randperm(ROWS, generator=torch.Generator().manual_seed(0))[:40]] = True
    open_rows = mapped.coverage(mask).member_count == 0
    assert open_rows.sum() > ROWS / 2
    true = np.maximum(features.double() @ features[mask].double().T, 0).max(dim=1).values
    values = {}
    for few in (facility.FEW_SIMILARITIES, 0):
        monkeypatch.setattr(facility, "FEW_SIMILARITIES", few)
        values[few] = mapped.value(mask)
        assert values[few] == pytest.approx(memory.value(mask), abs=1e-5)
        np.testing.assert_allclose(mapped.final_marginals(mask), memory.final_marginals(mask), atol=2e-5)
        assert (mapped.close_coverage(mask, needed=1).best.double() <= true + 1e-4).all()
    assert values[0] == pytest.approx(float(true.mean()), abs=0.02) and mapped.listed_value(mask) < values[0] - 0.1


@pytest.mark.parametrize("slope", [0.7, 11.3, 250.1])
def test_the_last_digits_of_the_scale_do_not_change_what_greedy_and_swaps_go_by(corpus, slope):
    """Out of core the ends of the scale come from rounded rows."""
    rows, positions, similarities = corpus
    features = torch.from_numpy(rows.rows.features(np.arange(ROWS)))
    facility = Facility(features, torch.from_numpy(positions), torch.from_numpy(similarities), False)
    bonuses = []
    for digit in (-3e-6, 0.0, 3e-6):
        term = Term("facility", 1.0, facility, Scale(0.2, slope * (1 + digit)))
        joint = Joint(Quality(rows.quality), (term,), 0.4, Scale(0.1, 0.4))
        bonuses.append(_bonus(Problem(joint, 120, torch.arange(ROWS), rows.ties(0))))
    np.testing.assert_array_equal(bonuses[0], bonuses[1])
    np.testing.assert_array_equal(bonuses[2], bonuses[1])
    quality = rows.quality.numpy()
    exact = (quality - quality.mean()) / 120 * (0.4 * 0.4 / (0.6 * slope) * ROWS)
    np.testing.assert_allclose(bonuses[1], exact, rtol=1 / 2000)


def test_what_is_selected_does_not_depend_on_the_order_of_the_rows(tmp_path):
    """All rows list all others, so that blocks change nothing but where rows stand."""
    features, quality = clustered(180, seed=2)
    chosen = []
    for number, block_rows in enumerate((60, 100, 180)):
        scratch = scratch_of(tmp_path / str(number), features, quality)
        chosen.append(solved(scratch, 18, block_rows, lamb=0.4).selected)
    assert chosen[0].sum() == 18
    np.testing.assert_array_equal(chosen[0], chosen[1])
    np.testing.assert_array_equal(chosen[0], chosen[2])


@pytest.mark.parametrize("seed", range(4))
def test_no_selection_exceeds_the_bound(tmp_path, seed):
    features, quality = clustered(11, 4, 4, seed=seed)
    scratch = scratch_of(tmp_path, features, quality)
    solution = solved(scratch, 3, 5, lamb=0.4, scale="raw")
    exact = scratch.features(0, 11).astype(np.float64)
    best = max(
        0.4 * quality[list(members)].mean() + 0.6 * truth.facility(exact, np.array(members))
        for members in itertools.combinations(range(11), 3)
    )
    # blocks hold rows rounded to whole numbers
    assert solution.bounded[0] == "listed" and solution.upper_bound >= best - 1e-4
    assert solution.joint <= best + 1e-4 and solution.upper_bound - best < 0.05


def test_a_killed_run_goes_on_where_it_was_and_ends_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(eager_swaps, "PAIRS_AT_ONCE", 3000)
    monkeypatch.setattr(medoids, "PAIRS_AT_ONCE", 3000)
    monkeypatch.setattr(medoids, "PAIRS_PER_ROW", 0)
    monkeypatch.setattr(listed, "KEPT_SECONDS", 0.0)
    # annealing begins again at each attempt: it must fit between two kills
    monkeypatch.setattr(facility_solver, "MOST_ROUNDS", 1)
    monkeypatch.setattr(facility_solver, "TEMPERATURES", (0.5, 0.1))
    features, quality = clustered(600, seed=8)
    expected = solved(scratch_of(tmp_path / "unbroken", features, quality), 60, 200, lamb=0.4)
    scratch, attempts, most = scratch_of(tmp_path / "broken", features, quality), 0, 60
    while True:
        polls = itertools.count()

        def poll(polls=polls, most=most) -> None:
            if next(polls) >= most:
                raise Stopped("stopped")

        try:
            solution = solved(scratch, 60, 200, Work(poll), lamb=0.4)
            break
        except Stopped:
            attempts, most = attempts + 1, most + 12
    assert attempts > 3
    np.testing.assert_array_equal(solution.selected, expected.selected)
    assert (solution.joint, solution.anchors, solution.upper_bound) == (
        expected.joint,
        expected.anchors,
        expected.upper_bound,
    )
    assert not list((scratch.folder / "blocks").glob("*-at-*"))
