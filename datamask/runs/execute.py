"""Execute a run: corpus, pool, anchors, learner, results. The one module that knows all the rooms.

It reads the run's config, does the work under the run's lock, and writes everything through the run's writer. It
catches nothing but its own stop: whoever calls it (the job thread, the command line) turns errors into a failed status.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue, learning
from datamask.corpus.corpus import Corpus
from datamask.corpus.neighbors import search_for
from datamask.corpus.shards import list_files
from datamask.corpus.shared_corpora import shared_corpora
from datamask.corpus.threads import thread_count
from datamask.errors import DatamaskError, RunStateError, Stopped
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import PosedProblem, pose
from datamask.evaluation.result import RunEffort, RunResult
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.learning.loop import Estimator, Learned, learn
from datamask.learning.state import State
from datamask.learning.warm_start import WarmStart
from datamask.measured import Anchors
from datamask.objectives.facility import list_length
from datamask.polling import Poll
from datamask.runs import contents, digests, phases, run_facts
from datamask.runs.folders import RUN_ID
from datamask.runs.recording import Clock, Recorder
from datamask.runs.records import CHECKPOINT, TRACED
from datamask.runs.store import Run, RunStore
from datamask.runs.warm import stored_end
from datamask.runs.writer import RunWriter
from datamask.schemas import check
from datamask.work import lanes
from datamask.work.context import UNWATCHED, Report, Work
from datamask.work.pace import STEPS, PhasePace

STOP_FILE_SECONDS = 0.2
TOLD_SECONDS = 1.0
"""Between two tellings of the time left where nothing else is told."""

DEFAULT_THREADS = torch.get_num_threads()
"""As torch found them: OMP_NUM_THREADS where it is set, else the cores."""


class RunPoll:
    """The run's stop signal: the caller's, or a stop file written by any process; raises `Stopped` when set."""

    def __init__(self, writer: RunWriter, poll: Poll) -> None:
        self._writer, self._poll = writer, poll
        self._looked, self._requested = 0.0, False
        self.tick: Callable[[], None] = lambda: None
        """Called now and then by the work's own thread, however long nothing else is told."""

    def __call__(self) -> None:
        self._poll()
        now = time.monotonic()
        if not self._requested and now - self._looked >= STOP_FILE_SECONDS:
            self._looked = now
            self.tick()
            self._requested = self._writer.stop_requested()
        if self._requested:
            raise Stopped("stopped on request")


def execute(
    run: Run,
    work: Work = UNWATCHED,
    *,
    threads: int | None = None,
    pool: Pool | None = None,
    warn: Callable[[str], None] | None = None,
    take: Callable[[Selection], None] | None = None,
    pace: PhasePace | None = None,
    note: Callable[[str], None] | None = None,
) -> RunResult | None:
    """Do a run from where it stands to its end, or to where it is stopped.

    Args:
        run: queued, stopped, failed or interrupted; a checkpoint is taken up where there is one.
        threads: CPU threads for the work; a resumed run keeps those it started with, so that it ends in the same
            selection as an unbroken one.
        pool: the run's corpus with what is already bound to it, shared by the runs of a sweep; None opens the corpus.
        warn: called once with each sentence about a run that is not well (`datamask.runs.health`), as soon as it is
            seen.
        take: called with the selection once everything of it is written.
        pace: told of the run's phases, so that it knows the time left.
        note: called with sentences that people should read before long work begins: what it takes.

    Returns:
        The result (its `warnings` are the sentences that still hold); None where the run was stopped.

    Raises:
        RunStateError: the run is already done, or another worker holds it, or the corpus changed since its checkpoint.
        InputError, OptionError, StoreError: as they come.
    """
    with run.writer() as writer:
        if run.status().state == "done":
            raise RunStateError(f"run {run.id} is done; start a new one to select again")
        poll = RunPoll(writer, work.poll)
        tell = warn or (lambda sentence: None)
        writer.set_status("running", message="starting")
        threads = int(run.facts().get("threads") or threads or DEFAULT_THREADS)
        torch.set_num_threads(threads)
        writer.update_facts(threads=threads)
        execution: Execution | None = None
        try:
            way = execution_of(run, poll)
            execution = way(run, writer, poll, work.report, tell, pace or PhasePace(lanes.clock), note)
            result = execution.go(pool)
        except Stopped:
            kept = "" if execution is None else execution.kept()
            writer.finish("stopped", ending=f"stopped on request{kept}")
            return None
    if take is not None and execution.selection is not None:
        take(execution.selection)
    return result


def execution_of(run: Run, poll: RunPoll) -> type[Execution]:
    """What does a run: on a corpus in memory, or over all rows of one that is not.

    Raises:
        InputError, RemoteError: the corpus cannot be looked at. Stopped: on request.
    """
    from datamask.runs.whole import WholeExecution, wants_all_rows

    return WholeExecution if wants_all_rows(run, poll) else Execution


class Execution:
    """One attempt at a run, with what its stages share."""

    def __init__(
        self,
        run: Run,
        writer: RunWriter,
        poll: RunPoll,
        progress: Report,
        warn: Callable[[str], None],
        pace: PhasePace,
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.note: Callable[[str], None] = note or (lambda sentence: None)
        self.run, self.writer, self.poll, self.progress, self.warn = run, writer, poll, progress, warn
        self.config = run.config.selection
        self.clock, self.pace = Clock(), pace
        self.share, self.what = 0.0, ""
        self.told_at = time.monotonic()
        poll.tick = self.tick
        self.alone: dict[str, Tensor] = {}
        """What each term alone would select, by its name: bool ``(n,)``."""
        self.selection: Selection | None = None
        """What was selected, once the run is done."""
        self.first = 0
        """The step, from 0, at which learning began: a warm start enters later."""

    def go(self, pool: Pool | None = None) -> RunResult:
        if pool is None or (pool.center, pool.neighbors) != (self.config.center, self.config.neighbors):
            pool = self.open()
        corpus, graph_before = pool.corpus, pool.seconds_graph
        self.poll()
        recorded = self.run.facts().get("fingerprint")
        if recorded and recorded != corpus.fingerprint:
            raise RunStateError(
                f"the corpus of run {self.run.id} has changed since it started (fingerprint {recorded[:12]}, now "
                f"{corpus.fingerprint[:12]}); start a new run on the new files"
            )
        self.writer.update_facts(
            **run_facts.of_corpus(corpus), selected=self.config.size(len(corpus), pool.tokens), device=str(pool.device)
        )
        self.writer.update_facts(**run_facts.of_own_code(self.config, self.run.facts()))
        self.plan(pool)
        self.say("measuring the ends of the scales")
        began, graph_at = lanes.clock(), pool.seconds_graph
        posed = pose(pool, self.config, self.poll, self.begun())
        self.clock.ends = lanes.clock() - began - (pool.seconds_graph - graph_at)
        self.pace.begin(phases.REFERENCES)
        self.say("measuring top quality, for comparison")
        self.writer.update_facts(**run_facts.of_problem(posed, self.poll), **run_facts.of_graph(pool))
        if self.config.n_epochs:
            self.alone = run_facts.alone(pool, posed, self.poll)
        self.clock.graph = pool.seconds_graph - graph_before
        estimator = learning.load(self.config.estimator)(
            posed.problem, self.config, **self.start(corpus, pool.device), **self.steps()
        )
        learned, recorder = self.learn(estimator)
        selection = Selection.measured(
            corpus,
            self.config,
            posed,
            learned.mask,
            estimator.logits(learned.state),
            self.poll,
            recorder.traced,
            inclusion=estimator.inclusion(learned.state, self.poll),
        )
        recorder.count_seconds()
        return self.ended(pool, posed, estimator, learned, recorder, selection)

    def ended(
        self,
        pool: Pool,
        posed: PosedProblem,
        estimator: Estimator,
        learned: Learned,
        recorder: Recorder,
        selection: Selection,
    ) -> RunResult:
        """Write down what was selected; the run is done."""
        corpus = pool.corpus
        result = selection.result.of_run(
            self.run.id,
            self.effort(learned.state.step, pool, self.run.facts().get("warm_from")),
            pool.graph_facts(),
            recorder.look(),
        )
        self.writer.update_facts(selected=result.size.selected)  # until here a guess, where there is a budget
        self.writer.write_rows(selection.rows_table())
        self.writer.update_facts(
            contents=digests.digests(
                contents.shards_of(self.run),
                pool.stamps,
                self.poll,
                lambda share: self.say("noting what the selected rows hold"),
                lambda: digests.still_same(self.run.config.corpus, corpus, self.poll),
            )
        )
        self.writer.write_selection(selection.table(), run_facts.provenance(self.run))
        self.writer.finish("done", result, learned.ending, step=learned.state.step, total_steps=estimator.total_steps)
        self.selection = replace(selection, result=result)
        self.pace.over()
        self.progress(1.0, "done")
        return result

    def effort(self, steps: int, pool: Pool, warm_from: str | None) -> RunEffort:
        """Return what the run took: `steps` is the last one of its learner."""
        return RunEffort(
            steps=steps - self.first,
            warm_from=warm_from,
            seconds=self.clock.learning,
            seconds_graph=self.clock.graph,
            seconds_ends=self.clock.ends,
            seconds_total=self.clock.total,
            peak_memory_bytes=run_facts.peak_memory(),
            device=str(pool.device),
        )

    def kept(self) -> str:
        """What a stopped attempt leaves behind beside its checkpoint, as the end of a sentence; mostly nothing."""
        return ""

    def open(self) -> Pool:
        """The run's corpus, on its device."""
        device = resolve(self.config.device)
        self.say("opening the corpus")
        opened = digests.stamps(list_files(self.run.config.corpus.inputs, poll=self.poll), self.poll)
        corpus = shared_corpora().get(self.run.config.corpus, Work(self.poll, self.say_opened))
        pool = Pool(
            corpus,
            device,
            self.run.path.parent / ".cache",
            poll=self.poll,
            progress=self.say_prepared,
            center=self.config.center,
            neighbors=self.config.neighbors,
        )
        pool.stamps = opened
        return pool

    def start(self, corpus: Corpus, device: torch.device) -> dict[str, WarmStart]:
        """Where the learner starts, if not from nothing: the end of the run that the fact ``start_from`` names.

        A run that has gone, or whose rows are damaged, costs time and nothing else: the learner starts from nothing.
        """
        name = self.run.facts().get("start_from")
        if name is None or not RUN_ID.fullmatch(name) or not catalogue.estimator(self.config.estimator).warm:
            return {}
        with contextlib.suppress(DatamaskError):
            ended = stored_end(RunStore(self.run.path.parent).get(name), len(corpus), corpus.dim)
            return {"start": WarmStart.from_arrays(device, ended)}
        return {}

    def begun(self) -> Anchors | None:
        """The ends of the scales that the steps up to the checkpoint went by; None where there is no checkpoint."""
        return self.run.anchors() if self.writer.has_checkpoint else None

    def steps(self) -> dict[str, int]:
        """The ceiling on steps of a run that was begun before steps were planned: resumed, it goes on as it began."""
        planned = self.run.facts().get("planned_steps")
        if self.config.n_rollout is None or self.config.n_epochs is None or not (planned or self.writer.has_checkpoint):
            return {}
        return {"steps": planned or self.config.n_epochs}

    def plan(self, pool: Pool) -> None:
        """Lay out the phases to come, with about what each takes here."""
        n, dim = len(pool), pool.corpus.dim
        size = self.config.size(n, pool.tokens)
        by_lists = any(catalogue.objective(name).needs_neighbors for name, _ in self.config.terms)
        self.pace.plan(
            phases.expected_seconds(
                self.config,
                n,
                dim,
                selected=size,
                listed=list_length(size / n, n),
                approximate=search_for(n, self.config.neighbors, str(pool.device)) == "approximate",
                graph=by_lists and not pool.has_graph,
                cores=thread_count(n),
            )
        )

    def say(self, what: str) -> None:
        """Tell both watchers: the caller, and whoever reads the run folder."""
        self.tell(what)
        self.writer.beat(0, self.config.n_epochs or 0, what)

    def say_opened(self, share: float, what: str) -> None:
        """How far the corpus is read."""
        self.pace.opening(share)
        self.say(what)

    def say_prepared(self, share: float, what: str) -> None:
        """How far the pool is with a part of its preparation, of which several may count from nothing."""
        if (phase := phases.phase_of(what)) is not None:
            self.pace.begin(phase)
            if phase == phases.GRAPH:  # solving for the ends may be done at any share
                self.pace.at(share)
        self.say(what)

    def tell(self, what: str) -> None:
        """Tell the caller. The share never falls."""
        self.share, self.what, self.told_at = max(self.share, self.pace.share), what, time.monotonic()
        self.progress(self.share, what)

    def tick(self) -> None:
        """Tell the caller that it goes on, and how long it still takes, where nothing was told for a while."""
        if self.what and time.monotonic() - self.told_at >= TOLD_SECONDS:
            self.tell(self.what)

    def learn(self, estimator: Estimator) -> tuple[Learned, Recorder]:
        """Let the estimator find its selection, from a checkpoint where there is one; all of it is recorded."""
        state = estimator.init()
        self.first = state.step
        stored = self.writer.load_checkpoint()
        if stored is None:
            warm_from = self.run.facts()["start_from"] if estimator.warm else None
            self.writer.update_facts(warm_from=warm_from, first_step=self.first, planned_steps=estimator.total_steps)
        else:
            self.first = int(self.run.facts().get("first_step") or 0)
            state = self.resumed(estimator, *stored)

        total = max(estimator.total_steps, 1)
        # where there are no steps, or one does everything, nothing tells how far it is
        self.pace.begin(phases.LEARNING, state.step / total if self.config.n_rollout is not None else None)

        def say(share: float, what: str) -> None:
            if share < 1.0 or what.startswith(STEPS):
                self.pace.at(share)
            else:
                self.pace.begin(phases.ENDING)
            self.tell(what)

        recorder = Recorder(
            self.run,
            self.writer,
            estimator,
            self.clock,
            poll=self.poll,
            progress=say,
            warn=self.warn,
            alone=self.alone,
            first=self.first,
        )
        traced = 0 if stored is None else int(stored[1].get("traced", 0))  # of a version that told steps alone: 0
        if stored is not None:
            recorder.resume(state, traced)
        self.writer.truncate_metrics(state.step + traced)
        return learn(estimator, state, poll=self.poll, watch=recorder), recorder

    def resumed(self, estimator: Estimator, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> State:
        """The state of a checkpoint, after making sure that it is one of this estimator on this problem.

        Raises:
            StoreError: it is not.
        """
        try:
            check(meta, CHECKPOINT)
            check(meta, TRACED)
            state = State.from_arrays(arrays, meta["state"], estimator.problem.joint.device)
            estimator.check(state)
        except (ValueError, TypeError) as error:  # TypeError: an array of what torch has no numbers for
            raise self.writer.refused_checkpoint(error) from error
        self.clock.learning, self.clock.before = meta["seconds"], meta["seconds_total"]
        self.clock.graph = max(self.clock.graph, meta["seconds_graph"])
        return state
