"""The blocks of a corpus and the lists across them: what is in them, and that nothing is done twice."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.out_of_core import partition
from datamask.out_of_core.cells import CellBlocks
from datamask.out_of_core.partition import unit_float32
from tests.making.shards import SerialEngine, clustered, scratch_of

ROWS = 3000


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
    return np.concatenate([phase[number][name] for number in range(cells.blocks)])


def test_every_row_is_in_one_block_with_what_belongs_to_it(corpus, prepared):
    features, quality, scratch = corpus
    rows = whole(prepared, prepared.block, "rows")
    assert np.array_equal(np.sort(rows), np.arange(ROWS))
    assert np.array_equal(whole(prepared, prepared.block, "quality"), quality[rows])
    assert np.array_equal(whole(prepared, prepared.block, "id_hash"), scratch.id_hash[rows])
    kept = unit_float32(whole(prepared, prepared.block, "features"))
    assert np.abs(kept - features[rows]).max() <= 2.0**-11
    sizes = np.diff(prepared.atlas[0]["block_starts"])
    assert sizes.max() <= 1.3 * ROWS / prepared.blocks


def lists_of(cells: CellBlocks) -> list[np.ndarray]:
    return [whole(cells, cells.lists, name) for name in ("positions", "similarities")]


def assert_same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


def test_the_lists_depend_on_no_order_and_nothing_is_done_twice(tmp_path):
    features, quality = clustered(1200, seed=1)
    outcomes = []
    for backwards in (False, True):
        engine = SerialEngine(backwards)
        cells = CellBlocks(scratch_of(tmp_path / str(backwards), features, quality), 250, 16)
        cells.prepare(engine)
        outcomes.append(lists_of(cells))
        calls = len(engine.calls)
        cells.prepare(engine)
        assert len(engine.calls) == calls
    assert_same(*outcomes)


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

    def listed(scratch, engine):
        cells = CellBlocks(scratch, 150, 16)
        cells.prepare(engine)
        return lists_of(cells)

    scratch = scratch_of(tmp_path / "unbroken", features, quality)
    unbroken = SerialEngine()
    expected = listed(scratch, unbroken)
    scratch = scratch_of(tmp_path / "broken", features, quality)
    calls = 0
    for most in (1, 3, 7, 9, 10, 8, 5, 4, 6, 5, 1, 1, 1000):
        engine = StopsAfter(most)
        try:
            outcome = listed(scratch, engine)
        except KeyboardInterrupt:
            calls += len(engine.calls)
            continue
        calls += len(engine.calls)
        assert_same(outcome, expected)
    assert calls == len(unbroken.calls)


def test_parts_are_whole_cells_of_one_block():
    sizes = np.array([3, 9, 1, 1, 1, 30, 2, 4])
    cell_starts, first_cells = np.concatenate([[0], np.cumsum(sizes)]), np.array([0, 3, 3, 7, 8])
    parts = partition.parts_of(cell_starts, first_cells, 10)
    assert parts.tolist() == [0, 2, 3, 6, 7, 8]
    assert partition.parts_of(cell_starts, first_cells, 1000).tolist() == [0, 3, 7, 8]
