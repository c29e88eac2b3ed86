"""Background jobs: one office per process and runs folder, one worker thread per device, a queue before each.

The run folder is the truth; the office only knows what *this process* works on. It is anchored outside every module
and cache, so a hot reload of this file or a cleared Streamlit cache neither loses nor doubles it. A run holds its
``queue`` lock for as long as it waits here, so that after the end of this process, however it ends, every reader sees
it as interrupted (see `datamask.runs.store`). Two processes do not queue behind each other: each has its own workers.

Threads: all methods of `Office` may be called from any thread, and none of them waits for a run.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from datamask import endings
from datamask.errors import DatamaskError, RunStateError
from datamask.process import held
from datamask.runs.attempt import attempt
from datamask.runs.progress import Eta
from datamask.runs.store import Run, RunStore

TURN_SECONDS = 0.2


@dataclass(frozen=True)
class Job:
    """What a watcher sees of a run in this office.

    Attributes:
        run_id: the run.
        state: ``queued``, ``running`` or ``stopping``.
        share: 0 to 1, how much of the whole is done.
        message: what is being done.
        eta_seconds: seconds left, None while unknown.
    """

    run_id: str
    state: str
    share: float
    message: str
    eta_seconds: float | None


@dataclass(eq=False)
class _Entry:
    run: Run
    hold: contextlib.ExitStack
    stop: threading.Event = field(default_factory=threading.Event)
    running: bool = False
    share: float = 0.0
    message: str = ""
    eta: float | None = None

    def job(self, ahead: int) -> Job:
        if not self.running:
            waiting = "starts next" if ahead == 0 else f"waits for {ahead} other run{'s' if ahead > 1 else ''}"
            return Job(self.run.id, "queued", 0.0, waiting, None)
        return Job(self.run.id, "stopping" if self.stop.is_set() else "running", self.share, self.message, self.eta)


@dataclass
class _Desk:
    """One device's queue; its first entry is the one being worked on, once a thread has taken it."""

    entries: deque[_Entry] = field(default_factory=deque)
    thread: threading.Thread | None = None
    computing: threading.Lock = field(default_factory=threading.Lock)


class Office:
    """Runs the runs of one folder in the background. Get it from `office`."""

    def __init__(self, root: str | Path) -> None:
        self._store = RunStore(root)
        self._lock = threading.RLock()
        self._desks: dict[str, _Desk] = {}

    def submit(self, run_id: str) -> None:
        """Queue a run that was just created, or was stopped, failed or interrupted.

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
                raise RunStateError(f"run {run_id} is {status.state}; only a new, stopped, failed or interrupted run "
                                    "can be started")
            device = run.config.selection.device
            hold = contextlib.ExitStack()
            hold.enter_context(run.queued())
            try:
                if status.state != "queued":
                    with run.writer() as writer:
                        writer.set_status("queued")
            except BaseException:
                hold.close()
                raise
            desk = self._desks.setdefault(device_key(device), _Desk())
            desk.entries.append(_Entry(run, hold))
            if desk.thread is None or not desk.thread.is_alive():
                desk.thread = endings.start(self._work, desk, name=f"datamask-{device_key(device)}",
                                            stop=lambda: self.close(0.0))

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
        with self._lock:
            entry = self._entry(run_id)
            if entry is not None and not entry.running:
                self._forget(entry)
                with entry.hold, run.writer() as writer:
                    writer.finish("stopped", ending="stopped", message="stopped before it began")
                return
            if entry is not None:
                entry.stop.set()
        if not run.status().active:
            if entry is not None:
                return
            raise RunStateError(f"run {run_id} is {run.status().state}; there is nothing to stop")
        run.request_stop()

    def active(self) -> list[Job]:
        """What this process runs and what waits here, in that order per device."""
        with self._lock:
            return [entry.job(ahead) for desk in self._desks.values() for ahead, entry in enumerate(desk.entries)]

    @contextlib.contextmanager
    def turn(self, device: str, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Compute on a device outside the queue, as a sweep does for each of its points: no run computes meanwhile.

        Waits for the run that computes now, not for those that wait behind it; goes ahead without the device once
        `should_stop` answers true, so that whoever was waiting can end.
        """
        with self._lock:
            computing = self._desks.setdefault(device_key(device), _Desk()).computing
        held = computing.acquire(timeout=TURN_SECONDS)
        while not held and not should_stop():
            held = computing.acquire(timeout=TURN_SECONDS)
        try:
            yield
        finally:
            if held:
                computing.release()

    def close(self, timeout: float = endings.GOODBYE_SECONDS) -> None:
        """Ask every run to stop and wait up to `timeout` seconds; waiting runs stay queued and become interrupted."""
        with self._lock:
            threads = [desk.thread for desk in self._desks.values() if desk.thread is not None]
            for desk in self._desks.values():
                for entry in list(desk.entries):
                    entry.stop.set()
                    if not entry.running:
                        self._forget(entry)
                        entry.hold.close()
        for thread in threads:
            thread.join(timeout)

    # -- the worker's side ------------------------------------------------------------------------------------------

    def _work(self, desk: _Desk) -> None:
        while True:
            with self._lock:
                if not desk.entries:
                    desk.thread = None
                    return
                entry = desk.entries[0]
                entry.running = True
                entry.message = "starting"
            try:
                with desk.computing:
                    self._run(entry)
            finally:
                with self._lock:
                    self._forget(entry)
                    entry.hold.close()

    def _run(self, entry: _Entry) -> None:
        eta = Eta()

        def progress(share: float, what: str) -> None:
            entry.share, entry.message, entry.eta = share, what, eta.update(share, what=what)

        def should_stop() -> bool:
            return entry.stop.is_set()

        if entry.run.stop_requested():
            # asked by another process while it waited here; its request is obeyed by never starting
            with contextlib.suppress(DatamaskError), entry.run.writer() as writer:
                writer.finish("stopped", ending="stopped", message="stopped before it began")
            return
        attempt(entry.run, should_stop=should_stop, progress=progress, threads=beside_the_server())

    def _entry(self, run_id: str) -> _Entry | None:
        return next((e for desk in self._desks.values() for e in desk.entries if e.run.id == run_id), None)

    def _forget(self, entry: _Entry) -> None:
        for desk in self._desks.values():
            if entry in desk.entries:
                desk.entries.remove(entry)


def office(root: str | Path) -> Office:
    """The office of a runs folder in this process: the same one on every call, whatever was reloaded or cleared."""
    return held(f"runs {Path(root).resolve()}", lambda: Office(root))


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
