"""`StoredResult`: a result that takes long, in one call: found on disk, or computed once, checked and kept.

Where a result is computed, one function describes it: where it lies, how it is read and checked, and how it is written.
Callers say ``stored_layout(corpus, cache_dir).find()`` or ``.find_or_compute(compute, poll)``. `datamask.work.cache`
knows where files lie and makes room.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from datamask.files import sweep
from datamask.polling import Poll, no_poll
from datamask.work.cache import Cache
from datamask.work.result_file import Content, Entry

T = TypeVar("T")


@dataclass(frozen=True)
class StoredResult(Generic[T]):
    """One result that is kept on disk. Safe to use from any thread and process.

    Attributes:
        root: the folder of the cache; None: nothing is kept or found.
        entry: its name.
        read: makes the result of what the file holds. It raises, best `Implausible` by `require`, where that is no
            result of this subject; the file is then passed over.
        write: the reverse of `read`. Values are finite, and arrays hold no objects.
        sync: see `datamask.files.replacing`.
        required: a result that cannot be written raises `StoreError`; without it the result is only given.

    Example:
        >>> entry = Entry("four", "double", 1)
        >>> double = StoredResult(None, entry, lambda content: content.value["n"], lambda n: Content({"n": n}))
        >>> double.find_or_compute(lambda: 2 * 4)
        8
    """

    root: str | os.PathLike[str] | None
    entry: Entry
    read: Callable[[Content], T]
    write: Callable[[T], Content]
    sync: bool = True
    required: bool = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._cache.path(self.entry)

    @property
    def exists(self) -> bool:
        """Whether there is a file, good or bad."""
        return self.root is not None and self._cache.has(self.entry)

    def find(self) -> T | None:
        """Return the kept result; None where no file can be believed.

        Raises:
            Stopped: from `read`.
        """
        return None if self.root is None else self._cache.find(self.entry, self.read)

    def keep(self, result: T) -> bool:
        """Write a result, whole or not at all; return whether it was written.

        Raises:
            StoreError: it cannot be written, and it is required.
        """
        if self.root is None:
            return False
        content = self.write(result)
        return self._cache.keep(self.entry, content.value, content.arrays, sync=self.sync, required=self.required)

    def find_or_compute(
        self, compute: Callable[[], T], poll: Poll = no_poll, enough: Callable[[T], bool] = lambda result: True
    ) -> T:
        """Return the kept result, or compute and keep it. One thread or process computes; others wait and find it.

        Args:
            compute: may keep what is half done.
            enough: whether a result that was found serves; it is replaced otherwise.

        Raises:
            Stopped: from `poll` while another process computes.
            StoreError: as `keep`. Others: from `compute`.
        """
        if (found := self._found(enough)) is not None:
            return found
        if self.root is None:
            return compute()
        with self._cache.lock(self.entry, poll):
            if (found := self._found(enough)) is not None:
                return found
            sweep(self._cache.folder(self.entry.subject))
            result = compute()
            self.keep(result)
            return result

    def drop(self) -> None:
        """Forget the result."""
        if self.root is not None:
            self._cache.drop(self.entry)

    def keys(self) -> list[str]:
        """Return the keys of all such results of the subject, newest first; the own key must be ``*``."""
        return [] if self.root is None else self._cache.keys(self.entry)

    def _found(self, enough: Callable[[T], bool]) -> T | None:
        found = self.find()
        return found if found is not None and enough(found) else None

    @property
    def _cache(self) -> Cache:
        if self.root is None:
            raise ValueError("a result without a root lies nowhere")
        return Cache(self.root)
