"""Facility location over a whole corpus: what it needs, what it refuses, and the lists that `listed` solves it on.

Values are read off the neighbor lists, so they are lower bounds; beside them stands an estimate of the exact value,
with its interval, from uniformly drawn rows that are compared with all members.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from datamask.config import SelectionConfig
from datamask.corpus.centres import cell_count
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import compares_all, search_for
from datamask.errors import InputError, OptionError
from datamask.files import folder_bytes
from datamask.out_of_core.cells import FOLDER, CellBlocks
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.partition import PART_ROWS
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.solution import WholeSolution
from datamask.work.context import UNWATCHED, Work

LIST_BYTES = 40
"""Of an entry of a list while lists are searched for or put together, at most; see the tests."""

CELL_BYTES = 64
"""Of a cell and dimension while blocks are made of cells: their centres, centred and weighed, and what the SVD takes of
these. Learning them takes half."""

MOST_LISTED = 50_000_000
"""Rows whose lists are mapped from disk, at most."""

LISTED_BLOCK_ROWS = 250_000
"""Rows of a block where its lists become a part of those of all rows: a worker takes some 1 GB at 80 a list."""

ROW_BYTES = 250
"""Of a row while lists of all rows are solved: what greedy, swaps or prices know of it."""


def solve_facility(
    scratch: Scratch,
    config: SelectionConfig,
    size: int,
    engine: Engine,
    work: Work = UNWATCHED,
    step: Callable[[dict[str, float]], None] = lambda numbers: None,
    *,
    rules: RowRules | None = None,
    listed_rows: int = LISTED_BLOCK_ROWS,
) -> WholeSolution:
    """Select S of all rows.

    Args:
        engine: does the tasks. work: asked some ten times a second.
        rules: of the selection, whose given rows count among the S; None: none. listed_rows: of a block.
        step: told of the selection: ``raw_quality``, ``raw_diversity`` (listed), and ``joint``, ``quality`` and
            ``diversity`` on the run's scale.

    Raises:
        OptionError: another objective, lambda 1, too many rows, or a disk without room. InputError: all rows are alike.
        Stopped: on request; what is done by then is in files, and is not done again.
    """
    check_solvable(scratch, config, size)
    check_room(scratch, size)
    exact = compares_all(scratch.rows, search_for(scratch.rows, config.neighbors))
    block_rows = min(listed_rows, scratch.rows)
    cells = CellBlocks(scratch, block_rows, list_length(size / scratch.rows, scratch.rows), exact)
    from datamask.out_of_core.listed.solve import solve_listed

    return solve_listed(cells, config, size, engine, work, step, rules)


def memory_bytes(rows: int, dim: int, size: int, workers: int) -> int:
    """The most anonymous memory that `solve_facility` takes with so many workers, beside what the program takes."""
    return 600_000_000 + ROW_BYTES * rows + workers * worker_bytes(rows, dim, size)


def worker_bytes(rows: int, dim: int, size: int, block_rows: int = LISTED_BLOCK_ROWS) -> int:
    """The most anonymous memory that a worker takes: lists of a block, features of one while it is put in order, or
    the centres while blocks are made of cells.

    Blocks are about as large as they are asked to be; the largest was 7 % larger on clusters of even size.
    """
    listed, block_rows = list_length(size / rows, rows), min(block_rows, rows)
    of_row = max(LIST_BYTES * listed, 6 * dim)
    of_lists = block_rows * of_row + LIST_BYTES * listed * min(PART_ROWS, block_rows)
    return 150_000_000 + max(of_lists, CELL_BYTES * cell_count(rows) * dim)


def disk_bytes(rows: int, dim: int, size: int) -> int:
    """What the files of all tasks take at most at any time, about, beside the scratch."""
    return rows * max(4 * dim + 70, 2 * dim + 60 + 28 * list_length(size / rows, rows))


def check_room(scratch: Scratch, size: int) -> None:
    """Refuse a disk on which the files of the tasks have no room.

    Raises:
        OptionError: it has not so many bytes free.
    """
    present = folder_bytes(scratch.folder / FOLDER)
    needed, free = disk_bytes(scratch.rows, scratch.dim, size) - present, shutil.disk_usage(scratch.folder).free
    if needed > free:
        raise OptionError(
            f"blocks and lists of {scratch.rows:,} rows take {needed / 1e9:,.1f} GB in addition to the scratch, and "
            f"{scratch.folder} has {free / 1e9:,.1f} GB free; name a larger disk with --scratch_dir"
        )


def check_solvable(scratch: Scratch, config: SelectionConfig, size: int) -> None:
    """Refuse what lists of all rows cannot solve.

    Raises:
        OptionError: another objective, lambda 1, or too many rows. InputError: a size that no selection has.
    """
    check_rows(scratch.rows)
    if [name for name, _ in config.terms] != ["facility"] or config.lamb >= 1:
        raise OptionError(
            f"lists of all rows need --objective facility and a lambda below 1, got --objective {config.objective} at "
            f"lambda {config.lamb:g}"
        )
    if not 1 <= size < scratch.rows:
        raise InputError(f"a selection from {scratch.rows:,} rows has from 1 to {scratch.rows - 1:,}, got {size:,}")


def check_rows(rows: int) -> None:
    """Raises OptionError: there are more rows than lists of all rows are made of."""
    if rows > MOST_LISTED:
        raise OptionError(
            f"--objective facility over all rows takes at most {MOST_LISTED:,}, and the corpus has {rows:,}; take a "
            "sample with --rows N, or --objective pairwise"
        )
