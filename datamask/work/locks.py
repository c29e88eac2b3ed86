"""File locks the kernel frees: flock on a file, held by one process until it closes it or dies, `kill -9` included.

A watcher asks `is_held` without taking the lock for itself: it tries a shared lock for an instant. A worker that tries
in that very instant would be turned away, so `FileLock.acquire` tries again for `PATIENCE` seconds before it gives up.
flock belongs to the open file, so two holders inside one process exclude each other as two processes do. The files
must lie on a file system with flock (any local one; NFS from version 4).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from datamask.errors import StoreError
from datamask.files import open_regular
from datamask.polling import Poll, no_poll
from datamask.work import lanes

log = logging.getLogger(__name__)

PATIENCE = 0.3
"""Seconds: longer than a watcher's probe, shorter than a person's."""

RETRY_SECONDS = 0.1


class FileLock:
    """An exclusive lock on `path`; the file is made if missing and never deleted, only its lock matters."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._handle: int | None = None

    @classmethod
    def adopted(cls, path: str | os.PathLike[str], handle: int) -> FileLock:
        """The lock that another process took and handed over with its open file; held as long as either has it."""
        lock = cls(path)
        # given to this process, not to those that it starts
        os.set_inheritable(handle, False)
        lock._handle = handle
        return lock

    @property
    def handle(self) -> int:
        """The open file that holds it, for another process to adopt.

        Raises:
            RuntimeError: it is not held.
        """
        if self._handle is None:
            raise RuntimeError(f"{self.path} must be locked before it is handed over; call acquire first")
        return self._handle

    def acquire(self, patience: float = PATIENCE) -> bool:
        """Take the lock, trying for `patience` seconds; False if somebody else holds it.

        Raises:
            StoreError: the lock file cannot be opened (the folder is gone, no rights, a folder or pipe of that name).
        """
        deadline = time.monotonic() + patience
        try:
            # not blocking and no link: something else than a file may lie under the name
            safely = os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | safely, 0o666)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be opened: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise StoreError(f"{self.path} must be an ordinary file, not a folder, pipe, socket or device; remove it")
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES) or time.monotonic() >= deadline:
                    os.close(handle)
                    if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                        return False
                    raise StoreError(f"{self.path} cannot be locked: {error.strerror}") from error
                time.sleep(0.01)
        self._handle = handle
        return True

    @property
    def held(self) -> bool:
        """Whether this object has the lock."""
        return self._handle is not None

    @property
    def removed(self) -> bool:
        """Whether the file that is held is no longer the one under the path."""
        try:
            return self._handle is not None and not os.path.samestat(os.fstat(self._handle), self.path.stat())
        except OSError:
            return True

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def is_held(path: str | os.PathLike[str]) -> bool:
    """Whether some process holds the lock on `path` at this moment; a missing file is held by nobody."""
    try:
        file = open_regular(path)
    except OSError:
        return False
    with file:
        return _is_locked(file.fileno())


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


@contextlib.contextmanager
def only_one(path: Path, poll: Poll = no_poll) -> Iterator[None]:
    """Hold the lock file `path` inside the block, waiting for it first; hold nothing where it cannot be locked.

    Raises:
        Stopped: from `poll` while waiting.
    """
    lock = FileLock(path)
    try:
        if not _acquired(lock):
            # who holds it computes, perhaps in the lane that this thread is in
            with lanes.aside():
                while not _acquired(lock):
                    poll()
                    time.sleep(RETRY_SECONDS)
        yield
    finally:
        lock.release()


def _acquired(lock: FileLock, patience: float = 0.0) -> bool:
    """Whether the lock is ours now, or cannot be taken at all."""
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        return lock.acquire(patience)
    except (OSError, StoreError) as error:  # no rights, no file, or a file system without locks
        log.warning("%s cannot be locked: %s", lock.path, error)
        return True


@contextlib.contextmanager
def claimed(target: Path) -> Iterator[None]:
    """Hold the place of an output inside the block, by a file next to it that is gone afterwards.

    Raises:
        StoreError: another process holds it; nothing is written.
    """
    lock = FileLock(target.with_name(f".{target.name}.lock"))
    while _acquired(lock, PATIENCE):
        try:
            if lock.removed:
                continue  # by its last holder, in the instant before it was locked
            try:
                yield
            finally:
                if lock.held:
                    with contextlib.suppress(OSError):
                        lock.path.unlink(missing_ok=True)
            return
        finally:
            lock.release()
    raise StoreError(f"another process writes {target} at the moment; wait for it, or name another place")


@contextlib.contextmanager
def none_held(paths: list[Path]) -> Iterator[bool]:
    """Hold all of these lock files inside the block, without waiting; false: somebody holds one of them."""
    with contextlib.ExitStack() as stack:
        yield all(_held_inside(stack, path) for path in paths)


def _held_inside(stack: contextlib.ExitStack, path: Path) -> bool:
    """Whether the lock is held until the stack closes, or cannot be opened, so that nobody holds it."""
    lock = FileLock(path)
    try:
        taken = lock.acquire(patience=0.0)
    except StoreError:
        return True
    stack.callback(lock.release)
    return taken
