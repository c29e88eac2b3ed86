"""Folders that the one-time code allowed, kept for the next start of the same person's server.

They are kept beside the runs folder, not in it: a runs folder is shared, copied and unpacked, and must not bring
permissions along. The file is believed only if it is a regular file of this user that no other user may read or write,
and names the runs folder beside it by its inode, which an archive cannot know. A folder that has become a link since is
not allowed. Delete the file to take all of it back.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from datamask.errors import DatamaskError
from datamask.files import replacing
from datamask.storage.address import FilePath, is_address, path_of

log = logging.getLogger(__name__)

LONGEST = 1 << 20
"""Bytes of the file that are looked at."""


def file_of(runs_dir: Path) -> Path:
    """Where the allowed folders of a runs folder are kept."""
    real = runs_dir.resolve()
    return real.parent / f".{real.name}.allowed.json"


def kept(runs_dir: Path) -> tuple[FilePath, ...]:
    """The folders, files and addresses that were allowed; none where the file cannot be believed."""
    path = file_of(runs_dir)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
                log.warning("%s is ignored: it must be a file of this user that no other may read or write", path)
                return ()
            note = json.loads(file.read(LONGEST))
        if note["runs"] != _identity(runs_dir):
            log.warning("%s is ignored: it was written for another runs folder", path)
            return ()
        return tuple(path_of(text) for text in map(str, note["paths"]) if is_address(text) or _is_itself(text))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, DatamaskError) as error:
        log.warning("%s is ignored: %s", path, error)
        return ()


def keep(runs_dir: Path, paths: Iterable[FilePath]) -> None:
    """Keep these besides those kept already; where that cannot be done, the log says so.

    Args:
        paths: links resolved; a person who reads this server's terminal allowed them.
    """
    path = file_of(runs_dir)
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        texts = list(dict.fromkeys(map(str, (*kept(runs_dir), *paths))))
        with replacing(path, private=True) as part:
            part.write_text(json.dumps({"runs": _identity(runs_dir), "paths": texts}, indent=1), encoding="utf-8")
    except (OSError, DatamaskError) as error:
        log.warning("what was allowed is not kept for the next start: %s", error)


def _identity(runs_dir: Path) -> list[int]:
    facts = runs_dir.stat()
    return [facts.st_dev, facts.st_ino]


def _is_itself(text: str) -> bool:
    """Whether a path still leads where it led when it was allowed."""
    return os.path.realpath(text) == text
