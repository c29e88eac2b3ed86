"""Neighbour lists under construction and their checkpoint: many tasks fill them, and what is done survives a stop or
a killed process.

The lists are binary heaps (see `datamask.corpus.kernels`) that every task adds to, so they only mean something together
with the record of the tasks that are done. Both are written in one file, whole or not at all, at moments when no task
is running: a task is never half in it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.corpus.threads import in_threads, thread_count
from datamask.errors import Stopped
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept
from datamask.work.result_file import Content, Entry, require

KEEP_SECONDS = 10.0
"""Between two savings; more where saving takes long, so that it costs at most a twentieth of the time."""


@dataclass
class NeighborLists:
    """Lists being filled.

    Attributes:
        similarities, indices: float32 and int32 ``(N, k)`` heaps, without the rows themselves.
        done: bool ``(T,)``, which tasks have added all they have to.
    """

    similarities: np.ndarray
    indices: np.ndarray
    done: np.ndarray


class GraphCheckpoint:
    """Where half-built lists are kept between processes.

    Args:
        cache_dir: None: nowhere, a stop then loses them.
        fingerprint: of the corpus.

    Attributes:
        used: whether lists were asked for. resumed: whether they were gone on with, from what may be another process.
    """

    def __init__(self, cache_dir: str | os.PathLike[str] | None = None, fingerprint: str = "") -> None:
        self._stored = stored_lists(fingerprint, cache_dir)
        self.used = self.resumed = False

    def lists(self, n: int, k: int, tasks: int, plan: str) -> NeighborLists:
        """Lists of n rows to go on with: those kept for the same plan, else empty ones.

        Args:
            plan: what the tasks are; tasks of another plan say nothing about these.
        """
        from datamask.corpus.kernels import empty_heaps

        self.used = True
        if (stored := self._stored.find()) is not None:
            lists, stored_plan = stored
            if stored_plan == plan and lists.indices.shape == (n, k) and len(lists.done) == tasks:
                self.resumed = True
                return lists
        return NeighborLists(*empty_heaps(n, k, n), np.zeros(tasks, bool))

    def save(self, lists: NeighborLists, plan: str) -> None:
        """Write the lists down; a folder that cannot be written is logged and does without."""
        if lists.done.any():
            self._stored.keep((lists, plan))

    def clear(self) -> None:
        """Forget what was kept."""
        self.resumed = False
        self._stored.drop()


def stored_lists(fingerprint: str, cache_dir: str | os.PathLike[str] | None) -> Kept[tuple[NeighborLists, str]]:
    """Describe a corpus's half-built lists in the cache, and their plan."""
    return Kept(
        cache_dir,
        Entry(fingerprint, "neighbors-unfinished", 1),
        read=_checked_lists,
        write=lambda lists_and_plan: Content({"plan": lists_and_plan[1]}, vars(lists_and_plan[0])),
    )


def _checked_lists(content: Content) -> tuple[NeighborLists, str]:
    """The lists that a file holds, and their plan. Raises Implausible where they are none."""
    lists = NeighborLists(*(content.arrays[name] for name in ("similarities", "indices", "done")))
    similarities, indices = lists.similarities, lists.indices
    require(
        similarities.dtype == np.float32 and indices.dtype == np.int32 and lists.done.dtype == bool,
        "the lists are of another type",
    )
    require(
        indices.ndim == 2 and similarities.shape == indices.shape and lists.done.ndim == 1,
        "the lists are of another shape",
    )
    n = len(indices)
    # n stands for a place that is still empty
    require(indices.min(initial=0) >= 0 and indices.max(initial=0) <= n, "the lists name rows that are not there")
    full = similarities[indices < n]
    require(np.isfinite(full).all() and np.abs(full).max(initial=0.0) <= 1.0 + 1e-4, "the similarities are no cosines")
    return lists, str(content.value["plan"])


class _SaveDue(Exception):
    """The lists are to be saved now."""


def work_through(
    lists: NeighborLists,
    task: Callable[[int], None],
    checkpoint: GraphCheckpoint,
    plan: str,
    *,
    costs: np.ndarray | None = None,
    work: Work = UNWATCHED,
) -> None:
    """Do the tasks that are not done, in order, in threads; save now and then, and when stopped.

    Args:
        lists: filled by the tasks.
        task: adds all that task number i has to the lists, by itself safe beside other tasks; well under 0.3 s.
        checkpoint, plan: where and under what name the lists are kept.
        costs: of each task, ``(T,)``; None: all cost the same.
        work: asked some ten times a second, and told the share that is done, by cost.

    Raises:
        Stopped: from `work.poll`.
    """
    threads = work.threads or thread_count(len(lists.indices))
    saved, every = time.monotonic(), KEEP_SECONDS

    def poll() -> None:
        work.poll()
        if time.monotonic() - saved > every:
            raise _SaveDue

    def tick() -> None:
        if len(lists.done):
            work.report(float(np.average(lists.done, weights=costs)), "Neighbor graph")

    while not lists.done.all():
        todo = np.flatnonzero(~lists.done)

        def next_task(place: int, todo: np.ndarray = todo) -> None:
            task(int(todo[place]))
            lists.done[todo[place]] = True

        # whatever is raised, every task that had begun has ended by then
        try:
            in_threads(next_task, len(todo), threads=threads, poll=poll, tick=tick)
        except _SaveDue:
            began = time.monotonic()
            checkpoint.save(lists, plan)
            saved = time.monotonic()
            every = max(KEEP_SECONDS, 20 * (saved - began))
        except Stopped:
            checkpoint.save(lists, plan)
            raise
    tick()
