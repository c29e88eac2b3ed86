"""The parts of the torture suite: one line each. See `tests.torture.contract` for what a part is.

To add one: a module with a `Part` in it, and a line below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.torture import faults, inputs, load, numbers, web
from tests.torture.contract import Part


def imports() -> None:
    """What every part needs: the program is imported before a case is forked, not in it."""
    import torch

    from datamask import api

    torch.set_num_threads(1)
    assert api.select


@dataclass(frozen=True)
class Entry:
    """A part and how it is run.

    Attributes:
        part: what is tried.
        warm: called once per worker process before its first case: imports, compiles, makes what cases only read.
        seconds: a case that takes longer is tried again with more time, and hangs if it does not end then either; ten
            times what the slowest needs on a busy machine.
        memory: bytes that a case and its processes may take besides what the warm worker holds already.
        beyond: what the part does not reach, for the report.
    """

    part: Part
    warm: Callable[[], None] = imports
    seconds: float = 120.0
    memory: int = 3 << 30
    beyond: str = ""


ENTRIES = (
    Entry(
        inputs.PART,
        inputs.warm,
        seconds=120.0,
        beyond="files of more than some hundred megabytes; texts typed into the browser (its addresses are tried as "
        "pure functions); other file systems than that of the temporary folder",
    ),
    Entry(
        faults.PART,
        faults.warm,
        seconds=240.0,
        beyond="power cuts (a kill keeps what the kernel holds); single writes of native libraries, which only see a "
        "full disk; network file systems; explain",
    ),
    Entry(numbers.PART, beyond="more than 13 rows, where nothing can be enumerated"),
    Entry(
        web.PART,
        web.warm,
        beyond="other web servers in front; answers that the HTTP library gives by itself to what it cannot read",
    ),
    Entry(
        load.PART,
        seconds=900.0,
        memory=12 << 30,
        beyond="more visitors than seven; hours instead of minutes; a browser's own memory",
    ),
)
PARTS = {entry.part.name: entry for entry in ENTRIES}
"""Part name -> how it is run."""
