"""Run folders as wholes: their names, making one, removing one at once or after a day, and sweeping what killed
processes left beside them."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from datamask import __version__
from datamask.config import RunConfig
from datamask.errors import InputError, RunStateError, StoreError
from datamask.files import ABANDONED_SECONDS, FORMAT, sweep
from datamask.runs.formats import write_json
from datamask.runs.status import RunStatus
from datamask.work.cache import FOLDER
from datamask.work.locks import FileLock

LONGEST_ID = 200
"""Characters: a file name may have 255 bytes, and temporary names add to it."""

RUN_ID = re.compile(rf"[a-z0-9-]{{1,{LONGEST_ID}}}")

DELETED = ".deleted"
"""Folder beside the runs, of those that were deleted and can still be restored: ``<seconds since 1970>-<run id>``."""

LONGEST_SECONDS = 12
"""Digits of a moment in such a name."""

KEPT_SECONDS = 86_400.0
"""How long a deleted run can be restored: a day."""

SCRATCH = ".scratch"
"""Folder beside the runs, for the mapped files of those that name no other."""

SWEPT = (FOLDER, ".uploads", ".rules")
"""Folders beside the runs into which other parts of the program write."""


def valid_id(run_id: str) -> str:
    """The id itself, safe as the name of a folder. Raises InputError where it is no id of a run."""
    if not isinstance(run_id, str) or not RUN_ID.fullmatch(run_id):
        raise InputError(
            f"a run id has only lower-case letters, digits and hyphens, at most {LONGEST_ID}, got {str(run_id)[:80]!r}"
        )
    return run_id


def new_run_id(config: RunConfig) -> str:
    """An id such as ``20261120-183501-facility-3f2a90c1``: UTC time, objective, eight random hex digits.

    A quick sweep makes dozens of runs in one second, of which two must not get one id.
    """
    terms = "-".join(name.rpartition(":")[2] for name, _ in config.selection.terms).lower()
    objective = re.sub(r"[^a-z0-9]+", "-", terms).strip("-")
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{objective}-{secrets.token_hex(4)}"


def create_folder(root: Path, run_id: str, config: RunConfig, output: str | None) -> Path:
    """Make the folder of a queued run, whole or not at all.

    Raises:
        RunStateError: there is already a run of that id.
        StoreError: the runs folder cannot be written.
    """
    folder = root / run_id
    staging = root / f".new-{run_id}-{secrets.token_hex(4)}"
    now = time.time()
    facts = {"output": output, "versions": _versions(), "command": config.arguments(output or "OUT.parquet")}
    record = {
        "format": FORMAT,
        "run_id": run_id,
        "created": now,
        "config": config.to_dict(),
        "facts": facts,
    }
    try:
        staging.mkdir(parents=True)
        try:
            write_json(staging / "config.json", record)
            write_json(staging / "status.json", RunStatus(created=now, queued=now, pid=os.getpid()).to_dict())
            # renaming onto a non-empty folder fails, so of two creators of one id only one succeeds
            staging.rename(folder)
        except OSError:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    except StoreError:
        raise
    except OSError as error:
        if folder.is_dir():
            raise RunStateError(f"run {run_id} exists already; choose another id or leave it out") from error
        blocker = next((p for p in (root, *root.parents) if p.exists() and not p.is_dir()), None)
        reason = f"{blocker} is a file, not a folder" if blocker else error.strerror or str(error)
        raise StoreError(
            f"the runs folder {root} cannot be written: {reason}; choose another with --runs_dir"
        ) from error
    return folder


def sweep_root(root: Path) -> None:
    """Remove what processes that were killed left beside the runs, in their caches and among uploads."""
    young = time.time() - ABANDONED_SECONDS
    for left in (*root.glob(".new-*"), *root.glob(".trash-*")):
        with contextlib.suppress(OSError):
            if left.lstat().st_mtime < young:
                shutil.rmtree(left)
    for folder in (root, *(root / name for name in SWEPT), *(sub for name in SWEPT for sub in root.glob(f"{name}/*/"))):
        sweep(folder)


def remove_folder(folder: Path, root: Path | None = None) -> None:
    """Delete a run that nobody works on; of a link to a folder elsewhere, the link.

    Args:
        root: the runs folder, where it is not the one that `folder` lies in.

    Raises:
        RunStateError: it is running.
        StoreError: it is not there, or cannot be deleted.
    """
    require_folder(folder)
    with _locked(folder):
        try:
            # renamed first: it vanishes from every listing at once, and a crash leaves a hidden folder, not half a run
            trash = (root or folder.parent) / f".trash-{folder.name}-{secrets.token_hex(4)}"
            folder.rename(trash)
            if trash.is_symlink():
                trash.unlink()
            else:
                shutil.rmtree(trash)
        except OSError as error:
            raise StoreError(f"run {folder.name} cannot be removed: {error.strerror}") from error


@dataclass(frozen=True)
class DeletedRun:
    """A run that was deleted and can be restored: its id, its folder now, and when that was, seconds since 1970."""

    run_id: str
    folder: Path
    deleted: float

    @property
    def expired(self) -> bool:
        """Whether its day is over. One from the future, by a clock that ran ahead, is rather kept too long."""
        return time.time() - self.deleted > KEPT_SECONDS


def discard_folder(folder: Path) -> DeletedRun:
    """Move a run that nobody works on to where it can be restored from for a day.

    Raises:
        RunStateError: it is running.
        StoreError: it is not there, or cannot be moved.
    """
    require_folder(folder)
    with _locked(folder):
        now = time.time()
        target = folder.parent / DELETED / f"{now:.0f}-{folder.name}"
        try:
            target.parent.mkdir(exist_ok=True)
            folder.rename(target)
        except OSError as error:
            raise StoreError(f"run {folder.name} cannot be deleted: {error.strerror}") from error
    return DeletedRun(folder.name, target, float(f"{now:.0f}"))


def restore_folder(deleted: DeletedRun) -> Path:
    """Move a deleted run back among the others; its folder there.

    Raises:
        RunStateError: there is a run of its id by now.
        StoreError: it is gone, or cannot be moved.
    """
    target = deleted.folder.parent.parent / deleted.run_id
    if os.path.lexists(target):
        raise RunStateError(f"run {deleted.run_id} cannot be restored: there is another run of that id by now")
    try:
        deleted.folder.rename(target)
    except FileNotFoundError as error:
        raise StoreError(f"run {deleted.run_id} cannot be restored: it has been deleted for good") from error
    except OSError as error:
        raise StoreError(f"run {deleted.run_id} cannot be restored: {error.strerror}") from error
    return target


def remove_deleted(deleted: DeletedRun, root: Path) -> None:
    """Remove a deleted run of this runs folder for good; as `remove_folder`."""
    if deleted.folder.is_symlink():  # which may lead nowhere from where it lies now
        with contextlib.suppress(FileNotFoundError):
            deleted.folder.unlink()
    else:
        remove_folder(deleted.folder, root)


def deleted_runs(root: Path) -> list[DeletedRun]:
    """The deleted runs that are still there, the latest first."""
    deleted = []
    with contextlib.suppress(OSError):
        for folder in (root / DELETED).iterdir():
            seconds, _, run_id = folder.name.partition("-")
            if seconds.isascii() and seconds.isdigit() and len(seconds) <= LONGEST_SECONDS and RUN_ID.fullmatch(run_id):
                deleted.append(DeletedRun(run_id, folder, float(seconds)))
    return sorted(deleted, key=lambda run: (run.deleted, run.run_id), reverse=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a run's lock while its folder goes elsewhere. Raises RunStateError: somebody else holds it."""
    lock = FileLock(folder / "lock")
    if not lock.acquire():
        raise RunStateError(f"run {folder.name} is running; stop it before removing it")
    try:
        yield
    finally:
        lock.release()


def require_folder(folder: Path) -> None:
    """Raises StoreError unless there is a run in this folder."""
    if not (folder / "status.json").is_file():
        raise StoreError(f"there is no run {folder.name} in {folder.parent}; it may have been removed")


def _versions() -> dict[str, str]:
    # from the packages' metadata: asking torch itself would load it
    packages = {package: metadata.version(package) for package in ("torch", "numpy", "pyarrow")}
    return {"datamask": __version__, "python": platform.python_version(), "platform": platform.platform(), **packages}
