"""What a visitor of the dashboard may bring in: paths under the configured roots, and uploaded files."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import itertools
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from datamask.config import CorpusConfig
from datamask.corpus.embedders.model2vec import FILES, model_folder
from datamask.corpus.embedders.sentences import is_sentence_model, model_files
from datamask.corpus.readers import endings
from datamask.corpus.shards import list_files
from datamask.errors import InputError, StoreError
from datamask.files import OutsideRoots, RealRoots, confined, outside_roots, replacing, user_path
from datamask.options import CORPUS_OPTIONS, InputPaths
from datamask.storage.address import WEB, Address, FilePath, is_address
from datamask.work.locks import only_one

UPLOADS = ".uploads"
IDLE_SECONDS = 3600.0
"""An upload so young may be about to be opened, by whoever sent it."""


@dataclass(frozen=True)
class Limits:
    """How many uploads a server keeps, and how many bytes they may have together."""

    files: int = 200
    bytes: int = 20_000_000_000


LIMITS = Limits()


class Outside(InputError):
    """A corpus that somebody else named, in a run folder or a note, and that this server may not read."""

    def __init__(self, config: CorpusConfig) -> None:
        super().__init__(
            "This corpus is outside the folders that this server may read. Start the server with DATAMASK_ROOTS "
            "naming its folder"
        )
        self.config = config


def check_roots(config: CorpusConfig, roots: Iterable[str | FilePath]) -> None:
    """Refuse a corpus that reads any file outside the roots, without a word about what it names.

    For a corpus that no visitor typed: a run folder names it, or a note of an opening. Files that are missing are not
    refused, opening it says so.

    Raises:
        Outside: a path, or a file found below one, leads outside.
    """
    roots = RealRoots.of(roots)
    try:
        for option, named in config.paths.items():
            paths = [str(_absolute(text, roots)) for text in named]
            files: tuple[str, ...] = ()
            if of_disk := _of_disk(paths):
                with contextlib.suppress(InputError):
                    files = list_files(of_disk, option, split="all")
            for file in files:
                confined(file, roots)
    except InputError as error:
        raise Outside(config) from error


def confined_config(config: CorpusConfig, roots: Iterable[str | FilePath]) -> CorpusConfig:
    """The configuration with absolute paths, provided every file it names lies under one of the roots.

    Folders and the fixed part of a glob are checked before they are listed, and every file found after, so that neither
    ``..`` nor a link leads out, and what lies outside is not even confirmed to exist. Addresses are checked as text:
    what a store lists below one lies below it, and a page waits for no store.

    Raises:
        OutsideRoots: a path leads outside the roots. InputError: one does not exist, or matches nothing.
    """
    roots = _some_roots(roots)
    checked: dict[str, Any] = {}
    for name, option in CORPUS_OPTIONS.items():
        if isinstance(option.kind, InputPaths):
            checked[name] = tuple(str(_absolute(text, roots)) for text in getattr(config, name))
            of_disk = _of_disk(checked[name])
            for file in list_files(of_disk, option.word, split="all") if of_disk else ():
                _confined_below(file, roots)
    return replace(config, **checked)


def confined_model(text: str, roots: Iterable[str | FilePath]) -> Path:
    """The absolute folder of an embedding model, provided it and the model's files lie under one of the roots.

    Raises:
        OutsideRoots: it does not, or a link leads out. InputError: it is no such folder.
    """
    if is_address(text):
        raise InputError("the model must be a folder on the machine of the server; nothing is downloaded")
    allowed = _some_roots(roots)
    folder = Path(str(_absolute(text, allowed)))
    sentences = is_sentence_model(folder)
    for path in model_files(folder) if sentences else [folder / name for name in FILES]:
        _confined_below(str(path), allowed)
    return folder if sentences else model_folder(folder)


def _some_roots(roots: Iterable[str | FilePath]) -> RealRoots:
    """The real roots, of which there must be one.

    Raises:
        OutsideRoots: there is none.
    """
    real = RealRoots.of(roots)
    if not real:
        raise OutsideRoots(
            "this server reads no files by path, because other machines can reach it and no folder is open to "
            "them; start it with DATAMASK_ROOTS naming folders, or upload the shards"
        )
    return real


def _of_disk(paths: Iterable[str]) -> list[str]:
    return [path for path in paths if not is_address(path)]


def named_paths(config: CorpusConfig) -> tuple[FilePath, ...]:
    """What the paths of a configuration name: folders and files as they stand, of a pattern the folders before it.

    Absolute, links not resolved; nobody looks whether they exist, other than where a path holds the signs of a pattern.

    Raises:
        InputError: no file system has such a path.
    """
    try:
        texts = (*config.inputs, *config.features, *config.scores)
        return tuple(dict.fromkeys(_fixed_part(_rooted(text)) for text in texts))
    except (OSError, ValueError) as error:
        raise InputError("this server cannot read one of these paths") from error


def outside_paths(config: CorpusConfig, roots: Iterable[str | FilePath]) -> tuple[FilePath, ...]:
    """Those of `named_paths` that lie under none of the roots."""
    real = RealRoots.of(roots)
    outside = []
    for path in named_paths(config):
        try:
            confined(path, real)
        except OutsideRoots:
            outside.append(path)
    return tuple(outside)


def _rooted(text: str) -> FilePath:
    return Address.parse(text) if is_address(text) else user_path(text).absolute()


def _absolute(text: str, roots: Iterable[str | FilePath]) -> FilePath:
    """The path from the root of the file system, provided its fixed part lies under one of the roots.

    Raises:
        OutsideRoots: it does not, or a pattern goes up again. It says what was asked for and no more: what lies outside
            must not be told from what does not exist.
        InputError: no file system has such a path.
    """
    allowed = RealRoots.of(roots)
    if is_address(text):
        address = Address.parse(text)
        confined(_fixed_part(address), allowed)
        return address
    try:
        path = user_path(text).absolute()
        fixed = _fixed_part(path)
        confined(fixed, allowed)
        if ".." in path.parts[len(fixed.parts) :]:
            raise outside_roots(text, allowed)
    except (OSError, ValueError) as error:
        # by the letters alone, since looking has failed, or has told what lies there
        spelled = Path(os.path.normpath(user_path(text).absolute()))
        if isinstance(error, OutsideRoots) or not any(root == spelled or root in spelled.parents for root in allowed):
            raise outside_roots(text[:200], allowed) from error
        raise InputError(f"{text[:200]!r} is not a path that this server can read") from error
    return path


def _confined_below(file: str, roots: RealRoots) -> None:
    """Refuse a file found below a root whose way leads out of it, by the place where it does.

    Raises:
        OutsideRoots: it does.
    """
    try:
        confined(file, roots)
    except OutsideRoots:
        for place in reversed(Path(file).parents):
            if any(root in place.parents for root in roots):
                confined(place, roots)
        raise


def _fixed_part(path: FilePath) -> FilePath:
    """The leading folders of a path that are no pattern."""
    if isinstance(path, Address):
        folders = itertools.takewhile(lambda part: path.scheme in WEB or not glob.has_magic(part), path.parts[1:])
        return path.at("/".join(folders))
    fixed = Path(path.anchor)
    for part in path.parts[1:]:
        if glob.has_magic(part) and not (fixed / part).exists():
            break
        fixed = fixed / part
    return fixed


def keep_uploads(
    files: Iterable[tuple[str, io.BufferedIOBase]],
    runs_dir: str | Path,
    used: Callable[[], Iterable[CorpusConfig]] = tuple,
    limits: Limits | None = None,
) -> list[Path]:
    """Keep uploaded files under the runs folder, all of them or none, each in a folder named by its SHA-256.

    The same bytes are kept once, whoever uploads them, so a run that refers to them finds them again. What lies there
    already is believed only if its bytes have that digest; else it is written anew. Waits while another thread or
    process keeps uploads.

    Args:
        files: of each its name on the visitor's machine, of which only harmless characters are used, and its bytes,
            read in pieces.
        runs_dir: the folder of all runs.
        used: the corpora of every run, and of whatever is open; asked for where there is no room for more uploads.
            Those that none of them reads make room then, the oldest first.
        limits: how much may be kept; None: `LIMITS`.

    Raises:
        InputError: there is no room for all of them. StoreError: the runs folder cannot be written.
    """
    targets = [(_target(name, data, runs_dir), data) for name, data in files]
    # counted and written by one visitor at a time: two would both find the last room free
    with only_one(Path(runs_dir) / UPLOADS / ".lock"):
        new = {}
        for target, data in targets:
            if target.is_file() and _digest(target) == target.parent.name:
                _note(target)
            else:
                new[target] = data
        if new:
            _make_room([data.seek(0, os.SEEK_END) for data in new.values()], runs_dir, used, limits or LIMITS)
        for target, data in new.items():
            data.seek(0)
            with replacing(target) as part, part.open("wb") as file:
                shutil.copyfileobj(data, file, 1 << 20)
    return [target for target, _ in targets]


def _target(name: str, data: io.BufferedIOBase, runs_dir: str | Path) -> Path:
    """Where an uploaded file of that name goes."""
    digest = hashlib.file_digest(data, "sha256").hexdigest()
    ending = next((ending for ending in endings() if name.lower().endswith(ending)), endings()[0])
    base = Path(name).name
    base = base[: -len(ending)] if base.lower().endswith(ending) else Path(base).stem
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", base).strip("-")[:60] or "upload"
    return Path(runs_dir) / UPLOADS / digest / f"{stem}{ending}"


def _sent_again(path: Path) -> Path:
    """The empty file whose time says when an upload was last sent again.

    Not the upload's own time: runs that read it know it by that, and would take it for written anew.
    """
    return path.with_name(f".{path.name}.again")


def _note(path: Path) -> None:
    """Take note that an upload which is there already was sent again."""
    try:
        _sent_again(path).touch()
    except OSError as error:
        raise StoreError(f"the upload {path.name} cannot be stored: {error.strerror}") from error


def _sent(path: Path, facts: os.stat_result) -> float:
    """When an upload was last sent, seconds since 1970."""
    with contextlib.suppress(OSError):
        return max(facts.st_mtime, _sent_again(path).stat().st_mtime)
    return facts.st_mtime


def _make_room(
    sizes: Sequence[int], runs_dir: str | Path, used: Callable[[], Iterable[CorpusConfig]], limits: Limits
) -> None:
    """Remove uploads that nothing reads, the oldest first, until more of these sizes fit.

    Raises:
        InputError: they do not fit all the same.
    """
    uploads = {}
    for path in _uploads(runs_dir):
        with contextlib.suppress(FileNotFoundError):  # another visitor has just removed it
            uploads[path] = path.stat()
    kept = sum(facts.st_size for facts in uploads.values())
    files, total = len(uploads) + len(sizes), kept + sum(sizes)
    if files <= limits.files and total <= limits.bytes:
        return
    idle = idle_uploads(runs_dir, used())
    going = []
    for path in sorted(idle, key=lambda path: _sent(path, uploads[path]) if path in uploads else 0.0):
        if files <= limits.files and total <= limits.bytes:
            break
        going.append(path)
        files, total = files - 1, total - idle[path]
    if files > limits.files or total > limits.bytes:
        uploaded = f"{len(sizes):,} upload{'s' if len(sizes) != 1 else ''} of {sum(sizes):,} bytes"
        raise InputError(
            f"there is no room for {uploaded}: the server stores at most {limits.files:,} uploads of "
            f"{limits.bytes:,} bytes in total, and {files - len(sizes):,} of {total - sum(sizes):,} bytes are in "
            "use or younger than an hour; open the files by their path, or delete runs that you no longer need"
        )
    remove_uploads(going)


def check_uploads(config: CorpusConfig, runs_dir: str | Path) -> None:
    """Read the uploads among a corpus's files once, and refuse them where their bytes are not those uploaded.

    Raises:
        InputError: one of them has changed since.
    """
    folder = (Path(runs_dir) / UPLOADS).absolute()
    for text in chain.from_iterable(config.paths.values()):
        path = Path(text).absolute()
        if path.parent.parent != folder or not re.fullmatch(r"[0-9a-f]{64}", path.parent.name):
            continue
        if path.is_file() and _digest(path) != path.parent.name:
            raise InputError(f"the upload {path.name} has changed on the server; upload it again")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"the upload {path.name} cannot be read: {error.strerror}") from error


def _uploads(runs_dir: str | Path) -> list[Path]:
    """Every file that was uploaded and is kept; none that is still being written."""
    return [
        path
        for path in (Path(runs_dir) / UPLOADS).glob("*/*")
        if path.name.endswith(endings()) and not path.name.startswith(".")
    ]


def idle_uploads(runs_dir: str | Path, used: Iterable[CorpusConfig]) -> dict[Path, int]:
    """Uploaded files that none of these corpora reads, those of the last hour aside, and their bytes.

    Args:
        used: of every run, and of whatever is open or offered for opening.
    """
    named = {Path(path).absolute() for config in used for path in chain.from_iterable(config.paths.values())}
    young = time.time() - IDLE_SECONDS
    idle = {}
    for path in sorted(_uploads(runs_dir)):
        with contextlib.suppress(FileNotFoundError):  # another visitor has just removed it
            known = path.stat()
            if path.absolute() not in named and _sent(path, known) < young:
                idle[path] = known.st_size
    return idle


def remove_uploads(files: Iterable[Path]) -> None:
    """Remove uploaded files, and the folders that are empty then: one content sent under two names shares a folder.

    Raises:
        StoreError: one of them cannot be removed.
    """
    for file in files:
        try:
            file.unlink(missing_ok=True)  # another visitor may have been quicker
            _sent_again(file).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{file} cannot be removed: {error.strerror}") from error
        with contextlib.suppress(OSError):  # gone, or a file of another name is still read
            file.parent.rmdir()
