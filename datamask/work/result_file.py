"""One kept result as a file: its name, its bytes, and how it is read without believing it.

One line of JSON (what it is: subject, name, version, key), the result's plain value as JSON, its arrays in numpy's
format, and a SHA-256 over all of that. The digest is checked before anything is parsed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from datamask.files import FORMAT, open_regular

_DIGEST = 64
_BEGINNING = f'{{"format": "{FORMAT}", "subject": '.encode()


@dataclass(frozen=True)
class Entry:
    """The name of one kept result.

    Attributes:
        subject: what it is of: the fingerprint of a corpus. name, key: which result. version: of its meaning; raise it
            when the computation changes.
    """

    subject: str
    name: str
    version: int
    key: str = ""


@dataclass(frozen=True)
class Content:
    """What a file holds: plain JSON values, and arrays by name."""

    value: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Implausible(ValueError):
    """What was read is no such result; the message says why."""


def require(condition: object, what: str) -> None:
    """Raises `Implausible` saying `what` unless the condition holds: for the checks of a `read`."""
    if not condition:
        raise Implausible(what)


class _Hashing:
    """A file that adds up the digest of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self.file.write(data)


def _head(entry: Entry) -> dict[str, Any]:
    return {"format": FORMAT, "subject": entry.subject, "name": entry.name, "version": entry.version, "key": entry.key}


def store(path: Path, entry: Entry, value: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write the file. Raises ValueError where JSON cannot hold the value, or an array holds objects."""
    text = json.dumps(value, allow_nan=False).encode()
    head = {**_head(entry), "value": len(text), "arrays": list(arrays)}
    with path.open("wb") as file:
        hashing = _Hashing(file)
        hashing.write(json.dumps(head).encode() + b"\n")
        hashing.write(text)
        for array in arrays.values():
            np.lib.format.write_array(hashing, array, allow_pickle=False)
        file.write(hashing.digest.hexdigest().encode())


def is_result(path: Path) -> bool:
    """Whether a file begins as those of `store` do."""
    try:
        with open_regular(path) as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


def load(path: Path, entry: Entry) -> Content:
    """What the file of an entry holds. Raises anything where that is not what was once kept under this name."""
    with open_regular(path) as file:
        _check_digest(file)
        head = json.loads(file.readline())
        for name, expected in _head(entry).items():
            require(head[name] == expected, f"its {name} is {head[name]!r} instead of {expected!r}")
        value = json.loads(file.read(head["value"]))
        require(isinstance(value, dict), "its value is no JSON object")
        return Content(value, {name: np.lib.format.read_array(file, allow_pickle=False) for name in head["arrays"]})


def _check_digest(file: BinaryIO) -> None:
    left, digest = os.fstat(file.fileno()).st_size - _DIGEST, hashlib.sha256()
    require(left > 0, "it is cut short")
    while left:
        block = file.read(min(left, 1 << 20))
        require(block, "it is cut short")
        digest.update(block)
        left -= len(block)
    require(file.read() == digest.hexdigest().encode(), "its digest is that of other bytes")
    file.seek(0)
