"""A task that does another one, and notes each time that it is begun; it can die, or wait, the first time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.engines.replies import function_of
from tests.out_of_core.toy import note


def task(argument: dict[str, Any]) -> dict[str, Any]:
    """Do ``task`` of ``argument``; note in ``notes`` its name, its number and this process.

    ``hang``: a number whose task, begun for the first time, waits until it is killed; ``die``: one that kills itself.
    """
    inner, notes = argument["argument"], Path(argument["notes"])
    name, number = argument["task"].rpartition(":")[2], inner["number"]
    first = not any(line.split()[:2] == [name, str(number)] for line in lines(notes))
    note(notes, f"{name} {number} {os.getpid()}")
    if first and number == argument.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if first and number == argument.get("hang"):
        time.sleep(600)
    return function_of(argument["task"])(inner)


def lines(notes: Path) -> list[str]:
    """What was begun so far, a line each."""
    return notes.read_text().split("\n")[:-1] if notes.exists() else []


class WatchedEngine(Engine):
    """Has another engine do its tasks by `task`."""

    def __init__(self, inner: Engine, notes: Path, **happens: int) -> None:
        self._inner, self._notes, self._happens = inner, notes, happens

    def run(self, task, arguments, *, poll, on_done=None):
        beside = {"task": task, "notes": str(self._notes), **self._happens}
        watched = [{"argument": dict(argument), **beside} for argument in arguments]
        return self._inner.run("tests.out_of_core.watched:task", watched, poll=poll, on_done=on_done)

    def close(self) -> None:
        self._inner.close()

    @property
    def workers(self) -> int:
        return self._inner.workers

    def begun(self) -> list[tuple[str, int]]:
        """Name and number of every task that was begun, in that order."""
        return [(name, int(number)) for name, number, _ in map(str.split, lines(self._notes))]
