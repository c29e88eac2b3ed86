"""Results that took long, kept on disk and found again: the one place that knows where they lie.

Users describe a result by `datamask.work.stored.StoredResult`, which finds, locks and keeps it here.

*Layout.* ``<root>/<subject>/<name>-v<version>[-<key>].cache``; the root is ``<runs>/.cache``, the subject mostly the
fingerprint of a corpus. `datamask.work.result_file` is the file.

*Trust.* What is found is checked three times: the digest, so that a damaged file is none; what the file says it is, so
that a copy of another result is none; and by the caller's `read`, which knows what such a result can look like. A file
that fails is logged in one line and passed over, as if nothing were kept: its owner computes the result anew. Only
regular files are opened, so nothing else under the name can block. What cannot be written is logged and not kept.

*Size.* `Cache.sizes` and `Cache.free` tell and free it. Beyond ``DATAMASK_CACHE_GB`` (`MOST_GB` unless set) the
results of the subjects that were used longest ago are removed as others are kept, but none whose lock somebody holds.
The root may be any folder that somebody names, so nothing is ever removed but files of this module's own making.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from datamask.errors import Stopped, StoreError
from datamask.files import replacing
from datamask.polling import Poll, no_poll
from datamask.work.locks import none_held, only_one
from datamask.work.old_results import load_old, old_file, old_files
from datamask.work.result_file import Content, Entry, Implausible, is_result, load, require, store

log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_GB = 20.0
"""Bound on everything that is kept under one root, unless ``DATAMASK_CACHE_GB`` says otherwise."""

NOTES = "openings"
"""A folder under the root that holds no results: what was opened, and under which address."""

SWEPT_SHARE = 0.02
"""Of the bound: after so much was written by one process, sizes are looked at again."""

TOUCHED_SECONDS = 600.0
"""The time of last use is noted at most so often."""

_SAFE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,120}")
_FINGERPRINT = re.compile(r"[0-9a-f]{32,64}(-centered)?")
_SUFFIX = ".cache"
_written: dict[Path, float] = {}


class Cache:
    """The results kept under one folder. Safe to use from any thread and process; `find` and `keep` never block.

    Args:
        root: the folder; made when something is kept.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def folder(self, subject: str) -> Path:
        """Where the results of a subject lie."""
        return self.root / _safe(subject)

    def path(self, entry: Entry) -> Path:
        """The file of a result."""
        key = f"-{_safe(entry.key)}" if entry.key else ""
        return self.folder(entry.subject) / f"{_safe(entry.name)}-v{entry.version}{key}{_SUFFIX}"

    def has(self, entry: Entry) -> bool:
        """Whether there is a file of it, good or bad."""
        with contextlib.suppress(OSError):  # a folder that may not be looked into
            return any(path.is_file() for path in self._files(entry))
        return False

    def lock(self, entry: Entry, poll: Poll = no_poll) -> AbstractContextManager[None]:
        """Hold the lock of a result while it is computed; see `datamask.work.locks.only_one`."""
        name = _safe(entry.name) + (f"-{_safe(entry.key)}" if entry.key else "")
        return only_one(self.folder(entry.subject) / f"{name}.lock", poll)

    def find(self, entry: Entry, read: Callable[[Content], T]) -> T | None:
        """The kept result, as `read` makes it; None where nothing is kept that can be believed.

        Args:
            read: makes the result of what the file holds. It raises, best `Implausible` by `require`, where that is no
                result of this subject.

        Raises:
            Stopped: from `read`.
        """
        path = self.path(entry)
        try:
            content = load(path, entry)
        except FileNotFoundError:
            return self._from_before(entry, read)
        except Exception as error:  # whatever a damaged file makes a parser raise, it is a result that is not there
            _warn_passed_over(path, error)
            return None
        result = _accepted(path, content, read)
        if result is not None:
            self._touch(path.parent)
        return result

    def keep(
        self,
        entry: Entry,
        value: Mapping[str, Any] | None = None,
        arrays: Mapping[str, np.ndarray] | None = None,
        *,
        sync: bool = True,
        required: bool = False,
    ) -> bool:
        """Write a result, whole or not at all; whether it was written.

        Args:
            value: plain JSON values, all finite. arrays: without objects.
            sync: see `datamask.files.replacing`.
            required: raise where it cannot be written, for results that are seen nowhere else.

        Raises:
            StoreError: the folder cannot be written or the disk is full, and it was required.
            ValueError: a value that JSON cannot hold, or an array of objects.
        """
        path = self.path(entry)
        try:
            with replacing(path, sync=sync) as part:
                store(part, entry, value or {}, {name: np.asarray(array) for name, array in (arrays or {}).items()})
            written = path.stat().st_size
        except OSError as error:
            if required:
                raise (
                    error if isinstance(error, StoreError) else StoreError(f"{path} cannot be written: {error}")
                ) from error
            cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
            # of the folder, not of the file: an ablation keeps hundreds of files
            _warn_once(f"{self.root} cannot be written ({cause.strerror or cause}), so results are not kept")
            return False
        _remove(self._files(entry)[1:])
        self._bound(entry.subject, written)
        return True

    def drop(self, entry: Entry) -> None:
        """Forget a result, in whatever layout it was kept."""
        _remove(self._files(entry))

    def _files(self, entry: Entry) -> list[Path]:
        """The file of a result, and its old one where it could have one."""
        old = old_file(self.folder(entry.subject), entry)
        return [self.path(entry), *([] if old is None else [old])]

    def keys(self, every: Entry) -> list[str]:
        """The keys under which such results are kept, newest first.

        Args:
            every: an entry with ``*`` as its key.
        """
        times: dict[str, float] = {}
        new = self.folder(every.subject) / f"{_safe(every.name)}-v{every.version}-*{_SUFFIX}"
        for pattern in (new, *self._files(every)[1:]):
            before, _, after = pattern.name.partition("*")
            for path in pattern.parent.glob(pattern.name):
                with contextlib.suppress(OSError):
                    times.setdefault(path.name.removeprefix(before).removesuffix(after), path.stat().st_mtime)
        return sorted(times, key=lambda key: -times[key])

    # -- how much there is, and making room ---------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """Bytes on disk of each subject, those used longest ago first."""
        sizes = {folder.name: _size(folder) for _, folder in sorted(self._folders())}
        return {name: size for name, size in sizes.items() if size}

    def size(self, subject: str | None = None) -> int:
        """Bytes on disk of a subject; None: of all."""
        return sum(self.sizes().values()) if subject is None else _size(self.folder(subject))

    def free(self, subject: str | None = None) -> int:
        """Remove the results of a subject, None: of all, where nobody works on them; how many bytes that freed."""
        folders = [path for _, path in self._folders()] if subject is None else [self.folder(subject)]
        return sum(map(_removed, folders))

    def _folders(self) -> Iterator[tuple[float, Path]]:
        """When each subject was last used, and its folder."""
        with contextlib.suppress(OSError):
            for path in list(self.root.iterdir()):
                if path.is_dir() and not path.is_symlink():
                    yield path.stat().st_mtime, path

    def _touch(self, folder: Path) -> None:
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > TOUCHED_SECONDS:
                os.utime(folder)

    def _bound(self, subject: str, written: int) -> None:
        """Remove what was used longest ago while there is too much; not `subject`, of which a result was just kept."""
        most = bound_bytes()
        _written[self.root] = _written.get(self.root, float("inf")) + written
        if _written[self.root] < SWEPT_SHARE * most:
            return
        _written[self.root] = 0.0
        sizes = self.sizes()
        too_much = sum(sizes.values()) - most
        for name in sizes:
            if too_much <= 0:
                return
            if name != _safe(subject):
                freed = _removed(self.root / name)
                too_much -= freed
                log.info("%s was used longest ago and is no longer kept: %.2f GB", self.root / name, freed / 1e9)

    def _from_before(self, entry: Entry, read: Callable[[Content], T]) -> T | None:
        path = old_file(self.folder(entry.subject), entry)
        if path is None:
            return None
        try:
            used, content = path.stat().st_mtime, load_old(path)
        except FileNotFoundError:
            return None
        except Exception as error:
            _warn_passed_over(path, error)
            return None
        result = _accepted(path, content, read)
        if result is not None and self.keep(entry, content.value, content.arrays):
            with contextlib.suppress(OSError):  # what was newer stays newer
                os.utime(self.path(entry), (used, used))
        return result


def bound_bytes() -> float:
    """The bound on what one root keeps."""
    text = os.environ.get("DATAMASK_CACHE_GB", "")
    try:
        gigabytes = float(text or MOST_GB)
        require(gigabytes >= 0, "it is below 0")
        return gigabytes * 1e9
    except ValueError:
        _warn_once(f"DATAMASK_CACHE_GB must be a number of gigabytes, got {text!r}; {MOST_GB:g} is taken")
        return MOST_GB * 1e9


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):  # never there, gone meanwhile, or in a folder that cannot be written
            path.unlink()


def _accepted(path: Path, content: Content, read: Callable[[Content], T]) -> T | None:
    try:
        return read(content)
    except Stopped:
        raise
    except Exception as error:  # values of another shape or kind than any `read` expects
        _warn_passed_over(path, error)
        return None


def _warn_passed_over(path: Path, error: Exception) -> None:
    reason = str(error) if isinstance(error, (Implausible, OSError)) else f"{type(error).__name__}: {error}"
    _warn_once(f"{path} is damaged or not what it should be, and is made anew: {' '.join(reason.split())[:300]}")


@functools.lru_cache(512)
def _warn_once(sentence: str) -> None:
    # a page that is drawn every second would say it every second
    log.warning("%s", sentence)


def _safe(name: str) -> str:
    """A name as it can stand in a path, whatever it is: other characters, or too many, become a digest."""
    return name if _SAFE.fullmatch(name) else "x" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]


def _own_files(folder: Path) -> Iterator[Path]:
    """The results in a folder, and what killed writers left of some. Locks stay: they are empty; some wait for them."""
    yield from (path for path in folder.glob(f"*-v*{_SUFFIX}") if is_result(path))
    yield from folder.glob(f".*-v*{_SUFFIX}.*.part")
    if _FINGERPRINT.fullmatch(folder.name):
        yield from old_files(folder)


def _size(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):  # a folder that may not be looked into
        for path in _own_files(folder):
            with contextlib.suppress(OSError):  # gone meanwhile
                total += path.lstat().st_size
    return total


def _removed(folder: Path) -> int:
    """Remove the results in a folder unless a lock in it is held; the bytes that freed."""
    before = _size(folder)
    with none_held(list(folder.glob("*.lock"))) as nobody, contextlib.suppress(OSError):
        _remove(list(_own_files(folder)) if nobody else ())
        if before:
            folder.rmdir()  # fails where anything is left
    return before - _size(folder)
