"""Engines: who does the tasks of a run over a whole corpus, here or on other machines.

    with open_engine("local") as engine:
        results = engine.run("datamask.out_of_core.partition:centres", arguments, poll=poll)

A task is a function of one small dict, called by name in another process, which gives a small dict back. Its contract,
to which every engine holds it and on which resuming rests:

- It reads and writes files, and only their paths cross the interface. What it writes it writes at once or not at all
  (`datamask.files.replacing`), under a name that follows from its argument; where that file is there already, it does
  not do the work again.
- It depends on its argument and on those files alone: not on who else is at work, in which order, or on which machine.
- It computes in one thread; the engine has as many at work as there are cores.
- It can be killed at any moment, and is, on Stop; it is then done again by the next attempt.

So whatever is killed, only what was in flight is done again, and what is selected depends neither on the engine nor on
the number of its workers.

To add an engine: a class with the contract of `contract.Engine`, and its line in `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable

from datamask.errors import OptionError
from datamask.out_of_core.engines.contract import Engine


def _local(workers: int | None, address: str | None) -> Engine:
    from datamask.out_of_core.engines.local import LocalEngine

    if address is not None:
        raise OptionError("--address is of --engine ray; local processes need none")
    return LocalEngine(workers)


def _ray(workers: int | None, address: str | None) -> Engine:
    from datamask.out_of_core.engines.ray_core import RayEngine

    return RayEngine(workers, address)


ENGINES: dict[str, Callable[[int | None, str | None], Engine]] = {"local": _local, "ray": _ray}
"""Name -> what opens it, given the number of workers and an address, None where it is to choose."""


def open_engine(name: str = "local", *, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of that name. Nothing is started before its first task.

    Args:
        workers: how many tasks it does at a time; None: as many as there are cores.
        address: of a cluster that is to be joined; None: this machine.

    Raises:
        OptionError: there is no such engine, it joins no cluster, or a library that it needs is not installed.
    """
    if name not in ENGINES:
        raise OptionError(f"--engine must be one of {', '.join(ENGINES)}, got {name!r}")
    return ENGINES[name](workers, address)


__all__ = ["ENGINES", "Engine", "open_engine"]
