"""Faults at the level of the operating system: file operations of this process are counted, and one of them goes wrong.

What the program calls for its work does not matter, as long as it ends in Python's own file operations, which are
replaced here: opening, writing, syncing, renaming, removing, making and cutting. Native writers (pyarrow's) are not
seen; `full_disk` reaches them.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

KINDS = ("kill", "ENOSPC", "EIO", "swap")
BEFORE, AFTER = "before", "after"
BY_PATH = ("rename", "replace", "unlink", "remove", "mkdir", "rmdir", "chmod", "truncate", "symlink", "link", "utime")
BY_HANDLE = ("write", "fsync", "ftruncate", "fdatasync", "pwrite")


@dataclass
class Injection:
    """Which operation goes wrong, and how.

    Attributes:
        root: only operations on files below it count.
        at: the operation, from 0; None: none, they are only counted.
        kind: one of `KINDS`; swap: `act` is called instead.
        when: whether the operation is done first.
        count: operations so far; log: what they were.
    """

    root: Path
    at: int | None = None
    kind: str = "kill"
    when: str = BEFORE
    act: Callable[[], None] = lambda: None
    count: int = 0
    log: list[str] = field(default_factory=list)
    _quiet: bool = False

    def around(self, name: str, operation: Callable, *args: object, **options: object) -> object:
        """Do one operation, with the fault where it is due."""
        if self._quiet:
            return operation(*args, **options)
        place, self.count = self.count, self.count + 1
        self.log.append(name)
        if place != self.at:
            return operation(*args, **options)
        if self.when == BEFORE:
            self._strike(name)
        answer = operation(*args, **options)
        if self.when == AFTER:
            self._strike(name)
        return answer

    def _strike(self, name: str) -> None:
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == "swap":
            self._quiet = True
            self.act()
            self._quiet = False
            return
        code = getattr(errno, self.kind)
        raise OSError(code, os.strerror(code), name)

    def concerns(self, path: object) -> bool:
        """Whether a path lies below the root."""
        if isinstance(path, int):
            try:
                path = os.readlink(f"/proc/self/fd/{path}")  # noqa: PTH115 (quicker; asked of every operation)
            except OSError:
                return False
        try:
            # as text: resolving would look at the disk, and what is looked at would count
            return os.path.abspath(os.fsdecode(path)).startswith(str(self.root))  # noqa: PTH100
        except (TypeError, ValueError):
            return False

    def install(self) -> None:
        """Replace the file operations of this process, for good: it is a fork that ends with its case."""
        for name in (*BY_PATH, *BY_HANDLE):
            if hasattr(os, name):
                setattr(os, name, self._wrapped(name, getattr(os, name)))
        self._install_open()

    def _wrapped(self, name: str, operation: Callable) -> Callable:
        def wrapped(*args: object, **options: object) -> object:
            if any(
                self.concerns(arg)
                for arg in args[:2]
                if isinstance(arg, str | bytes | os.PathLike) or (name in BY_HANDLE and arg is args[0])
            ):
                return self.around(name, operation, *args, **options)
            return operation(*args, **options)

        return wrapped

    def _install_open(self) -> None:
        plain, low = io.open, os.open
        injection = self

        class Raw(io.FileIO):
            """A file whose writes are counted."""

            def write(self, data: object) -> int:
                return injection.around("write", super().write, data)

        def opened(
            file: object,
            mode: str = "r",
            buffering: int = -1,
            encoding: str | None = None,
            errors: str | None = None,
            newline: str | None = None,
            closefd: bool = True,
            opener: Callable | None = None,
        ) -> object:
            if not injection.concerns(file):
                return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not set(mode) & set("wax+"):
                return injection.around(
                    "open to read", plain, file, mode, buffering, encoding, errors, newline, closefd, opener
                )
            flags = mode.replace("b", "").replace("t", "")
            raw = injection.around("open to write", Raw, file, flags, closefd, opener)
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

        def low_opened(path: object, flags: int, *args: object, **options: object) -> int:
            if injection.concerns(path):
                return injection.around("open", low, path, flags, *args, **options)
            return low(path, flags, *args, **options)

        io.open = builtins.open = opened
        os.open = low_opened


def full_disk(most: int) -> None:
    """From now on no file of this process grows beyond so many bytes: what native writers see of a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
