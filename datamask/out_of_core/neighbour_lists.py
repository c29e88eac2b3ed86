"""Tasks that list the nearest rows of every row, across blocks.

    needed -> probes, for each block -> searched, for each part of a block -> descended, for each part
    -> lists, for each block

Each is a part of the one builder that `datamask.corpus.partition_search` describes, on files in the place of arrays:
the lists are those that are built in memory, entry for entry. Where all pairs are compared there are no probes, and
nothing is left for a pass of NN-descent to find.
"""

from __future__ import annotations

import numpy as np

from datamask.corpus.exact_search import falling, nearest
from datamask.corpus.neighbor_descent import NEAREST, TASK_ROWS, Room, improve
from datamask.corpus.pair_search import PairSearch, Visits
from datamask.corpus.partition_search import cells_needed
from datamask.corpus.threads import one_blas_thread
from datamask.out_of_core.partition import Positions, centres_of, rows_of
from datamask.out_of_core.tasks import Argument, Made, opened, task
from datamask.work.context import Work


@task
def needed(argument: Argument) -> Made:
    """How many cells rows look into, for sampled rows' true neighbours to be found; null: all pairs are compared."""
    atlas, sampled = opened(argument, "atlas", 0), opened(argument, "sample", 0)
    near, _ = nearest_of_blocks(argument, atlas["ties"])
    rows, centres = rows_of(argument), centres_of(argument)
    judges = np.asarray(sampled["features"])

    def others(some: slice) -> np.ndarray:
        names, places = np.unique(near[some], return_inverse=True)
        return rows[names][places.reshape(near[some].shape)]

    return {}, {"cells": cells_needed(judges, others, centres, len(rows), work=Work(threads=1))}


def nearest_of_blocks(argument: Argument, ties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest rows of the sampled ones, from those in each block: positions and cosines, ``(R, k)``, falling."""
    files = [opened(argument, "nearest", number) for number in range(argument["blocks"])]
    positions, near = (np.concatenate([file[name] for file in files], axis=1) for name in ("positions", "near"))
    k = files[0]["near"].shape[1]
    positions, near = falling(positions, near, np.asarray(ties))
    return positions[:, :k], near[:, :k]


@task
def probes(argument: Argument) -> Made:
    """Which cells each row of a block looks into, and by cell who does."""
    rows, cells = opened(argument, "block")["features"], np.asarray(opened(argument, "atlas", 0)["cells"])
    count = looked_into(argument)
    if count is None:
        return {"probed": np.empty((len(rows), 0), np.int32)}, {"visits": 0}
    near = centres_of(argument).nearest_cells(np.asarray(rows), count, Work(threads=1))
    place = np.empty(len(cells), np.int32)
    place[cells] = np.arange(len(cells), dtype=np.int32)
    probed = np.sort(place[near], axis=1)
    return {"probed": probed, **vars(Visits.of_probed(probed))}, {"visits": probed.size}


def looked_into(argument: Argument) -> int | None:
    """How many cells each row looks into; None: all pairs are compared."""
    count: int | None = opened(argument, "needed", 0).value["cells"]
    return count


@task
def searched(argument: Argument) -> Made:
    """The K nearest rows of each row of a part of a block, itself first, among those that it is compared with."""
    from datamask.corpus.kernels import empty_heaps

    atlas = opened(argument, "atlas", 0)
    ties, starts = np.asarray(atlas["ties"]), np.asarray(atlas["cell_starts"])
    low_cell, high_cell = (int(cell) for cell in atlas["part_cells"][argument["number"] :][:2])
    number = int(np.searchsorted(atlas["first_cells"], low_cell, side="right")) - 1
    first, behind = int(starts[low_cell]), int(starts[high_cell])
    rows = rows_of(argument)
    heaps = empty_heaps(behind - first, argument["listed"] - 1, len(ties))
    with one_blas_thread():
        if not heaps[0].size:
            pass
        elif argument["probes"] is None or not opened(argument, "probes", number)["probed"].shape[1]:
            names = np.arange(first, behind)
            near = nearest(rows[first:behind], rows, heaps[0].shape[1], ties, names=names, threads=1)
            heaps = near[::-1]
        else:
            of_block = slice(first - int(atlas["block_starts"][number]), behind - int(atlas["block_starts"][number]))
            own = np.asarray(opened(argument, "probes", number)["probed"][of_block])
            search = PairSearch(rows, ties, starts, first, own, *heaps)
            search.compare_part((low_cell, high_cell), (_visits(argument, each) for each in range(argument["blocks"])))
            search.fill_up(rows, threads=1)
    indices, similarities = falling(heaps[1], heaps[0], ties)
    return _with_itself(indices, similarities, first, len(ties))


def _visits(argument: Argument, block: int) -> tuple[int, Visits]:
    file = opened(argument, "probes", block)
    first = int(opened(argument, "atlas", 0)["block_starts"][block])
    return first, Visits(*(np.asarray(file[name]) for name in ("visited", "offsets", "visitors")))


def _with_itself(indices: np.ndarray, similarities: np.ndarray, first: int, none: int) -> Made:
    """Lists with the row itself in front; a row that knows fewer than k others lists itself again, at 0, which changes
    nothing."""
    rows, k = indices.shape
    positions, near = np.empty((rows, k + 1), np.int32), np.empty((rows, k + 1), np.float32)
    positions[:, 0], near[:, 0] = first + np.arange(rows), 1.0
    empty = indices >= none
    positions[:, 1:] = np.where(empty, positions[:, :1], indices)
    near[:, 1:] = np.where(empty, 0.0, similarities)
    return {"positions": positions, "similarities": near}, {"entries": positions.size - int(empty.sum())}


@task
def descended(argument: Argument) -> Made:
    """The lists of a part after a pass of NN-descent."""
    atlas, own = opened(argument, "atlas", 0), opened(argument, "searched")
    part_starts = np.asarray(atlas["cell_starts"])[atlas["part_cells"]]
    files = [opened(argument, "searched", part) for part in range(len(part_starts) - 1)]
    near = Positions([file["positions"][:, 1 : NEAREST + 1] for file in files], part_starts)
    rows, room, ties = rows_of(argument), Room(int(part_starts[-1])), np.asarray(atlas["ties"])
    arrays = {name: np.array(own[name]) for name in ("positions", "similarities")}
    for low in range(0, len(arrays["positions"]), TASK_ROWS):
        indices, similarities = (np.ascontiguousarray(each[low : low + TASK_ROWS, 1:]) for each in arrays.values())
        improve(rows, near, ties, int(part_starts[argument["number"]]) + low, indices, similarities, room)
        for each, better in zip(arrays.values(), (indices, similarities)):
            each[low : low + TASK_ROWS, 1:] = better
    return arrays, own.value


@task
def lists(argument: Argument) -> Made:
    """The nearest rows of each row of a block, and how many of them are in others."""
    number, atlas = argument["number"], opened(argument, "atlas", 0)
    block_starts, part_cells = np.asarray(atlas["block_starts"]), np.asarray(atlas["part_cells"])
    first_own, behind = (int(end) for end in block_starts[number : number + 2])
    of_block = range(*np.searchsorted(part_cells, atlas["first_cells"][number : number + 2]))
    parts = [opened(argument, "parts", part) for part in of_block]
    none = np.zeros((0, argument["listed"]))
    listed = np.concatenate([none.astype(np.int32), *(each["positions"] for each in parts)])
    near = np.concatenate([none.astype(np.float32), *(each["similarities"] for each in parts)])
    crossing = int(((listed < first_own) | (listed >= behind)).sum())
    entries = sum(int(each.value["entries"]) for each in parts)
    return {"positions": listed, "similarities": near}, {"entries": entries, "crossing": crossing}
