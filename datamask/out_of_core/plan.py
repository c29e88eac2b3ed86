"""What a run over all rows of a corpus takes: memory, files and time, before any of it is done.

Seconds are core seconds of a probe of the corpus's first rows (`probe`), times what there is more of: rows for nearly
all; rows times centres where every row is compared with these; rows squared where all pairs are compared. A part is
as quick as it can be shared out: over shards that are read side by side, over blocks, or not at all. A row is taken to
cost what it costs among the probed ones, and side by side, workers are taken not to slow each other down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.centres import cell_count, compared_centres
from datamask.corpus.neighbors import compares_all, search_for
from datamask.out_of_core.engines.contract import usable_cores
from datamask.out_of_core.facility import LISTED_BLOCK_ROWS
from datamask.out_of_core.probe import Rates, measured, untransformed
from datamask.out_of_core.scratch import scratch_bytes
from datamask.out_of_core.solvers import BLOCK_ROWS, solver_for
from datamask.out_of_core.streamed_dual import memory_bytes
from datamask.out_of_core.whole_corpus import WholeCorpus, sample_rows
from datamask.polling import Poll, no_poll

PIECE_ROWS = 1 << 16
"""Rows that one thread reads at a time."""

USUAL_PASSES = 4
"""Passes of the selection and of each end of a scale: most take 2 to 8, and 12 at most."""

BY_ROWS_AND_CENTRES, BY_CENTRES, BY_PAIRS = (
    ("partition:assign", "neighbour_lists:probes"),
    "partition:centres",
    "neighbour_lists:searched",
)
"""Tasks that cost more than so much a row: every row is compared with as many centres; these are learned from some
rows for each, compared with as many; and where all pairs are compared, every row with all rows."""


@dataclass(frozen=True)
class Part:
    """One part of the work. core_seconds: on one core. shared: among how many cores at most."""

    core_seconds: float
    shared: float

    def seconds(self, cores: int) -> float:
        """How long it takes on so many cores."""
        return self.core_seconds / max(1.0, min(self.shared, cores))


@dataclass(frozen=True)
class Plan:
    """What a run over all rows takes; see the module.

    Attributes:
        rows, dim, selected: N, d, S. scratch_bytes, memory_bytes: at most. parts: of the work. cores: of this machine.
    """

    rows: int
    dim: int
    selected: int
    scratch_bytes: float
    memory_bytes: float
    parts: tuple[Part, ...]
    cores: int

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return sum(part.seconds(self.cores) for part in self.parts)


def plan_run(
    corpus: CorpusConfig,
    selection: SelectionConfig,
    *,
    learning: Callable[[int, int], float],
    poll: Poll = no_poll,
) -> Plan:
    """Look at a corpus, probe its first rows and say what a run over all of it takes.

    Args:
        selection: of this run. learning: seconds to learn on a sample of so many rows and dimensions.

    Raises:
        InputError: a shard or row that cannot be used. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    source = WholeCorpus.open(untransformed(corpus), poll=poll).source
    rates = measured(corpus, selection, poll=poll)
    seconds = learning(min(corpus.rows or sample_rows(selection), source.rows), rates.dim)
    return plan_of(source.rows, len(source.shards), selection, rates, seconds)


@dataclass(frozen=True)
class Growth:
    """How much more there is to do than on the probed rows.

    Attributes:
        rows: of the corpus. rates: of the probe. pairs: whether all pairs of rows are compared.
    """

    rows: int
    rates: Rates
    pairs: bool

    def of(self, task: str) -> float:
        """How many times as long all calls of a task take."""
        by_rows = self.rows / self.rates.rows
        if task.endswith(BY_PAIRS) and self.pairs:
            return by_rows**2
        cells, probed = cell_count(self.rows), cell_count(self.rates.rows)
        by_centres = compared_centres(cells) / compared_centres(probed)
        if task.endswith(BY_CENTRES):
            return cells / probed * by_centres
        return by_rows * by_centres if task.endswith(BY_ROWS_AND_CENTRES) else by_rows


def plan_of(
    rows: int, shards: int, selection: SelectionConfig, rates: Rates, learning: float, cores: int | None = None
) -> Plan:
    """The plan for a corpus of so many rows in so many shards.

    Args:
        learning: seconds that the sample takes.
        cores: that work at a time; None: what the settings say, else all that this process may use.
    """
    selected = max(1, math.floor(selection.select_ratio * rows + 0.5))
    solver = solver_for(selection)
    if rates.tasks and solver is not None:
        memory = solver.memory(selection, rows, rates.dim, selected)
    else:
        # a corpus of fewer rows than are passed over at a time takes less than a run announces
        moments = "disf_fixed" in dict(selection.terms)
        memory = memory_bytes(rows, rates.dim, min(rows, BLOCK_ROWS), moments=moments)
    return Plan(
        rows=rows,
        dim=rates.dim,
        selected=selected,
        scratch_bytes=scratch_bytes(rows, rates.dim, lengths=rates.lengths) + rows * rates.task_bytes,
        memory_bytes=float(memory),
        parts=tuple(_parts(rows, shards, selection, rates, learning)),
        cores=cores or selection.workers or usable_cores(),
    )


def _parts(rows: int, shards: int, selection: SelectionConfig, rates: Rates, learning: float) -> Iterator[Part]:
    yield Part(rows * rates.ids, max(1.0, rows / PIECE_ROWS))  # of a uniform sample
    yield Part(learning, 1.0)
    yield Part(rows * (rates.read + rates.write), shards)
    if rates.tasks:
        blocks = math.ceil(rows / LISTED_BLOCK_ROWS)
        growth = Growth(rows, rates, compares_all(rows, search_for(rows, selection.neighbors)))
        for task, rate in rates.tasks.items():
            side_by_side = rate.at_once > 1 or rates.blocks == 1
            yield Part(rate.seconds * growth.of(task), float(blocks) if side_by_side else 1.0)
    else:
        # one solution for the selection, and one for the best end of each term's scale
        passes = USUAL_PASSES * (1 + len(selection.terms)) if rates.passed else 1
        yield Part(passes * rows * rates.passed, math.inf)
        # ends of scales and selection are valued together, but that of second moments needs a reading of its own
        valued = 1 + ("disf_fixed" in dict(selection.terms))
        yield Part(valued * rows * (rates.read + rates.passed), shards)
    yield Part(rows * rates.ids, 1.0)  # of the selected rows
