"""Which files an address names: one file, all below a folder, or those that a pattern matches, as on the disk.

Folder by folder, several at a time, since each is a request; every entry counts as one of the disk does.
"""

from __future__ import annotations

import fnmatch
import re
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from datamask.corpus.listing import ListingLimit, is_hidden, is_pattern, matches_hidden
from datamask.corpus.readers.stamps import content_stamp
from datamask.corpus.threads import in_threads
from datamask.errors import InputError, RemoteError
from datamask.polling import Poll, no_poll, poll_of
from datamask.storage.address import WEB, Address, is_address
from datamask.storage.remote import entries, file_stamp, is_folder
from datamask.storage.stores import Entry

T = TypeVar("T")

AT_ONCE = 16
"""Requests under way: they wait for the store, not for the processor."""


def remote_files(
    address: Address, endings: Sequence[str], limit: ListingLimit, poll: Poll
) -> tuple[list[Address], bool]:
    """The files that an address names, sorted, and whether it is a folder.

    Args:
        address: of a file, a folder (all below it, hidden files aside) or a pattern.
        endings: of the files of a folder.

    Raises:
        InputError: nothing is there, or there is too much to look at.
        RemoteError: the store refuses to tell, or does not answer. Stopped: from `poll`.
    """
    if address.scheme in WEB:  # asked when it is opened; there is nothing else that it could be
        return [address], False
    folder = is_folder(address, poll)
    if folder is None and is_pattern(address.path):
        return sorted(_matching(address, limit, poll), key=str), False
    if folder is None:
        raise InputError(f"{address} does not exist")
    if not folder:
        return [address], False
    files = [
        file
        for parent, listed in _below([address], limit, poll)
        for entry in listed
        if not entry.is_folder and entry.name.lower().endswith(tuple(endings)) and not is_hidden(entry.name)
        for file in [_child(parent, entry.name)]
    ]
    return sorted(files, key=str), True


def file_stamps(paths: Sequence[str], poll: Poll = no_poll) -> list[tuple[int, ...] | OSError]:
    """`storage.remote.file_stamp` of each file, or why it cannot be looked at; files elsewhere several at a time.

    Raises:
        RemoteError: a store refuses to tell, or does not answer. Stopped: from `poll`.
    """
    return _each(file_stamp, paths, poll)


def content_stamps(paths: Sequence[str], poll: Poll = no_poll) -> dict[str, str]:
    """`readers.stamps.content_stamp` of each file that is there, by its path.

    Raises:
        InputError: one cannot be read. RemoteError, Stopped: as `file_stamps`.
    """
    stamps = zip(paths, _each(content_stamp, paths, poll), strict=True)
    return {path: stamp for path, stamp in stamps if not isinstance(stamp, OSError)}


def _each(look: Callable[[str, Poll], T], paths: Sequence[str], poll: Poll) -> list[T | OSError]:
    stop = threading.Event()

    def looked(place: int) -> T | OSError:
        try:
            return look(paths[place], poll_of(stop.is_set))
        except RemoteError:
            raise
        except OSError as error:
            return error

    if not any(map(is_address, paths)):
        return [looked(place) for place in range(len(paths))]
    return in_threads(looked, len(paths), threads=AT_ONCE, poll=poll, stop=stop)


def _child(folder: Address, name: str) -> Address:
    return folder.at(f"{folder.path}/{name}")


def _listed(folders: Sequence[Address], limit: ListingLimit, poll: Poll) -> list[tuple[Address, list[Entry]]]:
    """What lies in each of the folders."""
    stop = threading.Event()
    answers = in_threads(
        lambda place: list(entries(folders[place], poll_of(stop.is_set))),
        len(folders),
        threads=AT_ONCE,
        poll=poll,
        stop=stop,
    )
    for folder, listed in zip(folders, answers, strict=True):
        for _ in listed:
            limit.spend(folder)
    return list(zip(folders, answers, strict=True))


def _below(folders: Sequence[Address], limit: ListingLimit, poll: Poll) -> list[tuple[Address, list[Entry]]]:
    """What lies in the folders and in all below them but hidden ones."""
    everything: list[tuple[Address, list[Entry]]] = []
    waiting = list(folders)
    while waiting:
        level = _listed(waiting, limit, poll)
        everything += level
        waiting = [
            _child(parent, entry.name)
            for parent, listed in level
            for entry in listed
            if entry.is_folder and not is_hidden(entry.name, folder=True)
        ]
    return everything


def _matching(pattern: Address, limit: ListingLimit, poll: Poll) -> list[Address]:
    """The files that a pattern matches: ``**`` stands for any folders, none included, and only a part that begins with
    a dot or an underscore matches hidden names."""
    parts = [part for place, part in enumerate(pattern.parts[1:]) if part != "**" or pattern.parts[place] != "**"]
    if parts[-1] == "**":
        parts.append("*")  # files, not folders, are wanted
    folders = [pattern.at("")]
    for part in parts[:-1]:
        if part == "**":
            folders = [folder for folder, _ in _below(folders, limit, poll)]
        elif not is_pattern(part):
            folders = [_child(folder, part) for folder in folders]
        else:
            folders = _named(folders, part, True, limit, poll)
    return list(dict.fromkeys(_named(folders, parts[-1], False, limit, poll)))


def _named(folders: Sequence[Address], part: str, of_folders: bool, limit: ListingLimit, poll: Poll) -> list[Address]:
    """What in the folders matches a part of a pattern: folders, or files."""
    matches = re.compile(fnmatch.translate(part)).match
    return [
        _child(folder, entry.name)
        for folder, listed in _listed(folders, limit, poll)
        for entry in listed
        if entry.is_folder == of_folders and matches(entry.name) and matches_hidden(part, entry.name, folder=of_folders)
    ]
