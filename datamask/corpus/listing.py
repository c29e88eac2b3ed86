"""Which files lie below a folder or match a pattern, without walking for ever.

A pattern such as ``/**/*.parquet`` visits every file of the machine, and one with several ``**`` many times over. The
walk here looks at each folder once for each ``**``, counts what it looks at, and can be stopped.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from datamask.errors import InputError
from datamask.polling import Poll, no_poll

MOST_ENTRIES = 500_000
"""Files and folders looked at for one option: some seconds."""

_POLL = 256
"""Entries between two calls of `poll`."""


class ListingLimit:
    """Counts the files and folders that are looked at for one option.

    Args:
        option: its name, for the sentence.
        poll: called on the way.
    """

    def __init__(self, option: str, poll: Poll = no_poll) -> None:
        self._option = option
        self._poll = poll
        self._spent = 0

    def spend(self, text: object) -> None:
        """Count one entry seen for the path or pattern `text`.

        Raises:
            InputError: more than `MOST_ENTRIES` were.
            Stopped: from `poll`.
        """
        self._spent += 1
        if self._spent % _POLL == 1:
            self._poll()
        if self._spent > MOST_ENTRIES:
            raise InputError(
                f"--{self._option} {shortened(str(text))} would have to look at more than "
                f"{MOST_ENTRIES:,} files and folders; name a folder nearer to the shards, or a pattern "
                "with fewer **"
            )


def is_hidden(name: str, *, folder: bool = False) -> bool:
    """Return whether a name is of no shard: it begins with a dot or an underscore, as unfinished and helper files do.

    A folder such as ``_key=value`` is a partition.
    """
    return name.startswith(".") or (name.startswith("_") and not (folder and "=" in name))


def matches_hidden(part: str, name: str, *, folder: bool) -> bool:
    """Return whether a part of a pattern may match a name: a hidden one only if the part begins as it does."""
    return not is_hidden(name, folder=folder) or part[:1] == name[:1]


def is_pattern(text: str) -> bool:
    """Whether a path holds ``*``, ``?`` or ``[``."""
    return glob.has_magic(text)


def shortened(text: str, limit: int = 300) -> str:
    """A path for a message: its middle left out where it is very long."""
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-limit // 2 :]}"


def files_below(folder: Path, endings: Sequence[str], limit: ListingLimit) -> Iterator[Path]:
    """The files in a folder and all below it whose names end in one of `endings`; hidden files and folders, and links
    to folders, are passed over.

    Raises:
        InputError: there is too much to look at.
        Stopped: asked to.
    """
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            limit.spend(folder)
            path = Path(parent, name)
            if name.lower().endswith(tuple(endings)) and not is_hidden(name) and _is_file(path):
                yield path
        folders[:] = [name for name in folders if not is_hidden(name, folder=True)]


def files_matching(pattern: Path, limit: ListingLimit) -> Iterator[Path]:
    """The files that a pattern matches, as the standard glob does: ``**`` stands for any folders, none included, and
    only a part that begins with a dot or an underscore matches hidden names.

    Raises:
        InputError: there is too much to look at.
        Stopped: asked to.
    """
    parts: list[str] = []
    for part in pattern.parts[len(Path(pattern.anchor).parts) :]:
        if part != "**" or parts[-1:] != ["**"]:
            parts.append(part)
    if parts[-1:] == ["**"]:
        parts.append("*")  # files, not folders, are wanted
    for path in _matching(Path(pattern.anchor), parts, pattern, limit):
        if _is_file(path):
            yield path


def _matching(folder: Path, parts: Sequence[str], pattern: Path, limit: ListingLimit) -> Iterator[Path]:
    part, later = parts[0], parts[1:]
    if part == "**":
        for below in _folders(folder, pattern, limit):
            yield from _matching(below, later, pattern, limit)
    elif not is_pattern(part):
        limit.spend(pattern)
        if os.path.exists(path := folder / part):  # noqa: PTH110 - see _is_file
            yield from _matching(path, later, pattern, limit) if later else [path]
    else:
        matches = re.compile(fnmatch.translate(part)).match
        for entry in _entries(folder, pattern, limit):
            if matches(entry.name) and matches_hidden(part, entry.name, folder=bool(later)):
                path = folder / entry.name
                if not later:
                    yield path
                elif _is_folder(path):
                    yield from _matching(path, later, pattern, limit)


def _folders(folder: Path, pattern: Path, limit: ListingLimit) -> Iterator[Path]:
    """A folder and all below it, links included, each real folder once."""
    waiting, visited = [folder], set()
    while waiting:
        current = waiting.pop()
        try:
            facts = current.stat()
        except OSError:
            continue
        if (facts.st_dev, facts.st_ino) not in visited:
            visited.add((facts.st_dev, facts.st_ino))
            yield current
            below = [
                current / entry.name
                for entry in _entries(current, pattern, limit)
                if not is_hidden(entry.name, folder=True)
            ]
            waiting.extend(sorted(filter(_is_folder, below), reverse=True))


def _entries(folder: Path, pattern: Path, limit: ListingLimit) -> Iterator[os.DirEntry[str]]:
    """What lies in a folder; nothing where it is none or may not be read."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                limit.spend(pattern)
                yield entry
    except OSError:
        return


def _is_file(path: Path) -> bool:
    # pathlib's own raises where a folder on the way may not be entered
    return os.path.isfile(path)  # noqa: PTH113


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
