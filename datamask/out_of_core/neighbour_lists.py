"""Tasks that list the nearest rows of every row, across blocks.

    needed -> probes, for each block -> searched, for each part of a block -> lists, for each block -> reverse, for each

Every row looks into the fine cells whose centres it is nearest to, in whatever block they lie, and a pair is compared
if either of the two looks into the other's cell, as in `datamask.corpus.partition_search`. How many cells those are,
the true nearest rows of a few rows say, within limits that depend on the rows in a cell, not on the corpus: time grows
with the rows and no faster. What lists are to keep is similarity, which the value is a sum of: in a larger corpus more
rows are nearly as near as the nearest, and a list with some of these in the place of others is worth as much. Listed
similarities are exact; which neighbours are missed is measured (`datamask.out_of_core.sampled_rows`).
"""

from __future__ import annotations

import bisect
import math
from typing import Any

import numpy as np

from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.partition import unit_float32
from datamask.out_of_core.tasks import Argument, Made, once, opened

CELLS_NEAR = 512
"""Cells near a row's own cell, of which those that it looks into are chosen; four times these where that is more."""

AIMED_SIMILARITY = 0.995
"""Share of the similarity to the true nearest rows, above that to random ones, that lists are to keep, if so many rows
may be looked at. On a made corpus of clusters that takes 3 cells of a thousand rows at 1,000,000 rows and 6 at
5,000,000; 0.998 would take 5 and 12, and 97 % of the nearest rows themselves 6 and 21. At least 5 are looked into."""

PIECE = 1024
"""Rows and columns multiplied at once."""


def cells_probed(rows: int, cells: int, looked_at: int) -> int:
    """In how many cells there are about so many rows."""
    return min(cells, max(1, math.ceil(looked_at * cells / max(rows, 1))))


def needed(argument: Argument) -> dict[str, Any]:
    """How many cells rows must look into for the sampled rows' lists to keep the wanted share of similarity.

    A pair is met if either of the two looks into the other's cell, so the better of the two ranks of the cells counts.
    In the place of those that are not met stand the next nearest that are, of as many as ``nearest`` lists; beyond
    these, random rows.
    """
    return once(argument, _needed)


def _needed(argument: Argument) -> Made:
    atlas, sampled = opened(argument, "atlas", 0), opened(argument, "sample", 0)
    cell_starts, points = np.asarray(atlas["cell_starts"]), np.asarray(atlas["centres"])
    rows, own = unit_float32(sampled["features"]), np.asarray(sampled["positions"])
    files = [opened(argument, "nearest", number) for number in range(argument["blocks"])]
    near = np.concatenate([file["near"] for file in files], axis=1)
    positions = np.concatenate([file["positions"] for file in files], axis=1)
    best = np.argsort(-near, axis=1, kind="stable")[:, : files[0]["near"].shape[1]]
    near, positions = (np.take_along_axis(each, best, 1) for each in (near, positions))
    # a corpus may have fewer rows than are listed
    ranks = np.full(positions.shape, len(points) + 1)
    with one_blas_thread():
        for row, position, theirs_of, ranks_of in zip(rows, own, positions, ranks):
            rising = np.argsort(theirs_of)[np.count_nonzero(theirs_of < 0) :]
            home, theirs = (np.searchsorted(cell_starts, at, side="right") - 1 for at in (position, theirs_of[rising]))
            of_row, of_theirs = points @ row, _features_at(argument, theirs_of[rising]) @ points.T
            from_row = (of_row[None] > of_row[theirs][:, None]).sum(axis=1)
            from_theirs = (of_theirs > of_theirs[:, home][:, None]).sum(axis=1)
            ranks_of[rising] = np.minimum(from_row, from_theirs) + 1
    above = np.where(positions >= 0, near - _similarity_of_pairs(rows), 0.0)
    counts = range(1, len(points) + 1)
    at = bisect.bisect_left(
        counts, AIMED_SIMILARITY, key=lambda cells: similarity_kept(above, ranks <= cells, argument["listed"] - 1)
    )
    count = min(at + 1, len(points))
    fewest, most = (cells_probed(int(cell_starts[-1]), len(points), looked_at) for looked_at in argument["looked_at"])
    return {}, {"cells": min(max(count, fewest), most), "needed": count}


def similarity_kept(above: np.ndarray, met: np.ndarray, listed: int) -> float:
    """The share of similarity that lists keep which hold of the nearest rows those that are met.

    Args:
        above: float ``(R, L)``, similarities of R rows to their L nearest, falling, above that of random rows.
        met: bool ``(R, L)``, which of these can be listed. listed: of how many a list is, at most L.
    """
    taken = met & (np.cumsum(met, axis=1) <= listed)
    whole = float(above[:, :listed].sum(dtype=np.float64))
    return float(above.sum(where=taken, dtype=np.float64)) / whole if whole > 0 else 1.0


def _similarity_of_pairs(rows: np.ndarray) -> float:
    """The mean similarity of two different rows of these, of unit length."""
    if len(rows) < 2:
        return 0.0
    total = rows.sum(axis=0, dtype=np.float64)
    return (float(total @ total) - len(rows)) / (len(rows) * (len(rows) - 1))


def _features_at(argument: Argument, positions: np.ndarray) -> np.ndarray:
    """Unit features of rows at rising positions, float32."""
    starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    edges, features = np.searchsorted(positions, starts), []
    for number in np.flatnonzero(np.diff(edges)).tolist():
        inside = positions[edges[number] : edges[number + 1]] - starts[number]
        features.append(unit_float32(opened(argument, "block", number)["features"][inside]))
    return np.concatenate(features)


def probes(argument: Argument) -> dict[str, Any]:
    """Which cells each row of a block looks into, and by cell who does."""
    return once(argument, _probes)


def _probes(argument: Argument) -> Made:
    block, atlas = opened(argument, "block"), opened(argument, "atlas", 0)
    number = argument["number"]
    first_cells, points = atlas["first_cells"], np.asarray(atlas["centres"])
    # where blocks know themselves alone, their rows look into no other's cells
    low, high = first_cells[number : number + 2] if argument["alone"] else (0, len(points))
    candidates = np.arange(low, high)
    if argument["needed"] is None:
        reachable = int(atlas["cell_starts"][high] - atlas["cell_starts"][low])
        count = cells_probed(reachable, len(candidates), argument["looked_at"])
    else:
        count = min(int(opened(argument, "needed", 0).facts["cells"]), len(candidates))
    most = max(CELLS_NEAR, 4 * count)
    starts, features = block["starts"], block["features"]
    probed = np.empty((len(features), count), np.int32)
    with one_blas_thread():
        for own in range(len(starts) - 1):
            cell = int(first_cells[number]) + own
            near = candidates
            if len(near) > most:
                near = np.sort(candidates[np.argpartition(-(points[candidates] @ points[cell]), most - 1)[:most]])
            for first in range(int(starts[own]), int(starts[own + 1]), PIECE):
                rows = slice(first, min(first + PIECE, int(starts[own + 1])))
                nearness = unit_float32(features[rows]) @ points[near].T
                # its own cell always: that is where those that look for it look
                nearness[:, np.searchsorted(near, cell)] = np.inf
                chosen = np.argpartition(-nearness, count - 1, axis=1)[:, :count]
                probed[rows] = np.sort(near[chosen], axis=1)
    order = np.argsort(probed.reshape(-1), kind="stable")
    counts = np.asarray(np.bincount(probed.reshape(-1), minlength=len(points)))
    visited = np.flatnonzero(counts)
    arrays: dict[str, np.ndarray] = {
        "probed": probed,
        "visited": visited,
        "offsets": np.concatenate([[0], np.cumsum(counts[visited])]),
        "visitors": (order // max(count, 1)).astype(np.int32),
    }
    return arrays, {"visits": len(order)}


class _Visits:
    """Which rows of a block look into which cells."""

    def __init__(self, file: ArrayFile) -> None:
        self._visited, self._offsets = np.asarray(file["visited"]), np.asarray(file["offsets"])
        self._visitors = file["visitors"]

    def of(self, low: int, high: int) -> list[tuple[int, np.ndarray]]:
        """Cells from `low` to before `high` that are looked into, each with the rows that do, rising."""
        where = range(*np.searchsorted(self._visited, [low, high]))
        ends = self._offsets
        return [(int(self._visited[at]), np.asarray(self._visitors[ends[at] : ends[at + 1]])) for at in where]


def searched(argument: Argument) -> dict[str, Any]:
    """The K nearest rows of each row of a part of a block, itself first."""
    return once(argument, _searched)


def _searched(argument: Argument) -> Made:
    from datamask.corpus.kernels import empty_heaps
    from datamask.out_of_core import list_kernels

    atlas = opened(argument, "atlas", 0)
    block_starts, first_cells = np.asarray(atlas["block_starts"]), np.asarray(atlas["first_cells"])
    cell_starts = np.asarray(atlas["cell_starts"])
    low_cell, high_cell = (int(cell) for cell in atlas["part_cells"][argument["number"] :][:2])
    number = int(np.searchsorted(first_cells, low_cell, side="right")) - 1
    first_own, behind = int(cell_starts[low_cell]), int(cell_starts[high_cell])
    of_block = slice(first_own - int(block_starts[number]), behind - int(block_starts[number]))
    own_features = opened(argument, "block", number)["features"][of_block]
    own_probes = opened(argument, "probes", number)
    probed, own_visits = np.asarray(own_probes["probed"][of_block]), _Visits(own_probes)
    k = argument["listed"] - 1
    similarities, _ = empty_heaps(len(probed), k)
    positions = np.full(similarities.shape, block_starts[-1], _position_type(int(block_starts[-1])))
    with one_blas_thread():
        for other in range(argument["blocks"] if k else 0):
            features, first = opened(argument, "block", other)["features"], int(block_starts[other])
            for cell, of_cell in own_visits.of(int(first_cells[other]), int(first_cells[other + 1])):
                guests = of_cell[slice(*np.searchsorted(of_cell, [of_block.start, of_block.stop]))] - of_block.start
                low, high = (int(end) - first for end in cell_starts[cell : cell + 2])
                for start in range(low, high if len(guests) else low, PIECE):
                    stop = min(start + PIECE, high)
                    hosts = unit_float32(features[start:stop])
                    for at in range(0, len(guests), PIECE):
                        some = guests[at : at + PIECE]
                        list_kernels.offer_hosts(
                            unit_float32(own_features[some]) @ hosts.T,
                            some,
                            first + start,
                            first_own,
                            similarities,
                            positions,
                        )
            visits = _Visits(opened(argument, "probes", other))
            for cell, guests in visits.of(low_cell, high_cell):
                low, high = (int(end) - first_own for end in cell_starts[cell : cell + 2])
                guest_cells = np.searchsorted(cell_starts, first + guests, side="right") - 1
                for at in range(0, len(guests), PIECE):
                    some, of_cells = guests[at : at + PIECE], guest_cells[at : at + PIECE]
                    guest_features = unit_float32(features[some])
                    for start in range(low, high, PIECE):
                        stop = min(start + PIECE, high)
                        list_kernels.offer_guests(
                            guest_features @ unit_float32(own_features[start:stop]).T,
                            some,
                            of_cells,
                            first,
                            start,
                            first_own,
                            probed,
                            similarities,
                            positions,
                        )
    return _in_order(similarities, positions, first_own, int(block_starts[-1]))


def _position_type(rows: int) -> type[np.signedinteger[Any]]:
    return np.int32 if rows < 2**31 else np.int64


def _in_order(similarities: np.ndarray, positions: np.ndarray, first_own: int, behind: int) -> Made:
    """The heaps as lists: itself first, others by falling similarity, ties by rising position; `behind` is none."""
    rows, k = similarities.shape
    own = (first_own + np.arange(rows)).astype(positions.dtype)
    listed = np.empty((rows, k + 1), positions.dtype)
    near = np.empty((rows, k + 1), np.float32)
    listed[:, 0], near[:, 0] = own, 1.0
    order = np.lexsort((positions, -similarities), axis=-1)
    listed[:, 1:] = np.take_along_axis(positions, order, -1)
    near[:, 1:] = np.clip(np.take_along_axis(similarities, order, -1), -1.0, 1.0)
    # a row that was compared with fewer than k others lists itself again, at 0, which changes nothing
    empty = listed == behind
    near[empty] = 0.0
    arrays = {"positions": np.where(empty, own[:, None], listed), "similarities": near}
    return arrays, {"entries": listed.size - int(empty.sum()), "short": int(empty.any(1).sum())}


def lists(argument: Argument) -> dict[str, Any]:
    """The nearest rows of each row of a block, and by block those that are in others."""
    return once(argument, _lists)


def _lists(argument: Argument) -> Made:
    number, atlas = argument["number"], opened(argument, "atlas", 0)
    block_starts, part_cells = np.asarray(atlas["block_starts"]), np.asarray(atlas["part_cells"])
    first_own, behind = (int(end) for end in block_starts[number : number + 2])
    of_block = range(*np.searchsorted(part_cells, atlas["first_cells"][number : number + 2]))
    parts = [opened(argument, "searched", part) for part in of_block]
    none = np.zeros((0, argument["listed"]))
    listed = np.concatenate(
        [none.astype(_position_type(int(block_starts[-1]))), *(each["positions"] for each in parts)]
    )
    near = np.concatenate([none.astype(np.float32), *(each["similarities"] for each in parts)])
    flat = listed.reshape(-1)
    crossing = np.flatnonzero((flat < first_own) | (flat >= behind))
    crossing = crossing[np.argsort(flat[crossing], kind="stable")]
    targets = flat[crossing].astype(np.int64)
    offsets = np.searchsorted(targets, block_starts)
    block = np.repeat(np.arange(len(block_starts) - 1), np.diff(offsets))
    arrays = {
        "positions": listed,
        "similarities": near,
        "crossing_offsets": offsets,
        "crossing_targets": (targets - block_starts[block]).astype(np.int32),
        "crossing_listers": (crossing // listed.shape[1]).astype(np.int32),
        "crossing_near": near.reshape(-1)[crossing],
    }
    entries = sum(int(each.facts["entries"]) for each in parts)
    return arrays, {"entries": entries, "crossing": len(crossing)}


def reverse(argument: Argument) -> dict[str, Any]:
    """Of each row of a block, who lists it, in this block and in others."""
    return once(argument, _reverse)


def _reverse(argument: Argument) -> Made:
    from datamask.out_of_core import list_kernels

    number, blocks = argument["number"], argument["blocks"]
    block_starts = np.asarray(opened(argument, "atlas", 0)["block_starts"])
    low, high = (int(end) for end in block_starts[number : number + 2])
    rows = high - low
    files = [opened(argument, "lists", other) for other in range(blocks)]
    crossing = [slice(*(int(end) for end in file["crossing_offsets"][number : number + 2])) for file in files]
    most = sum(some.stop - some.start for some in crossing) + files[number]["positions"].size
    targets, places, near = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.float32)
    listers, lister_starts, count = [], np.zeros(blocks + 1, np.int64), 0
    for other, (file, some) in enumerate(zip(files, crossing)):
        first = int(lister_starts[other])
        if other == number:
            lists = np.asarray(file["positions"]), np.asarray(file["similarities"])
            entries = slice(count, None)
            of_other = np.arange(rows, dtype=np.int32)
            count += list_kernels.own_entries(*lists, low, targets[entries], places[entries], near[entries], first)
        else:
            entries = slice(count, count + some.stop - some.start)
            of_other, place = np.unique(file["crossing_listers"][some], return_inverse=True)
            targets[entries], places[entries] = file["crossing_targets"][some], first + place
            near[entries] = np.maximum(file["crossing_near"][some], np.float32(0.0))
            count = entries.stop
        listers.append(of_other.astype(np.int32))
        lister_starts[other + 1] = first + len(of_other)
    targets = targets[:count]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(targets, minlength=rows))])
    listing, similarities = list_kernels.reversed_entries(offsets, targets, places[:count], near[:count])
    arrays = {
        "offsets": offsets,
        "listing": listing,
        "near": similarities,
        "listers": np.concatenate(listers),
        "lister_starts": lister_starts,
    }
    return arrays, {"listers": int(lister_starts[-1])}
