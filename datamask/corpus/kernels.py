"""The inner loops of the neighbor graph: offer a block of products to the lists of its rows and of its columns.

Compiled by numba, without the interpreter lock and without numba's own threads: two callers inside numba's thread pool
at once can abort the process (umap issue 665), so the caller splits rows and columns over ordinary threads.

Each list is a binary heap with its worst entry at place 0. Entries compare by cosine, then by their rows' ties, lower
first, so that the lists do not depend on the order in which blocks come. Products are float32 and may be off by
rounding; the cosine of every pair that may enter a list is computed once more, in whole numbers.
"""

from __future__ import annotations

import numpy as np

from datamask.compiling import compiled, compiled_sum
from datamask.places import MEMORY, Place

CHUNK = 32
"""Products tested at once before any is looked at: almost no chunk holds one that beats its threshold."""


@compiled
def _product(rows: np.ndarray, row: int, others: np.ndarray, other: int) -> np.int32:
    total = np.int32(0)
    for dimension in range(rows.shape[1]):
        product = np.int32(np.int32(rows[row, dimension]) * np.int32(others[other, dimension]))
        total = np.int32(total + product)
    return total


@compiled
def cosine(
    rows: np.ndarray, inverses: np.ndarray, row: int, others: np.ndarray, other_inverses: np.ndarray, other: int
) -> np.float32:
    """Compute the cosine of two rounded rows, int16 ``(n, d)`` and ``(m, d)``: the same on every machine.

    Args:
        inverses, other_inverses: float64, from `inverse_lengths`.
    """
    value = _product(rows, row, others, other) * (inverses[row] * other_inverses[other])
    return np.float32(min(max(value, -1.0), 1.0))


@compiled
def inverse_lengths(rows: np.ndarray) -> np.ndarray:
    """1 by the length of each rounded row, float64 ``(n,)``; 0 where it has none."""
    inverses = np.zeros(len(rows))
    for row in range(len(rows)):
        square = np.float64(_product(rows, row, rows, row))
        if square > 0:
            inverses[row] = 1.0 / np.sqrt(square)
    return inverses


@compiled
def widen(rows: np.ndarray, inverses: np.ndarray, wide: np.ndarray) -> None:
    """Set float32 ``(n, d)`` to rounded rows of unit length."""
    for row in range(rows.shape[0]):
        inverse = np.float32(inverses[row])
        for dimension in range(rows.shape[1]):
            wide[row, dimension] = rows[row, dimension] * inverse


@compiled
def _before(one: int, other: int, ties: np.ndarray) -> bool:
    """Whether one of two rows that are equally near goes before the other. A place without entry is never asked for."""
    first: bool = ties[one] < ties[other] or (ties[one] == ties[other] and one < other)
    return first


@compiled
def replace_worst(
    similarities: np.ndarray, indices: np.ndarray, value: np.float32, index: int, ties: np.ndarray
) -> None:
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
            or (
                similarities[right] == similarities[child]
                and indices[right] != indices[child]
                and _before(indices[child], indices[right], ties)
            )
        ):
            child = right
        if similarities[child] > value or (similarities[child] == value and not _before(index, indices[child], ties)):
            break
        similarities[at] = similarities[child]
        indices[at] = indices[child]
        at = child
    similarities[at] = value
    indices[at] = index


@compiled
def offer_rows(
    products: np.ndarray,
    left: np.ndarray,
    left_inverses: np.ndarray,
    right: np.ndarray,
    right_inverses: np.ndarray,
    left_names: np.ndarray,
    right_names: np.ndarray,
    places: np.ndarray,
    ties: np.ndarray,
    slack: np.float32,
    similarities: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Offer every column of a block to the lists of its rows; a row is never offered itself.

    Args:
        products: float32 ``(B, C)``, of rounded rows `left`, int16 ``(B, d)``, and `right`, ``(C, d)``, scaled to unit
            length by their inverse lengths.
        left_names, right_names: int32 ``(B,)`` and ``(C,)``, what these rows are called in lists; -1: never listed.
        places: int32 ``(B,)``, of the lists of the rows. ties: uint64, by name, the lower of equally near ones first.
        slack: `rounded_rows.slack`. similarities, indices: float32 and int32 ``(N, k)`` heaps.
    """
    for i in range(products.shape[0]):
        place, name = places[i], left_names[i]
        worst = similarities[place, 0]
        bar = worst - slack
        for start in range(0, products.shape[1], CHUNK):
            stop = min(start + CHUNK, products.shape[1])
            hits = 0
            for j in range(start, stop):
                hits += products[i, j] >= bar
            if hits:
                for j in range(start, stop):
                    index = right_names[j]
                    if products[i, j] < bar or index == name:
                        continue
                    # among many copies almost none comes first: that is known without a product
                    if worst == 1.0 and not _before(index, indices[place, 0], ties):
                        continue
                    value = cosine(left, left_inverses, i, right, right_inverses, j)
                    if value > worst or (value == worst and _before(index, indices[place, 0], ties)):
                        replace_worst(similarities[place], indices[place], value, index, ties)
                        worst = similarities[place, 0]
                        bar = worst - slack


@compiled
def offer_columns(
    products: np.ndarray,
    left: np.ndarray,
    left_inverses: np.ndarray,
    right: np.ndarray,
    right_inverses: np.ndarray,
    left_names: np.ndarray,
    right_names: np.ndarray,
    places: np.ndarray,
    left_cells: np.ndarray,
    probed: np.ndarray,
    ties: np.ndarray,
    slack: np.float32,
    similarities: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Offer every row of a block to the lists of its columns, unless these look for it themselves.

    Args:
        places: int32 ``(C,)``, of the lists of the columns. left_cells: int32 ``(B,)``, the rows' cells.
        probed: int32 ``(N, m)``, by list, the rising cells that its row looks into, whose rows are offered to it there.
        others: as in `offer_rows`.
    """
    bars = np.empty(products.shape[1], np.float32)
    for j in range(products.shape[1]):
        bars[j] = similarities[places[j], 0] - slack
    for i in range(products.shape[0]):
        index = left_names[i]
        for start in range(0, products.shape[1], CHUNK):
            stop = min(start + CHUNK, products.shape[1])
            hits = 0
            for j in range(start, stop):
                hits += products[i, j] >= bars[j]
            if hits:
                for j in range(start, stop):
                    place = places[j]
                    if products[i, j] < bars[j] or index == right_names[j]:
                        continue
                    worst = similarities[place, 0]
                    if worst == 1.0 and not _before(index, indices[place, 0], ties):
                        continue
                    if _holds(probed[place], left_cells[i]):
                        continue
                    value = cosine(left, left_inverses, i, right, right_inverses, j)
                    if value > worst or (value == worst and _before(index, indices[place, 0], ties)):
                        replace_worst(similarities[place], indices[place], value, index, ties)
                        bars[j] = similarities[place, 0] - slack


@compiled
def _holds(rising: np.ndarray, value: int) -> bool:
    low, high = 0, len(rising)
    while low < high:
        middle = (low + high) // 2
        if rising[middle] < value:
            low = middle + 1
        else:
            high = middle
    present: bool = low < len(rising) and rising[low] == value
    return present


@compiled
def distinct(names: np.ndarray, places: np.ndarray) -> np.ndarray:
    """List the different ones among some names, int32, as they come.

    Args:
        names: int32. places: int32 ``(N,)``, by name, -1 for each of these; others than -1 are set for them.
    """
    found = np.empty(min(len(names), len(places)), np.int32)
    count = 0
    for name in names:
        if places[name] < 0:
            places[name] = count
            found[count] = name
            count += 1
    return found[:count]


@compiled
def second_neighbors(
    listed: np.ndarray,
    first: int,
    near: np.ndarray,
    theirs: np.ndarray,
    places: np.ndarray,
    compared: np.ndarray,
    seconds: np.ndarray,
) -> np.ndarray:
    """List the nearest neighbors of some rows' nearest neighbors, each row's once and without those it lists.

    Args:
        listed: int32 ``(n, k)``, lists of rows called ``first`` and up. near: int32 ``(n, m)``, whose lists are looked
            into, and theirs: int32 ``(F, m)``, what they list; places: int32, by name, where in `theirs`.
        compared: int32 ``(N,)``, by name, at first without any of the rows: with which each was compared last.
        seconds: int32, at least n m m, set from the start.

    Returns:
        int64 ``(n + 1,)``, where those of each row begin.
    """
    starts = np.zeros(len(listed) + 1, np.int64)
    count = 0
    for row in range(len(listed)):
        name = first + row
        compared[name] = name
        for at in range(listed.shape[1]):
            compared[listed[row, at]] = name
        for neighbor in near[row]:
            for second in theirs[places[neighbor]]:
                if compared[second] != name:
                    compared[second] = name
                    seconds[count] = second
                    count += 1
        starts[row + 1] = count
    return starts


@compiled
def offer_seconds(
    rows: np.ndarray,
    others: np.ndarray,
    places: np.ndarray,
    starts: np.ndarray,
    seconds: np.ndarray,
    ties: np.ndarray,
    similarities: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Offer rows what `second_neighbors` found for them.

    Args:
        rows: int16 ``(n, d)``, rounded. others: int16 ``(M, d)``, those found; places: int32, by name, their places.
        starts, seconds: as found. similarities, indices: float32 and int32 ``(n, k)``, each list falling, ties first;
            so they stay.
    """
    last = indices.shape[1] - 1
    inverses, other_inverses = inverse_lengths(rows), inverse_lengths(others)
    for row in range(len(rows)):
        listed, values = indices[row], similarities[row]
        for second in seconds[starts[row] : starts[row + 1]]:
            value = cosine(rows, inverses, row, others, other_inverses, places[second])
            if value < values[last] or (value == values[last] and not _before(second, listed[last], ties)):
                continue
            at = last
            while at > 0 and (
                value > values[at - 1] or (value == values[at - 1] and _before(second, listed[at - 1], ties))
            ):
                values[at] = values[at - 1]
                listed[at] = listed[at - 1]
                at -= 1
            values[at] = value
            listed[at] = second


@compiled
def listed_cosines(rows: np.ndarray, of: np.ndarray, indices: np.ndarray, cosines: np.ndarray) -> None:
    """Set the cosines of some rows with those that they list, float32 ``(n, k)``."""
    inverses = inverse_lengths(rows)
    for at in range(len(of)):
        for place in range(indices.shape[1]):
            cosines[at, place] = cosine(rows, inverses, of[at], rows, inverses, indices[at, place])


@compiled_sum
def true_cosines(features: np.ndarray, indices: np.ndarray, cosines: np.ndarray, rows: np.ndarray) -> None:
    """Set the cosines of listed pairs to the products of their features, from -1 to 1.

    Args:
        features: float32 ``(N, d)``, unit rows. indices: int32 ``(N, K)``, lists, each row in front of its own.
        cosines: float32 ``(N, K)``, changed at `rows`, int64.
    """
    d = features.shape[1]
    for v in rows:
        for c in range(1, indices.shape[1]):
            i = indices[v, c]
            if i == v:  # a short list ends with the row itself again
                break
            total = np.float64(0.0)
            for a in range(d):
                total += features[v, a] * features[i, a]
            cosines[v, c] = np.float32(min(max(total, -1.0), 1.0))


@compiled
def sort_lists(indices: np.ndarray, similarities: np.ndarray) -> None:
    """Sort lists, ``(n, K)``, by falling similarity, the row itself in front; equal ones stay as they are."""
    for v in range(len(indices)):
        for c in range(2, indices.shape[1]):
            index, value, at = indices[v, c], similarities[v, c], c
            while at > 1 and similarities[v, at - 1] < value:
                indices[v, at], similarities[v, at] = indices[v, at - 1], similarities[v, at - 1]
                at -= 1
            indices[v, at], similarities[v, at] = index, value


def empty_heaps(n: int, k: int, none: int, place: Place = MEMORY) -> tuple[np.ndarray, np.ndarray]:
    """Lists without entries: similarities float32 ``(n, k)`` of minus infinity, indices int32 ``(n, k)`` of `none`."""
    similarities, indices = place.empty((n, k), np.float32), place.empty((n, k), np.int32)
    similarities.fill(-np.inf)
    indices.fill(none)
    return similarities, indices
