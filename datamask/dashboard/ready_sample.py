"""The sample opened by itself, by the server, where nothing was opened before.

Nothing of it happens where a corpus was named on the command line, where another corpus than the sample was opened
before, where the runs folder holds runs that were not made here, or where the variable `SWITCH` is ``off``.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from datamask.dashboard import sample
from datamask.dashboard.allowed import allowed
from datamask.dashboard.openings import Opening, Openings, opening_key
from datamask.errors import StoreError
from datamask.files import write_text
from datamask.process import held
from datamask.runs.formats import read_json
from datamask.runs.store import RunStore

log = logging.getLogger(__name__)

SWITCH = "DATAMASK_SAMPLE"
"""Variable of the environment; ``off``: nothing is opened or computed that nobody asked for."""


NOTE = ".sample.json"
"""In the runs folder: that the sample opens by itself there."""

ALL = 1000
"""Notes of openings that are looked at, the newest."""


def begin(openings: Openings) -> Opening | None:
    """At the server's start: open the sample, where it opens by itself; None: it does not."""
    if not wanted(openings):
        return None
    try:
        if _read(openings) is None:
            write_text(openings.runs_dir / NOTE, json.dumps({}))
    except StoreError as error:
        log.warning("the sample is opened, but not again by itself: %s", error)
    _begun().add(_name(openings))
    return opening(openings)


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
    if not all(known.sample for known in (*openings.all(), *openings.recent(ALL))):
        return False
    try:
        return _read(openings) is not None or not RunStore(openings.runs_dir).list()
    except StoreError:  # a runs folder that cannot be listed: the pages say so, where they need it
        return False


def _read(openings: Openings) -> dict[str, Any] | None:
    """The note; an empty one where it cannot be read, None where there is none."""
    try:
        note = read_json(openings.runs_dir / NOTE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        note = None
    return note if isinstance(note, dict) else {}


def _name(openings: Openings) -> Path:
    return openings.runs_dir.resolve()


def _begun() -> set[Path]:
    """The runs folders whose server has called `begin`."""
    return held("sample by itself", set)
