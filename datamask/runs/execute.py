"""Execute a run: corpus, pool, anchors, learner, results. The one module that knows all the rooms.

It reads the run's config, does the work under the run's lock, and writes everything through the run's writer. It
catches nothing but its own stop: whoever calls it (the job thread, the command line) turns errors into a failed status.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from datamask import catalogue, learning
from datamask.corpus.corpus import Corpus
from datamask.corpus.shards import list_files
from datamask.corpus.shelf import shelf
from datamask.errors import DatamaskError, RunStateError, Stopped, StoreError
from datamask.evaluation.pool import Pool
from datamask.evaluation.posing import pose
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.learning.gauges import overlap
from datamask.learning.learner import State, StepRecord
from datamask.learning.start import Start
from datamask.runs import contents, digests, health, outcome
from datamask.runs.records import CHECKPOINT, check
from datamask.runs.store import RUN_ID, Run, RunStore
from datamask.runs.warm import stored_end
from datamask.runs.writer import RunWriter
from datamask.work.pace import STEPS

CHECKPOINT_SECONDS = 10.0
HEALTH_SECONDS = 5.0
"""Between two looks at how the run is doing: reading five thousand records takes some 50 ms."""

STOP_FILE_SECONDS = 0.2
HISTORY_STEPS = 20
READY, READY_WITH_GRAPH = 0.25, 0.8
"""Share of a run that is done when learning begins, without and with a neighbour graph of many rows to build."""

FEW_STEPS, LEAST_READY = 400, 0.05
"""Learning of more steps than these has most of the time, so what goes before has less than `READY`, down to this."""

MANY_ROWS = 50_000
DEFAULT_THREADS = torch.get_num_threads()
"""As torch found them: OMP_NUM_THREADS where it is set, else the cores."""

Progress = Callable[[float, str], None]


@dataclass
class Clock:
    """Seconds spent, over all attempts at a run: ``learning`` survives checkpoints."""

    began: float = field(default_factory=time.perf_counter)
    learning: float = 0.0
    before: float = 0.0
    graph: float = 0.0

    @property
    def total(self) -> float:
        return self.before + time.perf_counter() - self.began


class Poll:
    """The run's stop signal: the caller's, or a stop file written by any process; raises `Stopped` when set."""

    def __init__(self, writer: RunWriter, should_stop: Callable[[], bool]) -> None:
        self._writer, self._should_stop = writer, should_stop
        self._looked = 0.0

    def __call__(self) -> None:
        if self.stopped():
            raise Stopped("stopped on request")

    def stopped(self) -> bool:
        if self._should_stop():
            return True
        now = time.monotonic()
        if now - self._looked < STOP_FILE_SECONDS:
            return False
        self._looked = now
        return self._writer.stop_requested()


def execute(run: Run, *, should_stop: Callable[[], bool] = lambda: False, progress: Progress | None = None,
            threads: int | None = None, pool: Pool | None = None, warn: Callable[[str], None] | None = None) -> dict:
    """Do a run from where it stands to its end, or to where it is stopped.

    Args:
        run: queued, stopped, failed or interrupted; a checkpoint is taken up where there is one.
        should_stop: polled at least every 0.3 s of work.
        progress: called with a share from 0 to 1 and a few words.
        threads: CPU threads for the work; a resumed run keeps those it started with, so that it ends in the same
            selection as an unbroken one.
        pool: the run's corpus with what is already bound to it, shared by the runs of a sweep; None opens the corpus.
        warn: called once with each sentence about a run that is not well (`datamask.runs.health`), as soon as it is
            seen.

    Returns:
        The summary (keys as documented in the README; ``warnings`` has those sentences that still hold), with
        ``status`` ``done`` or ``stopped``.

    Raises:
        RunStateError: the run is already done, or another worker holds it, or the corpus changed since its checkpoint.
        InputError, OptionError, StoreError: as they come.
    """
    with run.writer() as writer:
        if run.status().state == "done":
            raise RunStateError(f"run {run.id} is done; start a new one to select again")
        poll = Poll(writer, should_stop)
        report, tell = progress or (lambda share, what: None), warn or (lambda sentence: None)
        writer.set_status("running", message="starting")
        threads = int(run.facts().get("threads") or threads or DEFAULT_THREADS)
        torch.set_num_threads(threads)
        writer.update_facts(threads=threads)
        try:
            return _Execution(run, writer, poll, report, tell).go(pool)
        except Stopped:
            writer.finish("stopped", ending="stopped on request")
            return {"run_id": run.id, "status": "stopped"}


class _Execution:
    """One attempt at a run, with what its stages share."""

    def __init__(self, run: Run, writer: RunWriter, poll: Poll, progress: Progress, warn: Callable[[str], None]
                 ) -> None:
        self.run, self.writer, self.poll, self.progress, self.warn = run, writer, poll, progress, warn
        self.config = run.config.selection
        self.clock = Clock()
        self.share = 0.0
        self.ready = max(LEAST_READY, READY * min(1.0, FEW_STEPS / max(self.config.n_epochs or 0, 1)))
        self.opened = 0.4 * self.ready
        self.alone: dict[str, Tensor] = {}
        """What each term alone would select, by its name: bool ``(n,)``."""
        self.first = 0
        """The step, from 0, at which learning began: a warm start enters later."""
        self.warned: set[str] = set()

    def go(self, pool: Pool | None = None) -> dict:
        if pool is None or (pool.center, pool.neighbors) != (self.config.center, self.config.neighbors):
            pool = self.open()
        corpus, graph_before = pool.corpus, pool.seconds_graph
        self.poll()
        known = self.run.facts().get("fingerprint")
        if known and known != corpus.fingerprint:
            raise RunStateError(
                f"the corpus of run {self.run.id} has changed since it started (fingerprint {known[:12]}, now "
                f"{corpus.fingerprint[:12]}); start a new run on the new files")
        self.writer.update_facts(**outcome.of_corpus(corpus), selected=self.config.size(len(corpus), pool.tokens),
                                 device=str(pool.device))
        self.writer.update_facts(**outcome.of_own_code(self.config, self.run.facts()))
        if len(corpus) > MANY_ROWS and not pool.has_graph and any(
                catalogue.objective(name).needs_neighbors for name, _ in self.config.terms):
            self.ready = READY_WITH_GRAPH
        self.say(self.opened, "measuring the ends of the scales")
        posed = pose(pool, self.config, self.poll)
        self.say(self.ready, "measuring top quality, for comparison")
        self.writer.update_facts(**outcome.of_problem(posed, self.poll), neighbors=pool.graph_facts())
        if self.config.n_epochs:
            self.alone = outcome.alone(pool, posed, self.poll)
        self.clock.graph = pool.seconds_graph - graph_before
        learner = learning.load(self.config.estimator)(posed.problem, self.config,
                                                       **self.start(corpus, pool.device))
        state, ending = self.learn(learner)
        self.say(0.96, "polishing and proving")
        start = time.perf_counter()
        selection = Selection.measured(corpus, self.config, posed, learner.result(state, self.poll),
                                       learner.logits(state), self.poll)
        self.clock.learning += time.perf_counter() - start
        summary = {"run_id": self.run.id, "status": "done"} | selection.summary | {
            "steps": state.step - self.first, "warm_from": self.run.facts().get("warm_from"),
            "seconds": self.clock.learning, "seconds_graph": self.clock.graph,
            "seconds_total": self.clock.total, "peak_memory_bytes": outcome.peak_memory(), "device": str(pool.device),
            "neighbors": pool.graph_facts(), "warnings": self.look()}
        self.writer.update_facts(selected=summary["selected"])  # until here a guess, where there is a budget
        self.writer.write_rows(selection.rows_table())
        self.writer.update_facts(contents=digests.digests(
            contents.shards_of(self.run), pool.stamps, self.poll,
            lambda share: self.say(0.98 + 0.02 * share, "noting what the selected rows hold"),
            lambda: digests.still_same(self.run.config.corpus, corpus, self.poll.stopped)))
        self.writer.write_selection(selection.table(), outcome.provenance(self.run))
        self.writer.finish("done", summary, ending, step=state.step,
                           total_steps=self.config.n_epochs or learner.total_steps)
        self.progress(1.0, "done")
        return summary

    def open(self) -> Pool:
        """The run's corpus, on its device."""
        device = resolve(self.config.device)
        self.say(0.0, "opening the corpus")
        opened = digests.stamps(list_files(self.run.config.corpus.inputs, should_stop=self.poll.stopped))
        corpus = shelf().get(self.run.config.corpus, progress=lambda share, what: self.say(self.opened * share, what),
                             should_stop=self.poll.stopped)
        pool = Pool(corpus, device, self.run.path.parent / ".cache", poll=self.poll,
                    progress=lambda share, what: self.say(self.opened + (self.ready - self.opened) * share, what),
                    center=self.config.center, neighbors=self.config.neighbors)
        pool.stamps = opened
        return pool

    def start(self, corpus: Corpus, device: torch.device) -> dict[str, Start]:
        """Where the learner starts, if not from nothing: the end of the run that the fact ``start_from`` names.

        A run that has gone, or whose rows are damaged, costs time and nothing else: the learner starts from nothing.
        """
        name = self.run.facts().get("start_from")
        if name is None or not RUN_ID.fullmatch(name) or not catalogue.estimator(self.config.estimator).warm:
            return {}
        with contextlib.suppress(DatamaskError):
            ended = stored_end(RunStore(self.run.path.parent).get(name), len(corpus), corpus.dim)
            return {"start": Start.from_arrays(device, ended)}
        return {}

    def say(self, share: float, what: str) -> None:
        """Tell both watchers: the caller, and whoever reads the run folder.

        The share never falls: several parts of the preparation count from nothing, and how many there are is not known.
        """
        self.share = max(self.share, share)
        self.progress(self.share, what)
        self.writer.beat(0, self.config.n_epochs or 0, what)

    def learn(self, learner) -> tuple[State, str]:
        """Step until the learner says it has finished; checkpoint every few seconds and when stopped."""
        total = self.config.n_epochs or learner.total_steps
        state = learner.init()
        self.first = state.step
        history: dict[int, np.ndarray] = {}
        stored = self.writer.load_checkpoint()
        if stored is None:
            warm = getattr(learner, "warm", False)  # a baseline starts from nothing
            self.writer.update_facts(warm_from=self.run.facts()["start_from"] if warm else None, first_step=self.first)
        else:
            self.first = int(self.run.facts().get("first_step") or 0)
            state = self.resumed(learner, *stored)
            history = self.earlier(state)
        self.writer.truncate_metrics(state.step)
        wanted = set(np.unique(np.geomspace(self.first + 1, max(total, 1), HISTORY_STEPS).round().astype(int)).tolist())
        saved = looked = time.monotonic()
        while (ending := learner.finished(state)) is None:
            start = time.perf_counter()
            try:
                state, record = learner.step(state, self.poll)
            except Stopped:
                self.checkpoint(state, history)
                raise
            self.clock.learning += time.perf_counter() - start
            self.writer.append_metrics(self.line(record, state))
            if state.step in wanted:
                history[state.step] = state.logits.cpu().numpy()
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.checkpoint(state, history)
                saved = time.monotonic()
            if time.monotonic() - looked > HEALTH_SECONDS:
                self.look()
                looked = time.monotonic()
            self.progress(self.ready + (0.95 - self.ready) * state.step / max(total, 1),
                          f"{STEPS}{state.step:,} of {total:,}")
            self.writer.beat(state.step, total, "learning")
        if len(state.logits):
            with contextlib.suppress(ValueError):  # logits that are no longer finite: nothing to go on from
                learner.check(state)
                self.checkpoint(state, history)
        return state, ending

    def resumed(self, learner, arrays: dict[str, np.ndarray], meta: dict) -> State:
        """The state of a checkpoint, after making sure that it is one of this learner on this problem.

        Raises:
            StoreError: it is not.
        """
        try:
            check(meta, CHECKPOINT)
            state = State.from_arrays(arrays, meta["state"], learner.device)
            learner.check(state)
        except (ValueError, TypeError) as error:  # TypeError: an array of what torch has no numbers for
            raise self.writer.refused_checkpoint(error) from error
        self.clock.learning, self.clock.before = meta["seconds"], meta["seconds_total"]
        self.clock.graph = max(self.clock.graph, meta["seconds_graph"])
        return state

    def earlier(self, state: State) -> dict[int, np.ndarray]:
        """The logits that were kept up to `state`, by step; none where the file is damaged: they are only shown."""
        with contextlib.suppress(StoreError):
            kept = self.run.history()
            steps, logits = kept.get("step", np.zeros(0, int)), kept.get("logits", np.zeros((0, len(state.logits))))
            if steps.dtype.kind == "i" and logits.dtype.kind == "f" and logits.shape == (len(steps), len(state.logits)):
                return {int(step): row for step, row in zip(steps, logits) if step <= state.step}
        return {}

    def look(self) -> list[str]:
        """What is wrong with the run as it stands, in sentences; those that are new are told at once."""
        found = {concern.name: str(concern)
                 for concern in health.concerns(self.run.metrics(), self.config, self.run.facts())}
        for name, sentence in found.items():
            if name not in self.warned:
                self.warned.add(name)
                self.warn(sentence)
        return list(found.values())

    def line(self, record: StepRecord, state: State) -> dict:
        """One line of metrics.jsonl."""
        values = record.values
        line = {"step": record.step, "seconds": self.clock.learning, **record.metrics}
        if values is not None:
            if state.subset is not None:
                line |= {f"overlap_{name}": overlap(state.subset, mask) for name, mask in self.alone.items()}
            weights = dict(self.config.terms)
            line |= {"joint": values.joint, "quality": values.quality, "diversity": values.diversity,
                     "raw_quality": values.raw_quality,
                     "raw_diversity": sum(weights[name] * raw for name, raw in values.raw_diversity.items())}
        return line

    def checkpoint(self, state: State, history: dict[int, np.ndarray]) -> None:
        """Write down where the learner stands."""
        arrays, values = state.arrays()
        steps = sorted(history)
        if steps:
            self.writer.write_history(step=np.array(steps), logits=np.stack([history[step] for step in steps]))
        self.writer.save_checkpoint(arrays, {"state": values, "seconds": self.clock.learning,
                                             "seconds_total": self.clock.total, "seconds_graph": self.clock.graph})
