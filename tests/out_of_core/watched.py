"""A task that does another one, and notes each time that it is begun; it can die, or wait, the first time."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

from datamask.out_of_core.engines.contract import Engine
from datamask.out_of_core.engines.replies import function_of
from tests.out_of_core.toy import note


class Begun(NamedTuple):
    """A task that was begun: its name, what all calls of its phase are named by, its number, and the process."""

    name: str
    phase: str
    number: int
    process: int


def task(argument: dict[str, Any]) -> dict[str, Any]:
    """Do ``task`` of ``argument``, and note in the file ``notes`` that it is begun.

    ``die``: a number whose task kills its process when it is begun for the first time; ``hang``: one that waits then,
    until it is killed: in the first phase of each name that has it, but no more often than ``most`` says.
    """
    inner, notes = argument["argument"], Path(argument["notes"])
    name, phase, number = argument["task"].rpartition(":")[2], inner["output"], inner["number"]
    before = [each for each in begun(notes) if each.number == number and each.name == name]
    note(notes, f"{name} {phase} {number} {os.getpid()}")
    if number == argument.get("die") and not before:
        os.kill(os.getpid(), signal.SIGKILL)
    hung = notes.with_suffix(".hung")
    if not before and number == argument.get("hang") and len(begun(hung)) < argument["most"]:
        note(hung, f"{name} {phase} {number} {os.getpid()}")
        time.sleep(600)
    return function_of(argument["task"])(inner)


def begun(notes: Path) -> list[Begun]:
    """What was begun so far."""
    lines = notes.read_text().split("\n")[:-1] if notes.exists() else []
    return [Begun(name, phase, int(number), int(process)) for name, phase, number, process in map(str.split, lines)]


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

    def begun(self) -> list[Begun]:
        """Every task that was begun, in that order."""
        return begun(self._notes)

    def hung(self) -> list[Begun]:
        """Those that waited."""
        return begun(self._notes.with_suffix(".hung"))
