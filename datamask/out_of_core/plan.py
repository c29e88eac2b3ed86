"""What a run over all rows of a corpus will take: parts, files, memory and time, before any of it is done.

Seconds are core seconds of a probe of the corpus's first rows (`probe`), times what there is more of: rows for nearly
all; rows times centres where every row is compared with these; rows squared where all pairs are compared. A part is
as quick as it can be shared out: over threads of one machine, over blocks that are solved side by side on any number of
machines, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.centres import cell_count, compared_centres
from datamask.corpus.neighbors import compares_all, search_for
from datamask.corpus.opening import fits_in_memory
from datamask.out_of_core.engines.contract import usable_cores
from datamask.out_of_core.facility import LISTED_BLOCK_ROWS
from datamask.out_of_core.probe import Rates, measured, untransformed
from datamask.out_of_core.scratch import scratch_bytes
from datamask.out_of_core.solvers import solver_for
from datamask.out_of_core.streamed_dual import MOST_PASSES
from datamask.out_of_core.whole_corpus import WholeCorpus, sample_rows
from datamask.polling import Poll, no_poll

PIECE_ROWS = 1 << 16
"""Rows that one thread reads at a time."""

TOKENS_PER_ROW = 700.0
"""Of a text of the web, where the corpus has no lengths; see `ASSUMED`."""

ASSUMED = {
    "sample": "learning on the sample takes what it took at 100,000 x 64, by its rows and dimensions",
    "passes": f"the selection and each end of a scale take at most {MOST_PASSES} passes; most need 2 to 8",
    "linear": "a row costs what it costs among the probed ones; side by side, workers do not slow each other down",
    "search": "a row is compared with as many rows as were probed: clear clusters take fewer, and features without "
    "structure more, up to 2,000,000 rows; passes of NN-descent are not counted",
    "machines": "machines are like this one and reach shards and scratch as fast as it does; only tasks are shared out "
    "among them",
    "tokens": f"{TOKENS_PER_ROW:.0f} tokens a row: the card of ServiceNow/fineweb-sample on Hugging Face counts some "
    "140 million in 200,000 texts of FineWeb",
}
"""What was not measured, and why it is believed."""

BY_ROWS_AND_CENTRES, BY_CENTRES, BY_PAIRS = (
    ("partition:assign", "neighbour_lists:probes"),
    "partition:centres",
    "neighbour_lists:searched",
)
"""Tasks that cost more than so much a row: every row is compared with as many centres; these are learned from some
rows for each, compared with as many; and where all pairs are compared, every row with all rows."""

PHASES = {
    "partition": "Rows into blocks of neighboring cells",
    "neighbour_lists": "Nearest rows of every row",
    "listed": "Greedy, swaps and bound on the lists of all rows",
    "sampled_rows": "What random and chosen selections are worth",
    "gains": "What single rows are worth",
}
"""Module of tasks -> what they are for."""


@dataclass(frozen=True)
class Part:
    """One part of the work.

    Attributes:
        what: in words. core_seconds: on one core. shared: among how many cores at most; machines: whether these may be
            of several machines.
    """

    what: str
    core_seconds: float
    shared: float
    machines: bool

    def seconds(self, cores: int, machines: int) -> float:
        """How long it takes on so many machines of so many cores."""
        return self.core_seconds / max(1.0, min(self.shared, cores * (machines if self.machines else 1)))


@dataclass(frozen=True)
class Plan:
    """What a run over all rows takes; see the module.

    Attributes:
        rows, dim, selected: N, d, S. shards, input_bytes: of the shards. decoded_bytes: of the columns that are needed.
        blocks: B, 1 where the objective needs none. passes: over scratch, at most; 0 where there are blocks. valued:
            readings of all shards to value exactly what was found by passes.
        scratch_bytes, memory_bytes: at most. parts: of the work, in order. cores: of this machine.
        recipe: the other way for objectives whose selections are a rule: that of a sample, applied to all shards in one
            pass; None: there is none.
    """

    rows: int
    dim: int
    selected: int
    shards: int
    input_bytes: float
    decoded_bytes: float
    blocks: int
    passes: int
    valued: int
    scratch_bytes: float
    memory_bytes: float
    parts: tuple[Part, ...]
    cores: int
    recipe: Part | None

    def seconds(self, machines: int = 1) -> float:
        """How long all of it takes on so many machines like this one."""
        return sum(part.seconds(self.cores, machines) for part in self.parts)

    @property
    def read_bytes(self) -> float:
        """What is read of shards and scratch together: the shards for the sample, for scratch and for ids."""
        features = self.rows * 2.0 * self.dim
        return (3.0 + self.valued) * self.input_bytes + (self.passes or 1) * features

    def to_dict(self, machines: int) -> dict[str, Any]:
        """Everything, with the time here and on so many machines."""

        def record_of(part: Part) -> dict[str, Any]:
            return {
                "what": part.what,
                "core_seconds": part.core_seconds,
                "seconds": part.seconds(self.cores, 1),
                "seconds_on_machines": part.seconds(self.cores, machines),
            }

        record = asdict(self)
        record["parts"] = [record_of(part) for part in self.parts]
        record["recipe"] = None if self.recipe is None else record_of(self.recipe)
        return record | {
            "read_bytes": self.read_bytes,
            "seconds": self.seconds(),
            "machines": machines,
            "seconds_on_machines": self.seconds(machines),
        }


@dataclass(frozen=True)
class Shape:
    """How large a corpus is. input_bytes: of all shards."""

    rows: int
    shards: int
    input_bytes: float

    def with_rows(self, rows: int) -> Shape:
        """A corpus of so many rows, in shards like these."""
        factor = rows / max(self.rows, 1)
        return Shape(rows, max(1, math.ceil(self.shards * factor)), self.input_bytes * factor)


@dataclass(frozen=True)
class Planned:
    """A plan for this corpus, one for a corpus of another size if that was requested, and the basis of both.

    Attributes:
        local, larger: the plans. tokens: of the other corpus. fits: whether this one would be held in memory.
        rates: what was measured. assumed: sentences on what was not.
    """

    local: Plan
    larger: Plan | None
    tokens: float | None
    fits: bool
    rates: Rates
    assumed: tuple[str, ...]


def plan_run(
    corpus: CorpusConfig,
    selection: SelectionConfig,
    tokens: float | None = None,
    *,
    learning: Callable[[int, int], float],
    poll: Poll = no_poll,
) -> Planned:
    """Look at a corpus, probe its first rows and say what a run over all of it takes.

    Args:
        selection: of this run. tokens: of another corpus to plan for; None: of none.
        learning: seconds to learn on a sample of so many rows and dimensions.

    Raises:
        OptionError: what is asked for is not solved over all rows. InputError: a shard or row that cannot be used.
        RemoteError: a store does not answer. Stopped: from `poll`.
    """
    solver_for(selection)
    whole = WholeCorpus.open(untransformed(corpus), poll=poll)
    shards = whole.source.shards
    shape = Shape(whole.source.rows, len(shards), float(sum(shard.bytes for shard in shards)))
    rates = measured(corpus, selection, poll=poll)
    seconds = learning(min(corpus.rows or sample_rows(selection), shape.rows), rates.dim)
    solved_by_tasks = bool(rates.tasks)
    assumed = [ASSUMED["sample"], ASSUMED["linear"], ASSUMED["machines"]]
    assumed += [] if solved_by_tasks else [ASSUMED["passes"]]
    if solved_by_tasks and not compares_all(shape.rows, search_for(shape.rows, selection.neighbors)):
        assumed.append(ASSUMED["search"])
    larger = None
    if tokens is not None:
        rows = max(2, round(tokens / (rates.tokens or TOKENS_PER_ROW)))
        larger = plan_of(shape.with_rows(rows), selection, rates, seconds)
        assumed += [ASSUMED["tokens"]] if rates.tokens is None else []
    return Planned(
        plan_of(shape, selection, rates, seconds),
        larger,
        tokens,
        fits_in_memory(corpus, poll),
        rates,
        tuple(assumed),
    )


@dataclass(frozen=True)
class Growth:
    """How much more there is to do than on the probed rows.

    Attributes:
        shape: of the corpus. rates: of the probe. blocks: of the corpus. pairs: whether all pairs of rows are compared.
    """

    shape: Shape
    rates: Rates
    blocks: int
    pairs: bool

    def of(self, task: str) -> float:
        """How many times as long all calls of a task take."""
        by_rows = self.shape.rows / self.rates.rows
        if task.endswith(BY_PAIRS) and self.pairs:
            return by_rows**2
        cells, probed = cell_count(self.shape.rows), cell_count(self.rates.rows)
        by_centres = compared_centres(cells) / compared_centres(probed)
        if task.endswith(BY_CENTRES):
            return cells / probed * by_centres
        return by_rows * by_centres if task.endswith(BY_ROWS_AND_CENTRES) else by_rows


def plan_of(shape: Shape, selection: SelectionConfig, rates: Rates, learning: float, cores: int | None = None) -> Plan:
    """The plan for a corpus of this size.

    Args:
        learning: seconds that the sample takes.
        cores: that work at a time on one machine; None: what the settings say, else all that this process may use.
    """
    blocks = math.ceil(shape.rows / LISTED_BLOCK_ROWS) if rates.tasks else 1
    selected = max(1, math.floor(selection.select_ratio * shape.rows + 0.5))
    # one solution for the selection, and one for the best end of each term's scale
    passes = 0 if rates.tasks else MOST_PASSES * (1 + len(selection.terms)) if rates.passed else 1
    # ends of scales and selection together, but that of second moments needs the first reading
    valued = 0 if rates.tasks else 1 + ("disf_fixed" in dict(selection.terms))
    growth = Growth(shape, rates, blocks, pairs=compares_all(shape.rows, search_for(shape.rows, selection.neighbors)))
    return Plan(
        rows=shape.rows,
        dim=rates.dim,
        selected=selected,
        shards=shape.shards,
        input_bytes=shape.input_bytes,
        decoded_bytes=shape.rows * rates.row_bytes,
        blocks=blocks,
        passes=passes,
        valued=valued,
        scratch_bytes=scratch_bytes(shape.rows, rates.dim, lengths=rates.tokens is not None)
        + shape.rows * rates.task_bytes,
        memory_bytes=float(solver_for(selection).memory(selection, shape.rows, rates.dim, selected)),
        parts=tuple(_parts(growth, passes, valued, learning)),
        cores=cores or selection.workers or usable_cores(),
        recipe=None
        if rates.tasks
        else Part("A recipe applied to all shards", shape.rows * (rates.read + rates.passed), shape.shards, True),
    )


def _parts(growth: Growth, passes: int, valued: int, learning: float) -> Iterator[Part]:
    shape, rates, blocks = growth.shape, growth.rates, growth.blocks
    rows = shape.rows
    yield Part("The ids of all rows, for a uniform sample", rows * rates.ids, max(1.0, rows / PIECE_ROWS), False)
    yield Part("Learning on the sample", learning, 1.0, False)
    yield Part("All shards into scratch", rows * (rates.read + rates.write), shape.shards, False)
    if rates.tasks:
        by_part: dict[tuple[str, float], float] = {}
        for task, rate in rates.tasks.items():
            key = _phase_of(task), _shared(rate.at_once, rates.blocks, blocks)
            by_part[key] = by_part.get(key, 0.0) + rate.seconds * growth.of(task)
        for phase in dict.fromkeys(phase for phase, _ in by_part):
            for (of_phase, shared), seconds in by_part.items():
                if of_phase == phase:
                    yield Part(phase if shared > 1 else f"{phase}, in one place", seconds, shared, True)
    else:
        what = f"{passes} passes over scratch, at most" if passes > 1 else "A pass over scratch"
        yield Part(what, passes * rows * rates.passed, math.inf, True)
        seconds = valued * rows * (rates.read + rates.passed)
        yield Part("All shards again, to value exactly", seconds, shape.shards, False)
    yield Part("The ids of the selected rows", rows * rates.ids, 1.0, False)


def _phase_of(task: str) -> str:
    module = task.partition(":")[0].rpartition(".")[2]
    return PHASES.get(module, module)


def _shared(at_once: int, probed: int, blocks: int) -> float:
    """Among how many cores the calls of a task can be shared out."""
    return float(blocks) if at_once > 1 or probed == 1 else 1.0
