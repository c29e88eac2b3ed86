"""A run on all rows by the solver of memory: their arrays lie in mapped files, after the sample that pages draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask import learning
from datamask.config import CorpusConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.list_length import list_length
from datamask.corpus.neighbors import search_for
from datamask.corpus.opening import open_sources
from datamask.corpus.shared_corpora import shared_corpora
from datamask.corpus.threads import thread_count
from datamask.evaluation.problems import pose
from datamask.evaluation.selection import Selection
from datamask.learning.loop import learn
from datamask.polling import Poll
from datamask.runs import contents, digests, phases, run_facts
from datamask.runs.execution import Execution, MappedRows
from datamask.runs.mapping import maps_folder
from datamask.runs.stages import finish_run, open_pool
from datamask.runs.whole import step_of
from datamask.runs.whole_writing import selected_on
from datamask.storage.address import path_of
from datamask.work.cache import FOLDER
from datamask.work.context import Work

READING, WRITING = "reading all rows", "writing"
"""Phases before and after those of all rows."""

_READ = 8e-7, 1.2e-8
"""Seconds of reading a row, and a dimension of it."""


def _phase(name: str) -> str:
    return f"{name} of all rows"


def plan_phases(execution: Execution) -> None:
    """Add the phases that come after those of the sample, with about what each takes."""
    corpus, config, pace = execution.pool.corpus, execution.run.config.selection, execution.pace
    rows, dim = corpus.provenance.total_rows, corpus.dim
    seconds = phases.expected_seconds(
        config,
        rows,
        dim,
        listed=list_length(config.size(rows, execution.pool.tokens) / rows, rows) if config.budget is None else 64,
        approximate=search_for(rows, config.neighbors) == "approximate",
        graph=True,
        cores=thread_count(rows),
    )
    reading = rows * (_READ[0] + dim * _READ[1])
    of_all = {_phase(name): each for name, each in seconds.items()}
    pace.plan(pace.ahead | {READING: reading} | of_all | {WRITING: reading})


def select_all_rows(execution: Execution) -> None:
    """Open all rows in mapped files, and select from them."""
    run, poll, pace = execution.run, execution.poll, execution.pace
    config, corpus_config = run.config.selection, replace(run.config.corpus, rows=None)
    folder = maps_folder(run.config, run.path.parent, poll)
    pace.begin(READING, 0.0)
    total = execution.pool.corpus.provenance.total_rows
    execution.callbacks.note(f"all {total:,} rows: features and neighbor lists lie in files in {folder}")

    def opened() -> Corpus:
        work = Work(poll, execution.say_share)
        return shared_corpora().get(corpus_config, work, beside=config.beside, into=folder)

    def report(share: float, what: str) -> None:
        if (phase := phases.phase_of(what)) is not None:
            pace.begin(_phase(phase))
            if phase == phases.GRAPH:  # solving for the ends may be done at any share
                pace.at(share)
        execution.say(what)

    pool = open_pool(corpus_config, config, run.path.parent / FOLDER, Work(poll, report), opened)
    shards = len(pool.corpus.provenance.files)
    execution.update_whole(shards=shards, rows=len(pool), selected=config.size(len(pool), pool.tokens))
    posed = pose(pool, config, poll)
    pace.begin(_phase(phases.LEARNING))
    execution.say("selecting from all rows")
    estimator = learning.load(config.estimator)(posed.problem, config)
    learned = learn(estimator, poll=poll)
    pace.begin(_phase(phases.ENDING))
    execution.say("bound and values of all rows")
    selection = Selection.measured(pool.corpus, config, posed, learned.mask, estimator.logits(learned.state), poll)
    execution.recorder.count_seconds()
    execution.mapped = MappedRows(pool, posed, selection, learned.ending)
    values = selection.result.calibrated if config.scale == "calibrated" else selection.result.raw
    step_of(execution)({name: value for name, value in values.to_dict().items() if value is not None})


def write_all_rows(execution: Execution) -> None:
    """Write the selected rows of the whole, and the sample's as they are over the whole; the run is done."""
    run, writer, mapped = execution.run, execution.writer, execution.mapped
    corpus, posed, selection = mapped.pool.corpus, mapped.posed, mapped.selection
    config = replace(run.config.corpus, rows=None)
    execution.pace.begin(WRITING, 0.0)
    execution.say("noting what the selected rows hold")
    on_sample = selection.mask[_rows_of_sample(execution)]
    rules = {"given": int(posed.given.sum()), **posed.ruled, "budget": run.config.selection.budget}
    writer.update_facts(selected=int(on_sample.sum()), dropped=corpus.provenance.dropped, **rules)
    writer.write_rows(selected_on(execution, on_sample).rows_table())
    if len(corpus) < corpus.provenance.total_rows:
        writer.write_left_out(_left_out(corpus, config, execution.poll))
    anchors = posed.anchors().to_dict()
    writer.write_selection(selection.table(), run_facts.provenance(run) | {"anchors": anchors})
    writer.update_facts(
        contents=digests.digests(
            contents.shards_of(run),
            mapped.pool.stamps,
            execution.poll,
            lambda share: execution.say_share(share, "noting what the selected rows hold"),
            lambda: digests.still_same(config, corpus, execution.poll),
        )
    )
    effort = execution.effort(execution.recorder.lines, None)
    result = selection.result.of_run(run.id, effort, mapped.pool.graph_facts())
    execution.selection = replace(execution.selection, result=result)
    finish_run(execution, mapped.ending)


def _rows_of_sample(execution: Execution) -> np.ndarray:
    """Where the rows of the sample stand among all, int64 ``(n,)``.

    Raises:
        InputError: the shards have changed since the sample was read.
    """
    sample, corpus = execution.pool.corpus, execution.mapped.pool.corpus
    if sample.provenance.files != corpus.provenance.files:
        raise contents.changed(path_of(corpus.provenance.files[0]), "there are other shards next to it")
    # rows are in input order: by file, and by row inside
    key, wanted = (each.source_file.astype(np.int64) << 40 | each.source_row for each in (corpus, sample))
    rows: np.ndarray = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    same = (key[rows] == wanted) & (corpus.features[rows] == sample.features).all(axis=1)
    same &= pc.equal(corpus.ids.take(pa.array(rows)), sample.ids).to_numpy(zero_copy_only=False)
    if len(other := np.flatnonzero(~same)):
        file = corpus.provenance.files[sample.source_file[other[0]]]
        raise contents.changed(path_of(file), "it holds other rows")
    return rows


def _left_out(corpus: Corpus, config: CorpusConfig, poll: Poll) -> pa.Table:
    """The rows that could not be used: ``source_file``, ``source_row``."""
    files, rows = [], []
    for number, shard in enumerate(open_sources(config, Work(poll))["input"].shards):
        missing = np.setdiff1d(np.arange(shard.rows), corpus.source_row[corpus.source_file == number])
        rows.append(missing)
        files += [shard.path] * len(missing)
    return pa.table({"source_file": pa.array(files, pa.string()), "source_row": np.concatenate(rows)})
