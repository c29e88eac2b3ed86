"""Files written whole or not at all, and server paths kept under their roots."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from datamask.errors import InputError, StoreError
from datamask.storage.address import Address, FilePath, harmless, is_address

FORMAT = "datamask 1.0"
"""Of run folders, recipes and kept results: where one says anything else, another version of datamask made it."""

UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}\.(part|npz|npy)")
"""Names of what `replacing` and `replacing_folder` write before it is whole."""

ABANDONED_SECONDS = 86400.0
"""On a file system without locks nobody can tell whether a writer lives; a day is longer than any file takes."""

_UMASK = os.umask(0o077)
"""Read once, since reading is setting: another thread that makes a file meanwhile would give it other rights."""
os.umask(_UMASK)


def open_regular(path: str | os.PathLike[str], way_out: str = "remove it", *, follow: bool = True) -> BinaryIO:
    """Open an ordinary file for reading, without ever waiting: a pipe or a device in its place is refused at once.

    Args:
        path: of the file.
        way_out: what the refusal says to do.
        follow: whether a link may lead to it.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it is no ordinary file.
        OSError: it cannot be opened.
    """
    handle = regular_handle(path, os.O_RDONLY | (0 if follow else os.O_NOFOLLOW), way_out)
    try:
        return open(handle, "rb")  # noqa: PTH123
    except BaseException:
        os.close(handle)
        raise


def regular_handle(path: str | os.PathLike[str], flags: int, way_out: str = "remove it") -> int:
    """Open an ordinary file as `open_regular`; return its descriptor.

    Args:
        flags: of `os.open`. With ``O_NOFOLLOW`` a link is refused too.

    Raises: as `open_regular`.
    """
    others = "pipe, socket, device or link" if flags & os.O_NOFOLLOW else "pipe, socket or device"
    refusal = f"{path} must be an ordinary file, not a folder, {others}; {way_out}"
    try:
        # without O_NONBLOCK the opening of a pipe waits for a writer
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ELOOP, errno.ENXIO):
            raise StoreError(refusal) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreError(refusal)
    return handle


def check_regular(path: str | os.PathLike[str]) -> None:
    """Make sure that a library which is given this path does not wait for ever, or read without end.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it is no ordinary file.
        OSError: it cannot be opened.
    """
    open_regular(path, "name another").close()


def read_bounded(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """The bytes of an ordinary file, at most so many. follow: whether a link may lead to it.

    Raises:
        FileNotFoundError: there is none.
        StoreError: it is no ordinary file, or larger.
        OSError: it cannot be read.
    """
    with open_regular(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        # not at once for the bound: room is taken for all that is asked for
        data = file.read(size + 1) if size <= most else b""
        if len(data) > size:  # it grows, or its file system does not say how large it is
            data += file.read(most + 1 - len(data))
    if max(size, len(data)) > most:
        raise StoreError(f"{path} is larger than {most:,} bytes, which no such file is")
    return data


def existing_parent(path: str | os.PathLike[str]) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    place = Path(path).absolute()
    return next(folder for folder in (place, *place.parents) if folder.is_dir())


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], suffix: str = "", *, sync: bool = True, private: bool = False
) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it becomes `path` at once, on failure it is gone.

    The file is synced before the rename, so that after a power cut `path` holds the old or the new bytes, never half.
    `sync=False` leaves that out, for files such as heartbeats that are rewritten every second. Until then the temporary
    file is locked, by which `sweep` tells it from what a killed writer left. `private`: no other user may read it.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = _locked_part(target, suffix or ".part")
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    try:
        try:
            yield part
            # mkstemp makes private files; a result is for everyone the umask allows
            if not private:
                part.chmod(0o666 & ~_UMASK)
            if sync:
                with part.open("rb") as written:
                    os.fsync(written.fileno())
            part.replace(target)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        # what happened counts, not whether the disk lets go of the rest: `sweep` tries again
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        os.close(handle)


def _locked_part(target: Path, suffix: str, *, folder: bool = False) -> tuple[int, Path]:
    """An empty temporary file or folder beside `target`, and the handle that holds its lock."""
    while True:
        prefix = f".{target.name}."
        if folder:
            name = tempfile.mkdtemp(suffix, prefix, target.parent)
            handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        else:
            handle, name = tempfile.mkstemp(suffix, prefix, target.parent)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if Path(name).exists():
            return handle, Path(name)
        os.close(handle)  # swept in the instant before it was locked


def sweep(folder: str | os.PathLike[str]) -> None:
    """Remove the unfinished files and folders in `folder` whose writers were killed; what cannot be removed stays.

    A living writer holds the lock of what it writes. Where the file system knows no locks, they must be a day old.
    """
    with contextlib.suppress(OSError):
        for path in list(Path(folder).iterdir()):
            if UNFINISHED.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    remove_abandoned(path)


def remove_leftovers(target: Path) -> None:
    """Remove what killed writers of `target` left next to it; what is in use, or cannot be removed, stays."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
        with contextlib.suppress(OSError):
            remove_abandoned(part)


def remove_abandoned(path: Path) -> None:
    """Remove a temporary file or folder, unless somebody holds its lock.

    Raises:
        OSError: it is gone, or cannot be removed.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        except OSError:
            if time.time() - os.fstat(handle).st_mtime < ABANDONED_SECONDS:
                return
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(handle)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give an empty temporary folder beside `path`; on success it becomes `path`, on failure it is gone.

    A folder that was there before is replaced as a whole: it is moved aside first, since no system call exchanges two
    folders everywhere, so for an instant there may be none, but never a half-written one.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = _locked_part(target, ".part", folder=True)
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    new, old = part / "new", part / "old"
    try:
        try:
            new.mkdir()
            yield new
            if target.exists():
                target.rename(old)
            new.rename(target)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{target} cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            if old.exists() and not target.exists():
                old.rename(target)
        if not old.exists() or target.exists():  # what was there before is never removed without the new
            shutil.rmtree(part, ignore_errors=True)
        os.close(handle)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def user_path(text: str | os.PathLike[str]) -> Path:
    """The path with a leading ``~`` expanded; where it names no user, as it is, so that it does not exist."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - pathlib's raises RuntimeError for unknown users


class OutsideRoots(InputError):
    """A path that leads out of the folders that may be read, or an address below none of those that may."""


class RealRoots(tuple[FilePath, ...]):
    """Folders whose links are resolved already: a corpus of thousands of files is checked against each root once.

    Addresses among them allow what lies below them, and nothing of the disk.
    """

    @classmethod
    def of(cls, roots: Iterable[str | os.PathLike[str]]) -> RealRoots:
        """The real folders that `roots` name.

        Raises:
            InputError: an address among them is none.
        """
        if isinstance(roots, cls):
            return roots
        return cls(Address.parse(os.fspath(root)) if is_address(root) else user_path(root).resolve() for root in roots)


def confined(path: str | os.PathLike[str], roots: Iterable[str | os.PathLike[str]]) -> FilePath:
    """The real path of `path`, links and ``..`` resolved, provided it lies under one of `roots`.

    An address is compared as text, with its query, which may lead to another server; nothing is asked.

    Raises:
        OutsideRoots: it does not, or it is a link that leads to itself.
        InputError: it is an address that cannot be read at all.
    """
    allowed = RealRoots.of(roots)
    if is_address(path):
        return _confined_address(Address.parse(os.fspath(path)), allowed)
    try:
        real = user_path(path).resolve()
    except RuntimeError as error:
        raise outside_roots(path, allowed) from error
    if not any(real == root or root in real.parents for root in allowed):
        raise outside_roots(path, allowed)
    return real


def _confined_address(address: Address, allowed: RealRoots) -> Address:
    addresses = [root for root in allowed if isinstance(root, Address)]
    if not any(address.below(root) for root in addresses):
        raise OutsideRoots(
            f"{harmless(str(address))} is below no address that this server may read "
            f"({', '.join(map(str, addresses)) or 'none'}); start the server with DATAMASK_ROOTS naming its bucket or "
            "folder"
        )
    return address


def outside_roots(path: str | os.PathLike[str], allowed: RealRoots) -> OutsideRoots:
    """What says that a path leads out of the folders that may be read."""
    return OutsideRoots(
        f"{path} is outside the folders this server may read ({', '.join(map(str, allowed))}); move the files "
        "there, or start the server with DATAMASK_ROOTS naming their folder"
    )
