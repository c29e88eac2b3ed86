"""What belongs to the process, held where neither a hot reload of a module nor a cleared cache reaches it.

Module globals are lost when a web server reloads edited modules, and with them every open corpus and every thread that
somebody waits for. So the few things that must exist once per process hang in one module of our own in ``sys.modules``.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Held = TypeVar("Held")

HOLDER = "_datamask_process"

THREADS = "OMP_NUM_THREADS"
"""Name in the environment of how many threads compute, which torch obeys too."""


def held(name: str, make: Callable[[], Held]) -> Held:
    """What this process holds under `name`, made by ``make()`` at the first call; the same on every later one.

    Threads do not survive a fork, so a forked child makes its own.

    Args:
        name: unique over the program.
        make: called at most once per process and name.
    """
    holder = _holder()
    with holder.lock:
        if name not in holder.things:
            holder.things[name] = make()
        value: Held = holder.things[name]
        return value


def ask_threads(count: int) -> None:
    """Have this process, which has not loaded torch yet, and those that it starts compute with so many threads."""
    os.environ[THREADS] = str(count)


def asked_threads() -> int | None:
    """The number of threads that the environment names; None where it names none."""
    first = os.environ.get(THREADS, "").split(",")[0].strip()
    return int(first) or None if first.isdecimal() else None


def import_from_working_folder() -> None:
    """Let the working folder count as a place to import from, after all others."""
    folder = str(Path.cwd())
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)


def _holder() -> Any:
    holder = sys.modules.get(HOLDER)
    if holder is None:
        made = types.ModuleType(HOLDER, "Holds what datamask has once per process.")
        _begin(made)
        # setdefault is atomic: of two threads that come here at once, both get one holder
        holder = sys.modules.setdefault(HOLDER, made)
        if holder is made:
            os.register_at_fork(after_in_child=lambda: _begin(made))
    return holder


def _begin(holder: Any) -> None:
    """Nothing is held yet; in a forked child the lock may have been another thread's, which is not there."""
    holder.__dict__.update(things={}, lock=threading.RLock())


def child_environment() -> dict[str, str]:
    """The environment of a process that is to import this very datamask."""
    root = str(Path(__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
