"""What is made of the sample before anybody asks: maps with names, a run that is solved, one by masks, a frontier, and
what the map's lambda slider drags over.

It is the least urgent work there is, begins once the sample is open, and is done once per runs folder: a note there
(`NOTE`) says which runs were begun, so that none is made twice, nor again after somebody has removed it. What the end
of the server interrupted goes on at its next start; what a person stopped does not.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from datamask import endings
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT, STAND_IN
from datamask.dashboard.analyses.frontier import sweeping
from datamask.dashboard.analyses.lambda_slider import lambda_points, live
from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.linked import topics
from datamask.dashboard.map import map_layout
from datamask.errors import DatamaskError, InputError, RunStateError, Stopped
from datamask.files import write_text
from datamask.runs.formats import read_json
from datamask.runs.store import Run, RunStore
from datamask.runs.varying import Plan
from datamask.work import lanes
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.locks import only_one
from datamask.work.worker import worker

if TYPE_CHECKING:
    from datamask.evaluation.pool import Pool

log = logging.getLogger(__name__)

NOTE = ".sample.json"

OBJECTIVE = "facility"
OPTIONS = {"select_ratio": 0.3, "collapse": "exact"}
"""As the forms of the sample begin, so that what is asked for there is found."""

MIDDLE = 0.5
LAMBDAS = 21
SOLVED, MASKS = "sample-solved", "sample-masks"

OPENED, SELECTED = 0.25, 0.9
"""Shares of the work that end with the open corpus and with the runs; maps that are still to come follow."""

ASKED_SECONDS = 0.2
"""Between two looks at whether what is waited for has ended."""


@dataclass(frozen=True)
class Part:
    """A run to be made.

    Attributes:
        lamb: where it is a point of the frontier. weight: about how long it takes, against the others.
    """

    run_id: str
    name: str
    selection: SelectionConfig
    lamb: float | None = None
    weight: float = 1.0


def parts() -> tuple[Part, ...]:
    """The runs in the order in which they are made; the solved one is the frontier's middle too."""
    solved, masks = (
        SelectionConfig.from_options(objective=OBJECTIVE, lamb=MIDDLE, **options)
        for options in (OPTIONS, {**OPTIONS, "estimator": "counterfactual"})
    )
    along = sweeping.along_lambda([OBJECTIVE], sweeping.lambdas(LAMBDAS), **OPTIONS)
    return (
        Part(SOLVED, "sample: solved", solved, weight=3.0),
        Part(MASKS, "sample: masks", masks, weight=6.0),
        *(
            Part(
                f"sample-lambda-{round(100 * point.selection.lamb):03d}",
                f"{sweeping.plan_name(point)}: {point.words}",
                point.selection,
                point.selection.lamb,
            )
            for point in along
            if point.selection != solved
        ),
    )


def plan(corpus: CorpusConfig) -> Plan:
    """The sweep that the points of the frontier belong to."""
    points = sweeping.along_lambda([OBJECTIVE], sweeping.lambdas(LAMBDAS), **OPTIONS)
    return Plan(corpus, points, sweeping.plan_name(points[0]))


def slider_settings() -> SelectionConfig:
    """The problem of the slider beside the runs that are made here, and beside none."""
    return lambda_points.settings_of(SelectionConfig.from_options(objective=OBJECTIVE, **OPTIONS))


def prepare_slider(corpus: Corpus, cache_dir: Path) -> live.Session | None:
    """The session behind the slider of the sample's map, solving ahead only while nobody needs the processor; None
    where what people asked for leaves no room for it."""
    return live.unasked(corpus, slider_settings(), cache_dir, Priority.UNASKED)


def is_done(runs_dir: Path) -> bool:
    """Whether all was made in a runs folder and nobody stopped it: what only a process keeps may be made anew."""
    note = Note.read(runs_dir)
    return note is not None and note.done and not note.stopped


@dataclass
class Note:
    """What was made in a runs folder.

    Attributes:
        begun: ids of runs that were begun; of these `ended`: they are done, or not to be gone on with by itself.
        stopped: a person stopped the work: nothing more is made. done: there is nothing more to make.
    """

    begun: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    stopped: bool = False
    done: bool = False

    @classmethod
    def read(cls, runs_dir: Path) -> Note | None:
        """The note of a folder; None where there is none. One that cannot be read says that nothing is to be made."""
        try:
            record = read_json(runs_dir / NOTE)
            lists = {name: [str(run_id) for run_id in record[name]] for name in ("begun", "ended")}
            return cls(**lists, stopped=bool(record["stopped"]), done=bool(record["done"]))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return cls(stopped=True)

    def write(self, runs_dir: Path) -> None:
        """Keep it.

        Raises:
            StoreError: the folder cannot be written.
        """
        write_text(runs_dir / NOTE, json.dumps(asdict(self)))


def start(runs_dir: Path, opening: Opening) -> Job:
    """Make what is missing, in the background, once the corpus is open; joins the work under way in this folder."""
    work = _Work(runs_dir, opening)
    sign = Sign(
        "Preparing the sample",
        "app.py",
        {"corpus": opening.key},
        "Stops within seconds. What is done is kept; the rest is not made by itself any more.",
        (plan(opening.config).id,),
        (SOLVED, MASKS),
        lambda: work.arrived,
    )
    return worker().start(f"sample {runs_dir.resolve()}", work.do, sign=sign)


class _Work:
    """One attempt at all of it, in a thread of the worker.

    Attributes:
        arrived: how much of what pages show has come.
    """

    def __init__(self, runs_dir: Path, opening: Opening) -> None:
        self._runs_dir, self._opening = runs_dir, opening
        self._store = RunStore(runs_dir)
        self._began = time.monotonic()
        self.arrived = 0

    def do(self, job: Job) -> None:
        """Everything that is missing.

        Raises:
            Stopped: on request.
        DatamaskError: the corpus could not be opened, a run failed, or the runs folder cannot be written.
        """
        # another server of this folder may be at it
        with only_one(self._runs_dir / ".sample.lock", job.should_stop):
            note = Note.read(self._runs_dir) or Note()
            if note.done or note.stopped:
                return
            try:
                self._make(job, note)
            except Stopped:
                if job.stopping and not endings.under_way():
                    note.stopped = True
                    note.write(self._runs_dir)
                raise
            except DatamaskError as error:
                self._tell(f"not made ready: {error}")
                raise
            note.done = True
            note.write(self._runs_dir)
        self._tell("everything is ready")

    def _make(self, job: Job, note: Note) -> None:
        corpus = self._opened(job)
        self._tell(f"open, {len(corpus):,} rows; maps and selections follow, beside the server")
        layout, naming, slider = self._start_layout(corpus, DEFAULT), None, None
        try:
            self._runs(job, note)
            job.report(SELECTED, "words for the map's regions")
            naming = self._start_naming(corpus)
            self._wait(job, naming, "names of its regions")
            job.report(SELECTED, f"the {DEFAULT} map")
            self._wait(job, layout, f"{DEFAULT} map")
            job.report((1 + SELECTED) / 2, f"what {STAND_IN.name} keeps")
            layout = self._start_layout(corpus, STAND_IN.name)
            self._wait(job, layout, f"{STAND_IN.name} map")
            job.report((1 + SELECTED) / 2, "the slider of its map")
            slider = prepare_slider(corpus, self._store.cache_dir)
            self._wait(job, None if slider is None else slider.job, "the slider of its map")
        finally:
            if slider is not None and job.stopping:
                slider.stop()
            for part in (layout, naming):
                if part is not None and job.stopping:
                    part.stop()

    def _opened(self, job: Job) -> Corpus:
        """The corpus, once it is open."""
        opening, last_quarter = self._opening, -1
        while opening.under_way and opening.job is not None:
            job.poll()
            job.report(OPENED * opening.job.share, opening.job.message)
            if (quarter := int(4 * opening.job.share)) > last_quarter:
                last_quarter = quarter
                self._tell(f"{opening.job.share:.0%} open: {opening.job.message}")
            opening.job.wait(ASKED_SECONDS)
        if opening.corpus is not None:
            return opening.corpus
        if opening.job is not None and opening.job.error:
            raise DatamaskError(opening.job.error)
        raise Stopped("opening the sample was stopped")

    def _start_layout(self, corpus: Corpus, projection: str) -> Job | None:
        cache_dir = self._store.cache_dir
        if map_layout.crowding(corpus, cache_dir) is not None and (
            map_layout.layout(corpus, cache_dir, projection) is not None
        ):
            return None
        return map_layout.start(corpus, cache_dir, projection, Priority.UNASKED)

    def _start_naming(self, corpus: Corpus) -> Job | None:
        if topics.load(corpus, self._store.cache_dir) is not None:
            return None
        return topics.start(corpus, corpus.texts, self._store.cache_dir, Priority.UNASKED)

    def _wait(self, job: Job, part: Job | None, what: str) -> None:
        """Wait for a part, if there is one, which the terminal calls `what`."""
        while part is not None and not part.wait(ASKED_SECONDS):
            job.poll()
        if part is not None:
            self.arrived += 1
            self._tell(f"{what}: {'ready' if part.state == 'done' else part.state}")

    def _runs(self, job: Job, note: Note) -> None:
        waiting = [part for part in parts() if part.run_id not in note.ended]
        if not waiting:
            return
        # torch and numba come with these
        endings.load("datamask.runs.execute", job.should_stop)
        from datamask.runs.sweep import open_pool

        frontier = plan(self._opening.config)
        pool = open_pool(self._store, frontier, lambda share, what: None, job.should_stop)
        total, before, start = sum(part.weight for part in parts()), 0.0, None
        for part in parts():
            low, high = (OPENED + (SELECTED - OPENED) * share / total for share in (before, before + part.weight))
            before += part.weight
            if part in waiting:
                run = self._run(part, note, frontier, start)
                trouble = "" if run is None else self._attempt(run, part, pool, job, low, high)
                note.ended.append(part.run_id)
                note.write(self._runs_dir)
                if trouble:
                    raise DatamaskError(f"{part.name} failed: {trouble}")
                if part.lamb is None:
                    self.arrived += 1
                    self._tell(f"{part.name} is there")
            if part.lamb is not None:
                start = part.run_id if self._is_done(part.run_id) else None
        self.arrived += 1
        self._tell(f"the frontier of {LAMBDAS} λ is ready")

    def _run(self, part: Part, note: Note, frontier: Plan, start: str | None) -> Run | None:
        """The part's run, made where it was not begun before; None where it was removed, or needs nothing more."""
        if part.run_id not in note.begun:
            try:
                run = self._store.create(RunConfig(self._opening.config, part.selection, part.name), run_id=part.run_id)
            except RunStateError as error:  # killed before it was noted, or made by somebody
                log.info("%s; it is taken as it is", error)
            else:
                if part.lamb is not None:
                    with run.writer() as writer:
                        writer.update_facts(
                            sweep=frontier.id,
                            swept={"lamb": part.lamb},
                            **({} if start is None else {"start_from": start}),
                        )
            note.begun.append(part.run_id)
            note.write(self._runs_dir)
        try:
            run = self._store.get(part.run_id)
        except InputError:
            return None
        status = run.status()
        return run if status.resumable or status.state == "queued" else None

    def _attempt(self, run: Run, part: Part, pool: Pool, job: Job, low: float, high: float) -> str:
        """Do a run, or go on with it; the sentence where it failed. One that a person has queued is left alone.

        Raises:
            Stopped: on request; the run can be gone on with.
        """
        from datamask.runs import run_queue
        from datamask.runs.attempt import attempt

        def report(share: float, what: str) -> None:
            job.report(low + (high - low) * min(max(share, 0.0), 1.0), f"{part.name}: {what}")

        report(0.0, "waiting for its turn")
        device = run_queue.device_key(part.selection.device)
        try:
            with run.queued(), lanes.turn(device, Priority.UNASKED, job.should_stop):
                job.poll()
                attempt(
                    run,
                    should_stop=job.should_stop,
                    progress=report,
                    pool=pool,
                    threads=run_queue.beside_the_server(),
                )
        except RunStateError as error:
            log.info("the sample's run is left alone: %s", error)
        job.poll()
        status = run.status()
        return (status.error or "no reason is known") if status.state == "failed" else ""

    def _is_done(self, run_id: str) -> bool:
        try:
            return self._store.get(run_id).status().state == "done"
        except DatamaskError:
            return False

    def _tell(self, what: str) -> None:
        """A line in the server's terminal."""
        print(f"datamask: sample, {time.monotonic() - self._began:.0f} s: {what}", flush=True)
