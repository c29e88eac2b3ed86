"""NN-descent: compare each row with the nearest neighbors of its nearest neighbors (Dong, Moses and Li 2011).

A search that looks into few cells misses a pair whose rows both lie elsewhere. Most such pairs have a common neighbor
that both lists name. One pass finds them for a small part of the time that more cells take: rows of a cell come one
after another, so that most of the rows they are compared with are the same ones, and are fetched once.

A pass reads the lists from before it and writes new ones. So the lists depend neither on the number of threads nor on
the order of the tasks, nor on where lists and rows lie.
"""

from __future__ import annotations

import threading

import numpy as np

from datamask.corpus.exact_search import Base
from datamask.corpus.threads import in_threads, thread_count
from datamask.places import MEMORY, Place
from datamask.work.context import UNWATCHED, Work

NEAREST = 28
"""Neighbors of a row whose neighbors are looked at, and of these as many: 100 to 250 comparisons a row."""

TASK_ROWS = 2048
"""Rows of a task: 0.1 s at 1,024 dimensions."""


class Room:
    """What one thread needs for N rows: two numbers of each."""

    def __init__(self, rows: int) -> None:
        self.compared, self.places = np.full(rows, -1, np.int32), np.full(rows, -1, np.int32)

    def fetch(self, base: Base, names: np.ndarray) -> np.ndarray:
        """Rows of these numbers, each once; `places` says where, until `forget`."""
        from datamask.corpus import kernels

        self.fetched = np.sort(kernels.distinct(names, self.places))
        self.places[self.fetched] = np.arange(len(self.fetched), dtype=np.int32)
        return base[self.fetched]

    def forget(self) -> None:
        self.places[self.fetched] = -1


def improve(
    rows: Base, near: Base, ties: np.ndarray, first: int, indices: np.ndarray, similarities: np.ndarray, room: Room
) -> None:
    """Offer the rows from `first` on the nearest neighbors of their nearest neighbors.

    Args:
        rows: int16 ``(N, d)``, rounded, by position. near: int32 ``(N, m)``, the first neighbors of all rows, as from
            before. ties: uint64 ``(N,)``.
        indices, similarities: int32 and float32 ``(n, k)``, lists of these rows by falling cosine, ties first; changed.
        room: for one pass.
    """
    from datamask.corpus import kernels

    here = slice(first, first + len(indices))
    own = np.ascontiguousarray(near[here])
    theirs = room.fetch(near, own.reshape(-1))
    seconds = np.empty(own.size * own.shape[1], np.int32)
    starts = kernels.second_neighbors(indices, first, own, theirs, room.places, room.compared, seconds)
    room.forget()
    seconds = seconds[: starts[-1]]
    others = room.fetch(rows, seconds)
    kernels.offer_seconds(np.asarray(rows[here]), others, room.places, starts, seconds, ties, similarities, indices)
    room.forget()


def descend(
    rows: np.ndarray,
    indices: np.ndarray,
    similarities: np.ndarray,
    ties: np.ndarray,
    *,
    nearest: int = NEAREST,
    work: Work = UNWATCHED,
    place: Place = MEMORY,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of all rows after one pass, in threads.

    Args:
        rows, indices, similarities, ties: as in `improve`, of all rows.
        nearest: how many neighbors of each row, and of each of these, are looked at.
        work: asked and told some ten times a second; its threads, where it names none: one per core.
        place: of the new lists.

    Raises:
        Stopped: from `work.poll`.
    """
    n = len(indices)
    better = place.empty(indices.shape, np.int32), place.empty(similarities.shape, np.float32)
    # the first neighbors of all rows next to each other
    near = place.copy(indices[:, :nearest])
    tasks = -(-n // TASK_ROWS)
    done = np.zeros(tasks, bool)
    rooms = threading.local()

    def task(number: int) -> None:
        if not hasattr(rooms, "own"):
            rooms.own = Room(n)
        part = slice(number * TASK_ROWS, (number + 1) * TASK_ROWS)
        own = better[0][part], better[1][part]
        own[0][:], own[1][:] = indices[part], similarities[part]
        improve(rows, near, ties, part.start, *own, rooms.own)
        done[number] = True

    in_threads(
        task,
        tasks,
        threads=work.threads or thread_count(n),
        poll=work.poll,
        tick=lambda: work.report(float(done.mean()), "Neighbor graph: neighbors of neighbors"),
    )
    return better
