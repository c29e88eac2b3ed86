"""First looks at corpora that a form names: a few rows of some shards, read in the background."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from datamask.config import CorpusConfig
from datamask.corpus import first_look
from datamask.dashboard.data import first_looks
from datamask.dashboard.data.first_looks import FirstPicture
from datamask.dashboard.data.openings import opening_key
from datamask.process import held
from datamask.work.job import Job
from datamask.work.worker import worker

SHARDS, ROWS = 16, 500
"""Shards looked at, and rows of each, at most: a form that is still being filled in waits for it."""

KEPT = 4
"""Looks of this process that are kept, some MB each."""


@dataclass(eq=False)
class LookAhead:
    """A first look at what is not open.

    Attributes:
        config: the corpus. picture: its pictures, None until the rows are read.
        job: reads the rows.
    """

    config: CorpusConfig
    picture: FirstPicture | None = None
    job: Job = field(init=False, repr=False)

    @property
    def parts(self) -> int:
        """How many parts are there: another number, another picture."""
        return 0 if self.picture is None else self.picture.parts

    @property
    def under_way(self) -> bool:
        """Whether more of it is to come."""
        return not self.job.ended or (self.picture is not None and not self.picture.job.ended)


def look_ahead(config: CorpusConfig) -> LookAhead:
    """Return the first look at a corpus, begun where there is none. Safe from any thread."""
    with _LOCK:
        looks = held("looks ahead", OrderedDict[str, LookAhead])
        key = opening_key(config)
        look = looks.get(key)
        if look is None:
            look = looks[key] = LookAhead(config)
            look.job = worker().start(f"look ahead {key}", lambda job: _read(look, job))
        looks.move_to_end(key)
        while len(looks) > KEPT:
            _, old = looks.popitem(last=False)
            _stop(old)
        return look


_LOCK = threading.Lock()


def _read(look: LookAhead, job: Job) -> None:
    rows = first_look(look.config, shards=SHARDS, rows=ROWS, work=job.work)
    look.picture = first_looks.start(rows, f"ahead {opening_key(look.config)} {id(look)}")


def _stop(look: LookAhead) -> None:
    look.job.stop()
    if look.picture is not None:
        look.picture.job.stop()
