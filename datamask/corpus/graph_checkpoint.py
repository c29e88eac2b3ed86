"""Neighbour lists under construction and their checkpoint: many tasks fill them, and what is done survives a stop or
a killed process.

The lists are binary heaps (see `datamask.corpus.kernels`) that every task adds to, so they only mean something together
with the record of the tasks that are done. Both are written in one file, whole or not at all, at moments when no task
is running: a task is never half in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from datamask.corpus.threads import in_threads, thread_count
from datamask.errors import Stopped
from datamask.places import MEMORY, Place
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept, Progress
from datamask.work.result_file import Content, Entry, require

KEEP_SECONDS = 10.0
"""Between two savings, at least."""

ROWS_AT_ONCE = 8192
"""Rows of kept lists that are checked together, so that what is made of them stays small."""


@dataclass
class NeighborLists:
    """Lists being filled.

    Attributes:
        similarities, indices: float32 and int32 ``(N, k)`` heaps, without the rows themselves.
        done: bool ``(T,)``, which tasks have added all they have to.
        plan: what the tasks are; tasks of another plan say nothing about these lists.
    """

    similarities: np.ndarray
    indices: np.ndarray
    done: np.ndarray
    plan: str

    @classmethod
    def begun(
        cls, n: int, k: int, tasks: int, plan: str, progress: Progress[NeighborLists], place: Place = MEMORY
    ) -> NeighborLists:
        """Lists of n rows to go on with, in that place: those kept for the same plan, else empty ones."""
        from datamask.corpus.kernels import empty_heaps

        kept = progress.found(lambda kept: (kept.plan, kept.indices.shape, len(kept.done)) == (plan, (n, k), tasks))
        if kept is None:
            return cls(*empty_heaps(n, k, n, place), np.zeros(tasks, bool), plan)
        return cls(place.copy(kept.similarities), place.copy(kept.indices), kept.done.copy(), plan)

    def save(self, progress: Progress[NeighborLists]) -> None:
        """Write them down, if anything is done."""
        if self.done.any():
            progress.write(self)


def stored_lists(fingerprint: str, cache_dir: str | os.PathLike[str] | None) -> Kept[NeighborLists]:
    """Describe a corpus's half-built lists in the cache."""
    return Kept(
        cache_dir,
        Entry(fingerprint, "neighbors-unfinished", 1),
        read=_checked_lists,
        write=lambda lists: Content(
            {"plan": lists.plan},
            {"similarities": lists.similarities, "indices": lists.indices, "done": lists.done},
        ),
        mapped=True,
    )


def graph_progress(fingerprint: str, cache_dir: str | os.PathLike[str] | None) -> Progress[NeighborLists]:
    """Where a corpus's half-built lists are kept."""
    return Progress(stored_lists(fingerprint, cache_dir), KEEP_SECONDS)


def _checked_lists(content: Content) -> NeighborLists:
    """The lists that a file holds. Raises Implausible where they are none."""
    lists = NeighborLists(content["similarities"], content["indices"], content["done"], str(content.value["plan"]))
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
    for low in range(0, n, ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        # a comparison with what is no number is false
        cosines = (np.abs(similarities[part]) <= 1.0 + 1e-4) | (indices[part] == n)
        require(cosines.all(), "the similarities are no cosines")
    return lists


class _SaveDue(Exception):
    """The lists are to be saved now."""


def work_through(
    lists: NeighborLists,
    task: Callable[[int], None],
    progress: Progress[NeighborLists],
    *,
    costs: np.ndarray | None = None,
    work: Work = UNWATCHED,
) -> None:
    """Do the tasks that are not done, in order, in threads; save now and then, and when stopped.

    Args:
        lists: filled by the tasks.
        task: adds all that task number i has to the lists, by itself safe beside other tasks; well under 0.3 s.
        progress: where the lists are kept.
        costs: of each task, ``(T,)``; None: all cost the same.
        work: asked some ten times a second, and told the share that is done, by cost.

    Raises:
        Stopped: from `work.poll`.
    """
    threads = work.threads or thread_count(len(lists.indices))

    def poll() -> None:
        work.poll()
        if progress.due and lists.done.any():
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
            lists.save(progress)
        except Stopped:
            lists.save(progress)
            raise
    tick()
