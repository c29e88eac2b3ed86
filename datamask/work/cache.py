"""Results that took long, kept on disk and found again: the one place that knows where they lie.

`datamask.work.kept` is one of them: how it is found, computed, checked and kept.

*Layout.* ``<root>/<subject>/<name>-v<version>[-<key>].cache``; the root is ``<runs>/.kept``, the subject mostly the
fingerprint of a corpus. `datamask.work.result_file` is the file.

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
from collections.abc import Iterable, Iterator
from pathlib import Path

from datamask.work.locks import none_held
from datamask.work.result_file import is_result, require

log = logging.getLogger(__name__)

MOST_GB = 20.0
"""Bound on everything that is kept under one root, unless ``DATAMASK_CACHE_GB`` says otherwise."""

FOLDER = ".kept"
"""The root in a folder of runs."""

NOTES = "openings"
"""A folder under the root that holds no results: what was opened, and under which address."""

SWEPT_SHARE = 0.02
"""Of the bound: after so much was written by one process, sizes are looked at again."""

TOUCHED_SECONDS = 600.0
"""The time of last use is noted at most so often."""

SUFFIX = ".cache"
"""Of the file of a result."""

_SAFE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+-]{0,120}")
_written: dict[Path, float] = {}


class Cache:
    """The results kept under one folder, as a whole. Safe to use from any thread and process.

    Args:
        root: the folder; made when something is kept.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def folder(self, subject: str) -> Path:
        """Where the results of a subject lie."""
        return self.root / safe(subject)

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

    def bound(self, subject: str, written: int) -> None:
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
            if name != safe(subject):
                freed = _removed(self.root / name)
                too_much -= freed
                log.info("%s was used longest ago and is no longer kept: %.2f GB", self.root / name, freed / 1e9)


def bound_bytes() -> float:
    """The bound on what one root keeps."""
    text = os.environ.get("DATAMASK_CACHE_GB", "")
    try:
        gigabytes = float(text or MOST_GB)
        require(gigabytes >= 0, "it is below 0")
        return gigabytes * 1e9
    except ValueError:
        warn_once(f"DATAMASK_CACHE_GB must be a number of gigabytes, got {text!r}; {MOST_GB:g} is taken")
        return MOST_GB * 1e9


def touch(folder: Path) -> None:
    """Note that the results of a subject were used."""
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_mtime > TOUCHED_SECONDS:
            os.utime(folder)


def remove(paths: Iterable[Path]) -> None:
    """Remove files, those that can be."""
    for path in paths:
        with contextlib.suppress(OSError):  # never there, gone meanwhile, or in a folder that cannot be written
            path.unlink()


@functools.lru_cache(512)
def warn_once(sentence: str) -> None:
    """Log a warning, the same one once."""
    # a page that is drawn every second would say it every second
    log.warning("%s", sentence)


def safe(name: str) -> str:
    """A name as it can stand in a path, whatever it is: other characters, or too many, become a digest."""
    return name if _SAFE.fullmatch(name) else "x" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:24]


def _own_files(folder: Path) -> Iterator[Path]:
    """The results in a folder, and what killed writers left of some. Locks stay: they are empty; some wait for them."""
    yield from (path for path in folder.glob(f"*-v*{SUFFIX}") if is_result(path))
    yield from folder.glob(f".*-v*{SUFFIX}.*.part")


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
        remove(list(_own_files(folder)) if nobody else ())
        if before:
            folder.rmdir()  # fails where anything is left
    return before - _size(folder)
