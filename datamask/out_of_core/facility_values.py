"""What a selection by blocks covers: estimates, what lists hold, and what single rows are worth, by tasks.

Values are read off the neighbour lists, so they are lower bounds; beside them stands an estimate of the exact value,
with its interval, from uniformly drawn rows that are compared with all members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.corpus.neighbors import RECALL_ROWS
from datamask.corpus.sampling import DRAWS
from datamask.errors import InputError
from datamask.measured import Anchor, Estimate, GraphFacts
from datamask.out_of_core.array_file import ArrayFile
from datamask.out_of_core.cells import CellBlocks, cover
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.tasks import Phase
from datamask.work.context import UNWATCHED, Work

ESTIMATE_ROWS = 10_000
"""Rows that are compared with all members for an estimate."""


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
        """Estimate what a selection covers, a mean over all rows.

        Args:
            members: the phase of its file. draw: which uniform sample of the rows it is made from.
        """
        from datamask.objectives.estimate import estimated

        cells, covered = self.cells, cover(self.cells, members)
        sample = self.cells.sample(draw, ESTIMATE_ROWS)
        nearest = cells.phase(
            "sampled_rows:nearest", cells.blocks, members=members.name, sample=sample.name, **self._placed
        )
        shortfalls = cells.phase(
            "sampled_rows:shortfalls",
            1,
            atlas=cells.atlas.name,
            blocks=cells.blocks,
            cover=covered.name,
            nearest=nearest.name,
            sample=sample.name,
        )
        if not shortfalls.whole:
            for phase in (sample, nearest, covered, shortfalls):
                self._done(phase)
            nearest.remove()
        file = ArrayFile(shortfalls.path(0))
        return estimated(float(file.facts["covered"]) / cells.rows, np.asarray(file["shortfalls"]), 1.0)

    def recall(self) -> float:
        """The share of the true nearest rows of uniformly drawn rows that their lists hold."""
        cells = self.cells
        sample = self.cells.sample(DRAWS - 1, RECALL_ROWS)
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


def graph_facts(cells: CellBlocks, listed: int, recall: float) -> GraphFacts:
    """What is known about the lists. recall: as `Facility.recall` measures it."""
    if cells.exact:
        return GraphFacts("exact", listed, 1.0, 0)
    return GraphFacts("approximate", listed, recall, min(RECALL_ROWS, cells.rows))


def check_weighable(config: SelectionConfig, diversity: Anchor) -> None:
    """Refuse to weigh quality against what has no scale.

    Raises:
        InputError: no selection covers more than another.
    """
    if config.scale == "calibrated" and config.lamb > 0 and diversity.constant:
        raise InputError(
            "no selection covers the rows better than a random one, so there is no scale on which to weigh it "
            "against quality; take --lamb 0, --scale raw, or another objective"
        )
