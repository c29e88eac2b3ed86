"""The stages of a run on all rows of a corpus that is not held in memory, by passes over a scratch.

It begins as a run on a uniform sample: that gives the ends of the scales, the weights of the terms and where to begin;
it is also what pages draw. Then the shards are read once into scratch, and `datamask.out_of_core.solvers` selects from
all of it. rows.parquet has the sample's rows, selected as they are over the
whole; selection.parquet the selected rows of the whole, in input order, written as they are read
(`datamask.runs.whole_writing`).

The fact ``whole`` says so: ``sample_rows``, ``rows`` (valid ones), ``selected``, ``shards``, ``scratch`` (where it
lies, while it does), ``scratch_bytes``, ``memory_bytes`` (what the solver takes at most) and what the solver counts.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from datamask.corpus.opening import fits_in_memory, read_corpus
from datamask.errors import StoreError
from datamask.evaluation.anchors import diversity_anchor, diversity_best
from datamask.evaluation.pool import Pool
from datamask.out_of_core import solvers, streamed_dual
from datamask.out_of_core.scale_ends import Start
from datamask.out_of_core.scratch import Scratch, remove_scratch, scratch_bytes
from datamask.out_of_core.scratch_writing import centered, write_scratch
from datamask.out_of_core.solvers import Step, WholeProblem, solver_for
from datamask.out_of_core.streamed_dual import BLOCK_BYTES
from datamask.out_of_core.whole_corpus import WholeCorpus, sample_rows
from datamask.polling import Poll, no_poll
from datamask.recipes.learned import standardisation, weighted_mean, weighted_moment
from datamask.runs.execution import AllRows, Execution
from datamask.runs.folders import scratch_of
from datamask.runs.mapping import is_mapped, maps_folder
from datamask.runs.recipe import selection_of_sample
from datamask.runs.store import Run, RunStore
from datamask.runs.whole_rules import of_sample, read_rules
from datamask.work.context import Work

SCRATCH, PASSES, WRITING = "scratch", "passes", "writing"
"""Phases after those of the sample."""

IN_MEMORY = "disf_fixed"
"""The objective whose scale ends where memory says, if it holds all rows. Pair-wise similarity needs none of that: its
search is proved right in both places."""

AVERAGED = 0.4
"""Share of the first of these that is done when the mean of all rows is known, where it is subtracted."""

_READ, _WRITTEN = (8e-7, 1.2e-8), (8e-7, 1.2e-8)
"""Seconds of the first and the last of these phases per row, and per row and dimension: both decode every row."""


def wants_all_rows(run: Run, poll: Poll = no_poll) -> bool:
    """Whether a run begins with a sample of the rows that it selects from.

    Raises:
        OptionError: as `solver_for`. InputError, RemoteError, Stopped: as `datamask.corpus.open_corpus`.
    """
    if run.whole is not None:
        return True
    return solver_for(run.config.selection, run.config.corpus) is not None and is_mapped(run.config, poll)


def prepare(execution: Execution) -> None:
    """Check the folder, and remove what other runs left.

    Raises:
        OptionError: the folder saves no memory.
    """
    run, config, corpus = execution.run, execution.config, execution.run.config.corpus
    maps_folder(run.config, run.path.parent, execution.poll)
    rows = corpus.rows or sample_rows(config)
    execution.update_whole(sample_rows=rows)
    if config.ruled or config.ban is not None or config.budget is not None:
        total = WholeCorpus.open(corpus, quality=(), poll=execution.poll).source.rows
        execution.config = of_sample(config, min(1.0, rows / max(total, 1)))
    _remove_left(RunStore(run.path.parent))
    execution.shared = None  # the corpus of a sweep may be another sample than ours
    execution.left_told = True


def plan_phases(execution: Execution) -> None:
    """Add the phases that come after those of the sample, with about what each takes."""
    corpus, pace = execution.pool.corpus, execution.pace
    rows, dim = corpus.provenance.total_rows, corpus.dim
    later = {
        name: rows * (each + dim * every)
        for name, (each, every) in ((SCRATCH, _READ), (PASSES, solvers.SECONDS), (WRITING, _WRITTEN))
    }
    pace.plan(pace.ahead | later)


def select_all_rows(execution: Execution) -> None:
    """Read all rows into scratch, and select from them."""
    config, pool, posed, poll = execution.run.config.selection, execution.pool, execution.posed, execution.poll
    recorder, folder = execution.recorder, _scratch_of(execution.run)
    sample = selection_of_sample(execution.run.config, pool.corpus, posed, execution.selection, poll)
    whole = WholeCorpus.open(execution.run.config.corpus, quality=sample.quality, poll=poll)
    streamed_dual.check_size(whole.source.rows, config.size(whole.source.rows))
    _announce(execution, whole)
    execution.pace.begin(SCRATCH, 0.0)
    work, averaged = Work(poll, execution.say_share), 0.0
    if config.center:
        averaged = AVERAGED
        whole = centered(whole, folder, work.part(0.0, averaged))
    scratch = write_scratch(whole, folder, work.part(averaged, 1.0))
    rules, size = read_rules(config, whole, scratch, work)
    execution.update_whole(rows=scratch.rows, selected=size)
    ends = _ends_in_memory(execution, scratch, size)
    execution.pace.begin(PASSES, 0.0)
    recipe = sample.recipe
    starts = {} if recipe is None else _starts(execution)
    problem = WholeProblem(config, scratch, size, whole, recipe, starts, ends, rules)
    solution = solvers.solve(problem, work, step_of(execution))
    recorder.count_seconds()
    execution.update_whole(**solution.facts)
    execution.all_rows = AllRows(whole, scratch, int(solution.selected.sum()), solution, rules)
    execution.pace.begin(WRITING, 0.0)


def _scratch_of(run: Run) -> Path:
    """Where the scratch of a run lies."""
    return scratch_of(run.config, run.id, run.path.parent)


def kept_scratch(run: Run) -> str:
    """Say where the scratch of a stopped run stays, as the end of a sentence; nothing where there is none."""
    if run.whole is None or not _scratch_of(run).is_dir():
        return ""
    return f"; its scratch stays in {_scratch_of(run)}, where resuming goes on"


def _remove_left(store: RunStore) -> None:
    """Remove what runs of this store that are done could not remove, or were killed before they did."""
    for other in store.list():
        with contextlib.suppress(StoreError):
            if other.whole is not None and other.status().state == "done":
                remove_scratch(_scratch_of(other), other.id)


def _starts(execution: Execution) -> dict[str, Start]:
    """Means over what each term alone selects from the sample."""
    pool, poll = execution.pool, execution.poll
    features, starts = pool.space.features, {}
    for name, _ in execution.config.terms:
        mask = diversity_best(pool, name, execution.posed.problem.size, poll).cpu().numpy()
        members = int(mask.sum())
        shares = mask / members
        if name == "pairwise":
            starts[name] = Start(members, direction=weighted_mean(features, shares, poll))
        else:
            standard = standardisation(features, poll)
            starts[name] = Start(members, moment=weighted_moment(features, shares, *standard, poll))
    return starts


def _ends_in_memory(execution: Execution, scratch: Scratch, size: int) -> dict[str, dict[str, Any]]:
    """Ends of scales over all rows that are taken from memory, as runs keep them, by term; mostly none.

    Two searches for the best end of `IN_MEMORY` end apart, and calibrated values with them. Where the memory that
    the run was announced to take holds all rows, there is one search; which of the two it is follows from the
    settings, the rows and the machine, never from what others hold of the memory.

    Raises:
        NoRoomError: others hold that memory.
    """
    config, pool, poll = execution.config, execution.pool, execution.poll
    copies = 3 if config.center else 2
    if IN_MEMORY not in dict(config.terms) or 4 * copies * scratch.rows > BLOCK_BYTES * solvers.BLOCK_ROWS:
        return {}
    if len(pool) != scratch.rows:
        corpus = replace(execution.run.config.corpus, rows=None)
        if scratch.dropped or not fits_in_memory(corpus, poll):
            return {}
        work = Work(poll, execution.say_part)
        pool = Pool(
            read_corpus(corpus, work, beside=config.beside),
            pool.device,
            pool.cache_dir,
            work=work,
            center=pool.center,
        )
    return {IN_MEMORY: diversity_anchor(pool, IN_MEMORY, size, poll).to_dict()}


def _announce(execution: Execution, whole: WholeCorpus) -> None:
    """Say, before anything of it is written, what the work takes."""
    config, folder, rows = execution.run.config.selection, _scratch_of(execution.run), whole.source.rows
    disk = scratch_bytes(rows, whole.dim, lengths=whole.columns.length is not None)
    memory = solvers.memory_bytes(config, rows, whole.dim)
    execution.update_whole(
        shards=len(whole.source.shards), scratch=str(folder), scratch_bytes=disk, memory_bytes=memory
    )
    execution.callbacks.note(
        f"all {rows:,} rows of {len(whole.source.shards):,} shards, out of core: {_gigabytes(disk)} of scratch in "
        f"{folder}, at most {_gigabytes(memory)} of memory"
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def step_of(execution: Execution) -> Step:
    """What is told of every step while it is solved: it writes a line of metrics."""
    recorder, line, steps = execution.recorder, execution.recorder.lines, 0

    def step(numbers: dict[str, float]) -> None:
        nonlocal steps
        steps += 1
        recorder.count_seconds()
        record = {"step": line + steps, "seconds": execution.clock.learning, "pass": steps, **numbers}
        execution.writer.append_metrics(record)

    return step
