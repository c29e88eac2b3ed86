"""Run independent tasks in ordinary threads while the calling thread watches: progress, stop, first error."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from datamask.errors import Stopped
from datamask.polling import Poll, no_poll, poll_of
from datamask.process import asked_threads
from datamask.work.context import Work

Result = TypeVar("Result")

MOST_THREADS = 16


class Speed:
    """How fast bytes come, over the last `WINDOW` seconds: what a page says beside the share. One thread asks."""

    WINDOW = 5.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._points: deque[tuple[float, int]] = deque([(clock(), 0)])

    def words(self, total: int) -> str:
        """``", 75 MB/s"`` where so many bytes have come since it was made; nothing in the first second."""
        now = self._clock()
        self._points.append((now, total))
        while len(self._points) > 2 and self._points[1][0] <= now - self.WINDOW:
            self._points.popleft()
        then, before = self._points[0]
        if now - then < 1.0:
            return ""
        rate = (total - before) / (now - then) / 1e6
        return f", {rate:,.0f} MB/s" if rate >= 9.5 else f", {rate:.1f} MB/s"


class Tally:
    """What threads have done so far, and when they are to end; one thread waits for them, is asked and is told.

    Args:
        work: its poll and report are called from the thread that waits. whole: what is to be done, in rows, or in what
            `add` calls done. what: the words for so many rows.

    Attributes:
        poll: for the threads: raises Stopped when they are to end. decoded: bytes so far.
    """

    def __init__(self, work: Work, whole: float, what: Callable[[int], str]) -> None:
        self._work, self._whole, self._what = work, max(whole, 1.0), what
        self._stop, self._lock, self._speed = threading.Event(), threading.Lock(), Speed()
        self.poll = poll_of(self._stop.is_set)
        self._rows, self._done, self.decoded = 0, 0.0, 0

    def add(self, rows: int, decoded: int = 0, done: float | None = None) -> None:
        """Count rows and bytes. done: part of the whole that these are; None: the rows."""
        with self._lock:
            self._rows += rows
            self.decoded += decoded
            self._done += rows if done is None else done

    def in_threads(self, task: Callable[[int], Result], count: int, threads: int | None = None) -> list[Result]:
        """As `in_threads`."""
        return in_threads(task, count, threads=threads, poll=self._work.poll, stop=self._stop, tick=self._tell)

    def _tell(self) -> None:
        speed = self._speed.words(self.decoded) if self.decoded else ""
        self._work.report(self._done / self._whole, self._what(self._rows) + speed)


class _OneBlasThread:
    """Counts who wants BLAS to use one thread, so that the last to leave restores what the first one found.

    The limit belongs to the process: two callers that each restored what *they* had found could leave it at one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        # of threadpoolctl, which says nothing of its types
        self._libraries: Any = None
        self._limits: Any = None
        self._modules = 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limits = self._loaded_libraries().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limits.restore_original_limits()

    def _loaded_libraries(self) -> Any:
        """Those with threads of their own; looked for, which takes 2 ms, where an import may have brought another."""
        from threadpoolctl import ThreadpoolController

        modules = len(sys.modules)
        if self._modules != modules:
            self._libraries, self._modules = ThreadpoolController(), modules
        return self._libraries


one_blas_thread = _OneBlasThread()
"""``with one_blas_thread():`` numpy's products use one thread each, for callers that run many in their own threads."""


def thread_count(tasks: int) -> int:
    """As many threads as were asked for, else as this process may use cores; at most `MOST_THREADS`, one per task."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(asked_threads() or cores, tasks, MOST_THREADS))


def in_threads(
    task: Callable[[int], Result],
    count: int,
    *,
    threads: int | None = None,
    poll: Poll = no_poll,
    stop: threading.Event | None = None,
    tick: Callable[[], None] | None = None,
) -> list[Result]:
    """Call ``task(0)`` to ``task(count - 1)`` in parallel threads, begun in this order; their results in order.

    `poll` and `tick` are called from the calling thread, some ten times a second, so that they may touch a user
    interface. A task that takes longer than some 0.3 s looks at `stop`, which is set when another task fails or
    `poll` raises; no further task begins then.

    Raises:
        Stopped: from `poll`, another thread set `stop`, or the interpreter is ending.
        Exception: whatever a failing task raised.
    """
    stop = stop or threading.Event()
    results: dict[int, Result] = {}
    numbers = itertools.count()

    def worker() -> None:
        for index in numbers:
            if index >= count or stop.is_set():
                return
            results[index] = task(index)

    workers = thread_count(count) if threads is None else max(1, min(threads, count))
    with ThreadPoolExecutor(workers, "datamask") as pool:
        try:
            try:
                pending = {pool.submit(worker) for _ in range(workers)}
            except RuntimeError as error:
                if "interpreter shutdown" not in str(error):
                    raise
                # background work is asked to stop when the process ends, but pools take no more work from then on
                raise Stopped("stopped: the program is ending") from error
            while pending:
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                while done:
                    # no name for the future: its error holds this frame, and both would keep all that was read
                    done.pop().result()
                if tick is not None:
                    tick()
                poll()
        finally:
            stop.set()
            pending = set()
    if len(results) < count:  # whoever shares `stop` has set it
        raise Stopped("stopped")
    return [results[index] for index in range(count)]
