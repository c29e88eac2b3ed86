"""The stages of a run: load the corpus, pose the problem, learn, measure, write.

Each is a function of the `Execution`; `datamask.runs.execute` has their order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from datamask import catalogue, learning
from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import search_for
from datamask.corpus.threads import thread_count
from datamask.errors import DatamaskError, RunStateError
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.learning.loop import Estimator, learn
from datamask.learning.state import State
from datamask.learning.warm_start import WarmStart
from datamask.measured import Anchors
from datamask.runs import phases, run_facts, whole
from datamask.runs.execution import Execution
from datamask.runs.folders import RUN_ID
from datamask.runs.mapping import input_stamps, open_selected_from, place_sentence
from datamask.runs.phases import Phase
from datamask.runs.recording import Recorder
from datamask.runs.records import CHECKPOINT
from datamask.runs.store import RunStore
from datamask.runs.warm import stored_end
from datamask.schemas import check
from datamask.work import lanes
from datamask.work.cache import FOLDER
from datamask.work.context import Work
from datamask.work.pace import STEPS


def load_corpus(execution: Execution) -> None:
    """Open the run's corpus, unless it is shared, make sure that it is the one the run began on, and plan the phases.

    Raises:
        RunStateError: it has changed since.
    """
    config, run, writer = execution.config, execution.run, execution.writer
    execution.pace.begin(Phase.OPENING)
    facts, before = run.facts(), run.whole
    if config.scratch_dir is not None:
        execution.sample = whole.open_sample(execution)
    pool = execution.pool = _shared(execution) or _opened(execution)
    execution.graph_before = pool.seconds_graph
    corpus, size = pool.corpus, config.size(len(pool), pool.tokens)
    if corpus.place.folder is not None:
        execution.callbacks.note(place_sentence(corpus.place.folder))
    execution.poll()
    recorded = (before or facts).get("fingerprint")
    if recorded and recorded != corpus.fingerprint:
        raise RunStateError(
            f"the corpus of run {run.id} has changed since it started (fingerprint {recorded[:12]}, now "
            f"{corpus.fingerprint[:12]}); start a new run on the new files"
        )
    drawn = corpus if execution.sample is None else execution.sample
    writer.update_facts(**run_facts.of_corpus(drawn), selected=size, device=str(pool.device))
    if execution.sample is not None:
        files = corpus.provenance.files
        execution.update_whole(fingerprint=corpus.fingerprint, rows=len(corpus), selected=size, shards=len(files))
    writer.update_facts(**run_facts.of_own_code(config, run.facts()))
    _plan_phases(execution)


def _shared(execution: Execution) -> Pool | None:
    """The corpus that the caller has open, if it is bound as the run wants it and holds the rows that it wants."""
    pool = execution.shared
    if pool is None or not pool.suits(execution.config):
        return None
    source = pool.corpus.provenance
    return pool if execution.sample is None or source.rows_read == source.total_rows else None


def _opened(execution: Execution) -> Pool:
    run, poll, config, corpus = execution.run, execution.poll, execution.config, execution.run.config.corpus
    execution.say("opening the corpus")
    return open_pool(
        corpus,
        config,
        run.path.parent / FOLDER,
        Work(poll, execution.say_prepared),
        lambda: open_selected_from(corpus, config.scratch_dir, Work(poll, execution.say_opened), beside=config.beside),
    )


def open_pool(
    corpus_config: CorpusConfig,
    config: SelectionConfig,
    cache_dir: Path,
    work: Work,
    open_corpus: Callable[[], Corpus],
) -> Pool:
    """Return a corpus on its device, with the stamps that its files had before it was opened.

    Args:
        work: whether to go on, and who hears how far the pool's preparation is. open_corpus: gives the corpus.
    """
    device = resolve(config.device)
    stamps = input_stamps(corpus_config, work.poll)
    pool = Pool.under(config, open_corpus(), device, cache_dir, work)
    pool.stamps = stamps
    return pool


def _plan_phases(execution: Execution) -> None:
    """Lay out the phases to come, with about what each takes here."""
    pool, config = execution.pool, execution.config
    n, dim = len(pool), pool.corpus.dim
    size = config.size(n, pool.tokens)
    by_lists = any(catalogue.objective(name).needs_neighbors for name, _ in config.terms)
    execution.pace.plan(
        phases.expected_seconds(
            config,
            n,
            dim,
            listed=list_length(size / n, n),
            approximate=search_for(n, config.neighbors, str(pool.device)) == "approximate",
            graph=by_lists and not pool.has_graph,
            cores=thread_count(n),
        )
    )


def pose_problem(execution: Execution) -> None:
    """Measure the ends of the scales, and what selections are compared with."""
    pool, config, clock, writer = execution.pool, execution.config, execution.clock, execution.writer
    execution.say("measuring the ends of the scales")
    began, graph_at = lanes.clock(), pool.seconds_graph
    # the ends that the steps up to the checkpoint went by, where there is one
    ends: Anchors | None = execution.run.anchors() if writer.has_checkpoint else None
    posed = execution.posed = pose(pool, config, execution.poll, ends)
    clock.ends = lanes.clock() - began - (pool.seconds_graph - graph_at)
    execution.pace.begin(Phase.REFERENCES)
    execution.say("measuring top quality, for comparison")
    writer.update_facts(**run_facts.of_problem(posed, execution.poll), **run_facts.of_graph(pool))
    if config.n_epochs:
        execution.alone = run_facts.alone(pool, posed, execution.poll)
    clock.graph = pool.seconds_graph - execution.graph_before


def learn_selection(execution: Execution) -> None:
    """Let the estimator find its selection, from a checkpoint where there is one; all of it is recorded."""
    run, writer, config, pace = execution.run, execution.writer, execution.config, execution.pace
    estimator = execution.estimator = learning.load(config.estimator)(
        execution.posed.problem,
        config,
        **_warm_start(execution, execution.pool.corpus, execution.pool.device),
        **_planned_steps(execution),
    )
    state = estimator.init()
    execution.first = state.step
    stored = writer.load_checkpoint()
    if stored is None:
        warm_from = run.facts()["start_from"] if estimator.warm else None
        writer.update_facts(warm_from=warm_from, first_step=execution.first, planned_steps=estimator.total_steps)
    else:
        execution.first = int(run.facts().get("first_step") or 0)
        state = resumed_state(execution, estimator, *stored)

    total = max(estimator.total_steps, 1)
    # where there are no steps, or one does everything, nothing tells how far it is
    pace.begin(Phase.LEARNING, state.step / total if config.n_rollout is not None else None)

    def say(share: float, what: str) -> None:
        if share < 1.0 or what.startswith(STEPS):
            pace.at(share)
        else:
            pace.begin(Phase.ENDING)
        execution.tell(what)

    recorder = execution.recorder = Recorder(
        run,
        writer,
        estimator,
        execution.clock,
        poll=execution.poll,
        progress=say,
        alone=execution.alone,
        first=execution.first,
    )
    traced = 0
    if stored is not None:
        traced = stored[1]["traced"]
        recorder.resume(state, traced)
    writer.truncate_metrics(state.step + traced)
    execution.learned = learn(estimator, state, poll=execution.poll, watch=recorder)


def _warm_start(execution: Execution, corpus: Corpus, device: torch.device) -> dict[str, WarmStart]:
    """Where the learner starts, if not from nothing: the end of the run that the fact ``start_from`` names.

    A run that has gone, or whose rows are damaged, costs time and nothing else: the learner starts from nothing.
    """
    name = execution.run.facts().get("start_from")
    if name is None or not RUN_ID.fullmatch(name) or not catalogue.estimator(execution.config.estimator).warm:
        return {}
    with contextlib.suppress(DatamaskError):
        ended = stored_end(RunStore(execution.run.path.parent).get(name), len(corpus))
        return {"start": WarmStart.from_arrays(device, ended)}
    return {}


def _planned_steps(execution: Execution) -> dict[str, int]:
    """The ceiling on steps that a run was begun with: resumed, it goes on as it began."""
    planned = execution.run.facts().get("planned_steps")
    return {"steps": planned} if planned and execution.config.n_rollout is not None else {}


def resumed_state(
    execution: Execution, estimator: Estimator, arrays: dict[str, np.ndarray], meta: dict[str, Any]
) -> State:
    """Return the state of a checkpoint, after making sure that it is one of this estimator on this problem.

    Raises:
        StoreError: it is not.
    """
    try:
        check(meta, CHECKPOINT)
        state = State.from_arrays(arrays, meta["state"], estimator.problem.joint.device)
        estimator.check(state)
    except (ValueError, TypeError) as error:  # TypeError: an array of what torch has no numbers for
        raise execution.writer.refused_checkpoint(error) from error
    clock = execution.clock
    clock.learning, clock.before = meta["seconds"], meta["seconds_total"]
    clock.graph = max(clock.graph, meta["seconds_graph"])
    return state


def measure_selection(execution: Execution) -> None:
    """Measure what was learned: values, bound, and what each selected row is worth."""
    estimator, learned, poll = execution.estimator, execution.learned, execution.poll
    execution.selection = Selection.measured(
        execution.pool.corpus,
        execution.config,
        execution.posed,
        learned.mask,
        estimator.logits(learned.state),
        poll,
        execution.recorder.traced,
        inclusion=estimator.inclusion(learned.state, poll),
    )
    execution.recorder.count_seconds()


def write_selection(execution: Execution) -> None:
    """Write the rows, the selection and the stamps of the input files; the run is done."""
    run, writer, pool, selection = execution.run, execution.writer, execution.pool, execution.selection
    execution.pace.begin(Phase.WRITING)
    result = selection.result.of_run(
        run.id,
        execution.effort(execution.learned.state.step, run.facts().get("warm_from")),
        pool.graph_facts(),
    )
    if execution.sample is None:
        writer.update_facts(selected=result.size.selected)  # until here a guess, where there is a budget
        writer.write_rows(selection.rows_table())
    else:
        whole.write_rows(execution, execution.sample)
    writer.write_selection(selection.table(), run_facts.provenance(run))
    writer.update_facts(contents=pool.stamps)
    execution.selection = replace(selection, result=result)
    writer.finish(
        "done",
        result,
        execution.learned.ending,
        step=execution.learned.state.step,
        total_steps=execution.estimator.total_steps,
    )
