"""The sample opened by itself, by the server, where nothing was opened before.

Nothing of it happens where a corpus was named on the command line, where another corpus than the sample was opened
before, where the runs folder holds runs that were not made here, or where the variable `SWITCH` is ``off``.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from datamask.dashboard.data import sample
from datamask.dashboard.data.allowed import allowed
from datamask.dashboard.data.openings import Opening, Openings, opening_key
from datamask.dashboard.data.sample_work import Note, start
from datamask.errors import StoreError
from datamask.process import held
from datamask.runs.store import RunStore

log = logging.getLogger(__name__)

SWITCH = "DATAMASK_SAMPLE"
"""Variable of the environment; ``off``: nothing is opened or computed that nobody asked for."""

ALL = 1000
"""Notes of openings that are looked at, the newest."""


def begin(openings: Openings) -> Opening | None:
    """At the server's start: open the sample, where it opens by itself, and make ready what pages show of it.

    Returns:
        Its opening; None where it does not open by itself.
    """
    if not wanted(openings):
        return None
    note = Note.read(openings.runs_dir)
    if note is None:
        note = Note()
        try:
            note.write(openings.runs_dir)
        except StoreError as error:
            log.warning("the sample is opened, but nothing is made of it: %s", error)
            note.stopped = True
    _begun().add(_name(openings))
    sample_opening = opening(openings)
    if sample_opening is not None and not (note.done or note.stopped):
        start(openings.runs_dir, sample_opening)
    return sample_opening


def opening(openings: Openings) -> Opening | None:
    """The sample's opening, begun where there is none, for visitors who named no corpus.

    None where `begin` opened none, or something else was opened since.
    """
    if _name(openings) not in _begun() or not wanted(openings):
        return None
    config = sample.config()
    return openings.get(opening_key(config)) or openings.start(config, sample.TITLE, sample=True)


def wanted(openings: Openings) -> bool:
    """Whether the sample is to open by itself now."""
    if os.environ.get(SWITCH, "").lower() == "off" or allowed().corpus is not None:
        return False
    if not (all(now.sample for now in openings.all()) and all(then.sample for then in openings.recent(ALL))):
        return False
    try:
        return Note.read(openings.runs_dir) is not None or not RunStore(openings.runs_dir).list()
    except StoreError:  # a runs folder that cannot be listed: the pages say so, where they need it
        return False


def _name(openings: Openings) -> Path:
    return openings.runs_dir.resolve()


def _begun() -> set[Path]:
    """The runs folders whose server has called `begin`."""
    return held("sample by itself", set)
