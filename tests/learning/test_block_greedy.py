"""Facility by blocks: against greedy over all rows, and against a plain reading of what the rounds are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from datamask.config import SelectionConfig
from datamask.errors import OptionError
from datamask.learning.block_greedy import BlockGreedy
from datamask.learning.blocks import Blocks
from datamask.learning.cell_blocks import block_of_cells, cell_centres, nearest_centre
from datamask.learning.facility_solver import facility_arrays
from datamask.learning.medoids import greedy, reverse_lists
from datamask.learning.problem import Problem
from datamask.learning.rules import Rules
from datamask.learning.state import State
from datamask.learning.turns import colours_of_round
from datamask.objectives.facility import Facility, exact_lists
from datamask.objectives.joint import Joint, Scale, Term
from datamask.objectives.quality import Quality
from tests.reference import truth


def block_greedy(indices, similarities, block, bonus, size, order, *, rounds=4, colours=4, seed=0):
    """Members after each round."""
    solver = BlockGreedy(indices, similarities, block, bonus, size, order)
    after = [solver.alone()]
    for number in range(1, rounds):
        after.append(solver.again(after[-1], colours_of_round(block.max() + 1, number, seed, colours)))
    return after


def lists_of(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    indices, similarities = exact_lists(torch.from_numpy(x).float(), k)
    return indices.numpy().astype(np.int32), similarities.numpy()


def dense(indices: np.ndarray, similarities: np.ndarray) -> np.ndarray:
    """Listed similarities of rows and candidates, 0 where a candidate is not listed."""
    n = len(indices)
    matrix = np.zeros((n, n))
    np.put_along_axis(matrix, indices.astype(int), np.maximum(similarities, 0.0), 1)
    return matrix


def plain_greedy(matrix, candidates, rows, covered, bonus, order, size):
    """Greedy, each gain computed anew: picks and gains."""
    covered, picks, gains = covered.copy(), [], []
    while len(picks) < size:
        left = [i for i in candidates if i not in picks and bonus[i] > -np.inf]
        if not left:
            break
        gain = {i: np.maximum(matrix[rows, i] - covered[rows], 0).sum() + bonus[i] for i in left}
        pick = min(left, key=lambda i: (-round(gain[i], 9), order[i]))
        picks.append(pick)
        gains.append(gain[pick])
        covered = np.maximum(covered, matrix[:, pick])
    return picks, gains


def plain_rounds(matrix, block, bonus, size, order, rounds, colours, seed):
    """What `block_greedy` promises, word for word."""
    n, count = len(block), block.max() + 1
    every = np.arange(n)
    picks, gains = [], []
    for b in range(count):
        own = every[block == b]
        of_block = plain_greedy(matrix, own, own, np.zeros(n), bonus, order, size)
        picks += of_block[0]
        gains += of_block[1]
    ranked = sorted(range(len(picks)), key=lambda k: (-round(gains[k], 9), order[picks[k]]))
    member = np.zeros(n, dtype=bool)
    member[[picks[k] for k in ranked[:size]]] = True
    after = [member.copy()]
    for number in range(1, rounds):
        colour = np.random.default_rng([seed, number]).integers(0, colours, count)
        for turn in range(colours):
            fresh = member.copy()
            for b in np.flatnonzero(colour == turn):
                outside = member & (block != b)
                covered = matrix[:, outside].max(1, initial=0.0)
                own = every[block == b]
                fresh[own] = False
                fresh[plain_greedy(matrix, own, every, covered, bonus, order, member[own].sum())[0]] = True
            member = fresh
        after.append(member.copy())
    return after


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_quality", [False, True])
def test_rounds_are_what_they_promise(seed, with_quality):
    rng = np.random.default_rng(seed)
    x = truth.unit_rows(rng, 60, 4)
    lists = lists_of(x, 12)
    block, order = rng.integers(0, 5, 60), rng.permutation(60)
    bonus = rng.uniform(size=60) * with_quality
    bonus[rng.choice(60, 6, replace=False)] = -np.inf
    members = block_greedy(*lists, block, bonus, 14, order, rounds=3, colours=2, seed=seed)
    expected = plain_rounds(dense(*lists), block, bonus, 14, order, 3, 2, seed)
    for member, plain in zip(members, expected, strict=True):
        assert member.sum() == 14 and not member[bonus == -np.inf].any()
        np.testing.assert_array_equal(member, plain)


def test_one_block_is_greedy_over_all_rows():
    rng = np.random.default_rng(5)
    lists = lists_of(truth.unit_rows(rng, 300, 6), 24)
    bonus, order = rng.uniform(size=300), rng.permutation(300)
    members = block_greedy(*lists, np.zeros(300, dtype=np.int64), bonus, 40, order, rounds=2)
    picks = greedy(*reverse_lists(*lists), bonus, 40, order)
    for member in members:
        assert sorted(np.flatnonzero(member)) == sorted(picks)


def test_blocks_of_cells_come_near_greedy_over_all_rows_where_random_blocks_do_not():
    rng = np.random.default_rng(0)
    x = truth.unit_rows(rng, 30, 16).repeat(50, 0) + 0.15 * rng.normal(size=(1500, 16))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    indices, similarities = lists_of(x, 60)
    matrix, bonus, order = dense(indices, similarities), np.zeros(1500), rng.permutation(1500)

    def value(member: np.ndarray) -> float:
        return matrix[:, member].max(1).mean()

    centres = cell_centres(x.astype(np.float32), 8 * 16)
    cell = nearest_centre(x.astype(np.float32), centres)
    of_cells = block_of_cells(centres, np.bincount(cell, minlength=len(centres)), 8)[cell]
    whole = np.zeros(1500, dtype=bool)
    whole[greedy(*reverse_lists(indices, similarities), bonus, 60, order)] = True
    cells = [value(m) for m in block_greedy(indices, similarities, of_cells, bonus, 60, order)]
    apart = [value(m) for m in block_greedy(indices, similarities, rng.integers(0, 8, 1500), bonus, 60, order)]
    assert cells[-1] > cells[0] > apart[0] + 0.01 and cells[-1] > 0.998 * value(whole)


@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 20])
def test_blocks_are_about_equally_large_and_none_is_without_cells(blocks):
    rng = np.random.default_rng(blocks)
    centres = rng.normal(size=(20, 3)).astype(np.float32)
    weights = rng.integers(0, 100, 20)
    block = block_of_cells(centres, weights, blocks)
    assert set(block) == set(range(blocks))
    if blocks < 8:
        rows = np.bincount(block, weights)
        assert rows.max() <= weights.sum() / blocks + 2 * weights.max()


def test_more_blocks_than_cells_are_refused():
    with pytest.raises(ValueError, match=r"number of cells \(3\), got 4"):
        block_of_cells(np.zeros((3, 2), np.float32), np.ones(3), 4)


def test_the_nearest_centre_is_the_nearest():
    rng = np.random.default_rng(1)
    x, centres = rng.normal(size=(100, 5)).astype(np.float32), rng.normal(size=(9, 5)).astype(np.float32)
    distances = np.linalg.norm(x[:, None] - centres, axis=2)
    np.testing.assert_array_equal(nearest_centre(x, centres, rows_at_once=17), distances.argmin(1))


def estimator_of(eligible=None, rules=None, lamb=0.3, **options):
    """Blocks of 25 of 120 rows."""
    rng = np.random.default_rng(3)
    x = torch.from_numpy(truth.unit_rows(rng, 120, 6)).float()
    term = Term("facility", 1.0, Facility(x, *exact_lists(x, 24)), Scale(0.8, 10.0))
    joint = Joint(Quality(torch.from_numpy(rng.normal(size=120))), (term,), lamb)
    eligible = torch.arange(120) if eligible is None else eligible
    problem = Problem(joint, 12, eligible, torch.from_numpy(rng.permutation(120)), x, rules)
    config = SelectionConfig.from_options(
        objective="facility", estimator="blocks", lamb=lamb, select_ratio=0.1, **{"block_rows": 25, **options}
    )
    return Blocks(problem, config)


def run(estimator, state=None, rounds=None):
    state = estimator.init() if state is None else state
    while estimator.finished(state) is None and state.step != rounds:
        state, _ = estimator.step(state)
    return state


@pytest.mark.parametrize("scope", ["global", "block"])
def test_a_selection_has_its_size_and_keeps_to_the_eligible_rows(scope):
    estimator = estimator_of(torch.arange(0, 120, 2), scope=scope)
    mask = estimator.result(run(estimator))
    assert int(mask.sum()) == 12 and not bool(mask[1::2].any())


def test_every_round_is_a_step_and_the_best_round_is_kept():
    estimator = estimator_of(n_epochs=6, polish="none")
    state, joints = estimator.init(), []
    while estimator.finished(state) is None:
        state, record = estimator.step(state)
        joints.append(record.values.joint)
    assert len(joints) == 6 and max(joints) > joints[0]
    assert estimator.problem.joint.evaluate(estimator.result(state)).joint == max(joints) == state.best_joint
    assert estimator.finished(state) == "5 blocks of cells, 6 rounds"


def test_a_run_that_is_gone_on_with_has_the_same_blocks_and_ends_the_same():
    unbroken = run(estimator_of())
    stored = State.from_arrays(*run(estimator_of(), rounds=2).arrays(), torch.device("cpu"))
    resumed = estimator_of(seed=9)  # of the seed, only the turns of the rounds are drawn anew
    resumed.check(stored)
    assert torch.equal(stored.logits, unbroken.logits)
    again = run(estimator_of(), stored)
    assert torch.equal(again.subset, unbroken.subset) and torch.equal(again.best, unbroken.best)


def test_random_blocks_have_equal_shares():
    estimator = estimator_of(scope="block", polish="none")
    state = run(estimator)
    rows = torch.bincount(state.logits.long(), minlength=5)
    taken = torch.bincount(state.logits[state.subset].long(), minlength=5)
    assert rows.tolist() == [24] * 5 and state.step == 1
    assert taken.min() >= 2 and taken.max() <= 3 and taken.sum() == 12
    assert not torch.equal(state.logits, estimator_of(scope="block", seed=1).init().logits)


def test_one_block_is_the_direct_solution_before_its_swaps():
    estimator = estimator_of(block_rows=1000, n_epochs=1, polish="none")
    indices, similarities, bonus, visit = facility_arrays(estimator.problem)
    order = np.argsort(visit)
    picks = greedy(*reverse_lists(indices, similarities), bonus, 12, order)
    assert sorted(torch.nonzero(run(estimator).subset).ravel().tolist()) == sorted(picks)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"logits": torch.full((120,), 7.0, dtype=torch.float64)}, "numbers of 5 blocks"),
        ({"logits": torch.zeros(3, dtype=torch.float64)}, "logits must be"),
        ({"subset": None, "best": None, "best_joint": -np.inf}, "subset must be there after round 1"),
        ({"step": 9}, "step must be from 0 to 4"),
    ],
)
def test_a_state_that_no_round_left_is_refused(change, problem):
    estimator = estimator_of()
    with pytest.raises(ValueError, match=problem):
        estimator.check(replace(run(estimator, rounds=1), **change))


def test_what_blocks_cannot_keep_is_refused():
    pinned = np.zeros(120, dtype=bool)
    pinned[3] = True
    rules = Rules(pinned, np.zeros(120, dtype=np.int64), np.zeros(1, dtype=np.int64), np.full(1, 12), ("all",))
    with pytest.raises(OptionError, match="takes no --pin"):
        estimator_of(rules=rules)
    with pytest.raises(OptionError, match="a lambda below 1"):
        estimator_of(lamb=1.0)
