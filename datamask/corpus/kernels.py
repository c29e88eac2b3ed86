"""The inner loop of the neighbour graph: offer a block of similarities to the lists of its rows and columns.

Compiled by numba, without the interpreter lock and without numba's own threads: two callers inside numba's thread pool
at once can abort the process (umap issue 665), so the caller splits rows and columns over ordinary threads.

Each list is a binary heap with its worst entry at place 0. Entries compare by similarity, then by index, lower first,
so that the lists do not depend on the order in which blocks come.
"""

from __future__ import annotations

import numpy as np

from datamask.compiling import compiled, compiled_sum

NOWHERE = -(2**40)
"""The `own` of rows that are none of the columns' rows."""

CHUNK = 32
"""Similarities tested at once before any is looked at: almost no chunk holds one that beats its threshold."""


@compiled
def replace_worst(similarities: np.ndarray, indices: np.ndarray, value: float, index: int) -> None:
    """Replace the root of one heap, arrays ``(k,)``, and restore the heap."""
    k = len(similarities)
    at = 0
    while True:
        child = 2 * at + 1
        if child >= k:
            break
        right = child + 1
        if right < k and (
            similarities[right] < similarities[child]
            or (similarities[right] == similarities[child] and indices[right] > indices[child])
        ):
            child = right
        if similarities[child] > value or (similarities[child] == value and indices[child] < index):
            break
        similarities[at] = similarities[child]
        indices[at] = indices[child]
        at = child
    similarities[at] = value
    indices[at] = index


@compiled
def offer_rows(
    block: np.ndarray,
    first_row: int,
    first_column: int,
    own: int,
    similarities: np.ndarray,
    indices: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Offer every column of `block` to the lists of its rows `low` to `high`; a row is never offered itself.

    Args:
        block: float32 ``(B, C)``, similarities of rows ``first_row + i`` with rows ``first_column + j``.
        own: the number that row 0 of the block has among the columns' rows; `NOWHERE` where it is none of them.
        similarities, indices: float32 and int32 ``(N, k)`` heaps.
    """
    columns = block.shape[1]
    for i in range(low, high):
        row, itself = first_row + i, own + i
        worst = similarities[row, 0]
        for start in range(0, columns, CHUNK):
            stop = min(start + CHUNK, columns)
            hits = 0
            for j in range(start, stop):
                hits += block[i, j] >= worst
            if hits:
                for j in range(start, stop):
                    value, index = block[i, j], first_column + j
                    if index != itself and (value > worst or (value == worst and index < indices[row, 0])):
                        replace_worst(similarities[row], indices[row], value, index)
                        worst = similarities[row, 0]


@compiled
def offer_columns(
    block: np.ndarray,
    first_row: int,
    first_column: int,
    similarities: np.ndarray,
    indices: np.ndarray,
    low: int,
    high: int,
) -> None:
    """Offer every row of `block` to the lists of its columns `low` to `high`; arguments as in `offer_rows`."""
    worst = similarities[first_column + low : first_column + high, 0].copy()
    for i in range(block.shape[0]):
        index = first_row + i
        for start in range(low, high, CHUNK):
            stop = min(start + CHUNK, high)
            hits = 0
            for j in range(start, stop):
                hits += block[i, j] >= worst[j - low]
            if hits:
                for j in range(start, stop):
                    value, row = block[i, j], first_column + j
                    if value > worst[j - low] or (value == worst[j - low] and index < indices[row, 0]):
                        replace_worst(similarities[row], indices[row], value, index)
                        worst[j - low] = similarities[row, 0]


@compiled
def _elsewhere(row: int, column: int, cell: np.ndarray, probed: np.ndarray) -> bool:
    """Whether the pair is compared with the two in each other's place too, and that comparison is the one that counts.

    A pair whose members both probe the other's cell is multiplied twice, and rounding may differ: one of the two
    products has to be left out, and always the same one.
    """
    own_cell, other_cell = cell[row], cell[column]
    if other_cell > own_cell or (other_cell == own_cell and column > row):
        return False
    low, high = 0, probed.shape[1]
    while low < high:
        middle = (low + high) // 2
        if probed[column, middle] < own_cell:
            low = middle + 1
        else:
            high = middle
    compared_there: bool = low < probed.shape[1] and probed[column, low] == own_cell
    return compared_there


@compiled
def offer_listed_rows(
    block: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    cell: np.ndarray,
    probed: np.ndarray,
    similarities: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Offer the columns of `block` to the lists of its rows, which probe the columns' cell.

    Args:
        block: float32 ``(B, C)``, similarities of rows ``rows[i]`` with rows ``columns[j]``.
        rows, columns: int32 ``(B,)`` and ``(C,)``.
        cell, probed: of all rows, ``(N,)`` and ``(N, m)`` rising; see `datamask.corpus.partition_search.Probing`.
        similarities, indices: float32 and int32 ``(N, k)`` heaps.
    """
    for i in range(block.shape[0]):
        row = rows[i]
        worst = similarities[row, 0]
        for start in range(0, block.shape[1], CHUNK):
            stop = min(start + CHUNK, block.shape[1])
            hits = 0
            for j in range(start, stop):
                hits += block[i, j] >= worst
            if hits:
                for j in range(start, stop):
                    value, index = block[i, j], columns[j]
                    if (
                        (value > worst or (value == worst and index < indices[row, 0]))
                        and index != row
                        and not _elsewhere(row, index, cell, probed)
                    ):
                        replace_worst(similarities[row], indices[row], value, index)
                        worst = similarities[row, 0]


@compiled
def offer_listed_columns(
    block: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    cell: np.ndarray,
    probed: np.ndarray,
    similarities: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Offer the rows of `block` to the lists of its columns; arguments as in `offer_listed_rows`."""
    worst = np.empty(block.shape[1], np.float32)
    for j in range(block.shape[1]):
        worst[j] = similarities[columns[j], 0]
    for i in range(block.shape[0]):
        index = rows[i]
        for start in range(0, block.shape[1], CHUNK):
            stop = min(start + CHUNK, block.shape[1])
            hits = 0
            for j in range(start, stop):
                hits += block[i, j] >= worst[j]
            if hits:
                for j in range(start, stop):
                    value, row = block[i, j], columns[j]
                    if (
                        (value > worst[j] or (value == worst[j] and index < indices[row, 0]))
                        and index != row
                        and not _elsewhere(index, row, cell, probed)
                    ):
                        replace_worst(similarities[row], indices[row], value, index)
                        worst[j] = similarities[row, 0]


@compiled_sum
def _cosine(features: np.ndarray, row: int, other: int) -> np.float32:
    total = np.float32(0.0)
    for dimension in range(features.shape[1]):
        total += features[row, dimension] * features[other, dimension]
    return min(max(total, np.float32(-1.0)), np.float32(1.0))


@compiled
def offer_second_neighbors(
    features: np.ndarray,
    rows: np.ndarray,
    near: np.ndarray,
    indices: np.ndarray,
    similarities: np.ndarray,
    better_indices: np.ndarray,
    better_similarities: np.ndarray,
    compared: np.ndarray,
) -> None:
    """Write the lists of some rows with the nearest neighbors of their nearest neighbors offered to them.

    Args:
        features: float32 ``(N, d)``, unit rows. rows: int32, whose lists are written. near: int32 ``(N, m)``, the
            nearest neighbors of all rows.
        indices, similarities: int32 and float32 ``(N, K)``, each list the row itself, then others by falling
            similarity, ties by rising index; better_indices, better_similarities: the same, written.
        compared: int32 ``(N,)``, at first without any of `rows`: with which row each one was compared last.
    """
    last = indices.shape[1] - 1
    for row in rows:
        listed, values = better_indices[row], better_similarities[row]
        listed[:] = indices[row]
        values[:] = similarities[row]
        for at in range(last + 1):
            compared[listed[at]] = row
        for first in near[row]:
            for second in near[first]:
                if compared[second] == row:
                    continue
                compared[second] = row
                value = _cosine(features, row, second)
                if value < values[last] or (value == values[last] and second > listed[last]):
                    continue
                at = last
                while at > 1 and (value > values[at - 1] or (value == values[at - 1] and second < listed[at - 1])):
                    values[at] = values[at - 1]
                    listed[at] = listed[at - 1]
                    at -= 1
                values[at] = value
                listed[at] = second


def empty_heaps(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lists without entries: similarities float32 ``(n, k)`` of minus infinity, indices int32 ``(n, k)`` of n."""
    return np.full((n, k), -np.inf, np.float32), np.full((n, k), n, np.int32)
