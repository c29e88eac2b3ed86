"""What every task of a run over a whole corpus shares: its argument, the name of its file, and that it is done once.

A task is a function of a module, of one small dict. It writes one array file into the folder of the run, named by a
digest of what made it; where the file is there, nothing is done and its facts are given back. A phase is many calls of
one task, told apart by a number alone, so their files have one digest and each later phase names all of them by one
word. See `datamask.out_of_core.engines` for what does them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamask.errors import InputError
from datamask.out_of_core.array_file import ArrayFile, write_arrays
from datamask.out_of_core.engines.contract import Engine
from datamask.work.context import UNWATCHED, Work

Argument = Mapping[str, Any]
"""What a task is called with: JSON, small."""

Made = tuple[Mapping[str, np.ndarray], Mapping[str, Any]]
"""What a task makes: arrays for its file, facts to give back."""

VERSION = 1
"""Of all files of tasks: raise it when one of them means something else."""


@dataclass(frozen=True)
class Phase:
    """So many calls of one task, which differ by a number.

    Attributes:
        task: ``package.module:function``. count: of calls, numbered from 0.
        folder: of their files. settings: what all of them are called with; names of files as they stand in the folder.
    """

    task: str
    count: int
    folder: Path
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The word that all of its files begin with: what later phases know it by."""
        made_of = json.dumps([VERSION, self.task, self.settings], sort_keys=True)
        digest = hashlib.blake2b(made_of.encode(), digest_size=12).hexdigest()
        return f"{self.task.rpartition(':')[2]}-{digest}"

    def argument(self, number: int) -> dict[str, Any]:
        """What the call of this number is called with."""
        return {"folder": str(self.folder), "output": self.name, "number": number, **self.settings}

    def path(self, number: int) -> Path:
        """Where its file is to be."""
        return file_of(self.folder, self.name, number)

    def done(
        self,
        engine: Engine,
        work: Work = UNWATCHED,
        what: str = "",
        take: Callable[[int], None] = lambda number: None,
    ) -> list[dict[str, Any]]:
        """Do what is not done yet; the facts of all calls, in the order of their numbers.

        Args:
            what: the calls are, for the report as they end; empty: nothing is reported.
            take: is called with the number of every call in their order, as soon as it and all before it are done, and
                may remove its file.

        Raises:
            StoreError: a file that is there is damaged. Also what `Engine.run` raises, and `work.poll`.
        """

        def report() -> None:
            if what:
                count = f": {len(facts):,} of {self.count:,}" if self.count > 1 else ""
                work.report(len(facts) / self.count, what + count)

        facts: dict[int, dict[str, Any]] = {}
        taken = 0

        def note(number: int, result: dict[str, Any]) -> None:
            nonlocal taken
            facts[number] = result
            while taken in facts:
                take(taken)
                taken += 1

        for number in range(self.count):
            work.poll()
            known = facts_of(self.path(number))
            if known is not None:
                note(number, known)
        missing = [number for number in range(self.count) if number not in facts]
        report()

        def on_done(place: int, result: dict[str, Any]) -> None:
            note(missing[place], result)
            report()

        if missing:
            arguments = [self.argument(number) for number in missing]
            engine.run(self.task, arguments, poll=work.poll, on_done=on_done)
        return [facts[number] for number in range(self.count)]

    @property
    def whole(self) -> bool:
        """Whether all of its files are there."""
        return all(self.path(number).is_file() for number in range(self.count))

    def remove(self) -> None:
        """Remove its files."""
        for number in range(self.count):
            self.path(number).unlink(missing_ok=True)


def file_of(folder: Path | str, name: str, number: int) -> Path:
    """The file of one call of a phase.

    Raises:
        InputError: the name leads out of the folder.
    """
    if os.sep in name:
        raise InputError(f"a file of a task must be named by one word without {os.sep!r}, got {name[:80]!r}")
    return Path(folder) / f"{name}-{number:06d}"


def opened(argument: Argument, phase: str, number: int | None = None) -> ArrayFile:
    """The file of a phase that the argument names; None: that of the same number.

    Raises:
        FileNotFoundError: it is not there. StoreError: it is damaged.
    """
    number = argument["number"] if number is None else number
    return ArrayFile(file_of(argument["folder"], argument[phase], number))


def facts_of(path: Path) -> dict[str, Any] | None:
    """The facts of a file; None: it is not there."""
    try:
        return ArrayFile(path).facts
    except FileNotFoundError:
        return None


def task(make: Callable[[Argument], Made]) -> Callable[[Argument], dict[str, Any]]:
    """Turn what makes the file of a call into a task: called by its name, it gives the facts of the file back.

    The file is made where it is not there. The task raises what `make` does, and StoreError where the file is damaged,
    or cannot be written.
    """

    @functools.wraps(make)
    def once(argument: Argument) -> dict[str, Any]:
        path = file_of(argument["folder"], argument["output"], argument["number"])
        known = facts_of(path)
        if known is None:
            arrays, facts = make(argument)
            write_arrays(path, arrays, facts)
            known = ArrayFile(path).facts
        return known

    return once
