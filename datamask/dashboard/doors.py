"""What a visitor of the dashboard may bring in: paths under the configured roots, and uploaded parquet files."""

from __future__ import annotations

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
from datamask.files import confined, replacing

UPLOADS = ".uploads"
IDLE_SECONDS = 3600.0
"""An upload so young may be about to be opened, by whoever sent it."""


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
            path = Path(text).expanduser().absolute()
            confined(_fixed_part(path), roots)
            paths.append(str(path))
        for file in list_files(paths, name.removesuffix("s") if name == "inputs" else name) if paths else ():
            confined(file, roots)
        checked[name] = tuple(paths)
    return replace(config, **checked)


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


def idle_uploads(runs_dir: str | Path, used: Iterable[CorpusConfig]) -> list[Path]:
    """Uploaded files that none of these corpora reads, those of the last hour aside.

    Args:
        used: of every run, and of whatever is open or offered for opening.
    """
    named = {path for config in used for path in (*config.inputs, *config.features, *config.scores)}
    young = time.time() - IDLE_SECONDS
    return sorted(path for path in (Path(runs_dir) / UPLOADS).glob("*/*.parquet")
                  if str(path) not in named and path.stat().st_mtime < young)


def remove_uploads(files: Iterable[Path]) -> None:
    """Remove uploaded files, with the folders that held them.

    Raises:
        StoreError: one of them cannot be removed.
    """
    for file in files:
        try:
            shutil.rmtree(file.parent)
        except FileNotFoundError:
            continue  # another visitor was quicker
        except OSError as error:
            raise StoreError(f"{file.parent} cannot be removed: {error.strerror}") from error
