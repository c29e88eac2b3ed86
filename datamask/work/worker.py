"""The worker: starts jobs in threads of their own and knows those of this process.

One per process (`worker`). A job is known by a key; who starts work under the key of a job that has not ended joins
that job instead. A job that computes on a device does so inside the device's lane (`datamask.work.lanes`), so that at
any moment one computes per device, the most urgent that wants to.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from datamask import endings
from datamask.process import held
from datamask.work.job import Job, Pace
from datamask.work.lanes import Priority

KEPT = 64
"""Ended jobs remembered; the oldest is forgotten first."""


class Worker:
    """All methods may be called from any thread, and none waits for a job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def start(
        self,
        key: str,
        work: Callable[[Job], Any],
        *,
        device: str | None = None,
        priority: Priority = Priority.PAGE,
        about: object = None,
        sign: Any = None,
        pace: Pace | None = None,
        leaving: Callable[[Job], None] | None = None,
    ) -> Job:
        """Do ``work(job)`` in the background, or join the job of that key that has not ended.

        Args:
            key: names the work and all that it depends on.
            work: polls its job at least every 0.3 s; what it returns becomes the job's `result`.
            device: whose lane it computes in; None: it hardly computes (it reads, writes, waits for others), or takes
                `lanes.turn` for parts of its work.
            about, sign: see `Job`. leaving: see `Job.run`.
            pace: what knows the time left, where that does not follow from the shares alone.
        """
        with self._lock:
            under_way = self._jobs.get(key)
            if under_way is not None and not under_way.ended:
                return under_way
            job = Job(key, device=device, priority=priority, about=about, sign=sign, pace=pace)
            # put at the end, so that the oldest come first
            self._jobs.pop(key, None)
            self._jobs[key] = job
            for forgotten in [other.key for other in self._jobs.values() if other.ended][:-KEPT]:
                del self._jobs[forgotten]
        endings.start(job.run, work, leaving, name=f"job {key}"[:80], stop=job.stop)
        return job

    def find(self, key: str) -> Job | None:
        """The job of that key, under way or ended."""
        return self._jobs.get(key)

    def active(self) -> list[Job]:
        """The jobs that have not ended, the oldest first."""
        with self._lock:
            return [job for job in self._jobs.values() if not job.ended]

    def forget(self, key: str) -> None:
        """Forget an ended job, so that its work may be done anew. For a button's `on_click`."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.ended:
                del self._jobs[key]


def worker() -> Worker:
    """The worker of this process."""
    return held("worker", Worker)
