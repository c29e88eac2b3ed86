"""What a visitor of the dashboard may bring in: paths under the configured roots, and uploaded parquet files."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from datamask.config import CorpusConfig
from datamask.corpus.shards import list_files
from datamask.errors import InputError, StoreError
from datamask.files import confined, replacing, user_path

KINDS = {"inputs": "input", "features": "features", "scores": "scores"}
"""By part of a configuration, how its files are called in an error."""

UPLOADS = ".uploads"
IDLE_SECONDS = 3600.0
"""An upload so young may be about to be opened, by whoever sent it."""


class Outside(InputError):
    """A corpus that somebody else named, in a run folder or a note, and that this server may not read."""


def check_roots(config: CorpusConfig, roots: Iterable[str | Path]) -> None:
    """Refuse a corpus that reads any file outside the roots, without a word about what it names.

    For a corpus that no visitor typed: a run folder names it, or a note of an opening. Files that are missing are not
    refused, opening it says so.

    Raises:
        Outside: a path, or a file found below one, leads outside.
    """
    roots = tuple(roots)
    try:
        for name in ("inputs", "features", "scores"):
            paths = [str(_absolute(text, roots)) for text in getattr(config, name)]
            files = ()
            if paths:
                with contextlib.suppress(InputError):
                    files = list_files(paths, KINDS[name])
            for file in files:
                confined(file, roots)
    except InputError as error:
        raise Outside("this corpus lies outside the folders that this server may read, so it is not opened; start the "
                      "server with DATAMASK_ROOTS naming its folder") from error


def confined_config(config: CorpusConfig, roots: Iterable[str | Path]) -> CorpusConfig:
    """The configuration with absolute paths, provided every file it names lies under one of the roots.

    Folders and the fixed part of a glob are checked before they are listed, and every file found after, so that neither
    ``..`` nor a link leads out, and what lies outside is not even confirmed to exist.

    Raises:
        InputError: a path leads outside the roots, does not exist, or matches nothing.
    """
    roots = tuple(roots)
    if not roots:
        raise InputError("this server reads no files by path, because other machines can reach it and no folder was "
                         "opened to them; start it with DATAMASK_ROOTS naming folders, or upload the shards")
    checked = {}
    for name in ("inputs", "features", "scores"):
        paths = []
        for text in getattr(config, name):
            paths.append(str(_absolute(text, roots)))
        for file in list_files(paths, KINDS[name]) if paths else ():
            confined(file, roots)
        checked[name] = tuple(paths)
    return replace(config, **checked)


def _absolute(text: str, roots: Iterable[str | Path]) -> Path:
    """The path from the root of the file system, provided its fixed part lies under one of the roots.

    Raises:
        InputError: it does not, or no file system has such a path.
    """
    try:
        path = user_path(text).absolute()
        confined(_fixed_part(path), roots)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        # without the reason: that would tell of what lies outside
        raise InputError(f"{text[:200]!r} is no path that this server can read") from error
    return path


def _fixed_part(path: Path) -> Path:
    """The leading folders of a path that are no pattern."""
    fixed = Path(path.anchor)
    for part in path.parts[1:]:
        if glob.has_magic(part) and not (fixed / part).exists():
            break
        fixed = fixed / part
    return fixed


def keep_upload(name: str, data: BinaryIO, runs_dir: str | Path) -> Path:
    """Keep an uploaded file under the runs folder, in a folder named by the fingerprint of its bytes.

    The same bytes are kept once, whoever uploads them, so a run that refers to them finds them again.

    Args:
        name: the file's name on the visitor's machine; only its harmless characters are used.
        data: the bytes, read in pieces.
        runs_dir: the folder of all runs.

    Raises:
        StoreError: the runs folder cannot be written.
    """
    digest = hashlib.file_digest(data, "sha256").hexdigest()[:16]
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-")[:60] or "upload"
    target = Path(runs_dir) / UPLOADS / digest / f"{stem}.parquet"
    if not target.is_file():
        data.seek(0)
        with replacing(target) as part, part.open("wb") as file:
            shutil.copyfileobj(data, file, 1 << 20)
    return target


def idle_uploads(runs_dir: str | Path, used: Iterable[CorpusConfig]) -> dict[Path, int]:
    """Uploaded files that none of these corpora reads, those of the last hour aside, and their bytes.

    Args:
        used: of every run, and of whatever is open or offered for opening.
    """
    named = {Path(path).absolute() for config in used for path in (*config.inputs, *config.features, *config.scores)}
    young = time.time() - IDLE_SECONDS
    found = {}
    for path in sorted((Path(runs_dir) / UPLOADS).glob("*/*.parquet")):
        with contextlib.suppress(FileNotFoundError):  # another visitor has just removed it
            known = path.stat()
            if path.absolute() not in named and known.st_mtime < young:
                found[path] = known.st_size
    return found


def remove_uploads(files: Iterable[Path]) -> None:
    """Remove uploaded files, and the folders that are empty then: one content sent under two names shares a folder.

    Raises:
        StoreError: one of them cannot be removed.
    """
    for file in files:
        try:
            file.unlink(missing_ok=True)  # another visitor may have been quicker
        except OSError as error:
            raise StoreError(f"{file} cannot be removed: {error.strerror}") from error
        with contextlib.suppress(OSError):  # gone, or a file of another name is still read
            file.parent.rmdir()
