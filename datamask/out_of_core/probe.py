"""How fast this machine does the parts of a run over all rows, measured on the first rows of the corpus itself.

Some thousand rows are read from the first shards, as the run would read them, and put through the run's own code: what
is timed is what will be done. Everything is measured on one core, and files go into a temporary folder.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.threads import one_blas_thread
from datamask.errors import InputError
from datamask.out_of_core.scratch import Scratch
from datamask.out_of_core.scratch_passes import Passes
from datamask.out_of_core.scratch_writing import write_scratch
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.polling import Poll, no_poll
from datamask.recipes.batches import shard_batches
from datamask.recipes.recipe import ScoreRule

PROBED_ROWS = 16_384
"""Rows that are looked at, where there are so many."""

WARM_ROWS = 512
"""Rows that everything is done with once before, so that no compiling and no loading of libraries is timed."""


@dataclass(frozen=True)
class Rates:
    """What was measured, on one core.

    Attributes:
        rows: probed. dim: d.
        read: seconds per row to read the needed columns of a shard and decode them; of what is elsewhere, the network's
            part included. ids: the same for ids alone. write: seconds per row to make scratch of what was read.
        passed: seconds per row of one pass.
        lengths: whether the corpus has lengths.
    """

    rows: int
    dim: int
    read: float
    ids: float
    write: float
    passed: float
    lengths: bool


def measured(corpus: CorpusConfig, selection: SelectionConfig, *, poll: Poll = no_poll) -> Rates:
    """Probe a corpus.

    Args:
        selection: of a run over all rows. poll: called between parts that take a second or so.

    Raises:
        InputError: a shard is damaged, or has a row that cannot be used. OptionError: features lie in shards of their
            own. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    plain = untransformed(corpus)
    whole = WholeCorpus.open(plain, poll=poll)
    with tempfile.TemporaryDirectory(prefix="datamask-plan-") as place, one_blas_thread():
        table, read = _first_rows(whole, whole.reader.columns, poll)
        _, ids = _first_rows(whole, [whole.columns.id], poll)
        poll()
        with _named_by_shard(whole, Path(place)):
            warm = _scratch(table.slice(0, WARM_ROWS), plain, Path(place) / "warm")[0]
            scratch, write = _scratch(table, plain, Path(place) / "probe")
        poll()
        passed = [_pass_seconds(each, selection) for each in (warm, scratch)][-1] / scratch.rows
        return Rates(
            rows=scratch.rows,
            dim=whole.dim,
            read=read / table.num_rows,
            ids=ids / table.num_rows,
            write=write / scratch.rows,
            passed=passed,
            lengths=scratch.has_lengths,
        )


def untransformed(corpus: CorpusConfig) -> CorpusConfig:
    """The same corpus with plain quality columns: transforms come from a run's sample, and cost a row nothing."""
    return replace(corpus, quality_columns=tuple(replace(each, transform="raw") for each in corpus.quality_columns))


def _first_rows(whole: WholeCorpus, columns: list[str], poll: Poll) -> tuple[pa.Table, float]:
    """The first rows of the corpus, and the seconds it took to read them."""
    parts: list[pa.Table] = []
    rows, seconds = 0, 0.0
    for shard in whole.source.shards:
        batches = shard_batches(shard, columns, 64 + 4 * whole.dim, poll)
        while rows < PROBED_ROWS:
            began = time.perf_counter()
            first_and_batch = next(batches, None)
            if first_and_batch is None:
                break
            seconds += time.perf_counter() - began
            batch = first_and_batch[1]
            parts.append(pa.Table.from_batches([batch]))
            rows += batch.num_rows
        if rows >= PROBED_ROWS:
            break
    table = pa.concat_tables(parts, promote_options="permissive")
    # a batch is read as a whole, and its time is that of its rows
    return table.slice(0, PROBED_ROWS), seconds * min(1.0, PROBED_ROWS / rows)


@contextlib.contextmanager
def _named_by_shard(whole: WholeCorpus, place: Path) -> Iterator[None]:
    """Name a row that is refused by where the corpus has it, not by the probe's copy, which will be gone."""

    def named(match: re.Match[str]) -> str:
        row = int(match[1].replace(",", ""))
        shard = int(np.searchsorted(whole.source.starts, row, side="right")) - 1
        return f"{whole.source.shards[shard].path} row {row - int(whole.source.starts[shard]):,}"

    try:
        yield
    except InputError as error:
        copy = rf"{re.escape(str(place))}/\w+/rows\.parquet row ([\d,]+)"
        raise InputError(re.sub(copy, named, str(error))) from None


def _scratch(table: pa.Table, corpus: CorpusConfig, place: Path) -> tuple[Scratch, float]:
    """These rows as scratch, and the seconds that this took beside reading the rows."""
    place.mkdir()
    pq.write_table(table, place / "rows.parquet")
    whole = WholeCorpus.open(replace(corpus, inputs=(str(place / "rows.parquet"),)))
    began = time.perf_counter()
    for _ in shard_batches(whole.source.shards[0], whole.reader.columns, 64 + 4 * whole.dim):
        pass
    read = time.perf_counter() - began
    began = time.perf_counter()
    scratch = write_scratch(whole, place / "scratch")
    return scratch, max(0.0, time.perf_counter() - began - read)


def _pass_seconds(scratch: Scratch, selection: SelectionConfig) -> float:
    """Seconds of one pass over these rows, under a rule of the objective's kind."""
    d, terms = scratch.dim, dict(selection.terms)
    mean = scratch.features(0, scratch.rows).mean(axis=0, dtype=np.float64)
    rule = ScoreRule(1.0)
    if "pairwise" in terms and selection.lamb < 1:
        rule = replace(rule, crowding_weight=1.0, direction=mean)
    if "disf_fixed" in terms and selection.lamb < 1:
        moment = np.outer(mean, mean)
        np.fill_diagonal(moment, 0.0)
        rule = replace(rule, moment_weight=1.0, moment=moment, mean=mean, inverse_sd=np.ones(d))
    passes = Passes(scratch, scratch.rows)
    spread = float(scratch.quality.std()) or 1.0
    began = time.perf_counter()
    passes(rule, float(np.median(scratch.quality)), spread, "Probing")
    # the threshold is cut out of the scores of all rows
    np.partition(passes.scores, scratch.rows // 2)
    return time.perf_counter() - began
