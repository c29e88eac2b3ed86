"""Runs in the background: one queue per process and runs folder, whose runs wait for their device's lane.

The run folder is the truth; the queue only knows what *this process* works on. It is held by the process, so a hot
reload of this file or a cleared Streamlit cache neither loses nor doubles it. A run holds its ``queue`` lock for as
long as it waits here, so that after the end of this process, however it ends, every reader sees it as interrupted (see
`datamask.runs.store`). Two processes do not queue behind each other: each has its own lanes.

Threads: all methods of `RunQueue` may be called from any thread, and none of them waits for a run.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from datamask import endings
from datamask.errors import DatamaskError, RunStateError
from datamask.process import held
from datamask.runs.attempt import attempt
from datamask.runs.callbacks import Callbacks
from datamask.runs.store import Run, RunStore
from datamask.work import lanes
from datamask.work.job import QUEUED, Job
from datamask.work.lanes import Priority
from datamask.work.pace import PhasePace
from datamask.work.worker import worker

LEAVES_SECONDS = 10.0
"""A run that waits leaves the queue in a moment; tenfold, for a busy machine."""


@dataclass(eq=False)
class _Entry:
    """A run in this queue.

    Attributes:
        hold: its ``queue`` lock. pace: knows the time left. begun: whether its turn has come.
        put_off: it leaves the queue of this process only.
    """

    run: Run
    hold: contextlib.ExitStack
    pace: PhasePace = field(default_factory=lambda: PhasePace(lanes.clock))
    begun: bool = False
    put_off: bool = False

    def work(self, job: Job) -> None:
        """Do the run; in its lane."""
        self.begun = True
        if self.run.stop_requested():
            # asked by another process while it waited here; its request is obeyed by never starting
            self._stopped()
        else:
            work = replace(job.work, threads=beside_the_server())
            attempt(self.run, work, callbacks=Callbacks(pace=self.pace))

    def leave(self, _: Job) -> None:
        """At the end, whether its turn has come or not."""
        try:
            if not self.begun and not self.put_off and not endings.under_way():
                self._stopped()
        finally:
            self.hold.close()

    def _stopped(self) -> None:
        with contextlib.suppress(DatamaskError), self.run.writer() as writer:
            writer.finish("stopped", ending="stopped", message="stopped before it began")


def key_of(run: Run) -> str:
    """The name under which the worker knows a run that is in a queue of this process."""
    return f"run {run.path.resolve()}"


class RunQueue:
    """Runs the runs of one folder in the background. Get it from `run_queue`."""

    def __init__(self, root: str | Path) -> None:
        self._store = RunStore(root)
        self._lock = threading.RLock()
        self._entries: dict[str, tuple[_Entry, Job]] = {}

    def submit(self, run_id: str) -> Job:
        """Queue a run that was just created, or was stopped, failed or interrupted; its job, ended already or not.

        Raises:
            InputError: there is no such run.
            RunStateError: it is done, running, or queued already.
        """
        run = self._store.get(run_id)
        with self._lock:
            if self._entry(run_id) is not None:
                raise RunStateError(f"run {run_id} is already queued or running")
            status = run.status()
            if status.state in ("done", "running"):
                raise RunStateError(
                    f"run {run_id} is {status.state}; only a new, stopped, failed or interrupted run can be started"
                )
            hold = contextlib.ExitStack()
            hold.enter_context(run.queued())
            try:
                if status.state != "queued":
                    with run.writer() as writer:
                        writer.set_status("queued")
            except BaseException:
                hold.close()
                raise
            entry = _Entry(run, hold)
            job = worker().start(
                key_of(run),
                entry.work,
                leaving=entry.leave,
                about=run_id,
                device=device_key(run.config.selection.device),
                priority=Priority.RUN,
                pace=entry.pace.update,
            )
            self._entries[run_id] = entry, job
        return job

    def resume(self, run_id: str) -> None:
        """Queue a stopped, failed or interrupted run again; it goes on from its checkpoint.

        Raises:
            RunStateError: it is not one of these.
        """
        status = self._store.get(run_id).status()
        if not status.resumable:
            raise RunStateError(f"run {run_id} is {status.state}; only a stopped, failed or interrupted run resumes")
        self.submit(run_id)

    def stop(self, run_id: str) -> None:
        """Stop a run: a waiting one leaves the queue at once, a running one within a second, keeping a checkpoint.

        A run of another process is asked through its folder.

        Raises:
            RunStateError: it is neither queued nor running.
        """
        run = self._store.get(run_id)
        entry = self._entry(run_id)
        if entry is not None:
            _, job = entry
            waiting = job.state == QUEUED
            job.stop()
            if waiting:
                job.wait(LEAVES_SECONDS)
        if not run.status().active:
            if entry is not None:
                return
            raise RunStateError(f"run {run_id} is {run.status().state}; there is nothing to stop")
        run.request_stop()

    def active(self) -> list[Job]:
        """What this process runs and what waits here, in that order per device; each is about a run's id."""
        with self._lock:
            jobs = [job for _, job in self._entries.values() if not job.ended]
        waiting = [job for job in jobs if job.state == QUEUED]
        for job in waiting:
            before = [other for other in jobs if other.device == job.device and other.ahead < job.ahead]
            place = 1 + sum(other in waiting for other in before)
            # slider, maps and other work of pages hold the lane too, and are no runs of this queue
            others = job.ahead > len(before)
            job.message = f"number {place} in the queue{', after other work' if others else ''}"
        return [job for job in jobs if job not in waiting] + waiting

    def close(self, timeout: float = endings.GOODBYE_SECONDS) -> None:
        """Ask every run to stop and wait up to `timeout` seconds; waiting runs stay queued and become interrupted."""
        with self._lock:
            entries = list(self._entries.values())
        for entry, job in entries:
            entry.put_off = True
            job.stop()
        deadline = time.monotonic() + timeout
        for _, job in entries:
            job.wait(max(0.0, deadline - time.monotonic()))

    def _entry(self, run_id: str) -> tuple[_Entry, Job] | None:
        with self._lock:
            self._entries = {queued_id: pair for queued_id, pair in self._entries.items() if not pair[1].ended}
            return self._entries.get(run_id)


def run_queue(root: str | Path) -> RunQueue:
    """The queue of a runs folder in this process: the same one on every call, whatever was reloaded or cleared."""
    return held(f"runs {Path(root).resolve()}", lambda: RunQueue(root))


GPUS = Path("/proc/driver/nvidia/gpus")
"""Where NVIDIA's driver says what devices there are."""


def beside_the_server() -> int:
    """CPU threads for background work: one core stays with the server, or the pages freeze while something learns."""
    return max(1, (os.cpu_count() or 2) - 1)


def device_key(device: str) -> str:
    """Which worker a device setting goes to, without loading torch: ``auto`` is guessed from what the machine has.

    A wrong guess is harmless: it decides who waits for whom, not where a run computes.
    """
    if device == "auto":
        if Path("/dev/nvidiactl").exists() and os.environ.get("CUDA_VISIBLE_DEVICES", "0") not in ("", "-1"):
            return "cuda:0"
        return "cpu"
    return "cuda:0" if device == "cuda" else device


def device_name(device: str) -> str:
    """What background work of a device setting computes on, in words, without loading torch."""
    key = device_key(device)
    if key == "cpu":
        cores = beside_the_server()
        return f"{cores} CPU core{'' if cores == 1 else 's'}"
    models = [
        line.partition(":")[2].strip()
        for file in sorted(GPUS.glob("*/information"))
        for line in file.read_text("utf-8", "replace").splitlines()
        if line.startswith("Model:")
    ]
    number = int(key.partition(":")[2])
    return models[number] if number < len(models) else f"GPU {number}"
