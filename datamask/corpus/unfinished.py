"""Neighbour lists under construction: many tasks fill them, and what is done survives a stop or a killed process.

The lists are binary heaps (see `datamask.corpus.kernels`) that every task adds to, so they only mean something together
with the record of the tasks that are done. Both are written in one file, whole or not at all, at moments when no task
is running: a task is never half in it.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datamask.corpus.threads import Progress, ShouldStop, in_threads
from datamask.errors import Stopped, StoreError
from datamask.files import DAMAGED, replacing

log = logging.getLogger(__name__)

KEEP_SECONDS = 10.0
"""Between two savings; more where saving takes long, so that it costs at most a twentieth of the time."""


@dataclass
class Lists:
    """Lists being filled.

    Attributes:
        similarities, indices: float32 and int32 ``(N, k)`` heaps, without the rows themselves.
        done: bool ``(T,)``, which tasks have added all they have to.
    """

    similarities: np.ndarray
    indices: np.ndarray
    done: np.ndarray


class Unfinished:
    """Where half-built lists are kept between processes.

    Args:
        path: of the file; None: nowhere, a stop then loses them.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path

    def lists(self, n: int, k: int, tasks: int, plan: str) -> Lists:
        """Lists of n rows to go on with: those kept for the same plan, else empty ones.

        Args:
            plan: what the tasks are; tasks of another plan say nothing about these.
        """
        from datamask.corpus.kernels import empty_heaps

        kept = self._load()
        if kept is not None and kept[1] == plan and kept[0].indices.shape == (n, k) and len(kept[0].done) == tasks:
            return kept[0]
        return Lists(*empty_heaps(n, k), np.zeros(tasks, bool))

    def _load(self) -> tuple[Lists, str] | None:
        if self.path is None:
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                lists = Lists(file["similarities"], file["indices"], file["done"])
                plan = str(file["plan"])
        except FileNotFoundError:
            return None
        except DAMAGED as error:
            log.warning("%s is damaged, and the neighbour graph is begun anew: %s", self.path, error)
            return None
        fits = (lists.similarities.shape == lists.indices.shape and lists.similarities.dtype == np.float32
                and lists.indices.dtype == np.int32 and lists.done.dtype == bool)
        return (lists, plan) if fits else None

    def save(self, lists: Lists, plan: str) -> None:
        """Write the lists down; a folder that cannot be written is logged and does without."""
        if self.path is None or not lists.done.any():
            return
        try:
            with replacing(self.path) as part, part.open("wb") as file:
                np.savez(file, similarities=lists.similarities, indices=lists.indices, done=lists.done, plan=plan)
        except StoreError as error:
            log.warning("The unfinished neighbour graph is not kept: %s", error)

    def clear(self) -> None:
        """Forget what was kept."""
        if self.path is not None:
            with contextlib.suppress(OSError):  # never written, or in a folder that cannot be
                self.path.unlink()


def work_through(lists: Lists, task: Callable[[int], None], unfinished: Unfinished, plan: str, *, threads: int,
                 progress: Progress | None = None, should_stop: ShouldStop | None = None) -> None:
    """Do the tasks that are not done, in order, in threads; save now and then, and when stopped.

    Args:
        lists: filled by the tasks.
        task: adds all that task number i has to the lists, by itself safe beside other tasks; well under 0.3 s.
        unfinished, plan: where and under what name the lists are kept.
        threads: how many.
        progress: called with the share of the tasks done.
        should_stop: polled some ten times a second.

    Raises:
        Stopped: `should_stop` answered true.
    """
    saved, every = time.monotonic(), KEEP_SECONDS

    def pause() -> bool:
        return bool(should_stop is not None and should_stop()) or time.monotonic() - saved > every

    def tick() -> None:
        if progress is not None and len(lists.done):
            progress(float(lists.done.mean()), "Neighbour graph")

    while not lists.done.all():
        todo = np.flatnonzero(~lists.done)

        def one(place: int, todo: np.ndarray = todo) -> None:
            task(int(todo[place]))
            lists.done[todo[place]] = True

        try:
            in_threads(one, len(todo), threads=threads, should_stop=pause, tick=tick)
        except Stopped:
            # every task that had begun has ended by now
            began = time.monotonic()
            unfinished.save(lists, plan)
            if should_stop is not None and should_stop():
                raise Stopped("building the neighbour graph was stopped") from None
            saved = time.monotonic()
            every = max(KEEP_SECONDS, 20 * (saved - began))
    tick()
