"""Blocks of neighbouring cells: about equally many rows each, and none without a cell."""

from __future__ import annotations

import numpy as np
import pytest

from datamask.learning.cell_blocks import block_of_cells


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
