"""What was made of a file, kept in memory and believed for as long as the file stays as it is."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

SETTLED_SECONDS = 2.0
"""A file that changed so lately is not remembered: a second change within one tick of its clock would not show. Two
seconds are the longest tick of a file system."""


class FileMemo(Generic[T]):
    """What was made of files. Safe to use from any thread.

    A file is as it was if device, inode, size and both times are, the one that `os.utime` sets and the one that nobody
    can set. It may be changed at any time, also while it is read: what was made of it then is given, not remembered.

    Args:
        most: files that are remembered; those asked for longest ago are forgotten first.
        most_bytes: that these files may have together.
    """

    def __init__(self, most: int, most_bytes: float = math.inf) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._values: OrderedDict[Hashable, tuple[int, T]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(
        self,
        file: int | str | os.PathLike[str],
        make: Callable[[], T],
        aspect: Hashable = None,
        stamp: tuple[int, ...] | None = None,
    ) -> T:
        """What `make` gives, or gave when the file was last as it is now.

        Args:
            file: its path, or the handle of it opened, where `make` is about what was read through that handle.
            make: what it raises is raised, and not remembered.
            aspect: tells apart several things that are made of one file.
            stamp: of a file elsewhere, its size first; a store tells every change.
        """
        changed = 0.0
        if stamp is None:
            try:
                stat = os.stat(file)  # noqa: PTH116 - of a handle too
            except OSError:
                return make()  # which says it in its own words
            stamp = (stat.st_size, stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
            changed = max(stat.st_mtime, stat.st_ctime)
        key = (*stamp, aspect)
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        value = make()
        if time.time() - changed > SETTLED_SECONDS:
            with self._lock:
                self._bytes += 0 if key in self._values else stamp[0]
                self._values[key] = stamp[0], value
                while len(self._values) > self._most or self._bytes > self._most_bytes:
                    _, (size, _) = self._values.popitem(last=False)
                    self._bytes -= size
        return value
