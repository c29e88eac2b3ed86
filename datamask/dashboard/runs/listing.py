"""The runs of a folder: what is running, what each run is called, and how it stands, in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datamask.dashboard.drawing import words
from datamask.errors import DatamaskError
from datamask.work.job import QUEUED

if TYPE_CHECKING:
    from datamask.dashboard.data.openings import OpenCorpus, Opening
    from datamask.runs.run_queue import RunQueue
    from datamask.runs.status import RunStatus
    from datamask.runs.store import Run, RunStore


@dataclass(frozen=True)
class Busy:
    """A run that is queued or running.

    Attributes:
        run_id, name: which run; state: ``queued`` or ``running``.
        share: progress 0..1; sentence: progress in words, with the time left where it is known.
        left: seconds it still takes; None: not known.
        sweep: the sweep that computes it now; None where it runs by itself.
        waits: whether it has not begun: the state is ``queued`` until the corpus is open, too.
    """

    run_id: str
    name: str
    state: str
    share: float
    sentence: str
    left: float | None = None
    sweep: str | None = None
    waits: bool = False


def name_of(run: Run) -> str:
    """The run's name, or its id where it has none."""
    return run.config.name or run.id


def label_of(run: Run) -> str:
    """`name_of`; of a damaged record only the folder's name is left."""
    try:
        return name_of(run)
    except DatamaskError:
        return run.id


def unlike(lines: Mapping[str, str]) -> dict[str, str]:
    """Menu lines by run id, those that say the same told apart by the end of the id: a browser sends back the words."""
    texts = list(lines.values())
    return {run_id: line if texts.count(line) == 1 else f"{line}  ·  {run_id[-4:]}" for run_id, line in lines.items()}


def runs_on(store: RunStore, opening: Opening | OpenCorpus | None, archived: bool = False) -> list[Run]:
    """The runs learned on the open corpus, newest first; all of them where none is open.

    By fingerprint where the run got far enough to know it, else by the same files and columns.

    Args:
        archived: whether runs that were put away are among them.
    """
    return [run for run in store.list() if (archived or not run.label().archived) and is_on(run, opening)]


def readable(store: RunStore) -> list[Run]:
    """All runs whose record is whole, on whatever corpus, newest first."""
    whole = []
    for run in store.list():
        with contextlib.suppress(DatamaskError):  # a damaged one is listed elsewhere, with its reason
            if run.config is not None and run.facts() is not None:
                whole.append(run)
    return whole


def matching(runs: Iterable[Run], search: str) -> list[Run]:
    """Those whose name, id or tags hold every word of the search, whatever their case; in the order given."""
    wanted = search.casefold().split()
    return [run for run in runs if all(word in _searched(run) for word in wanted)] if wanted else list(runs)


def _searched(run: Run) -> str:
    return " ".join((run.id, name_of(run), *run.label().tags)).casefold()


def tags_of(runs: Iterable[Run]) -> list[str]:
    """Every tag of these runs once, by name."""
    return sorted({tag for run in runs for tag in run.label().tags}, key=str.casefold)


def is_on(run: Run, opening: Opening | OpenCorpus | None) -> bool:
    """Whether a run was learned on the open corpus; true where none is open."""
    if opening is None or opening.corpus is None:
        return True
    try:
        known = run.facts().get("fingerprint")
        return known == opening.corpus.fingerprint if known else run.config.corpus == opening.config
    except DatamaskError:
        # a damaged record belongs to no corpus; `runs list` shows it
        return False


def running(store: RunStore, queue: RunQueue, only: Iterable[str] | None = None) -> list[Busy]:
    """Runs queued or running, in this process or another one on this machine.

    Args:
        store: the runs folder.
        queue: this process's workers, which know progress and time left.
        only: run ids to look at; None: every run of the folder.
    """
    jobs = {job.about: job for job in queue.active()}
    runs = store.list() if only is None else [run for run_id in only if (run := _get(store, run_id))]
    busy = []
    for run in runs:
        job = jobs.get(run.id)
        status = run.status()
        if not status.active:
            continue
        if job is not None:
            share, message, eta = job.share, job.message, job.left
        else:
            share = status.step / status.total_steps if status.total_steps else 0.0
            message, eta = _elsewhere(run, status)
        sentence = message or ("waiting for its turn" if status.state == "queued" else "starting")
        sentence = ", ".join(filter(None, (sentence, words.soon(eta))))
        # a sweep computes its runs itself: one that waits in the queue was started alone, whatever made it
        sweep = run.facts().get("sweep") if job is None else None
        waits = status.state == "queued" and (job is None or job.state == QUEUED)
        busy.append(Busy(run.id, name_of(run), status.state, share or 0.0, sentence, eta, sweep, waits))
    return busy


def apart(busy: Iterable[Busy], sweeps: Iterable[str], runs: Iterable[str] = ()) -> list[Busy]:
    """Those that none of these sweeps computes, and that are none of these runs."""
    known, single = set(sweeps), set(runs)
    return [job for job in busy if job.sweep not in known and job.run_id not in single]


def _elsewhere(run: Run, status: RunStatus) -> tuple[str, float | None]:
    """What a run of another process is doing, and the seconds it still needs by the pace of its steps so far."""
    if not status.step or not status.total_steps:
        return status.message, None
    seconds = run.metrics().get("seconds")
    learned = float(seconds[-1]) if seconds is not None and len(seconds) else None
    eta = None if learned is None else learned / status.step * (status.total_steps - status.step)
    return f"step {status.step:,} of {status.total_steps:,}", eta


def _get(store: RunStore, run_id: str) -> Run | None:
    try:
        return store.get(run_id)
    except DatamaskError:
        # removed while it was being watched
        return None
