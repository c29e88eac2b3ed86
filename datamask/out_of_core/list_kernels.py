"""Inner loops of the neighbour lists across blocks, compiled."""

from __future__ import annotations

import numpy as np

from datamask.compiling import compiled


@compiled
def reversed_entries(
    offsets: np.ndarray, targets: np.ndarray, listers: np.ndarray, near: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Entries of lists by the row that they list, in the order in which they come.

    Args:
        offsets: int64 ``(n + 1,)``, where the entries of each listed row begin. targets: the listed row of each entry.
        listers: int32 and near: float32, what is to be put in that order.
    """
    place = offsets[:-1].copy()
    rows = np.empty(len(listers), dtype=np.int32)
    similarities = np.empty(len(near), dtype=np.float32)
    for e in range(len(targets)):
        at = place[targets[e]]
        rows[at] = listers[e]
        similarities[at] = near[e]
        place[targets[e]] = at + 1
    return rows, similarities


@compiled
def coverage(
    positions: np.ndarray,
    similarities: np.ndarray,
    member: np.ndarray,
    block_starts: np.ndarray,
    best: np.ndarray,
    other: np.ndarray,
    owner: np.ndarray,
) -> None:
    """How near each row's nearest listed member is, in which block, and the nearest listed member of any other block.

    Args:
        positions, similarities: lists ``(n, K)``, falling. member: uint8 ``(N,)``, by position.
        block_starts: int64 ``(B + 1,)``.
        best, other: float32 ``(n,)``, set to a similarity, 0 without one. owner: int32 ``(n,)``, -1 without one.
    """
    for v in range(positions.shape[0]):
        best[v] = 0.0
        other[v] = 0.0
        owner[v] = -1
        for c in range(positions.shape[1]):
            i = positions[v, c]
            if member[i]:
                of_block = np.searchsorted(block_starts, i, side="right") - 1
                if owner[v] < 0:
                    owner[v] = of_block
                    best[v] = max(similarities[v, c], np.float32(0.0))
                elif of_block != owner[v]:
                    other[v] = max(similarities[v, c], np.float32(0.0))
                    break


@compiled
def two_nearest(
    positions: np.ndarray,
    similarities: np.ndarray,
    member: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
) -> None:
    """Set the two nearest listed members of each row: float32 ``(n,)``, 0 without one, and the position of the nearest,
    -1 without one. Arguments as in `coverage`."""
    for v in range(positions.shape[0]):
        best[v] = 0.0
        second[v] = 0.0
        owner[v] = -1
        for c in range(positions.shape[1]):
            if member[positions[v, c]]:
                near = max(similarities[v, c], np.float32(0.0))
                if owner[v] < 0:
                    owner[v] = positions[v, c]
                    best[v] = near
                elif positions[v, c] != owner[v]:  # a short list ends with the row itself again
                    second[v] = near
                    break


@compiled
def gains_of(
    offsets: np.ndarray,
    listing: np.ndarray,
    near: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    owner: np.ndarray,
    member: np.ndarray,
    first: int,
) -> np.ndarray:
    """What each row of a block adds to the sum, or what is lost without it, float64 ``(n,)``.

    Args:
        offsets, listing, near: who lists it. best, second, owner: ``(m,)``, of the listers, from `two_nearest`.
        member: uint8 ``(n,)``. first: position of the block's first row.
    """
    gains = np.zeros(len(offsets) - 1)
    for i in range(len(gains)):
        for e in range(offsets[i], offsets[i + 1]):
            v = listing[e]
            if member[i]:
                if owner[v] == first + i:
                    gains[i] += best[v] - second[v]
            elif near[e] > best[v]:
                gains[i] += near[e] - best[v]
    return gains


@compiled
def own_entries(
    positions: np.ndarray,
    similarities: np.ndarray,
    first: int,
    targets: np.ndarray,
    places: np.ndarray,
    near: np.ndarray,
    place: int,
) -> int:
    """Set what rows of a block list of their own block, row by row; how many that are.

    Args:
        positions, similarities: its lists ``(n, K)``. first: position of its first row.
        targets, places: int32, the listed row and ``place`` plus the one that lists it; near: float32; from the start.
    """
    count = 0
    for v in range(positions.shape[0]):
        for c in range(positions.shape[1]):
            row = positions[v, c] - first
            # where a short list names its row again, nobody is listed
            if 0 <= row < positions.shape[0] and (c == 0 or row != v):
                targets[count] = row
                places[count] = place + v
                near[count] = max(similarities[v, c], np.float32(0.0))
                count += 1
    return count
