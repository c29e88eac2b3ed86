"""Named arrays in one file, written whole or not at all and read as maps: what tasks leave for each other.

A line of JSON says which arrays there are, and the facts that the task gives back; the arrays follow, each at a
multiple of 64 bytes. Maps take no memory that counts: the system drops their pages when it needs room.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from datamask.errors import StoreError
from datamask.files import open_regular, replacing

FORMAT = "datamask arrays 1"

LONGEST_HEADER = 1 << 20
"""Bytes of the line of JSON."""

ALIGNED = 64

BYTES_AT_ONCE = 1 << 24


class ArrayFile:
    """An array file that is there.

    Attributes:
        path: of it. facts: what its maker gave back.
    """

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            FileNotFoundError: there is none.
            StoreError: it is no such file, or was cut off.
        """
        self.path = path
        with open_regular(path) as file:
            line = file.readline(LONGEST_HEADER)
            size = os.fstat(file.fileno()).st_size
        try:
            header = json.loads(line)
            if header["format"] != FORMAT:
                raise ValueError("it is of another version")
            self._arrays: dict[str, dict[str, Any]] = header["arrays"]
            self.facts: dict[str, Any] = header["facts"]
            end = max((int(each["at"]) + _bytes_of(each) for each in self._arrays.values()), default=0)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._damaged(f"has no header that can be read ({str(error)[:80]})") from error
        if size < end:
            raise self._damaged("was cut off")

    @property
    def names(self) -> list[str]:
        """Of the arrays."""
        return list(self._arrays)

    def __getitem__(self, name: str) -> np.ndarray:
        """One of the arrays, as a map that cannot be written."""
        if name not in self._arrays:
            raise self._damaged(f"holds no {name}")
        entry = self._arrays[name]
        if not _bytes_of(entry):
            return np.empty(entry["shape"], np.dtype(entry["dtype"]))
        mapped: np.ndarray = np.memmap(
            self.path, np.dtype(entry["dtype"]), "r", offset=int(entry["at"]), shape=tuple(entry["shape"])
        )
        return mapped

    def _damaged(self, how: str) -> StoreError:
        return StoreError(f"{self.path} {how}; remove it, and it is made anew")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write arrays and facts.

    Args:
        facts: JSON.

    Raises:
        StoreError: the folder cannot be written, or the disk is full.
    """
    entries: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        entries[name] = {"dtype": array.dtype.newbyteorder("<").str, "shape": list(array.shape), "at": 0}
    # places are long numbers from the start, so that putting them in does not move anything
    header = _header(entries, facts, 10**15)
    at = _aligned(len(header))
    for entry in entries.values():
        entry["at"] = at
        at = _aligned(at + _bytes_of(entry))
    text = _header(entries, facts, None)
    with replacing(path) as part, part.open("wb") as file:
        file.write(text.rstrip(b"\n").ljust(len(header) - 1) + b"\n")
        for name, array in arrays.items():
            file.seek(entries[name]["at"])
            flat = np.ascontiguousarray(array, np.dtype(entries[name]["dtype"])).reshape(-1).view(np.uint8)
            for low in range(0, len(flat), BYTES_AT_ONCE):
                file.write(flat[low : low + BYTES_AT_ONCE].data)
        file.truncate(at)


def _header(entries: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any], at: int | None) -> bytes:
    arrays = {name: {**entry, "at": entry["at"] if at is None else at} for name, entry in entries.items()}
    text = json.dumps({"format": FORMAT, "arrays": arrays, "facts": dict(facts)}).encode() + b"\n"
    if len(text) > LONGEST_HEADER:
        raise ValueError(f"the header of an array file has {len(text):,} bytes, above {LONGEST_HEADER:,}")
    return text


def _aligned(place: int) -> int:
    return -(-place // ALIGNED) * ALIGNED


def _bytes_of(entry: Mapping[str, Any]) -> int:
    size: int = np.dtype(entry["dtype"]).itemsize * math.prod(entry["shape"])
    return size
