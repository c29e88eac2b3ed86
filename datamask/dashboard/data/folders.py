"""Folders that a visitor may look into: what lies in one, of those the server may read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from datamask.corpus.readers import endings
from datamask.errors import InputError, StoreError
from datamask.files import OutsideRoots, RealRoots, confined
from datamask.storage.address import FilePath

MOST = 500
"""Folders, and files, that are listed of one folder: a list to choose from holds no more."""


@dataclass(frozen=True)
class Folder:
    """What lies in a folder.

    Attributes:
        path: of it. above: the folder that holds it, None where the server may not read that.
        folders: names of the folders in it. files: names of the files in it that a corpus may be made of.
        more: whether more of either lies in it.
    """

    path: Path
    above: Path | None
    folders: tuple[str, ...]
    files: tuple[str, ...]
    more: bool


def starts(roots: Iterable[str | FilePath]) -> list[Path]:
    """Return the folders among the roots, where browsing begins."""
    return [root for root in RealRoots.of(roots) if isinstance(root, Path) and root.is_dir()]


def look_into(path: str | Path, roots: Iterable[str | FilePath]) -> Folder:
    """Return what lies in a folder below the roots. Hidden files are left out, and links that lead outside.

    Raises:
        OutsideRoots: it lies outside. InputError: it is no folder. StoreError: it cannot be read.
    """
    allowed = RealRoots.of(roots)
    folder = confined(path, allowed)
    if not isinstance(folder, Path) or not folder.is_dir():
        raise InputError(f"{path} is no folder on the machine of this server")
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name.casefold())
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror or error}") from error
    readable = tuple(endings())
    folders, files = [], []
    for entry in entries:
        if entry.name.startswith("."):
            continue
        with contextlib.suppress(OutsideRoots, OSError):
            confined(entry, allowed)
            if entry.is_dir():
                folders.append(entry.name)
            elif entry.name.endswith(readable):
                files.append(entry.name)
    above = None
    with contextlib.suppress(OutsideRoots):
        above = folder.parent if confined(folder.parent, allowed) != folder else None
    more = len(folders) > MOST or len(files) > MOST
    return Folder(folder, above if isinstance(above, Path) else None, tuple(folders[:MOST]), tuple(files[:MOST]), more)
