"""The parts of the torture suite: one line each. See `tests.torture.contract` for what a part is.

To add one: a module with a `Part` in it, and a line below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.torture import faults, inputs
from tests.torture.contract import Part


def _nothing() -> None:
    """For parts that need nothing before their first case."""


@dataclass(frozen=True)
class Entry:
    """A part and how it is run.

    Attributes:
        part: what is tried.
        warm: called once per worker process before its first case: imports, compiles, makes what cases only read.
        seconds: a case that takes longer hangs; ten times what the slowest needs on a busy machine.
        memory: bytes that a case and its processes may take besides what the warm worker holds already.
    """

    part: Part
    warm: Callable[[], None] = _nothing
    seconds: float = 120.0
    memory: int = 3 << 30


ENTRIES = (
    Entry(inputs.PART, inputs.warm, seconds=40.0),
    Entry(faults.PART, faults.warm, seconds=240.0),
)
PARTS = {entry.part.name: entry for entry in ENTRIES}
"""Part name -> how it is run."""
