"""What an engine promises, and what all of them share: the sentence about workers that are lost again and again."""

from __future__ import annotations

import abc
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from datamask.errors import LostWorkersError
from datamask.polling import Poll

Result = dict[str, Any]
"""What a task gives back: JSON, small."""

OnDone = Callable[[int, Result], None]
"""Told of a task that is done: its place among the arguments, and what it gave back."""

TRIES = 3
"""So often a task is begun before the workers that died at it are taken for its fault."""

ASKED_SECONDS = 0.1
"""Between two calls of `poll`."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""What workers have in their environment: a task computes in one thread, and so the same wherever it is done."""


class Engine(abc.ABC):
    """Does tasks; `datamask.out_of_core.engines` says what a task is. A context manager that lets its workers go.

    One thread at a time. Workers end when the process that opened the engine does, however it ends.
    """

    @abc.abstractmethod
    def run(
        self,
        task: str,
        arguments: Sequence[Mapping[str, Any]],
        *,
        poll: Poll,
        on_done: OnDone | None = None,
    ) -> list[Result]:
        """Call the task with each argument; what it gave back, in the order of the arguments.

        Args:
            task: ``package.module:function``.
            arguments: one dict per call, of what JSON knows, at most `replies.LARGEST` bytes.
            poll: called some ten times a second, from the calling thread; what it raises ends the tasks in flight at
                once, and is raised.
            on_done: called from the calling thread, as they end and not in order.

        Raises:
            DatamaskError: a task raised it; it is not tried again, and those in flight are ended.
            LostWorkersError: workers died `TRIES` times at one task.
            TaskFault: a task raised what nobody expected.
            OSError, MemoryError: as the task did.
            TypeError, ValueError: an argument, or what a task gave back, is not JSON or too large.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Let all workers go; those at work are ended at once. The engine can be used again."""

    @property
    @abc.abstractmethod
    def workers(self) -> int:
        """How many tasks it does at a time."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def lost_for_good(task: str, how: str) -> LostWorkersError:
    """What is raised where workers died `TRIES` times at one task; `how` the last one did."""
    return LostWorkersError(
        f"{TRIES} worker processes died at the same piece of work ({task}), the last one {how}; where memory ran out, "
        "give fewer --workers, and resume: what is done is not done again"
    )
