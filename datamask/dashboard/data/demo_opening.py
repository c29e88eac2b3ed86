"""When the demo opens by itself: where nothing was opened before.

It does not where the command line names a corpus, where another corpus was opened, where the runs folder holds runs
that were not made here, or where the variable `SWITCH` is ``off``.
"""

from __future__ import annotations

import os
from pathlib import Path

from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.data.demo import NOTE, TITLE, config
from datamask.dashboard.data.openings import Opening, Openings, opening_key
from datamask.errors import StoreError
from datamask.process import held
from datamask.runs.store import RunStore

SWITCH = "DATAMASK_SAMPLE"
"""Variable of the environment; ``off``: nothing is opened that nobody asked for."""


ALL = 1000
"""Notes of openings that are looked at, the newest."""


def begin(openings: Openings) -> Opening | None:
    """Open the demo at the server's start, where it opens by itself; return its opening, else None."""
    if not wanted(openings):
        return None
    _begun().add(openings.runs_dir.resolve())
    return opening(openings)


def opening(openings: Openings) -> Opening | None:
    """Return the demo's opening, begun where there is none, for visitors who named no corpus.

    None where `begin` opened none, or something else was opened since.
    """
    if openings.runs_dir.resolve() not in _begun() or not wanted(openings):
        return None
    return openings.get(opening_key(config())) or openings.start(config(), TITLE)


def off() -> bool:
    """Return whether the environment says that nothing opens by itself."""
    return os.environ.get(SWITCH, "").lower() == "off"


def wanted(openings: Openings) -> bool:
    """Return whether the demo is to open by itself now."""
    if off() or allowed().corpus is not None:
        return False
    opened = [*(each.config for each in openings.all()), *(note.config for note in openings.recent(ALL))]
    if any(each != config() for each in opened):
        return False
    try:
        return (openings.runs_dir / NOTE).is_file() or not RunStore(openings.runs_dir).list()
    except StoreError:  # a runs folder that cannot be listed: the pages say so, where they need it
        return False


def _begun() -> set[Path]:
    """Return the runs folders whose server has called `begin`."""
    return held("demo by itself", set)
