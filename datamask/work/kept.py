"""Results that take long: `Kept`, found on disk, or computed once, checked and kept; `Progress`, where half of one is.

Where a result is computed, one function describes it: where it lies, how it is read and checked, and how it is written.
Callers say ``stored_layout(corpus, cache_dir).find()`` or ``.find_or_compute(compute, poll)``. `datamask.work.cache`
knows where files lie and makes room.

*Trust.* What is found is checked three times: the digest, so that a damaged file is none; what the file says it is, so
that a copy of another result is none; and by `read`, which knows what such a result can look like. A file that fails is
logged in one line and passed over, as if nothing were kept: the result is computed anew. Only regular files are opened,
so nothing else under the name can block. What cannot be written is logged and not kept.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from datamask.errors import Stopped, StoreError
from datamask.files import replacing, sweep
from datamask.memo import FileMemo
from datamask.polling import Poll, no_poll
from datamask.work.cache import SUFFIX, Cache, remove, safe, touch, warn_once
from datamask.work.locks import only_one
from datamask.work.result_file import Content, Entry, Implausible, load, store

T = TypeVar("T")

_READ: FileMemo[Any] = FileMemo(64, 256 * 2**20)


@dataclass(frozen=True)
class Kept(Generic[T]):
    """One result that is kept on disk. Safe to use from any thread and process.

    Attributes:
        root: the folder of the cache; None: nothing is kept or found.
        entry: its name.
        read: makes the result of what the file holds. It raises, best `Implausible` by `require`, where that is no
            result of this subject; the file is then passed over.
        write: the reverse of `read`. Values are finite, and arrays hold no objects.
        sync: see `datamask.files.replacing`.
        required: a result that cannot be written raises `StoreError`; without it the result is only given.
        locked: one thread or process computes, and others wait for it. False is for parts of a result that is locked:
            hundreds of parts would leave hundreds of locks.
        mapped: arrays are read as maps.

    Example:
        >>> entry = Entry("four", "double", 1)
        >>> double = Kept(None, entry, lambda content: content.value["n"], lambda n: Content({"n": n}))
        >>> double.find_or_compute(lambda: 2 * 4)
        8
    """

    root: str | os.PathLike[str] | None
    entry: Entry
    read: Callable[[Content], T]
    write: Callable[[T], Content]
    sync: bool = True
    required: bool = False
    locked: bool = True
    mapped: bool = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._folder / f"{safe(self.entry.name)}-v{self.entry.version}{self._key}{SUFFIX}"

    @property
    def exists(self) -> bool:
        """Whether there is a file, good or bad."""
        with contextlib.suppress(OSError):  # a folder that may not be looked into
            return self.root is not None and self.path.is_file()
        return False

    def find(self) -> T | None:
        """Return the kept result; None where no file can be believed. Never blocks.

        Raises:
            Stopped: from `read`.
        """
        if self.root is None:
            return None
        path = self.path
        try:
            content = load(path, self.entry, self.mapped)
        except FileNotFoundError:
            return None
        except Exception as error:  # whatever a damaged file makes a parser raise, it is a result that is not there
            _warn_passed_over(path, error)
            return None
        result = self._accepted(path, content)
        if result is not None:
            touch(path.parent)
        return result

    def find_again(self) -> T | None:
        """As `find`, but a file that stays as it is is read once; what it held is shared, and nobody changes it."""
        return None if self.root is None else _READ.get(self.path, self.find, self.entry)

    def keep(self, result: T) -> bool:
        """Write a result, whole or not at all; return whether it was written. Never blocks.

        Raises:
            StoreError: the folder cannot be written or the disk is full, and the result is required.
            ValueError: a value that JSON cannot hold, or an array of objects.
        """
        return self.root is not None and self._write(self.write(result), self.required)

    def find_or_compute(
        self, compute: Callable[[], T], poll: Poll = no_poll, enough: Callable[[T], bool] = lambda result: True
    ) -> T:
        """Return the kept result, or compute and keep it, once over threads and processes where it is `locked`.

        Args:
            compute: may keep what is half done.
            enough: whether a result that was found serves; it is replaced otherwise.

        Raises:
            Stopped: from `poll` while another process computes.
            StoreError: as `keep`. Others: from `compute`.
        """
        if (found := self._found(enough)) is not None:
            return found
        if self.root is None or not self.locked:
            return self._computed(compute)
        with self.lock(poll):
            if (found := self._found(enough)) is not None:
                return found
            sweep(self._folder)
            return self._computed(compute)

    def lock(self, poll: Poll = no_poll) -> AbstractContextManager[None]:
        """Hold the lock of the result while it is computed; see `datamask.work.locks.only_one`."""
        return only_one(self._folder / f"{safe(self.entry.name)}{self._key}.lock", poll)

    def drop(self) -> None:
        """Forget the result."""
        if self.root is not None:
            remove([self.path])

    def keys(self) -> list[str]:
        """Return the keys of all such results of the subject, newest first; the own key must be ``*``."""
        if self.root is None:
            return []
        times: dict[str, float] = {}
        before = f"{safe(self.entry.name)}-v{self.entry.version}-"
        for path in self._folder.glob(f"{before}*{SUFFIX}"):
            with contextlib.suppress(OSError):
                times[path.name.removeprefix(before).removesuffix(SUFFIX)] = path.stat().st_mtime
        return sorted(times, key=lambda key: -times[key])

    @property
    def _folder(self) -> Path:
        return Cache(self.root or "").folder(self.entry.subject)

    @property
    def _key(self) -> str:
        return f"-{safe(self.entry.key)}" if self.entry.key else ""

    def _found(self, enough: Callable[[T], bool]) -> T | None:
        found = self.find_again() if self.mapped else self.find()
        return found if found is not None and enough(found) else None

    def _computed(self, compute: Callable[[], T]) -> T:
        result = compute()
        self.keep(result)
        return result

    def _write(self, content: Content, required: bool) -> bool:
        path, cache = self.path, Cache(self.root or "")
        try:
            with replacing(path, sync=self.sync) as part:
                arrays = {name: np.asarray(array) for name, array in content.arrays.items()}
                store(part, self.entry, content.value, arrays)
            written = path.stat().st_size
        except OSError as error:
            if required:
                raise (
                    error if isinstance(error, StoreError) else StoreError(f"{path} cannot be written: {error}")
                ) from error
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            # of the folder, not of the file: an ablation keeps hundreds of files
            warn_once(f"{cache.root} cannot be written ({cause.strerror or cause}), so results are not kept")
            return False
        cache.bound(self.entry.subject, written)
        return True

    def _accepted(self, path: Path, content: Content) -> T | None:
        try:
            return self.read(content)
        except Stopped:
            raise
        except Exception as error:  # values of another shape or kind than any `read` expects
            _warn_passed_over(path, error)
            return None


class Progress(Generic[T]):
    """Where unfinished work is, written down now and then, so that whoever begins it again goes on from there.

    Args:
        kept: describes the file; None: nothing is written or found.
        seconds: between two writings; more where these take long, so that they cost at most a twentieth of the time.

    Attributes:
        resumed: whether the work goes on from what may be another process.
    """

    def __init__(self, kept: Kept[T] | None = None, seconds: float = 20.0) -> None:
        self._kept, self._seconds = kept, seconds
        self._next = time.monotonic() + seconds
        self._begun = self.resumed = False

    def found(self, serves: Callable[[T], bool] = lambda state: True) -> T | None:
        """Where an earlier attempt was; None: nowhere. serves: whether it was one of the same work."""
        self._begun = True
        state = None if self._kept is None else self._kept.find()
        self.resumed = state is not None and serves(state)
        return state if self.resumed else None

    @property
    def due(self) -> bool:
        """Whether it is time to write."""
        return self._kept is not None and time.monotonic() > self._next

    def write(self, state: T) -> None:
        """Write down where the work is. Raises as `Kept.keep`."""
        if self._kept is not None:
            began = time.monotonic()
            self._kept.keep(state)
            written = time.monotonic()
            self._next = written + max(self._seconds, 20 * (written - began))

    def clear(self) -> None:
        """Forget it: the work is done. Where it was not begun here, another process may be at it."""
        self.resumed = False
        if self._kept is not None and self._begun:
            self._kept.drop()


def _warn_passed_over(path: Path, error: Exception) -> None:
    reason = str(error) if isinstance(error, (Implausible, OSError)) else f"{type(error).__name__}: {error}"
    warn_once(f"{path} is damaged or not what it should be, and is made anew: {' '.join(reason.split())[:300]}")
