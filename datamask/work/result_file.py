"""One kept result as a file: its name, its bytes, and how it is read without believing it.

One line of JSON (what it is: subject, name, version, key), the result's plain value as JSON, its arrays in numpy's
format, each at a multiple of `ALIGNED` bytes, and a SHA-256 over all of that, which is checked before anything is
parsed. Arrays that are read as maps take no memory that counts: the system drops their pages when it needs room.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from datamask.files import FORMAT, open_regular

ALIGNED = 64

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


def digest_of(made_of: Any) -> str:
    """A word for what a result is made of, JSON: the key of an `Entry`."""
    return hashlib.blake2b(json.dumps(made_of, sort_keys=True).encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class Content:
    """What a file holds: plain JSON values, and arrays by name."""

    value: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        """One of the arrays."""
        return self.arrays[name]


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
            hashing.write(bytes(-file.tell() % ALIGNED))
            np.lib.format.write_array(hashing, array, allow_pickle=False)
        file.write(hashing.digest.hexdigest().encode())


def is_result(path: Path) -> bool:
    """Whether a file begins as those of `store` do."""
    try:
        with open_regular(path) as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


def load(path: Path, entry: Entry, mapped: bool = False) -> Content:
    """What the file of an entry holds. Raises anything where that is not what was once kept under this name.

    Args:
        mapped: give the arrays as maps that cannot be written.
    """
    with open_regular(path) as file:
        _check_digest(file)
        head = json.loads(file.readline())
        for name, expected in _head(entry).items():
            require(head[name] == expected, f"its {name} is {head[name]!r} instead of {expected!r}")
        value = json.loads(file.read(head["value"]))
        require(isinstance(value, dict), "its value is no JSON object")
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if mapped and head["arrays"] else None
        arrays = {name: _array(file, whole) for name in head["arrays"]}
        require(file.tell() + _DIGEST == os.fstat(file.fileno()).st_size, "it is cut short, or longer than it was")
        return Content(value, arrays)


def _array(file: BinaryIO, whole: mmap.mmap | None) -> np.ndarray:
    """The array that begins next in the file, as a part of a map of the whole, if there is one."""
    file.seek(-file.tell() % ALIGNED, os.SEEK_CUR)
    if whole is None:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        return array
    require(np.lib.format.read_magic(file) == (1, 0), "an array is of another format")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    require(not dtype.hasobject, "an array holds objects")
    at = file.tell()
    file.seek(dtype.itemsize * math.prod(shape), os.SEEK_CUR)
    return np.ndarray(shape, dtype, whole, at, order="F" if by_column else "C")


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
