"""Tasks that put the rows of a corpus into blocks of neighbouring cells, each in one file, read once and written once.

    centres -> assign, for each range of rows -> layout -> part, for each range -> block, for each block -> atlas

Centres of k-means cells are learned from a uniform sample; every row belongs to its nearest one; blocks are
neighbouring cells, about equally many rows each. Inside a block rows are ordered by finer cells of some `ROWS_PER_CELL`
rows, which the search for neighbours looks into. A row's *position* is its place when all blocks are laid end to end.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.sampling import hash_under
from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.scratch import Scratch, open_scratch
from datamask.out_of_core.tasks import Argument, Made, once, opened

SAMPLED_PER_CELL = 64
"""Rows that k-means looks at, per cell."""

ROWS_PER_CELL = 1024
"""Rows of a fine cell, about."""

PART_ROWS = 1 << 16
"""Rows of a part of a block, whose neighbours one task looks for."""

ROUNDS = 6
"""Of k-means inside a cell."""

ROWS_AT_ONCE = 16_384

LEAST_NORM = 1e-9


@functools.lru_cache(maxsize=2)
def _scratch_in(folder: str) -> Scratch:
    return open_scratch(folder)


def scratch_of(argument: Argument) -> Scratch:
    """The scratch in whose folder the folder of the tasks lies: opened once in a process."""
    return _scratch_in(str(Path(argument["folder"]).parent))


def range_of(argument: Argument, rows: int) -> tuple[int, int]:
    """The rows that the call of this number is about: the first, and the one behind the last."""
    low = argument["number"] * argument["range_rows"]
    return low, min(low + argument["range_rows"], rows)


def uniform_rows(scratch: Scratch, count: int, seed: int) -> np.ndarray:
    """A uniform sample of the rows, int64, rising: those with the smallest hashes of id and seed."""
    if count >= scratch.rows:
        return np.arange(scratch.rows)
    hashes = hash_under(scratch.id_hash, seed)
    return np.sort(np.argpartition(hashes, count)[:count])


def centres(argument: Argument) -> dict[str, Any]:
    """Centres of so many k-means cells of a uniform sample of the corpus."""
    return once(argument, _centres)


def _centres(argument: Argument) -> Made:
    from threadpoolctl import threadpool_limits

    from datamask.learning.cell_blocks import cell_centres

    scratch, cells, seed = scratch_of(argument), argument["cells"], argument["seed"]
    sample = scratch.rows_at(uniform_rows(scratch, SAMPLED_PER_CELL * cells, seed))
    with threadpool_limits(1):  # sums of several threads are rounded as the threads happen to come
        return {"centres": cell_centres(sample, cells, seed)}, {}


def assign(argument: Argument) -> dict[str, Any]:
    """The nearest centre of each row of a range, or, where blocks are random, a random block."""
    return once(argument, _assign)


def _assign(argument: Argument) -> Made:
    from datamask.learning.cell_blocks import nearest_centre

    scratch = scratch_of(argument)
    low, high = range_of(argument, scratch.rows)
    if argument["centres"] is None:
        cells = argument["blocks"]
        cell = (hash_under(scratch.id_hash_of(low, high), argument["seed"]) % np.uint64(cells)).astype(np.int32)
    else:
        points = opened(argument, "centres", 0)["centres"]
        cells, cell = len(points), np.empty(high - low, np.int32)
        with one_blas_thread():
            for start in range(low, high, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, high)
                cell[start - low : stop - low] = nearest_centre(scratch.features(start, stop), points)
    return {"cell": cell, "counts": np.bincount(cell, minlength=cells)}, {}


def layout(argument: Argument) -> dict[str, Any]:
    """Which block each cell belongs to, once it is known how many rows there are in each."""
    return once(argument, _layout)


def _layout(argument: Argument) -> Made:
    from datamask.learning.cell_blocks import block_of_cells

    counts = sum(opened(argument, "assign", number)["counts"] for number in range(argument["ranges"]))
    if argument["centres"] is None:
        block = np.arange(argument["blocks"])
    else:
        points = np.asarray(opened(argument, "centres", 0)["centres"])
        block = block_of_cells(points, np.asarray(counts), argument["blocks"])
    rows = np.bincount(block, counts, argument["blocks"]).astype(np.int64)
    return {"block": block, "rows": rows}, {"largest": int(rows.max()), "smallest": int(rows.min())}


def part(argument: Argument) -> dict[str, Any]:
    """The rows of a range, ordered by block, cell and row: what the blocks are put together from."""
    return once(argument, _part)


def _part(argument: Argument) -> Made:
    scratch = scratch_of(argument)
    low, high = range_of(argument, scratch.rows)
    cell = np.asarray(opened(argument, "assign")["cell"])
    block = opened(argument, "layout", 0)["block"][cell]
    order = np.lexsort((cell, block))
    features = np.empty((high - low, scratch.dim), np.float16)
    place = np.empty(high - low, np.int64)
    place[order] = np.arange(high - low)
    for start in range(low, high, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, high)
        features[place[start - low : stop - low]] = scratch.features(start, stop)
    arrays = {
        "offsets": np.concatenate([[0], np.cumsum(np.bincount(block, minlength=argument["blocks"]))]),
        "rows": low + order,
        "cell": cell[order],
        "quality": scratch.quality_of(low, high)[order],
        "id_hash": scratch.id_hash_of(low, high)[order],
        "features": features,
    }
    return arrays, {}


def block(argument: Argument) -> dict[str, Any]:
    """All rows of a block, ordered by fine cell and row, with the centres of these cells."""
    return once(argument, _block)


def _block(argument: Argument) -> Made:
    number = argument["number"]
    parts = [opened(argument, "part", each) for each in range(argument["ranges"])]
    slices = [slice(*(int(end) for end in each["offsets"][number : number + 2])) for each in parts]

    def gathered(name: str) -> np.ndarray:
        return np.concatenate([each[name][where] for each, where in zip(parts, slices)])

    cell, features = gathered("cell"), gathered("features")
    order = np.argsort(cell, kind="stable")  # ranges rise, so rows rise inside a cell
    edges = np.flatnonzero(np.diff(cell[order], prepend=-1))
    bounds, points, sizes = [*edges.tolist(), len(order)], [], []
    with one_blas_thread():
        for low, high in itertools.pairwise(bounds):
            inside = order[low:high]
            fine_points, fine = fine_cells(unit_float32(features[inside]), ROWS_PER_CELL)
            points.append(fine_points)
            sizes.append(np.bincount(fine, minlength=len(fine_points)))
            order[low:high] = inside[np.argsort(fine, kind="stable")]
    dim = features.shape[1]
    arrays = {
        "rows": gathered("rows")[order],
        "quality": gathered("quality")[order],
        "id_hash": gathered("id_hash")[order],
        "starts": np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes])),
        "centres": np.concatenate([np.zeros((0, dim), np.float32), *points]),
        "features": features[order],
    }
    return arrays, {"rows": len(order), "cells": len(arrays["centres"])}


def fine_cells(features: np.ndarray, rows_per_cell: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells of about so many rows, by k-means of an even part of them; none is empty.

    Args:
        features: float32 ``(n, d)``, unit rows, n at least 1.

    Returns:
        Unit centres, float32 ``(C, d)``, and the cell of each row, int64 ``(n,)``.
    """
    count = max(1, round(len(features) / rows_per_cell))
    looked = features[:: max(1, len(features) // (SAMPLED_PER_CELL * count))]
    points = looked[np.linspace(0, len(looked) - 1, count).astype(np.int64)]
    for _ in range(ROUNDS if count > 1 else 1):
        points = _means(looked, _nearest(looked, points), points)
    nearest = _nearest(features, points)
    used, nearest = np.unique(nearest, return_inverse=True)
    return points[used], nearest


def _nearest(features: np.ndarray, points: np.ndarray) -> np.ndarray:
    nearest = np.empty(len(features), np.int64)
    for low in range(0, len(features), ROWS_AT_ONCE):
        some = slice(low, low + ROWS_AT_ONCE)
        nearest[some] = (features[some] @ points.T).argmax(axis=1)
    return nearest


def _means(features: np.ndarray, nearest: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Unit means of the rows of each cell; a centre that nobody is nearest to stays where it is."""
    sums = np.zeros(points.shape, np.float64)
    order = np.argsort(nearest, kind="stable")
    starts = np.flatnonzero(np.diff(nearest[order], prepend=-1))
    sums[nearest[order][starts]] = np.add.reduceat(features[order], starts, axis=0, dtype=np.float64)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.where(norms > LEAST_NORM, sums / np.maximum(norms, LEAST_NORM), points).astype(np.float32)


def unit_float32(features: np.ndarray) -> np.ndarray:
    """Rows kept as float16, as unit rows of float32."""
    wide = features.astype(np.float32)
    wide /= np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    return wide


def atlas(argument: Argument) -> dict[str, Any]:
    """Where blocks and fine cells begin, and the centres of all of these cells."""
    return once(argument, _atlas)


def _atlas(argument: Argument) -> Made:
    blocks = [opened(argument, "block", number) for number in range(argument["blocks"])]
    rows = np.array([each.facts["rows"] for each in blocks])
    cells = np.array([each.facts["cells"] for each in blocks])
    sizes = np.concatenate([np.diff(each["starts"]) for each in blocks])
    cell_starts, first_cells = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0], np.cumsum(cells)])
    part_cells = parts_of(cell_starts, first_cells, PART_ROWS)
    arrays = {
        "block_starts": np.concatenate([[0], np.cumsum(rows)]),
        "first_cells": first_cells,
        "cell_starts": cell_starts,
        "part_cells": part_cells,
        "centres": np.concatenate([each["centres"] for each in blocks]),
    }
    return arrays, {"rows": int(rows.sum()), "cells": int(cells.sum()), "parts": len(part_cells) - 1}


def parts_of(cell_starts: np.ndarray, first_cells: np.ndarray, rows: int) -> np.ndarray:
    """Parts of blocks, of whole cells and at least so many rows but for the last of a block.

    Args:
        cell_starts: int64 ``(C + 1,)``, positions. first_cells: int64 ``(B + 1,)``.

    Returns:
        int64 ``(P + 1,)``, the first cell of each part.
    """
    parts = [0]
    for high in first_cells[1:].tolist():
        while parts[-1] < high:
            enough = int(np.searchsorted(cell_starts, cell_starts[parts[-1]] + rows))
            parts.append(min(max(enough, parts[-1] + 1), high))
    return np.array(parts)
