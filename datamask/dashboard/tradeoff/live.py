"""The live lambda of this process: solvers that are kept warm behind a slider, shared by every browser tab.

A session poses its problem once (the neighbour graph and the ends of the scales may take a while, with progress and a
stop), then solves a grid of lambdas in the background, which it keeps on disk (`kept_points`). Problem and `FIRST` go
before runs, since the page shows nothing without them and a run needs the same graph and ends. The rest of the grid
never goes before a run. Answers are jobs of the highest priority; the grid gives up the lambda it is at for them, as
both use one solver. Sessions are held by the process, outside Streamlit's caches; `KEPT` of them at a time. Loads torch
only inside the threads.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.tradeoff import kept_baselines, kept_points, lambda_point
from datamask.dashboard.tradeoff.kept_points import key_of
from datamask.errors import Stopped
from datamask.measured import Baselines
from datamask.process import held
from datamask.work import lanes
from datamask.work.job import DONE, Job
from datamask.work.kept import Kept
from datamask.work.lanes import Priority, Ticket
from datamask.work.worker import worker

if TYPE_CHECKING:
    from datamask.evaluation.lambda_path import Answer, SolvedLambda
    from datamask.evaluation.live import Live

T = TypeVar("T")

KEPT = 2
"""Sessions held; one that can answer no more ends first, then one that nobody asked for, then the longest unused. A
session holds dual solutions, not the features."""

REMEMBERED = 16
"""Results kept for whoever asked; the masks are the largest thing in them."""

FIRST = (0.0, 0.5, 1.0)
"""The lambdas that are solved first: the ends, and where the slider stands."""

MOMENTS = 20_000
"""Rows up to which a page waits for what is posed and answered, for moments: these take the server's core, too."""

DRAWN_SECONDS = 0.5
"""After an answer, in which its page is drawn: what is solved ahead would take the processor from it."""

ASKED_SECONDS = 0.2
"""Between two looks at whether a request is being worked on."""

_NAME = "live lambda"
SOLVING, COMPARING = "solving", "measuring random rows and best scores"
_POSED, _SOLVED, _COMPARED = 0.5, 0.88, 0.9
"""Shares of the preparation that end with posing, with the grid and with the baselines; proofs follow."""


class Session:
    """One problem behind a slider. Get it from `session`; all methods may be called from any thread.

    Attributes:
        corpus, config: what is selected from, and how; lambda is not looked at.
        job: poses the problem and solves the grid; its share, message and error are the session's.
        asked: whether a person wanted it, by asking for it or for an answer.
    """

    _numbers = itertools.count()

    def __init__(
        self, corpus: Corpus, config: SelectionConfig, cache_dir: Path, key: str, priority: Priority = Priority.RUN
    ) -> None:
        self.number = next(self._numbers)
        """Of this session, no other's in this process."""
        self.corpus, self.config, self._cache_dir, self._priority = corpus, config, cache_dir, priority
        self.asked = False
        self._ticket: Ticket | None = None
        self._live: Live | None = None
        self._solver = threading.Lock()
        self._wanted: OrderedDict[object, Callable[[Live, Callable[[], None]], Any]] = OrderedDict()
        self._results: OrderedDict[object, tuple[int, Any]] = OrderedDict()
        self._worked_on: object = None
        self._drawn_at = 0.0
        self._learned = 0
        """How many lambdas were solved or proved so far."""
        self._solved: tuple[int, tuple[SolvedLambda, ...]] = (0, ())
        self._changed = threading.Condition()
        self._closed = threading.Event()
        # a session that made room may still be ending when the next one of its problem begins
        self._key = f"live {self.number} {key}"
        self._problem = key
        self._answers: Job | None = None
        self.job = worker().start(self._key, self._prepare)

    @property
    def preparing(self) -> bool:
        """Whether the problem is still being posed, so that no answer can come."""
        return self._live is None and not self.job.ended

    @property
    def ready(self) -> bool:
        """Whether all is solved that is solved ahead."""
        return self.alive and self.job.state == DONE

    @property
    def alive(self) -> bool:
        """Whether it can still answer."""
        return not self._closed.is_set() and not self.error and (not self.job.ended or self.job.state == DONE)

    @property
    def error(self) -> str:
        """The sentence when it failed."""
        answers = self._answers
        return self.job.error or ("" if answers is None else answers.error)

    @property
    def quick(self) -> bool:
        """Whether it selects anew at any lambda; else it answers with what was solved."""
        return quick(self.config)

    @property
    def solved(self) -> tuple[int, tuple[SolvedLambda, ...]]:
        """The selections of the grid that are solved so far, by rising lambda, each with what `answer` says there; and
        how often what is shown of them changed. At once, whatever is being worked on."""
        return self._solved

    def answer(self, lamb: float, seconds: float) -> Answer | None:
        """The selection at a lambda; None where it is not there within so many seconds. Ask again: it is under way."""
        self.asked = True
        return self._ask(("lambda", lamb), lambda live, poll: live.answer(lamb, poll), seconds)

    def refined(self, lamb: float, seconds: float) -> Answer | None:
        """The selection at a lambda that is solved for it, as a run does; None as in `answer`."""
        self.asked = True
        return self._ask(("refined", lamb), lambda live, poll: live.refined(lamb, poll), seconds)

    def row_scores(self, mask: np.ndarray, lamb: float, seconds: float) -> np.ndarray | None:
        """What each row adds to a selection, by `Live.row_scores`; None as in `answer`.

        Args:
            mask: bool ``(N,)``, the selection. lamb: its lambda.
        """
        key = ("scores", lamb, lambda_point.key_of_rows(np.packbits(mask)))
        return self._ask(key, lambda live, poll: live.row_scores(mask, lamb, poll), seconds)

    def resized(
        self, mask: np.ndarray, lamb: float, others: Sequence[SelectionConfig], seconds: float
    ) -> list[np.ndarray | None] | None:
        """What a selection would be with other amounts, by `Live.resized`; None as in `answer`.

        Args:
            mask, lamb: as of `row_scores`. others: the same settings with other amounts.
        """
        key = ("resized", lamb, lambda_point.key_of_rows(np.packbits(mask)))
        return self._ask(key, lambda live, poll: live.resized(mask, lamb, others, poll), seconds)

    def stop(self) -> None:
        """End it; what it knows is lost, what was put on disk (graph, ends of the scales) stays."""
        self._closed.set()
        self.job.stop()
        if (answers := self._answers) is not None:
            answers.stop()
        with self._changed:
            self._changed.notify_all()

    def hasten(self, priority: Priority) -> None:
        """Have what is solved ahead be at least so urgent, what is under way too."""
        self._priority = min(self._priority, priority)
        if (ticket := self._ticket) is not None:
            ticket.hasten(self._priority)

    def wait(self, seconds: float) -> None:
        """Wait until it is ready or has ended. For tests and scripts; a page never waits."""
        self.job.wait(seconds)

    def _ask(self, key: object, work: Callable[[Live, Callable[[], None]], T], seconds: float) -> T | None:
        deadline = time.monotonic() + seconds
        with self._changed:
            # what was answered before more was known is asked again, not shown again
            if key in self._results and self._results[key][0] == self._learned:
                return self._results[key][1]
            self._results.pop(key, None)
            if key != self._worked_on:
                self._wanted[key] = work
                self._wanted.move_to_end(key)
        while self.alive:
            self._serve()
            left = deadline - time.monotonic()
            with self._changed:
                if self._changed.wait_for(lambda: key in self._results or not self.alive, min(left, ASKED_SECONDS)):
                    break
            if left <= 0:
                return None
        with self._changed:
            return self._results[key][1] if key in self._results else None

    def _serve(self) -> None:
        """Have the requests worked on, where the problem is posed; joins the job that does so already."""
        if self._live is not None and self._wanted and self.alive:
            self._answers = worker().start(f"{self._key} answers", self._answer, device="cpu", priority=Priority.LIVE)

    # -- in threads of the worker ----------------------------------------------------------------------------------

    def _answer(self, job: Job) -> None:
        """Answer what is wanted, the latest first."""
        from datamask.evaluation.threads import threads

        live = self._live
        while live is not None and self._wanted and not self._closed.is_set():
            with lanes.locked(self._solver, job.poll), threads(self._cores):
                with self._changed:
                    key, work = self._wanted.popitem(last=True)
                    self._worked_on = key
                try:
                    before = live.lambdas
                    answer = work(live, job.poll)
                    if live.lambdas != before:
                        self._learned += 1
                        self._remember(live)
                    with self._changed:
                        self._results[key] = self._learned, answer
                        self._drawn_at = time.monotonic() + DRAWN_SECONDS
                        while len(self._results) > REMEMBERED:
                            self._results.popitem(last=False)
                finally:
                    with self._changed:
                        self._worked_on = None
                        self._changed.notify_all()

    def _prepare(self, job: Job) -> None:
        from datamask.evaluation.live import open_live

        def report(share: float, what: str) -> None:
            job.report(_POSED * share, what)

        report(0.0, "preparing neighbors and scales")
        with self._turn(job, Priority.PAGE, self._cores):
            live = self._live = open_live(self.corpus, self.config, self._cache_dir, job.poll, report)
        # the ends and the middle first, then the rest; a request goes before
        ordered = sorted(live.grid, key=lambda lamb: (lamb not in FIRST, -lamb if lamb == 1.0 else lamb))
        self._through(job, live, ordered, live.solve, SOLVING, _POSED, _SOLVED)
        kept = kept_baselines.stored_baselines(self.corpus.fingerprint, self._problem, self._cache_dir)
        compare = functools.partial(_keep_baselines, kept, live)
        self._through(job, live, [0.0], compare, COMPARING, _SOLVED, _COMPARED)
        provable = [lamb for lamb in live.grid if live.provable(lamb)]
        self._through(job, live, provable, live.prove, "proving", _COMPARED, 1.0)
        points = [lambda_point.of_solved(solved) for solved in self._solved[1]]
        kept_points.keep(points, self.corpus.fingerprint, self._problem, self._cache_dir)

    def _through(
        self, job: Job, live: Live, waiting: list[float], work: Callable, what: str, low: float, high: float
    ) -> None:
        def polled() -> None:
            # work that gives way inside its lane keeps the solver: a request would then wait for that other work too
            if lanes.waited_for():
                raise Stopped("more urgent work goes first")
            job.poll()
            if self._wanted:
                raise Stopped("a request goes first")

        total = len(waiting)
        while waiting:
            job.poll()
            self._serve()
            with self._changed:
                free = self._changed.wait_for(lambda: not self._asked_for or self._closed.is_set(), ASKED_SECONDS)
            if not free or self._closed.wait(max(0.0, self._drawn_at - time.monotonic())):
                continue
            said = what if what == COMPARING else f"{what} λ {waiting[0]:g}"
            job.report(low + (high - low) * (1 - len(waiting) / total), said)
            first = what == SOLVING and waiting[0] in FIRST
            turn = self._turn(job, Priority.PAGE if first else self._priority)
            with contextlib.suppress(Stopped), turn, lanes.locked(self._solver, job.poll):
                work(waiting[0], polled)
                waiting.pop(0)
                self._learned += 1
                self._remember(live)

    @property
    def _asked_for(self) -> bool:
        """Whether a request waits or is worked on."""
        return bool(self._wanted) or self._worked_on is not None

    @property
    def _cores(self) -> int:
        """CPU threads for what a page waits for."""
        from datamask.runs.run_queue import beside_the_server

        return (os.cpu_count() or 1) if len(self.corpus) <= MOMENTS else beside_the_server()

    def _remember(self, live: Live) -> None:
        """Keep what is solved by now for whoever asks; only while the solver is locked.

        A lambda that is solved beside the grid rarely changes what is told of the grid: then nothing is packed anew.
        """
        changes, before = self._solved
        solved = tuple(live.solved())
        self._solved = changes + ([*map(_shown, solved)] != [*map(_shown, before)]), solved

    @contextlib.contextmanager
    def _turn(self, job: Job, priority: Priority, cores: int | None = None) -> Iterator[None]:
        """For a part of the preparation: other pages' work has its turn in between."""
        from datamask.evaluation.threads import threads
        from datamask.runs.run_queue import beside_the_server

        ticket = self._ticket = lanes.lane("cpu").ticket(priority, job.poll)
        ticket.hasten(self._priority)  # it may have become more urgent before the ticket was there to hasten
        with ticket, threads(cores or beside_the_server()):
            job.poll()
            yield


def _keep_baselines(kept: Kept[Baselines], live: Live, _: float, poll: Callable[[], None]) -> None:
    from datamask.evaluation.baseline_values import baselines_of

    kept.find_or_compute(lambda: baselines_of(live.posed, poll), poll)


def quick(config: SelectionConfig) -> bool:
    """Whether a problem is prepared in moments and selected anew at any lambda; others answer with what was solved."""
    return catalogue.objective(config.objective).live == "quick"


def _shown(solved: SolvedLambda) -> tuple[float, float, float | None, float | None]:
    """What tells one picture of a solved lambda from another: which selection it is, and its proof as it is worded."""
    answer = solved.answer
    return answer.lamb, answer.joint, answer.solved_at, None if answer.gap is None else words.gap_percent(answer.gap)


def session(
    corpus: Corpus, config: SelectionConfig, cache_dir: str | Path, priority: Priority = Priority.RUN
) -> Session:
    """The session of a problem that a person asks for, started where there is none that can still answer.

    Args:
        priority: of the grid after `FIRST`, which one that is under way already gets too where it had a lower one.
    """
    holder = _holder()
    with holder.lock:
        known = holder.sessions.get(key := key_of(corpus, config))
        if known is None or not known.alive:
            known = holder.sessions[key] = Session(corpus, config, Path(cache_dir), key, priority)
        known.asked = True
        known.hasten(priority)
        holder.sessions.move_to_end(key)
        while len(holder.sessions) > KEPT:
            _end_first(holder.sessions, [other for other in holder.sessions if other != key])
        return known


def unasked(
    corpus: Corpus,
    config: SelectionConfig,
    cache_dir: str | Path,
    priority: Priority = Priority.UNASKED,
    needed: bool = False,
) -> Session | None:
    """As `session`, for what nobody asked for: none that a person asked for makes room for it.

    Args:
        needed: whether a page has nothing to show without it: then one that has solved all, which is kept, makes room.

    Returns:
        None where there is no room.
    """
    holder = _holder()
    with holder.lock:
        known = holder.sessions.get(key := key_of(corpus, config))
        if known is not None and known.alive:
            return known
        others = [other for other in holder.sessions if other != key]
        asked = [other for other in others if holder.sessions[other].asked and holder.sessions[other].alive]
        free = [other for other in others if other not in asked or (needed and holder.sessions[other].ready)]
        if len(others) >= KEPT and not free:
            return None
        if len(others) >= KEPT:
            _end_first(holder.sessions, free)
        known = holder.sessions[key] = Session(corpus, config, Path(cache_dir), key, priority)
        holder.sessions.move_to_end(key)
        return known


def _end_first(sessions: OrderedDict[str, Session], keys: list[str]) -> None:
    """End the session that is missed least of some, which are given the longest unused first."""
    sessions.pop(min(keys, key=lambda key: (sessions[key].alive, sessions[key].asked))).stop()


def find(corpus: Corpus, config: SelectionConfig) -> Session | None:
    """The session of a problem, under way, ready or ended; None: it was never started, or made room for others."""
    return of_key(key_of(corpus, config))


def of_key(key: str) -> Session | None:
    """The session of the problem of this name, as `find`."""
    return _holder().sessions.get(key)


def _holder() -> types.SimpleNamespace:
    return held(_NAME, lambda: types.SimpleNamespace(sessions=OrderedDict(), lock=threading.Lock()))
