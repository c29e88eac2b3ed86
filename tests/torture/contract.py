"""What a part of the torture suite is: numbered cases, each made from its number alone.

A part lives in a module of its own here (``inputs.py``, ``faults.py``, ``numbers.py``, ``load.py``) and is one line in
``tests/torture/parts.py``. `make torture` draws case numbers at random, `make torture ALL=1` goes through all of them
and through none twice, so a case must depend on nothing but its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class Finding(AssertionError):
    """A promise that did not hold: what was done, what was promised, what came. One case raises at most one."""


@dataclass(frozen=True)
class Part:
    """One kind of attack.

    Attributes:
        name: one word, as on the command line (``--parts inputs``).
        title: what is tried, for the report.
        size: how many cases there are; they are numbered from 0.
        run: ``run(number, folder)`` does case `number` in an empty folder of its own and returns in one or two words
            what came of it (``accepted``, ``refused``, ``resumed`` ...), which the report counts. It cleans up its
            processes, holds no state between cases, takes seconds at most, and raises `Finding` where a promise broke.
        weight: its share of the time of a drawn run, relative to the other parts.
        describe: ``describe(number)`` says in a few words what case `number` does, for the report and to try it again.
        verdict: ``verdict(outcomes)`` judges how often each outcome came, over whichever cases were tried, and raises
            `Finding` where that cannot be right; None: every case stands for itself.
    """

    name: str
    title: str
    size: int
    run: Callable[[int, Path], str]
    weight: float
    describe: Callable[[int], str]
    verdict: Callable[[Counter[str]], None] | None = None
