"""NN-descent: compare each row with the nearest neighbors of its nearest neighbors (Dong, Moses and Li 2011).

A search that looks into few cells misses a pair whose rows both lie elsewhere. Most such pairs have a common neighbor
that both lists name. One pass finds them for a small part of the time that more cells take: rows of a cell come one
after another, so that most of the rows they are compared with are in the processor's cache.

A pass reads the lists from before it and writes new ones. So the lists depend neither on the number of threads nor on
the order of the tasks.
"""

from __future__ import annotations

import threading

import numpy as np

from datamask.corpus.threads import in_threads, thread_count
from datamask.work.context import UNWATCHED, Work

NEAREST = 24
"""Neighbors of a row whose neighbors are looked at, and of these as many: about 105 comparisons a row."""

TASK_ROWS = 2048
"""Rows of a task: 0.1 s at 1,024 dimensions."""


def descend(
    features: np.ndarray,
    indices: np.ndarray,
    similarities: np.ndarray,
    order: np.ndarray,
    *,
    nearest: int = NEAREST,
    work: Work = UNWATCHED,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists after one pass.

    Args:
        features: float32 ``(N, d)``, unit rows.
        indices, similarities: int32 and float32 ``(N, K)``, as in `datamask.corpus.neighbors.NeighborGraph`.
        order: int32 ``(N,)``, all rows, near ones together.
        nearest: how many neighbors of each row, and of each of these, are looked at.
        work: asked and told some ten times a second; its threads, where it names none: one per core.

    Raises:
        Stopped: from `work.poll`.
    """
    from datamask.corpus import kernels

    n, width = len(indices), min(nearest + 1, indices.shape[1])
    better = np.empty_like(indices), np.empty_like(similarities)
    # the first neighbors of all rows, without the row itself, next to each other in memory
    near = np.ascontiguousarray(indices[:, 1:width])
    tasks = -(-n // TASK_ROWS)
    done = np.zeros(tasks, bool)
    rooms = threading.local()

    def task(number: int) -> None:
        if not hasattr(rooms, "compared"):
            rooms.compared = np.full(n, -1, np.int32)
        rows = order[number * TASK_ROWS :][:TASK_ROWS]
        kernels.offer_second_neighbors(features, rows, near, indices, similarities, *better, rooms.compared)
        done[number] = True

    in_threads(
        task,
        tasks,
        threads=work.threads or thread_count(n),
        poll=work.poll,
        tick=lambda: work.report(float(done.mean()), "Neighbor graph: neighbors of neighbors"),
    )
    return better
