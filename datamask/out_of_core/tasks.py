"""What every task of a run over a whole corpus shares: its argument, the name of its file, and that it is done once.

A task is a function of a module, of one small dict. It makes one part of `datamask.work.kept.Parts`: where the part is
there, nothing is done and its facts are given back. Calls of one task are told apart by a number alone, so later ones
name all of its parts by one word. See `datamask.out_of_core.engines` for what does them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datamask.out_of_core.engines.contract import Engine
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept, Parts, found, piece
from datamask.work.result_file import Content

Argument = Mapping[str, Any]
"""What a task is called with: JSON, small."""

Made = tuple[Mapping[str, np.ndarray], Mapping[str, Any]]
"""What a task makes: arrays for its file, facts to give back."""

VERSION = 1
"""Of all files of tasks: raise it when one of them means something else."""


def parts_of(task: str, count: int, folder: Path, settings: Mapping[str, Any]) -> Parts:
    """Describe what so many calls of a task make, which differ by a number.

    Args:
        task: ``module:function`` of this package. folder: of the files.
        settings: what all are called with; other parts by their word.
    """
    return Parts(folder, task, VERSION, settings, count)


def do(
    parts: Parts,
    engine: Engine,
    work: Work = UNWATCHED,
    what: str = "",
    take: Callable[[int], None] = lambda number: None,
) -> list[dict[str, Any]]:
    """Do the calls whose part is not there; the facts of all, in the order of their numbers.

    Args:
        what: the calls are, for the report as they end; empty: nothing is reported.
        take: is called with the number of every call in their order, as soon as it and all before it are done, and
            may remove its file.

    Raises: what `Engine.run` raises, and `work.poll`.
    """
    facts: dict[int, dict[str, Any]] = {}
    taken = 0

    def report() -> None:
        if what:
            count = f": {len(facts):,} of {parts.count:,}" if parts.count > 1 else ""
            work.report(len(facts) / parts.count, what + count)

    def note(number: int, result: dict[str, Any]) -> None:
        nonlocal taken
        facts[number] = result
        while taken in facts:
            take(taken)
            taken += 1

    for number in range(parts.count):
        work.poll()
        if (known := parts.at(number).find()) is not None:
            note(number, known.value)
    missing = [number for number in range(parts.count) if number not in facts]
    report()

    def on_done(place: int, result: dict[str, Any]) -> None:
        note(missing[place], result)
        report()

    if missing:
        shared = {"folder": str(parts.folder), "output": parts.word, **parts.made_of}
        arguments = [{**shared, "number": number} for number in missing]
        engine.run(f"{__package__}.{parts.name}", arguments, poll=work.poll, on_done=on_done)
    return [facts[number] for number in range(parts.count)]


def file_of(argument: Argument, word: str, number: int) -> Kept[Content]:
    """Describe the file of one call in the folder of the argument."""
    return piece(Path(argument["folder"]), word, VERSION, number)


def opened(argument: Argument, phase: str, number: int | None = None) -> Content:
    """The part that the argument names; None: that of the same number. Raises StoreError: it is missing or damaged."""
    return found(file_of(argument, argument[phase], argument["number"] if number is None else number))


def task(make: Callable[[Argument], Made]) -> Callable[[Argument], dict[str, Any]]:
    """Turn what makes the file of a call into a task: called by its name, it gives the facts of the file back.

    The file is made where it is not there. The task raises what `make` does, and StoreError where the file cannot be
    written.
    """

    @functools.wraps(make)
    def once(argument: Argument) -> dict[str, Any]:
        def made() -> Content:
            arrays, facts = make(argument)
            return Content(dict(facts), dict(arrays))

        return file_of(argument, argument["output"], argument["number"]).find_or_compute(made).value

    return once
