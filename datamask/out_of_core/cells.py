"""The blocks of neighbouring cells of a whole corpus, and the neighbour lists across them, as phases of tasks.

`CellBlocks` says which phases there are and does them: rows into blocks, neighbour lists across them.
Whatever of it has a file is not done again, so a run that was stopped or killed goes on from the tasks that were in
flight; the lists depend neither on the engine nor on the number of its workers.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamask.corpus.centres import cell_count
from datamask.corpus.partition_search import JUDGED_BY, JUDGES, most_cells, passes_of
from datamask.files import sweep
from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.tasks import do, parts_of
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Parts

FOLDER = "blocks"
"""Of the tasks' files, in the folder of the scratch."""

RANGE_ROWS = 1 << 18
"""Rows that are put into blocks by one task, at most."""


@dataclass(frozen=True)
class CellBlocks:
    """The blocks of a corpus and the neighbour lists across them.

    Attributes:
        scratch: the corpus. block_rows: rows of a block, about. listed: K, rows in a list, itself included.
        exact: whether all pairs are compared.
    """

    scratch: Scratch
    block_rows: int
    listed: int
    exact: bool = False

    @property
    def folder(self) -> Path:
        """Of the files of all tasks."""
        return self.scratch.folder / FOLDER

    @property
    def rows(self) -> int:
        """N."""
        return self.scratch.rows

    @property
    def blocks(self) -> int:
        """B."""
        return min(math.ceil(self.rows / self.block_rows), cell_count(self.rows))

    @property
    def ranges(self) -> int:
        """Parts of the corpus that are put into blocks on their own."""
        return math.ceil(self.rows / self.range_rows)

    @property
    def range_rows(self) -> int:
        """Rows of such a part."""
        return min(self.block_rows, RANGE_ROWS)

    def phase(self, task: str, count: int, **settings: Any) -> Parts:
        """A phase of tasks; `task` as ``module:function`` of this package."""
        return parts_of(task, count, self.folder, settings)

    @functools.cached_property
    def centres(self) -> Parts:
        """Centers of the cells of the corpus."""
        return self.phase("partition:centres", 1, scratch=self.scratch.digest, cells=cell_count(self.rows))

    @property
    def _ranged(self) -> dict[str, Any]:
        return {
            "scratch": self.scratch.digest,
            "centres": self.centres.word,
            "blocks": self.blocks,
            "range_rows": self.range_rows,
            "ranges": self.ranges,
        }

    @functools.cached_property
    def assign(self) -> Parts:
        """Which cell each row is in."""
        return self.phase("partition:assign", self.ranges, **self._ranged)

    @functools.cached_property
    def layout(self) -> Parts:
        """Which block each cell is in."""
        return self.phase("partition:layout", 1, assign=self.assign.word, **self._ranged)

    @functools.cached_property
    def part(self) -> Parts:
        """Rows of each range by block; removed once the blocks are there."""
        return self.phase(
            "partition:part", self.ranges, assign=self.assign.word, layout=self.layout.word, **self._ranged
        )

    @functools.cached_property
    def block(self) -> Parts:
        """Rows of each block, in their places."""
        return self.phase("partition:block", self.blocks, part=self.part.word, ranges=self.ranges)

    @functools.cached_property
    def atlas(self) -> Parts:
        """Where blocks and cells begin."""
        return self.phase("partition:atlas", 1, block=self.block.word, blocks=self.blocks, layout=self.layout.word)

    @property
    def _placed(self) -> dict[str, Any]:
        return {"block": self.block.word, "atlas": self.atlas.word, "blocks": self.blocks}

    def sample(self, draw: int, drawn: int) -> Parts:
        """So many uniformly drawn rows."""
        settings = {"block": self.block.word, "atlas": self.atlas.word}
        return self.phase("sampled_rows:sample", 1, draw=draw, drawn=min(drawn, self.rows), **settings)

    def true_lists(self, sample: Parts) -> Parts:
        """The nearest of all rows to these, by blocks."""
        settings = {"block": self.block.word, "atlas": self.atlas.word, "listed": min(self.listed, self.rows)}
        return self.phase("sampled_rows:true_lists", self.blocks, sample=sample.word, **settings)

    @functools.cached_property
    def needed(self) -> Parts | None:
        """How many cells each row looks into; None where all pairs are compared."""
        if self.exact:
            return None
        sample = self.sample(JUDGED_BY, JUDGES)
        return self.phase(
            "neighbour_lists:needed",
            1,
            centres=self.centres.word,
            most=most_cells(self.rows, cell_count(self.rows)),
            nearest=self.true_lists(sample).word,
            sample=sample.word,
            **self._placed,
        )

    @functools.cached_property
    def probes(self) -> Parts | None:
        """Which cells each row looks into, removed once rows were searched; None where all pairs are compared."""
        if self.needed is None:
            return None
        return self.phase(
            "neighbour_lists:probes",
            self.blocks,
            centres=self.centres.word,
            needed=self.needed.word,
            **self._placed,
        )

    @functools.cached_property
    def searched(self) -> Parts:
        """The nearest rows of each row, by parts of blocks; removed once the lists are there. Asks for the atlas."""
        return self.phase("neighbour_lists:searched", self.parts, **self._searching, **self._placed)

    @property
    def parts(self) -> int:
        """Parts of blocks, each searched by one task. Asks for the atlas."""
        return int(self.atlas[0].value["parts"])

    @property
    def _searching(self) -> dict[str, Any]:
        return {
            "listed": min(self.listed, self.rows),
            "probes": None if self.probes is None else self.probes.word,
        }

    @property
    def named(self) -> bool:
        """Whether the phases are whole that the names of later ones follow from."""
        return self.atlas.whole and (self.needed is None or self.needed.whole)

    @functools.cached_property
    def passes(self) -> tuple[Parts, ...]:
        """The same, and after each pass of NN-descent. Asks for `needed`; the last is removed once the lists are there,
        and each before it once the next is.
        """
        count, passes = 0, [self.searched]
        if self.needed is not None:
            cells = self.needed[0].value["cells"]
            count = 0 if cells is None else passes_of(cells, self.rows, cell_count(self.rows))
        for _ in range(count):
            searched = passes[-1].word
            passes.append(self.phase("neighbour_lists:descended", self.parts, searched=searched, **self._placed))
        return tuple(passes)

    @functools.cached_property
    def lists(self) -> Parts:
        """The nearest rows of each row. Asks for `needed`."""
        parts = self.passes[-1].word
        return self.phase("neighbour_lists:lists", self.blocks, parts=parts, **self._searching, **self._placed)

    def prepare(self, engine: Engine, work: Work = UNWATCHED) -> dict[str, Any]:
        """Do all of that.

        Returns:
            Facts: blocks, rows of the largest, pairs listed, those of them that cross blocks.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)  # a killed worker's part is as large as a block's file
        if not self.block.whole:
            do(self.centres, engine, work.part(0.0, 0.05), "Cells of a sample")
            do(self.assign, engine, work.part(0.05, 0.15), "Cell of every row")
            do(self.layout, engine, work.part(0.15, 0.15), "Blocks")
            do(self.part, engine, work.part(0.15, 0.2), "Rows by block")
            do(self.block, engine, work.part(0.2, 0.25), "Blocks")
        self.part.remove()
        do(self.atlas, engine, work.part(0.25, 0.25), "Blocks")
        if self.needed is not None:
            judges = self.sample(JUDGED_BY, JUDGES)
            if not self.needed.whole:
                do(judges, engine, work.part(0.25, 0.25), "Rows to compare with all")
                do(self.true_lists(judges), engine, work.part(0.25, 0.27), "A few rows against all")
            do(self.needed, engine, work.part(0.27, 0.27), "Cells to look into")
            self.true_lists(judges).remove()
        if not self.lists.whole:
            self._search(engine, work)
            do(self.lists, engine, work.part(0.9, 0.95), "Lists")
        for phase in (self.probes, *self.passes):
            if phase is not None:
                phase.remove()
        lists = do(self.lists, engine, work.part(0.95, 0.95), "Lists")
        sizes = np.diff(self.atlas[0]["block_starts"])
        return {
            "blocks": self.blocks,
            "block_rows": int(sizes.max()),
            "listed": self.listed,
            "entries": sum(facts["entries"] for facts in lists),
            "crossing": sum(facts["crossing"] for facts in lists),
        }

    def _search(self, engine: Engine, work: Work) -> None:
        """Do what the lists are made of, from the last pass on that is whole: those before it are removed."""
        whole = max((number for number, phase in enumerate(self.passes) if phase.whole), default=-1)
        if whole < 0:
            if self.probes is not None:
                do(self.probes, engine, work.part(0.27, 0.3), "Cells near every row")
            do(self.searched, engine, work.part(0.3, 0.8), "Nearest rows")
        if self.probes is not None:
            self.probes.remove()
        for phase in self.passes[: max(whole, 0)]:
            phase.remove()  # which a kill may have left
        for number in range(max(whole, 0) + 1, len(self.passes)):
            start, end = (0.8 + 0.1 * each / (len(self.passes) - 1) for each in (number - 1, number))
            do(self.passes[number], engine, work.part(start, end), "Neighbors of neighbors")
            self.passes[number - 1].remove()
