"""Facility location over a whole corpus: on the lists of all rows (`listed`), or in rounds of blocks, as here.

Values are read off the neighbor lists, so they are lower bounds; beside them stands an estimate of the exact value,
with its interval, from uniformly drawn rows that are compared with all members. In rounds the random end of the scale
is such an estimate too, since a row none of whose listed neighbors a random selection holds would count as not covered
at all, and the best end is the best value that these very blocks and rounds reach for diversity alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus.centres import cell_count
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import compares_all, search_for
from datamask.corpus.sampling import DRAWS
from datamask.errors import InputError, OptionError
from datamask.files import folder_bytes
from datamask.measured import FOUND, Anchor, Anchors
from datamask.out_of_core.cells import FOLDER, Aim, CellBlocks, Rounds, State
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.facility_values import Facility, check_weighable, graph_facts
from datamask.out_of_core.partition import PART_ROWS
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.solution import WholeSolution
from datamask.recipes.weights import slope_between
from datamask.work.context import UNWATCHED, Work

SWAP_ROUNDS = 2
"""Rounds of swaps after the last round of greedy."""

LIST_BYTES = 40
"""Of an entry of a list while lists are turned, swapped or searched for; see the tests."""

CELL_BYTES = 64
"""Of a cell and dimension while blocks are made of cells: their centres, centred and weighed, and what the SVD takes of
these. Learning them takes half."""

MOST_LISTED = 50_000_000
"""Rows whose lists are mapped from disk, at most."""

LISTED_BLOCK_ROWS = 250_000
"""Rows of a block where its lists become a part of those of all rows: a worker takes some 1 GB at 80 a list."""

ROW_BYTES = 250
"""Of a row while lists of all rows are solved: what greedy, swaps or prices know of it."""

PREPARED, RANDOM, RECALL = 0.7, 0.05, 0.02
"""Shares of the work, about: blocks and lists; the random end; what the lists hold."""


def solve_facility(
    scratch: Scratch,
    config: SelectionConfig,
    size: int,
    engine: Engine,
    work: Work = UNWATCHED,
    step: Callable[[dict[str, float]], None] = lambda numbers: None,
    *,
    rules: RowRules | None = None,
    whole: bool | None = None,
    listed_rows: int = LISTED_BLOCK_ROWS,
) -> WholeSolution:
    """Select S of all rows.

    Args:
        config: of `--estimator blocks`. engine: does the tasks. work: asked some ten times a second.
        rules: of the selection, whose given rows count among the S; None: none.
        whole: whether on the lists of all rows; None: as `by_whole_lists` says. listed_rows: of a block then.
        step: told of every round: ``raw_quality``, ``raw_diversity`` (listed), ``changed`` (share of new members), and
            ``joint``, ``quality``, ``diversity`` on the run's scale, whose best end is known once lambda 0 is solved.

    Raises:
        OptionError: another objective, lambda 1, or a disk without room. InputError: all rows are alike.
        Stopped: on request; what is done by then is in files, and is not done again.
    """
    check_solvable(scratch, config, size)
    check_room(scratch, size)
    alone = config.scope == "block"
    whole = by_whole_lists(config, scratch.rows) if whole is None else whole
    cells = _cells(scratch, config, size, listed_rows if whole else None)
    if whole:
        from datamask.out_of_core.listed.solve import solve_listed

        return solve_listed(cells, config, size, engine, work, step, rules)
    prepared = cells.prepare(engine, work.part(0.0, PREPARED))
    facility = Facility(cells, engine, work)
    recall = facility.recall()
    low = PREPARED + RECALL
    random = facility.random_end(size, work.part(low, low + RANDOM))
    rounds, swaps = config.n_epochs or 1, SWAP_ROUNDS if config.polish != "none" and not alone else 0
    by_diversity = Rounds(cells, Aim(size), rounds, swaps)
    low, twice = low + RANDOM, config.lamb > 0
    middle = (1 + low) / 2 if twice else 1.0
    known: list[State] = []
    scale = _Scale(scratch, config, size, random)
    for state in by_diversity.run(engine, work.part(low, middle)):
        known.append(state)
        if not twice:
            step(scale.of_step(state))
    best = max(known, key=lambda each: each.covered)
    scale.close(facility.estimate(best.members, DRAWS - 2).value if alone else best.covered / cells.rows)
    chosen = best
    if twice:
        aim = scale.aim()
        states = []
        for state in Rounds(cells, aim, rounds, swaps).run(engine, work.part(middle, 1.0)):
            states.append(state)
            step(scale.of_step(state))
        chosen, known = max(states, key=lambda each: each.worth(aim)), states
    estimate = facility.estimate(chosen.members, DRAWS - 2)
    quality, covered = chosen.quality / size, estimate.value if alone else chosen.covered / cells.rows
    kind = f"{cells.blocks:,} random blocks, each alone" if alone else f"{cells.blocks:,} blocks of cells"
    ending = kind if alone else f"{kind}, {rounds} rounds" + (f" and {swaps} of swaps" if swaps else "")
    graph = graph_facts(cells, prepared.pop("listed"), recall)
    return WholeSolution(
        facility.selected(chosen.members),
        scale.joint(quality, covered),
        {"quality": quality, "facility": covered},
        None,
        _worth(facility, chosen, scale),
        ending,
        scale.anchors(),
        prepared | {"rounds": len(known), "lost": chosen.lost},
        estimate=estimate,
        graph=graph,
    )


def by_whole_lists(config: SelectionConfig, rows: int) -> bool:
    """Whether lists of all rows are mapped from disk and solved as in memory; else blocks are solved in rounds."""
    return config.scope != "block" and rows <= MOST_LISTED


def _cells(scratch: Scratch, config: SelectionConfig, size: int, listed_rows: int | None) -> CellBlocks:
    """Blocks, and lists as long as in memory.

    Args:
        listed_rows: rows of a block where its lists become part of those of all rows; None: they do not.
    """
    rows, alone = config.block_rows or scratch.rows, config.scope == "block"
    if listed_rows is not None:
        rows = min(listed_rows, scratch.rows)
    exact = compares_all(scratch.rows, search_for(scratch.rows, config.neighbors))
    return CellBlocks(scratch, rows, list_length(size / scratch.rows, scratch.rows), alone, config.seed, exact)


def memory_bytes(rows: int, dim: int, size: int, block_rows: int | None, workers: int) -> int:
    """The most anonymous memory that `solve_facility` takes with so many workers, beside what the program takes.

    Args:
        block_rows: of blocks that are solved in rounds; None: lists of all rows are.
    """
    of_row = ROW_BYTES if block_rows is None else 40
    return 600_000_000 + of_row * rows + workers * worker_bytes(rows, dim, size, block_rows or LISTED_BLOCK_ROWS)


def worker_bytes(rows: int, dim: int, size: int, block_rows: int) -> int:
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
    """Refuse what blocks cannot solve.

    Raises:
        OptionError: another objective, or lambda 1. InputError: a size that no selection has.
    """
    if [name for name, _ in config.terms] != ["facility"] or config.lamb >= 1:
        raise OptionError(
            f"blocks over all rows need --objective facility and a lambda below 1, got --objective {config.objective} "
            f"at lambda {config.lamb:g}"
        )
    if not 1 <= size < scratch.rows:
        raise InputError(f"a selection from {scratch.rows:,} rows has from 1 to {scratch.rows - 1:,}, got {size:,}")


class _Scale:
    """The ends of the scales, as far as they are known."""

    def __init__(self, scratch: Scratch, config: SelectionConfig, size: int, random: float) -> None:
        self.config, self.size, self.rows = config, size, scratch.rows
        self.lamb, self.calibrated, self.known = config.lamb, config.scale == "calibrated", config.scale == "raw"
        self.quality, self.diversity = scratch.quality_ends(size), Anchor(random, random, FOUND)

    def close(self, best: float) -> None:
        """Take note of the best that diversity alone reaches.

        Raises:
            InputError: no selection covers more than another, and quality cannot be weighed against that.
        """
        self.diversity, self.known = Anchor(self.diversity.random, max(self.diversity.random, best), FOUND), True
        check_weighable(self.config, self.diversity)

    @property
    def slopes(self) -> tuple[float, float]:
        """Of quality and of diversity."""
        if not self.calibrated:
            return 1.0, 1.0
        of_quality, of_diversity = (slope_between(ends.random, ends.best) for ends in (self.quality, self.diversity))
        return of_quality, of_diversity

    def aim(self) -> Aim:
        """What a member adds by itself."""
        of_quality, of_diversity = self.slopes
        bonus = self.lamb * of_quality / ((1 - self.lamb) * of_diversity) * self.rows / self.size
        return Aim(self.size, bonus, self.quality.random)

    def parts(self, quality: float, covered: float) -> tuple[float, float]:
        """Mean quality and mean coverage on the run's scale."""
        of_quality, of_diversity = self.slopes
        if not self.calibrated:
            return quality, covered
        return (quality - self.quality.random) * of_quality, (covered - self.diversity.random) * of_diversity

    def joint(self, quality: float, covered: float) -> float:
        """The joint value."""
        of_quality, of_diversity = self.parts(quality, covered)
        return self.lamb * of_quality + (1 - self.lamb) * of_diversity

    def of_step(self, state: State) -> dict[str, float]:
        """Numbers of a round, on the scale as far as it is known by then."""
        quality, covered = state.quality / self.size, state.covered / self.rows
        numbers = {"raw_quality": quality, "raw_diversity": covered, "changed": state.changed / self.size}
        if not self.known:
            return numbers
        of_quality, of_diversity = self.parts(quality, covered)
        return {"joint": self.joint(quality, covered), "quality": of_quality, "diversity": of_diversity, **numbers}

    def anchors(self) -> dict[str, Any]:
        """As runs keep them."""
        return Anchors(self.quality, {"facility": self.diversity}).to_dict()


def _worth(facility: Facility, chosen: State, scale: _Scale) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What rows are worth beside the others, as `WholeSolution.scores` says it."""
    of_quality, of_diversity = scale.slopes
    scratch, gains = facility.cells.scratch, facility.gains(chosen.members)

    def worth(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        quality = scratch.quality[rows] * (of_quality / scale.size)
        return quality, gains(rows) * (of_diversity / scale.rows)

    return worth
