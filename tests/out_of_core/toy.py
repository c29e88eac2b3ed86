"""A task that does nothing of use and says what happened: who did it, how often, in which process.

Its folder holds ``<number>.json`` for each number that is done, and ``begun``, a line for each time that one was begun.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from datamask.errors import InputError
from datamask.files import replacing


def square(argument: dict[str, Any]) -> dict[str, Any]:
    """The square of ``number``, kept in ``folder``; a task as the engines' contract has it.

    ``first`` is what happens when it is begun for the first time, ``always`` what happens each time: `HAPPENS` says
    what may. ``after`` is a number that has to be done before this one ends, or any other ``<after>.json`` to wait for.
    """
    folder, number = Path(argument["folder"]), argument["number"]
    result = folder / f"{number}.json"
    if result.exists():
        return {**json.loads(result.read_text()), "reused": True}
    first = not times(folder, number)
    note(folder / "begun", f"{number} {os.getpid()}")
    if happens := argument.get("always") or (argument.get("first") if first else None):
        HAPPENS[happens](folder)
    while "after" in argument and not (folder / f"{argument['after']}.json").exists():
        time.sleep(0.01)
    answer = {"number": number, "square": number**2, "process": os.getpid()}
    with replacing(result) as part:
        part.write_text(json.dumps(answer))
    return answer


def note(path: Path, line: str) -> None:
    """Append a line, whole even where several processes do."""
    with path.open("a") as file:
        file.write(f"{line}\n")


def begun(folder: Path) -> list[tuple[int, int]]:
    """What was begun so far: number and process, in that order."""
    path = folder / "begun"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(int(number), int(process)) for number, process in (line.split() for line in lines)]


def times(folder: Path, number: int) -> int:
    """How often a number was begun."""
    return sum(other == number for other, _ in begun(folder))


def _die(folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang(folder: Path) -> None:
    time.sleep(600)


def _mute(folder: Path) -> None:
    os.closerange(3, 1024)
    time.sleep(600)


def _mistake(folder: Path) -> None:
    raise InputError("shard 3 has no column 'quality'; name it with --quality_column")


def _full(folder: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "scratch.bin")


def _memory(folder: Path) -> None:
    raise MemoryError("Unable to allocate 8 GiB")


def _bug(folder: Path) -> None:
    raise ZeroDivisionError("division by zero")


def _chatter(folder: Path) -> None:
    print("a library says hello", flush=True)
    os.write(1, b'{"result": {"square": -1}}\n')


HAPPENS = {
    "die": _die,
    "hang": _hang,
    "mute": _mute,
    "mistake": _mistake,
    "full": _full,
    "memory": _memory,
    "bug": _bug,
    "chatter": _chatter,
}


def threads(argument: dict[str, Any]) -> dict[str, Any]:
    """How many threads the libraries of this process would use."""
    return {name: os.environ.get(name) for name in argument["names"]}


def priority(argument: dict[str, Any]) -> dict[str, Any]:
    """How nice this process is."""
    return {"nice": os.nice(0)}


def no_dict(argument: dict[str, Any]) -> list[int]:
    """A task that breaks its contract."""
    return [1]


def too_much(argument: dict[str, Any]) -> dict[str, Any]:
    """A task that gives back what belongs into a file."""
    return {"rows": list(range(argument["rows"]))}
