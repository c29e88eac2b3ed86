"""Files written whole or not at all, and server paths kept under their roots."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from datamask.errors import InputError, StoreError

DAMAGED = (OSError, ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What numpy raises on an .npz file that is cut short, overwritten or no archive at all: a cache is then made anew."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike, suffix: str = "", *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path` at once, on failure it is gone.

    The file is synced before the rename, so that after a power cut `path` holds the old or the new bytes, never half.
    `sync=False` leaves that out, for files such as heartbeats that are rewritten every second.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=suffix or ".part", dir=target.parent)
        os.close(handle)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    part = Path(name)
    try:
        try:
            yield part
            # mkstemp makes private files; a result is for everyone the umask allows
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o666 & ~umask)
            if sync:
                with part.open("rb") as written:
                    os.fsync(written.fileno())
            part.replace(target)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Give an empty temporary folder beside `path`; on success it becomes `path`, on failure it is gone.

    A folder that was there before is replaced as a whole: it is moved aside first, since no system call exchanges two
    folders everywhere, so for an instant there may be none, but never a half-written one.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    try:
        new, old = part / "new", part / "old"
        try:
            new.mkdir()
            yield new
            if target.exists():
                target.rename(old)
            try:
                new.rename(target)
            except OSError:
                if old.exists():
                    old.rename(target)
                raise
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def user_path(text: str | os.PathLike) -> Path:
    """The path with a leading ``~`` expanded; where it names no user, as it is, so that it does not exist."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - pathlib's raises RuntimeError for unknown users


def confined(path: str | os.PathLike, roots: Iterable[str | os.PathLike]) -> Path:
    """The real path of `path`, links and ``..`` resolved, provided it lies under one of `roots`.

    Raises:
        InputError: it does not.
    """
    real = user_path(path).resolve()
    allowed = [user_path(root).resolve() for root in roots]
    if not any(real == root or root in real.parents for root in allowed):
        raise InputError(
            f"{path} is outside the folders this server may read ({', '.join(map(str, allowed))}); move the files "
            "there, or start the server with DATAMASK_ROOTS naming their folder"
        )
    return real
