"""What a run by passes over all rows of a corpus takes: memory, files and time, before any of it is done.

Seconds are core seconds of a probe of the corpus's first rows (`probe`), times the rows that there are more of. A part
is as quick as it can be shared out: over shards that are read side by side, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.threads import thread_count
from datamask.out_of_core.probe import Rates, measured, untransformed
from datamask.out_of_core.scratch import scratch_bytes
from datamask.out_of_core.solvers import BLOCK_ROWS
from datamask.out_of_core.streamed_dual import memory_bytes
from datamask.out_of_core.whole_corpus import WholeCorpus, sample_rows
from datamask.polling import Poll, no_poll

PIECE_ROWS = 1 << 16
"""Rows that one thread reads at a time."""

USUAL_PASSES = 4
"""Passes of the selection and of each end of a scale: most take 2 to 8, and 12 at most."""


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


def plan_of(
    rows: int, shards: int, selection: SelectionConfig, rates: Rates, learning: float, cores: int | None = None
) -> Plan:
    """The plan for a corpus of so many rows in so many shards.

    Args:
        learning: seconds that the sample takes.
        cores: that work at a time; None: all that this process may use.
    """
    selected = max(1, math.floor(selection.select_ratio * rows + 0.5))
    # a corpus of fewer rows than are passed over at a time takes less than a run announces
    moments = "disf_fixed" in dict(selection.terms)
    memory = memory_bytes(rows, rates.dim, min(rows, BLOCK_ROWS), moments=moments)
    return Plan(
        rows=rows,
        dim=rates.dim,
        selected=selected,
        scratch_bytes=scratch_bytes(rows, rates.dim, lengths=rates.lengths),
        memory_bytes=float(memory),
        parts=tuple(_parts(rows, shards, selection, rates, learning)),
        cores=cores or thread_count(rows),
    )


def _parts(rows: int, shards: int, selection: SelectionConfig, rates: Rates, learning: float) -> Iterator[Part]:
    yield Part(rows * rates.ids, max(1.0, rows / PIECE_ROWS))  # of a uniform sample
    yield Part(learning, 1.0)
    yield Part(rows * (rates.read + rates.write), shards)
    # one solution for the selection, and one for the best end of each term's scale
    passes = USUAL_PASSES * (1 + len(selection.terms))
    yield Part(passes * rows * rates.passed, math.inf)
    # ends of scales and selection are valued together, but that of second moments needs a reading of its own
    valued = 1 + ("disf_fixed" in dict(selection.terms))
    yield Part(valued * rows * (rates.read + rates.passed), shards)
    yield Part(rows * rates.ids, 1.0)  # of the selected rows
