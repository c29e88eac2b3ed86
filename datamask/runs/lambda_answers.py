"""Answers to "which lambda?", kept beside the runs: one JSON file per question and corpus, replaced whole.

Light, so that a page can list them; `datamask.runs.lambdas` computes and writes them.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

from datamask.runs.formats import read_json, write_json

VERSION = 1
"""Of the record. A change of the method raises it, and answers of another version are not shown."""

_KEY = re.compile(r"[0-9a-f]{12}")
_UNFINISHED = ".unfinished"


def folder(cache_dir: str | Path, fingerprint: str) -> Path:
    """Where the answers on a corpus are kept."""
    return Path(cache_dir) / fingerprint / "which-lambda"


def save(cache_dir: str | Path, answer: dict) -> Path:
    """Keep an answer under its question's key.

    Raises:
        StoreError: the folder cannot be written.
    """
    path = folder(cache_dir, answer["fingerprint"]) / f"{answer['key']}.json"
    write_json(path, answer)
    return path


def unfinished(cache_dir: str | Path, fingerprint: str, key: str) -> Path:
    """The folder in which a search keeps what it has selected, until its answer is saved."""
    return folder(cache_dir, fingerprint) / f"{key}-{VERSION}{_UNFINISHED}"


def forget_unfinished(cache_dir: str | Path, fingerprint: str, but: Path | None = None) -> None:
    """Remove what stopped searches on a corpus have kept, except in the folder `but`."""
    for path in folder(cache_dir, fingerprint).glob(f"*{_UNFINISHED}"):
        if path != but:
            shutil.rmtree(path, ignore_errors=True)


def load(cache_dir: str | Path, fingerprint: str, key: str) -> dict | None:
    """The answer of that key; None where there is none, or only a damaged or outdated one."""
    if not _KEY.fullmatch(key):
        return None
    with contextlib.suppress(OSError, ValueError, KeyError):
        answer = read_json(folder(cache_dir, fingerprint) / f"{key}.json")
        if answer["version"] == VERSION and answer["key"] == key:
            return answer
    return None


def answers(cache_dir: str | Path, fingerprint: str) -> list[dict]:
    """All answers on a corpus, newest first."""
    found = (load(cache_dir, fingerprint, path.stem) for path in folder(cache_dir, fingerprint).glob("*.json"))
    return sorted((answer for answer in found if answer), key=lambda answer: -answer["created"])
