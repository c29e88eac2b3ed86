"""Blocks of neighbouring k-means cells: rows that could stand for each other are mostly in one block.

Centres are learned from a uniform sample, and blocks made by halving the centres along their first principal axis, by
the rows in them, so that all blocks are about equally large. Both fit into memory whatever the size of the corpus: its
nearest centre alone says which block a row belongs to.
"""

from __future__ import annotations

import numpy as np

CELLS_PER_BLOCK = 16
BATCH = 8192


def cell_centres(sample: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Centres of `count` k-means cells, float32 ``(C, d)``; of fewer where the sample has fewer rows.

    Args:
        sample: float32 ``(m, d)``, unit rows, a uniform sample of the corpus.
    """
    from sklearn.cluster import MiniBatchKMeans

    count = min(count, len(sample))
    model = MiniBatchKMeans(
        count, random_state=seed % 2**32, n_init=1, batch_size=BATCH, init_size=min(len(sample), 3 * count)
    )
    return np.asarray(model.fit(sample).cluster_centers_, np.float32)


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


def nearest_centre(features: np.ndarray, centres: np.ndarray, rows_at_once: int = 16_384) -> np.ndarray:
    """The nearest centre of each row, int64 ``(n,)``, by Euclidean distance."""
    offset = (centres.astype(np.float32) ** 2).sum(1) / 2
    nearest = np.empty(len(features), dtype=np.int64)
    for start in range(0, len(features), rows_at_once):
        part = slice(start, start + rows_at_once)
        nearest[part] = (features[part] @ centres.T - offset).argmax(1)
    return nearest
