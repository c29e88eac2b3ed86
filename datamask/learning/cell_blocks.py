"""Blocks of neighbouring k-means cells: rows that could stand for each other are mostly in one block.

Blocks are made by halving the centres along their first principal axis, by the rows in them, so that all blocks are
about equally large. The nearest centre alone says which block a row belongs to.
"""

from __future__ import annotations

import numpy as np


def block_of_cells(centres: np.ndarray, weights: np.ndarray, blocks: int) -> np.ndarray:
    """Which block each cell belongs to, int64 ``(C,)``, 0 to B - 1: neighbouring cells, about equally many rows each.

    Args:
        centres: float32 ``(C, d)``. weights: rows in each cell, ``(C,)``. blocks: B, at most C.

    Raises:
        ValueError: more blocks than cells.
    """
    if not 1 <= blocks <= len(centres):
        raise ValueError(f"blocks must lie between 1 and the number of cells ({len(centres)}), got {blocks}")
    block = np.zeros(len(centres), dtype=np.int64)
    # an empty cell must go somewhere too
    weights = weights.astype(np.float64) + 1e-9
    _halve(centres.astype(np.float64), weights, np.arange(len(centres)), 0, blocks, block)
    return block


def _halve(centres: np.ndarray, weights: np.ndarray, cells: np.ndarray, low: int, high: int, block: np.ndarray) -> None:
    """Put `cells` into blocks `low` to `high` - 1."""
    if high - low == 1:
        block[cells] = low
        return
    centred = centres[cells] - np.average(centres[cells], axis=0, weights=weights[cells])
    axis = np.linalg.svd(centred * np.sqrt(weights[cells])[:, None], full_matrices=False)[2][0]
    along = cells[np.argsort(centred @ axis, kind="stable")]
    filled = np.cumsum(weights[along])
    middle = (low + high) // 2
    first = middle - low
    place = int(np.searchsorted(filled, filled[-1] * first / (high - low)))
    # neither part may have fewer cells than blocks
    place = min(max(place, first), len(along) - (high - middle))
    _halve(centres, weights, along[:place], low, middle, block)
    _halve(centres, weights, along[place:], middle, high, block)
