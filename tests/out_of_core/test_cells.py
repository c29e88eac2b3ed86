"""Facility by blocks out of core: against the same in memory on the same lists, and against definitions."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.corpus.sampling import hash_under
from datamask.learning.block_greedy import BlockGreedy
from datamask.learning.turns import colours_of_round
from datamask.out_of_core import cells as cells_module
from datamask.out_of_core import neighbour_lists, partition
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.cells import Aim, CellBlocks, Rounds
from datamask.out_of_core.engines.local import LocalEngine
from datamask.out_of_core.partition import unit_float32
from datamask.polling import no_poll
from tests.making.shards import SerialEngine, clustered, scratch_of

ROWS, SIZE = 5000, 500


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Features and qualities, and their scratch."""
    features, quality = clustered(ROWS)
    return features, quality, scratch_of(tmp_path_factory.mktemp("corpus"), features, quality)


@pytest.fixture(scope="module")
def prepared(corpus):
    """Blocks of 700 rows with their lists, for which all pairs were compared."""
    cells = CellBlocks(corpus[2], 700, 32, exact=True)
    cells.prepare(SerialEngine())
    return cells


def whole(cells: CellBlocks, phase, name: str) -> np.ndarray:
    """An array of all blocks, by position."""
    return np.concatenate([ArrayFile(phase.path(number))[name] for number in range(cells.blocks)])


def in_memory(cells: CellBlocks, aim: Aim) -> BlockGreedy:
    """The same in memory, where positions are the rows."""
    starts = ArrayFile(cells.atlas.path(0))["block_starts"]
    hashes = hash_under(whole(cells, cells.block, "id_hash"), cells.seed)
    return BlockGreedy(
        whole(cells, cells.lists, "positions"),
        whole(cells, cells.lists, "similarities"),
        np.repeat(np.arange(cells.blocks), np.diff(starts)),
        (whole(cells, cells.block, "quality") - aim.mean_quality) * aim.bonus,
        aim.size,
        np.argsort(np.argsort(hashes)),
    )


def member_of(state) -> np.ndarray:
    return ArrayFile(state.members.path(0))["member"].astype(bool)


@pytest.mark.parametrize("bonus", [0.0, 0.4])
def test_every_round_is_that_of_blocks_in_memory_on_the_same_lists(corpus, prepared, bonus):
    aim = Aim(SIZE, bonus, float(corpus[1].mean()))
    states = list(Rounds(prepared, aim, 3).run(SerialEngine()))
    assert [state.step for state in states] == [1, 2, 3] and prepared.blocks == 8
    memory = in_memory(prepared, aim)
    member = memory.alone()
    np.testing.assert_array_equal(member_of(states[0]), member)
    for number in (1, 2):
        member = memory.again(member, colours_of_round(8, number, 0))
        np.testing.assert_array_equal(member_of(states[number]), member)
    assert states[2].worth(aim) > states[0].worth(aim)


def listed(cells: CellBlocks) -> np.ndarray:
    """Listed similarities of rows and candidates by position, 0 where a candidate is not listed: ``(N, N)``."""
    matrix = np.zeros((cells.rows, cells.rows), np.float32)
    positions, near = whole(cells, cells.lists, "positions"), whole(cells, cells.lists, "similarities")
    for column in reversed(range(positions.shape[1])):  # itself, the first, is written last
        matrix[np.arange(cells.rows), positions[:, column]] = np.maximum(near[:, column], 0)
    return matrix


def test_values_are_those_of_the_definition(corpus, prepared):
    aim = Aim(SIZE, 0.4, float(corpus[1].mean()))
    matrix = listed(prepared)
    for state in Rounds(prepared, aim, 2, 1).run(SerialEngine()):
        member = member_of(state)
        assert member.sum() == state.count == SIZE
        best = matrix[:, member].max(axis=1)
        assert state.covered == pytest.approx(best.sum(dtype=np.float64), rel=1e-9)
        assert state.lost == (matrix[:, member] == 0).all(axis=1).sum()
        assert state.quality == pytest.approx(whole(prepared, prepared.block, "quality")[member].sum(), rel=1e-9)


def test_swaps_end_where_no_swap_inside_a_block_helps(corpus, tmp_path):
    """One turn of swaps of one block, against all swaps tried one by one."""
    features, quality = clustered(300, seed=3)
    cells = CellBlocks(scratch_of(tmp_path, features, quality), 100, 20)
    cells.prepare(SerialEngine())
    aim = Aim(30, 0.3, float(quality.mean()))
    rounds = Rounds(cells, aim, 1, 1)
    states = list(rounds.run(SerialEngine()))
    assert states[1].worth(aim) > states[0].worth(aim) and states[1].changed > 0
    last = list(rounds.turns())[-1]
    before, after = (ArrayFile(phase.path(0))["member"].astype(bool) for phase in (last.before, last.after))
    bonus, matrix = aim.bonus * whole(cells, cells.block, "quality"), listed(cells)
    block = np.repeat(np.arange(cells.blocks), np.diff(ArrayFile(cells.atlas.path(0))["block_starts"]))

    def worth(member: np.ndarray) -> float:
        return matrix[:, member].max(axis=1).sum(dtype=np.float64) + bonus[member].sum()

    # each block of the last colour ended where none of its swaps helps, given the others as they were
    swapped = np.unique(block[before != after])
    assert len(swapped)
    for number in swapped:
        member = np.where(block == number, after, before)
        assert worth(member) > worth(before)
        for leaving in np.flatnonzero(member & (block == number)):
            for coming in np.flatnonzero(~member & (block == number)):
                trial = member.copy()
                trial[leaving], trial[coming] = False, True
                assert worth(trial) <= worth(member) + 1e-6


def test_every_row_is_in_one_block_with_what_belongs_to_it(corpus, prepared):
    features, quality, scratch = corpus
    rows = whole(prepared, prepared.block, "rows")
    assert np.array_equal(np.sort(rows), np.arange(ROWS))
    assert np.array_equal(whole(prepared, prepared.block, "quality"), quality[rows])
    assert np.array_equal(whole(prepared, prepared.block, "id_hash"), scratch.id_hash[rows])
    kept = unit_float32(whole(prepared, prepared.block, "features"))
    assert np.abs(kept - features[rows]).max() <= 2.0**-11
    sizes = np.diff(ArrayFile(prepared.atlas.path(0))["block_starts"])
    assert sizes.max() <= 1.3 * ROWS / prepared.blocks


def test_random_blocks_know_themselves_alone(corpus, tmp_path, monkeypatch):
    """Of rows that look into few cells of their block, a pair is compared if either does; then comes NN-descent."""
    monkeypatch.setattr(cells_module, "LOOKED_AT_ALONE", 70)
    monkeypatch.setattr(neighbour_lists, "NEAREST", 0)
    features, quality = clustered(900, seed=5)
    cells = CellBlocks(scratch_of(tmp_path, features, quality), 220, 12, alone=True)
    engine = SerialEngine()
    cells.folder.mkdir()
    for phase in (cells.centres, cells.assign, cells.layout, cells.part, cells.block, cells.atlas, cells.probes):
        phase.done(engine)
    probed = [ArrayFile(cells.probes.path(number))["probed"] for number in range(cells.blocks)]
    starts = ArrayFile(cells.atlas.path(0))["cell_starts"]
    cell = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    x = unit_float32(whole(cells, cells.block, "features")).astype(np.float64)
    cells.prepare(engine)
    positions, near = whole(cells, cells.lists, "positions"), whole(cells, cells.lists, "similarities")
    edges = ArrayFile(cells.atlas.path(0))["block_starts"]
    assert cells.blocks == 5
    for looked, low, high in zip(probed, edges, edges[1:]):
        looks = (looked[:, :, None] == cell[None, None, low:high]).any(axis=1)
        # of the 16 cells of a block in as many as hold a third of it
        assert looked.shape[1] == -(-70 * 16 // (high - low)) and looks.diagonal().all()
        compared = looks | looks.T
        compared[compared.sum(axis=1) < 12] = True
        products = np.where(compared, x[low:high] @ x[low:high].T, -np.inf)
        np.fill_diagonal(products, 2.0)
        np.testing.assert_allclose(near[low:high, 1:], -np.sort(-products, axis=1)[:, 1:12], atol=1e-4)
        assert positions[low:high].min() >= low and positions[low:high].max() < high


def test_what_is_selected_depends_on_no_order_and_nothing_is_done_twice(corpus, tmp_path):
    features, quality = clustered(1200, seed=1)
    aim = Aim(100, 0.2, float(quality.mean()))
    outcomes = []
    for backwards in (False, True):
        engine = SerialEngine(backwards)
        cells = CellBlocks(scratch_of(tmp_path / str(backwards), features, quality), 250, 16)
        cells.prepare(engine)
        states = list(Rounds(cells, aim, 2, 1).run(engine))
        outcomes.append([member_of(state) for state in states])
        calls = len(engine.calls)
        cells.prepare(engine)
        again = list(Rounds(cells, aim, 2, 1).run(engine))
        assert again == states and len(engine.calls) == calls
    np.testing.assert_array_equal(*outcomes)


class StopsAfter(SerialEngine):
    """Is killed before a call of this number."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.most = calls

    def run(self, task, arguments, *, poll, on_done=None):
        def counted() -> None:
            poll()
            if len(self.calls) >= self.most:
                raise KeyboardInterrupt

        return super().run(task, arguments, poll=counted, on_done=on_done)


def test_wherever_it_is_stopped_it_goes_on_from_there(tmp_path):
    features, quality = clustered(500, seed=2)
    aim = Aim(50)

    def selected(folder, engine):
        cells = CellBlocks(scratch, 150, 16)
        cells.prepare(engine)
        return [member_of(state) for state in Rounds(cells, aim, 2, 1).run(engine)]

    scratch = scratch_of(tmp_path / "unbroken", features, quality)
    unbroken = SerialEngine()
    expected = selected(scratch, unbroken)
    scratch = scratch_of(tmp_path / "broken", features, quality)
    calls = 0
    for most in (1, 3, 7, 9, 10, 8, 5, 4, 6, 5, 1, 1, 1000):
        engine = StopsAfter(most)
        try:
            outcome = selected(scratch, engine)
        except KeyboardInterrupt:
            calls += len(engine.calls)
            continue
        calls += len(engine.calls)
        np.testing.assert_array_equal(outcome, expected)
    assert calls == len(unbroken.calls)


def test_workers_select_the_same_and_load_no_torch(tmp_path):
    features, quality = clustered(400, seed=4)
    aim = Aim(40, 0.2, float(quality.mean()))
    outcomes = []
    for name, engine in (("here", SerialEngine()), ("workers", LocalEngine(2))):
        cells = CellBlocks(scratch_of(tmp_path / name, features, quality), 120, 16)
        with engine:
            cells.prepare(engine)
            outcomes.append([member_of(state) for state in Rounds(cells, aim, 2, 1).run(engine)])
            if name == "workers":
                (loaded,) = engine.run("tests.making.shards:loaded", [{}], poll=no_poll)
    np.testing.assert_array_equal(*outcomes)
    assert "numba" in loaded["modules"] and "torch" not in loaded["modules"]


def test_parts_are_whole_cells_of_one_block():
    sizes = np.array([3, 9, 1, 1, 1, 30, 2, 4])
    cell_starts, first_cells = np.concatenate([[0], np.cumsum(sizes)]), np.array([0, 3, 3, 7, 8])
    parts = partition.parts_of(cell_starts, first_cells, 10)
    assert parts.tolist() == [0, 2, 3, 6, 7, 8]
    assert partition.parts_of(cell_starts, first_cells, 1000).tolist() == [0, 3, 7, 8]
