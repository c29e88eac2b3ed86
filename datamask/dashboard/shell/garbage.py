"""The garbage collector, kept from looking at what never becomes garbage.

Streamlit collects garbage at the end of every drawing, be it of a fragment that is drawn once a second. A full
collection looks at every object there is, nearly all of which came with imported modules and stay: it takes 0.13 s, so
that two such fragments of one visitor keep a quarter of a core busy. `settled` sets aside what there is (`gc.freeze`),
adds to that what is imported later, and takes it all back now and then: what has become garbage in the meantime is not
kept for ever.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from datamask.process import held

MODULES = 20
"""So many modules more, such as the first run's torch, are worth being set aside at once."""

SECONDS = 120.0
"""After so long what was set aside is looked at again: a corpus that nobody has open any more gives its memory back."""


@dataclass
class Aside:
    """What was set aside: how many modules there were the last time, and when all of it was last looked at."""

    modules: int = 0
    since: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)


def settled(clock: Callable[[], float] = time.monotonic) -> bool:
    """Set aside what there is, where much has been imported or long has passed since the last time; whether it was.

    To be called at every drawing: otherwise it takes a microsecond.
    """
    aside = held("garbage set aside", Aside)
    modules, now = len(sys.modules), clock()
    if modules < aside.modules + MODULES and now < aside.since + SECONDS:
        return False
    if not aside.lock.acquire(blocking=False):  # another drawing does it
        return False
    try:
        aside.modules = modules
        if now >= aside.since + SECONDS:
            # not for new modules alone: while a server warms up they come twenty at a time, twenty times
            aside.since = now
            gc.unfreeze()
        gc.collect()
        gc.freeze()
    finally:
        aside.lock.release()
    return True
