"""One at a time, over threads and processes: a file lock that the kernel frees when its holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from datamask.polling import Poll, no_poll
from datamask.work import lanes

log = logging.getLogger(__name__)


@contextlib.contextmanager
def only_one(path: Path, poll: Poll = no_poll) -> Iterator[None]:
    """Hold the lock file `path` inside the block, waiting for it first; hold nothing where it cannot be locked.

    Raises:
        Stopped: from `poll` while waiting.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _opened(path, os.O_CREAT)
    except OSError as error:
        log.warning("%s cannot be locked: %s", path, error)
        yield
        return
    try:
        if not _taken(handle, path):
            # who holds it computes, perhaps in the lane that this thread is in
            with lanes.aside():
                while not _taken(handle, path):
                    poll()
                    time.sleep(0.1)
        yield
    finally:
        os.close(handle)


def _taken(handle: int, path: Path) -> bool:
    """Whether the lock is ours now, or cannot be had at all."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks
        log.warning("%s cannot be locked: %s", path, error)
    return True


@contextlib.contextmanager
def none_held(paths: list[Path]) -> Iterator[bool]:
    """Hold all of these lock files inside the block, without waiting; false: somebody holds one of them."""
    with contextlib.ExitStack() as stack:
        for path in paths:
            try:
                handle = _opened(path)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            except OSError:  # a lock that nobody can open is one that nobody holds
                continue
        yield True


def _opened(path: Path, flags: int = 0) -> int:
    # not blocking: something else than a file may lie under the name, and a pipe would be waited for
    safely = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, os.O_WRONLY | os.O_APPEND | safely | flags, 0o666)
