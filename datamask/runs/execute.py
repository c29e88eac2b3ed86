"""Execute a run: corpus, pool, anchors, learner, results. The one module that knows all the rooms.

It reads the run's config, does the work under the run's lock, and writes everything through the run's writer. It
catches nothing but its own stop: whoever calls it (the job thread, the command line) turns errors into a failed status.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from datamask import learning
from datamask.corpus.copies import families
from datamask.corpus.corpus import Corpus
from datamask.corpus.shelf import shelf
from datamask.errors import OptionError, RunStateError, Stopped
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool
from datamask.learning.device import resolve
from datamask.learning.learner import Problem, State, StepRecord
from datamask.learning.masks import top
from datamask.objectives.joint import Anchor, Joint, Scale, Term
from datamask.runs import outcome
from datamask.runs.store import Run
from datamask.runs.writer import RunWriter

CHECKPOINT_SECONDS = 10.0
STOP_FILE_SECONDS = 0.2
HISTORY_STEPS = 20
NEAR_COPY_NEIGHBORS = 64

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
            threads: int | None = None) -> dict:
    """Do a run from where it stands to its end, or to where it is stopped.

    Args:
        run: queued, stopped, failed or interrupted; a checkpoint is taken up where there is one.
        should_stop: polled at least every 0.3 s of work.
        progress: called with a share from 0 to 1 and a few words.
        threads: CPU threads for the work; a resumed run keeps those it started with, so that it ends in the same
            selection as an unbroken one.

    Returns:
        The summary (keys as documented in the README), with ``status`` ``done`` or ``stopped``.

    Raises:
        RunStateError: the run is already done, or another worker holds it, or the corpus changed since its checkpoint.
        InputError, OptionError, StoreError: as they come.
    """
    with run.writer() as writer:
        if run.status().state == "done":
            raise RunStateError(f"run {run.id} is done; start a new one to select again")
        poll = Poll(writer, should_stop)
        report = progress or (lambda share, what: None)
        writer.set_status("running", message="starting")
        threads = int(run.facts().get("threads") or threads or os.cpu_count() or 1)
        torch.set_num_threads(threads)
        writer.update_facts(threads=threads)
        try:
            return _Execution(run, writer, poll, report).go()
        except Stopped:
            writer.finish("stopped", ending="stopped on request")
            return {"run_id": run.id, "status": "stopped"}


class _Execution:
    """One attempt at a run, with what its stages share."""

    def __init__(self, run: Run, writer: RunWriter, poll: Poll, progress: Progress) -> None:
        self.run, self.writer, self.poll, self.progress = run, writer, poll, progress
        self.config = run.config.selection
        self.clock = Clock()

    def go(self) -> dict:
        device = resolve(self.config.device)
        self.say(0.0, "opening the corpus")
        corpus = shelf().get(self.run.config.corpus, progress=lambda share, what: self.say(0.1 * share, what),
                             should_stop=self.poll.stopped)
        self.poll()
        known = self.run.facts().get("fingerprint")
        if known and known != corpus.fingerprint:
            raise RunStateError(
                f"the corpus of run {self.run.id} has changed since it started (fingerprint {known[:12]}, now "
                f"{corpus.fingerprint[:12]}); start a new run on the new files")
        size = self.config.size(len(corpus))
        self.writer.update_facts(
            fingerprint=corpus.fingerprint, n=len(corpus), dim=corpus.dim, selected=size, device=str(device),
            total_rows=corpus.provenance.total_rows, columns=corpus.provenance.columns,
            dropped=corpus.provenance.dropped, notes=list(corpus.provenance.notes))
        cache_dir = self.run.path.parent / ".cache"
        pool = Pool(corpus, device, cache_dir, poll=self.poll,
                    progress=lambda share, what: self.say(0.1 + 0.1 * share, what))
        eligible = self.eligible(corpus, pool, size)
        self.say(0.2, "measuring the ends of the scales")
        anchors = {"quality": quality_anchor(pool, size),
                   "diversity": {name: diversity_anchor(pool, name, size, self.poll)
                                 for name, _ in self.config.terms}}
        calibrated = self.joint(pool, size, anchors, "calibrated")
        problem = Problem(self.joint(pool, size, anchors, self.config.scale), size, eligible,
                          pool.ties(self.config.seed))
        best = top(pool.quality.scores, size, problem.ties)
        self.writer.update_facts(
            eligible=len(eligible),
            anchors={"quality": anchors["quality"].to_dict(),
                     "diversity": {name: anchor.to_dict() for name, anchor in anchors["diversity"].items()}},
            references=outcome.references(problem.joint, calibrated, anchors, best, self.poll),
            switched_off=outcome.constant_terms(anchors))
        self.clock.graph = pool.seconds_graph
        learner = learning.load(self.config.estimator)(problem, self.config)
        state, ending = self.learn(learner)
        self.say(0.96, "measuring the final subset")
        mask = learner.result(state)
        summary, rows, selection = outcome.of(self.run, corpus, problem, calibrated, anchors, mask,
                                              learner.logits(state), self.poll)
        summary |= {"steps": state.step, "seconds": self.clock.learning, "seconds_graph": self.clock.graph,
                    "seconds_total": self.clock.total, "peak_memory_bytes": outcome.peak_memory(),
                    "device": str(device), "status": "done"}
        self.writer.write_rows(rows)
        self.writer.write_selection(selection, outcome.provenance(self.run))
        self.writer.finish("done", summary, ending, step=state.step, total_steps=self.config.n_epochs or 0)
        self.progress(1.0, "done")
        return summary

    def say(self, share: float, what: str) -> None:
        """Tell both watchers: the caller, and whoever reads the run folder."""
        self.progress(share, what)
        self.writer.beat(0, self.config.n_epochs or 0, what)

    def eligible(self, corpus: Corpus, pool: Pool, size: int) -> Tensor:
        """Rows that may be selected: all, less collapsed copies and the worst by quality.

        Raises:
            OptionError: no more of them are left than are to be selected.
        """
        keep = np.ones(len(corpus), dtype=bool)
        if self.config.collapse != "none":
            self.say(0.1, "looking for copies")
            graph = None if self.config.collapse == "exact" else pool.graph(NEAR_COPY_NEIGHBORS)
            keep &= families(corpus, self.config.collapse, graph)
        if self.config.prune > 0:
            left = max(1, round((1.0 - self.config.prune) * len(corpus)))
            keep &= top(pool.quality.scores, left, pool.ties(self.config.seed)).cpu().numpy()
        count = int(keep.sum())
        if count <= size:
            raise OptionError(
                f"--prune {self.config.prune:g} and --collapse {self.config.collapse} leave {count:,} of "
                f"{len(corpus):,} rows, but {size:,} are to be selected; prune less, or lower --select_ratio")
        return torch.from_numpy(keep.nonzero()[0]).to(pool.device)

    def joint(self, pool: Pool, size: int, anchors: dict, scale: str) -> Joint:
        """The objective on the pool, raw or calibrated."""
        def scaled(anchor: Anchor) -> Scale:
            return Scale.calibrated(anchor) if scale == "calibrated" else Scale()
        terms = tuple(Term(name, weight, pool.function(name, size), scaled(anchors["diversity"][name]))
                      for name, weight in self.config.terms)
        return Joint(pool.quality, terms, self.config.lamb, scaled(anchors["quality"]))

    def learn(self, learner) -> tuple[State, str]:
        """Step until the learner says it has finished; checkpoint every few seconds and when stopped."""
        total = self.config.n_epochs or 0
        state = learner.init()
        history: dict[int, np.ndarray] = {}
        stored = self.writer.load_checkpoint()
        if stored is not None:
            arrays, meta = stored
            state = State.from_arrays(arrays, meta["state"], learner.device)
            self.clock.learning, self.clock.before = meta["seconds"], meta["seconds_total"]
            self.clock.graph = max(self.clock.graph, meta["seconds_graph"])
            kept = self.run.history()
            history = {int(step): row for step, row in zip(kept.get("step", []), kept.get("logits", []))
                       if step <= state.step}
        self.writer.truncate_metrics(state.step)
        wanted = set(np.unique(np.geomspace(1, max(total, 1), HISTORY_STEPS).round().astype(int)).tolist())
        saved = time.monotonic()
        while (ending := learner.finished(state)) is None:
            start = time.perf_counter()
            try:
                state, record = learner.step(state, self.poll)
            except Stopped:
                self.checkpoint(state, history)
                raise
            self.clock.learning += time.perf_counter() - start
            self.writer.append_metrics(self.line(record))
            if state.step in wanted:
                history[state.step] = state.logits.cpu().numpy()
            if time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.checkpoint(state, history)
                saved = time.monotonic()
            self.progress(0.25 + 0.7 * state.step / max(total, 1), f"step {state.step:,} of {total:,}")
            self.writer.beat(state.step, total, "learning")
        if len(state.logits):
            self.checkpoint(state, history)
        return state, ending

    def line(self, record: StepRecord) -> dict:
        """One line of metrics.jsonl."""
        values = record.values
        line = {"step": record.step, "seconds": self.clock.learning, **record.metrics}
        if values is not None:
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
