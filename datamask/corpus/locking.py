"""One at a time, over threads and processes: a file lock that the kernel frees when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import time
from collections.abc import Iterator
from pathlib import Path

from datamask.corpus.threads import ShouldStop
from datamask.errors import Stopped

log = logging.getLogger(__name__)


@contextlib.contextmanager
def only_one(path: Path, should_stop: ShouldStop | None = None) -> Iterator[None]:
    """Hold the lock file `path` inside the block, waiting for it first; without a writable folder, hold nothing.

    Raises:
        Stopped: `should_stop` answered true while waiting.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("ab")
    except OSError as error:
        log.warning("%s cannot be locked: %s", path, error)
        yield
        return
    with handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if should_stop is not None and should_stop():
                    raise Stopped(f"waiting for {path.stem} was stopped") from None
                time.sleep(0.1)
        yield
