"""Facility location over a whole corpus: the ends of its scale, the rounds, and what the outcome is worth.

Values are read off the neighbour lists, so they are lower bounds; beside them stands an estimate of the exact value,
with its interval, from uniformly drawn rows that are compared with all members. The random end of the scale is such an
estimate too, since a row none of whose listed neighbours a random selection holds would count as not covered at all.
The best end is the best value that these very blocks and rounds reach for diversity alone.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus.list_length import list_length
from datamask.errors import InputError, OptionError
from datamask.files import folder_bytes
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.cells import FOLDER, Aim, CellBlocks, Rounds, State
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.partition import PART_ROWS
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.tasks import Phase
from datamask.recipes.weights import slope_between
from datamask.work.context import UNWATCHED, Work

SWAP_ROUNDS = 2
"""Rounds of swaps after the last round of greedy."""

ESTIMATE_ROWS = 10_000
"""Rows that are compared with all members for an estimate."""

RANDOM_DRAWS = 3
"""Random selections whose mean value is the random end of the scale, each estimated on rows of its own."""

JUDGES = 400
"""Rows whose true nearest rows say what share of them the lists hold."""

DRAWS = 1 << 62
"""Seeds of uniform samples begin here, out of the way of those that people give, by whose hashes ties are decided."""

LIST_BYTES = 40
"""Of an entry of a list while lists are turned, swapped or searched for; see the tests."""

CELLS_BYTES = 16 * 64 * 8
"""Of a block and dimension, of the sample that cells are learned from: so many float32 features, twice."""

LISTED_BEFORE, MEMBERS_LISTED_BEFORE, MOST_LISTED_BEFORE = 32, 3.2, 256
"""Of lists up to version 0.3.0: at least so many rows, so many of a random selection, at most so many rows."""

PREPARED, RANDOM, RECALL = 0.7, 0.05, 0.02
"""Shares of the work, about: blocks and lists; the random end; what the lists hold."""


@dataclass(frozen=True)
class Estimate:
    """What a selection covers, a mean over all rows.

    Attributes:
        listed: by listed members, a lower bound. value: an estimate of it by all members, between low and high with a
            confidence of 95 %. rows: it was made from.
    """

    listed: float
    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Facility:
    """Facility location on the blocks of a corpus.

    Attributes:
        cells: blocks and lists. engine: does the tasks. work: its poll is called between them.
    """

    cells: CellBlocks
    engine: Engine
    work: Work = UNWATCHED

    def _done(self, phase: Phase) -> list[dict[str, Any]]:
        return phase.done(self.engine, self.work)

    @property
    def _placed(self) -> dict[str, str]:
        return {"block": self.cells.block.name, "atlas": self.cells.atlas.name}

    def estimate(self, members: Phase, draw: int) -> Estimate:
        """Estimate what a selection covers.

        Args:
            members: the phase of its file. draw: which uniform sample of the rows it is made from.
        """
        from datamask.objectives.estimate import estimated

        cells, cover = self.cells, Rounds(self.cells, Aim(1), 1).cover(members)
        sample = self.cells.sample(draw, ESTIMATE_ROWS)
        nearest = cells.phase(
            "sampled_rows:nearest", cells.blocks, members=members.name, sample=sample.name, **self._placed
        )
        shortfalls = cells.phase(
            "sampled_rows:shortfalls",
            1,
            atlas=cells.atlas.name,
            blocks=cells.blocks,
            cover=cover.name,
            nearest=nearest.name,
            sample=sample.name,
        )
        if not shortfalls.whole:
            for phase in (sample, nearest, cover, shortfalls):
                self._done(phase)
            nearest.remove()
        file = ArrayFile(shortfalls.path(0))
        mean = float(file.facts["covered"]) / cells.rows
        outcome = estimated(mean, np.asarray(file["shortfalls"]), 1.0)
        return Estimate(mean, outcome.value, outcome.low, outcome.high, outcome.rows)

    def random_end(self, size: int, work: Work = UNWATCHED) -> float:
        """What random selections of S rows cover on average, estimated."""
        cells, ends = self.cells, []
        for draw in range(RANDOM_DRAWS):
            work.report(draw / RANDOM_DRAWS, "Random selections, for the scale")
            members = cells.phase("sampled_rows:random", 1, size=size, draw=DRAWS + 2 * draw, **self._placed)
            self._done(members)
            ends.append(self.estimate(members, DRAWS + 2 * draw + 1).value)
            Rounds(cells, Aim(1), 1).cover(members).remove()
        return math.fsum(ends) / len(ends)

    def recall(self) -> float:
        """The share of the true nearest rows of uniformly drawn rows that their lists hold."""
        cells = self.cells
        sample = self.cells.sample(DRAWS - 1, JUDGES)
        nearest = cells.true_lists(sample)
        recall = cells.phase(
            "sampled_rows:recall",
            1,
            atlas=cells.atlas.name,
            blocks=cells.blocks,
            lists=cells.lists.name,
            nearest=nearest.name,
            sample=sample.name,
        )
        if not recall.whole:
            for phase in (sample, nearest, recall):
                self._done(phase)
            nearest.remove()
        return float(ArrayFile(recall.path(0)).facts["recall"])

    def selected(self, members: Phase) -> np.ndarray:
        """A selection by row, bool ``(N,)``."""
        cells = self.cells
        phase = cells.phase("sampled_rows:selected", 1, members=members.name, blocks=cells.blocks, **self._placed)
        self._done(phase)
        return np.array(ArrayFile(phase.path(0))["selected"]).view(bool)

    def gains(self, members: Phase) -> Callable[[np.ndarray], np.ndarray]:
        """What rows add to the sum over all rows, or, as members, keep from being lost, as far as the lists tell.

        Returns:
            From rising rows of the scratch, int64 ``(k,)``, to float64 ``(k,)``.
        """
        cells = self.cells
        settings = {"blocks": cells.blocks, "members": members.name, **self._placed}
        nearest = cells.phase("gains:nearest_members", cells.blocks, lists=cells.lists.name, **settings)
        gains = cells.phase("gains:gains", cells.blocks, nearest=nearest.name, reverse=cells.reverse.name, **settings)
        if not gains.whole:
            self._done(nearest)
            self._done(gains)
            nearest.remove()

        def of(rows: np.ndarray) -> np.ndarray:
            outcome = np.zeros(len(rows))
            for number in range(cells.blocks if len(rows) else 0):
                of_block = np.asarray(ArrayFile(cells.block.path(number))["rows"])
                places = np.searchsorted(rows, of_block)
                wanted = rows[np.minimum(places, len(rows) - 1)] == of_block
                outcome[places[wanted]] = ArrayFile(gains.path(number))["gains"][wanted]
            return outcome

        return of


@dataclass(frozen=True)
class FacilitySolution:
    """What came out.

    Attributes:
        selected: bool ``(N,)``, exactly S rows, by row of the scratch.
        quality: mean over the members. estimate: what they cover. covered: the listed value of it where blocks know of
            each other, else the estimate. joint: of these two, on the scale of `anchors`.
        anchors: ends of the scale by term, as runs keep them.
        worth: of rising rows of the scratch, what each is worth beside the others: parts of quality and diversity.
        ending: why it ended.
        facts: counts of blocks, pairs, rounds; ``listed``: K; ``recall``: the share of the true nearest rows in lists.
    """

    selected: np.ndarray
    quality: float
    estimate: Estimate
    covered: float
    joint: float
    anchors: dict[str, Any]
    worth: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    ending: str
    facts: dict[str, Any]


def solve_facility(
    scratch: Scratch,
    config: SelectionConfig,
    size: int,
    engine: Engine,
    work: Work = UNWATCHED,
    step: Callable[[dict[str, float]], None] = lambda numbers: None,
) -> FacilitySolution:
    """Select S of all rows.

    Args:
        config: of `--estimator blocks`. engine: does the tasks. work: asked some ten times a second.
        step: told of every round: ``raw_quality``, ``raw_diversity`` (listed), ``changed`` (share of new members), and
            ``joint``, ``quality``, ``diversity`` on the run's scale, whose best end is known once lambda 0 is solved.

    Raises:
        OptionError: another objective, lambda 1, or a disk without room. InputError: all rows are alike.
        Stopped: on request; what is done by then is in files, and is not done again.
    """
    check_solvable(scratch, config, size)
    check_room(scratch, size)
    alone = config.scope == "block"
    cells = _cells(scratch, config, size)
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
    scale = _Scale(scratch, config, size, random, cells.rows)
    for state in by_diversity.run(engine, work.part(low, middle)):
        known.append(state)
        if not twice:
            step(scale.of_step(state))
    best = max(known, key=lambda each: each.covered)
    scale.close(best, facility.estimate(best.members, DRAWS - 2) if alone else None)
    chosen = best
    if twice:
        aim = scale.aim()
        states = []
        for state in Rounds(cells, aim, rounds, swaps).run(engine, work.part(middle, 1.0)):
            states.append(state)
            step(scale.of_step(state))
        chosen, known = max(states, key=lambda each: each.worth(aim)), states
    estimate = facility.estimate(chosen.members, DRAWS - 2)
    quality = chosen.quality / size
    worth = _worth(facility, chosen, scale)
    kind = f"{cells.blocks:,} random blocks, each alone" if alone else f"{cells.blocks:,} blocks of cells"
    ending = kind if alone else f"{kind}, {rounds} rounds" + (f" and {swaps} of swaps" if swaps else "")
    facts = prepared | {"rounds": len(known), "recall": recall, "lost": chosen.lost}
    covered = estimate.value if alone else estimate.listed
    return FacilitySolution(
        facility.selected(chosen.members),
        quality,
        estimate,
        covered,
        scale.joint(quality, covered),
        scale.anchors(),
        worth,
        ending,
        facts,
    )


def _cells(scratch: Scratch, config: SelectionConfig, size: int) -> CellBlocks:
    """Blocks and lists as long as in memory; those of a run that an earlier version began, if its lists are whole."""
    ratio, alone = size / scratch.rows, config.scope == "block"
    cells = CellBlocks(scratch, config.block_rows or scratch.rows, list_length(ratio, scratch.rows), alone, config.seed)
    listed = min(max(LISTED_BEFORE, math.ceil(MEMBERS_LISTED_BEFORE / ratio)), MOST_LISTED_BEFORE, scratch.rows)
    before = replace(cells, listed=listed)
    return before if before.atlas.whole and before.lists.whole else cells


def memory_bytes(rows: int, dim: int, size: int, block_rows: int, workers: int) -> int:
    """The most anonymous memory that `solve_facility` takes with so many workers, beside what the program takes."""
    return 600_000_000 + 40 * rows + workers * worker_bytes(rows, dim, size, block_rows)


def worker_bytes(rows: int, dim: int, size: int, block_rows: int) -> int:
    """The most anonymous memory that a worker takes: lists of a block, or the features of one while it is put in order.

    Blocks are about as large as they are asked to be; the largest was 7 % larger on clusters of even size.
    """
    listed, block_rows = list_length(size / rows, rows), min(block_rows, rows)
    of_row = max(LIST_BYTES * listed, 6 * dim)
    cells = CELLS_BYTES * math.ceil(rows / block_rows) * dim
    return 150_000_000 + block_rows * of_row + LIST_BYTES * listed * min(PART_ROWS, block_rows) + cells


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

    def __init__(self, scratch: Scratch, config: SelectionConfig, size: int, random: float, rows: int) -> None:
        quality = scratch.quality
        self.lamb, self.calibrated, self.size, self.rows = config.lamb, config.scale == "calibrated", size, rows
        self.mean_quality = float(quality.mean())
        self.best_quality = float(np.partition(quality, rows - size)[rows - size :].mean())
        self.random, self.best, self.known = random, random, not self.calibrated

    def close(self, best: State, estimate: Estimate | None) -> None:
        """Take note of the best that diversity alone reaches.

        Raises:
            InputError: no selection covers more than another, and quality cannot be weighed against that.
        """
        self.best = max(self.random, best.covered / self.rows if estimate is None else estimate.value)
        self.known = True
        if self.calibrated and self.lamb > 0 and slope_between(self.random, self.best) == 0:
            raise InputError(
                "no selection covers the rows better than a random one, so there is no scale on which to weigh it "
                "against quality; take --lamb 0, --scale raw, or another objective"
            )

    @property
    def slopes(self) -> tuple[float, float]:
        """Of quality and of diversity."""
        if not self.calibrated:
            return 1.0, 1.0
        return slope_between(self.mean_quality, self.best_quality), slope_between(self.random, self.best)

    def aim(self) -> Aim:
        """What a member adds by itself."""
        of_quality, of_diversity = self.slopes
        bonus = self.lamb * of_quality / ((1 - self.lamb) * of_diversity) * self.rows / self.size
        return Aim(self.size, bonus, self.mean_quality)

    def parts(self, quality: float, covered: float) -> tuple[float, float]:
        """Mean quality and mean coverage on the run's scale."""
        of_quality, of_diversity = self.slopes
        if not self.calibrated:
            return quality, covered
        return (quality - self.mean_quality) * of_quality, (covered - self.random) * of_diversity

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
        return {
            "quality": {"random": self.mean_quality, "best": self.best_quality, "best_kind": "proved"},
            "diversity": {"facility": {"random": self.random, "best": self.best, "best_kind": "best found"}},
        }


def _worth(facility: Facility, chosen: State, scale: _Scale) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What rows are worth beside the others, as `FacilitySolution.worth` says it."""
    of_quality, of_diversity = scale.slopes
    scratch, gains = facility.cells.scratch, facility.gains(chosen.members)

    def worth(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        quality = scratch.quality[rows] * (of_quality / scale.size)
        return quality, gains(rows) * (of_diversity / scale.rows)

    return worth
