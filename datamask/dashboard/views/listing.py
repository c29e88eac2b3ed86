"""The runs of a folder: what is running, what each run is called, and how it stands, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datamask.dashboard import words
from datamask.errors import DatamaskError

if TYPE_CHECKING:
    from datamask.runs.jobs import Office
    from datamask.runs.store import Run, RunStore

ENDED = ("done", "stopped", "failed", "interrupted")


@dataclass(frozen=True)
class Busy:
    """A run that is queued or running.

    Attributes:
        run_id, name: which run; state: ``queued`` or ``running``.
        share: progress 0..1; sentence: progress in words, with the time left where it is known.
        stoppable: whether this process may stop it.
    """

    run_id: str
    name: str
    state: str
    share: float
    sentence: str
    stoppable: bool = True


def name_of(run: Run) -> str:
    """The run's name, or its id where it has none."""
    return run.config.name or run.id


def running(store: RunStore, office: Office, only: Iterable[str] | None = None) -> list[Busy]:
    """Runs queued or running, in this process or another one on this machine.

    Args:
        store: the runs folder.
        office: this process's workers, which know progress and time left.
        only: run ids to look at; None: every run of the folder.
    """
    jobs = {job.run_id: job for job in office.active()}
    runs = store.list() if only is None else [run for run_id in only if (run := _get(store, run_id))]
    found = []
    for run in runs:
        job = jobs.get(run.id)
        status = run.status()
        if status.state not in ("queued", "running") or (job is None and status.state == "queued"):
            # queued without a job: its process is gone; the Run page offers to start it again
            continue
        if job is not None:
            share, message, eta = job.share, job.message, job.eta_seconds
        else:
            share = status.step / status.total_steps if status.total_steps else 0.0
            message, eta = status.message, None
        if status.state == "queued":
            sentence = "waiting for its turn"
        else:
            sentence = message or "starting"
            if eta is not None and eta >= 1:
                sentence += f", about {words.duration(eta)} left"
        found.append(Busy(run.id, name_of(run), status.state, share or 0.0, sentence))
    return found


def _get(store: RunStore, run_id: str) -> Run | None:
    try:
        return store.get(run_id)
    except DatamaskError:
        # removed while it was being watched
        return None
