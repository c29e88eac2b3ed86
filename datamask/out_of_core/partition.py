"""Tasks that put the rows of a corpus into blocks of neighbouring cells, each in one file, read once and written once.

    centres -> assign, for each range of rows -> layout -> part, for each range -> block, for each block -> atlas

Cells are those of `datamask.corpus.centres`. Blocks are neighbouring cells, about equally many rows each. In a block
rows come by cell. A row's *position* is its place when all blocks are laid end to end.
"""

from __future__ import annotations

import numpy as np

from datamask.corpus.centres import Centres
from datamask.corpus.rounded_rows import widened
from datamask.out_of_core.scratch import scratch_of
from datamask.out_of_core.tasks import Argument, Made, opened, task
from datamask.work.context import Work

PART_ROWS = 1 << 16
"""Rows of a part of a block, whose neighbours one task looks for."""

ROWS_AT_ONCE = 16_384


def range_of(argument: Argument, rows: int) -> tuple[int, int]:
    """The rows that the call of this number is about: the first, and the one behind the last."""
    low = argument["number"] * argument["range_rows"]
    return low, min(low + argument["range_rows"], rows)


@task
def centres(argument: Argument) -> Made:
    """Centres of the cells of a corpus."""
    scratch = scratch_of(argument)
    learned = Centres.learn(scratch.rounded_at, scratch.id_hash, argument["cells"], Work(threads=1))
    return {"points": learned.points, "starts": learned.starts, "middles": learned.middles}, {}


def centres_of(argument: Argument) -> Centres:
    """The centres whose phase the argument names."""
    file = opened(argument, "centres", 0)
    return Centres(*(np.asarray(file[name]) for name in ("points", "starts", "middles")))


@task
def assign(argument: Argument) -> Made:
    """The cell of each row of a range."""
    scratch, centres = scratch_of(argument), centres_of(argument)
    low, high = range_of(argument, scratch.rows)
    cell = centres.nearest_cells(scratch.rounded_at(np.arange(low, high)), 1, Work(threads=1))[:, 0]
    return {"cell": cell, "counts": np.bincount(cell, minlength=len(centres))}, {}


@task
def layout(argument: Argument) -> Made:
    """Which block each cell belongs to, once it is known how many rows there are in each."""
    from datamask.learning.cell_blocks import block_of_cells

    counts = np.sum([opened(argument, "assign", number)["counts"] for number in range(argument["ranges"])], axis=0)
    block = block_of_cells(centres_of(argument).points.astype(np.float32), counts, argument["blocks"])
    return {"block": block, "counts": counts}, {}


@task
def part(argument: Argument) -> Made:
    """The rows of a range, ordered by block, cell and row: what the blocks are put together from."""
    scratch = scratch_of(argument)
    low, high = range_of(argument, scratch.rows)
    cell = np.asarray(opened(argument, "assign")["cell"])
    block = opened(argument, "layout", 0)["block"][cell]
    order = np.lexsort((cell, block))
    features = np.empty((high - low, scratch.dim), np.int16)
    place = np.empty(high - low, np.int64)
    place[order] = np.arange(high - low)
    for start in range(low, high, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, high)
        features[place[start - low : stop - low]] = scratch.rounded_at(np.arange(start, stop))
    arrays = {
        "offsets": np.concatenate([[0], np.cumsum(np.bincount(block, minlength=argument["blocks"]))]),
        "rows": low + order,
        "cell": cell[order],
        "quality": scratch.quality_of(low, high)[order],
        "id_hash": scratch.id_hash_of(low, high)[order],
        "features": features,
    }
    return arrays, {}


@task
def block(argument: Argument) -> Made:
    """All rows of a block, ordered by cell and row; features are rounded (`datamask.corpus.rounded_rows`)."""
    number = argument["number"]
    parts = [opened(argument, "part", each) for each in range(argument["ranges"])]
    slices = [slice(*(int(end) for end in each["offsets"][number : number + 2])) for each in parts]

    def gathered(name: str) -> np.ndarray:
        return np.concatenate([each[name][where] for each, where in zip(parts, slices)])

    order = np.argsort(gathered("cell"), kind="stable")  # ranges rise, so rows rise inside a cell
    return {name: gathered(name)[order] for name in ("rows", "quality", "id_hash", "features")}, {"rows": len(order)}


def unit_float32(features: np.ndarray) -> np.ndarray:
    """Rounded rows as unit rows of float32."""
    return widened(np.asarray(features))[0]


def of_all(argument: Argument, phase: str, name: str) -> Positions:
    """An array of the files of all blocks, by position; the argument names the phase and the atlas."""
    starts = opened(argument, "atlas", 0)["block_starts"]
    return Positions([opened(argument, phase, number)[name] for number in range(len(starts) - 1)], starts)


def rows_of(argument: Argument) -> Positions:
    """The features of all rows, rounded, by position."""
    return of_all(argument, "block", "features")


@task
def atlas(argument: Argument) -> Made:
    """Where blocks and cells begin, whose centre each cell has, and what decides ties between positions."""
    blocks = [opened(argument, "block", number) for number in range(argument["blocks"])]
    plan = opened(argument, "layout", 0)
    cells = np.argsort(plan["block"], kind="stable")
    cell_starts = np.concatenate([[0], np.cumsum(plan["counts"][cells])]).astype(np.int64)
    first_cells = np.concatenate([[0], np.cumsum(np.bincount(plan["block"], minlength=argument["blocks"]))])
    part_cells = parts_of(cell_starts, first_cells, PART_ROWS)
    arrays = {
        "block_starts": cell_starts[first_cells],
        "first_cells": first_cells,
        "cell_starts": cell_starts,
        "part_cells": part_cells,
        "cells": cells,
        "ties": np.concatenate([each["id_hash"] for each in blocks]),
    }
    return arrays, {"rows": int(cell_starts[-1]), "cells": len(cells), "parts": len(part_cells) - 1}


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


class Positions:
    """An array of all positions, cut into files: `datamask.corpus.exact_search.Base`.

    Args:
        files: arrays of as many rows as there are positions from one start to the next. starts: int64 ``(F + 1,)``,
            from 0.
    """

    def __init__(self, files: list[np.ndarray], starts: np.ndarray) -> None:
        self._files, self._starts = files, np.asarray(starts)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, which: slice | np.ndarray) -> np.ndarray:
        """Rows of a slice, or at rising positions."""
        if isinstance(which, slice):
            low, high, _ = which.indices(int(self._starts[-1]))
            number = int(np.searchsorted(self._starts[:-1], low, side="right")) - 1
            if high <= self._starts[number + 1]:
                return self._files[number][low - self._starts[number] : high - self._starts[number]]
            which = np.arange(low, high)
        rows = np.empty((len(which), *self._files[0].shape[1:]), self._files[0].dtype)
        edges = np.searchsorted(which, self._starts)
        for number in np.flatnonzero(np.diff(edges)).tolist():
            some = slice(int(edges[number]), int(edges[number + 1]))
            rows[some] = self._files[number][which[some] - self._starts[number]]
        return rows
