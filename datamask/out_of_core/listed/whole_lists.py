"""The lists of all blocks as whole arrays, which are mapped from disk.

Rows stand in the order of their cells, so who is near is mostly near on disk too. Similarities are kept as whole steps
below 1, of one size for the corpus, in two bytes: an entry takes 12 bytes, forward and reverse together.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from datamask.errors import StoreError
from datamask.files import read_bounded, replacing, write_text
from datamask.learning.lists import Lists, bits_for, lowest, put_steps, scale_of
from datamask.learning.medoids import count_listed, put_listed
from datamask.out_of_core.cells import CellBlocks
from datamask.places import take_room
from datamask.work.context import UNWATCHED, Work

ROWS_AT_ONCE = 1 << 15
"""Rows between two polls."""

RECORD_BYTES = 1 << 16

Facts = dict[str, Any]
"""What a record says of how the lists were made."""

FORWARD = 0.4
"""Share of the work, about."""


@dataclass(frozen=True)
class MappedLists(Lists):
    """Lists of which `reverse` is a map too."""

    listed_by: tuple[np.ndarray, np.ndarray, np.ndarray] = (np.empty(0), np.empty(0), np.empty(0))

    @property
    def reverse(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Candidate -> rows."""
        return self.listed_by


@dataclass(frozen=True)
class WholeLists:
    """The lists of all blocks of a corpus, by position."""

    cells: CellBlocks

    def path(self, kind: str) -> Path:
        """One of the files."""
        return self.cells.folder / f"whole-{self.cells.lists.word.rpartition('-')[2]}.{kind}"

    @property
    def known(self) -> bool:
        """Whether they no longer need the lists of the blocks."""
        return self.cells.named and self.path("json").is_file()

    def assembled(
        self, make: Callable[[], dict[str, Any]], work: Work = UNWATCHED
    ) -> tuple[MappedLists, dict[str, Any]]:
        """The lists, made where they are not there, and facts; the lists of the blocks are removed on the way.

        Args:
            make: makes the lists of the blocks, and says the facts, which are kept.

        Raises:
            StoreError: a file is damaged or cannot be written, or the disk is full. Stopped: from `work`.
        """
        rows, listed = self.cells.rows, min(self.cells.listed, self.cells.rows)
        if not self.known:
            facts = make()
            self._write_forward(rows, listed, facts, work.part(0.0, FORWARD))
        self.cells.lists.remove()
        try:
            record = json.loads(read_bounded(self.path("json"), RECORD_BYTES))
            bits, facts = int(record["bits"]), dict(record["facts"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.path('json')} is damaged; remove it, and the lists are made anew") from error
        indices, near = self._map("indices", np.int32, (rows, listed)), self._map("near", np.uint16, (rows, listed))
        if not self.path("offsets").is_file():
            self._write_reverse(indices, near, work.part(FORWARD, 1.0))
        offsets = self._map("offsets", np.int64, (rows + 1,))
        entries = (int(offsets[-1]),)
        listed_by = offsets, self._map("listing", np.int32, entries), self._map("listed_near", np.uint16, entries)
        return MappedLists(indices, near, *scale_of(bits), listed_by=listed_by), facts

    def _write_forward(self, rows: int, listed: int, facts: Facts, work: Work) -> None:
        cells, least, done = self.cells, 1.0, 0
        starts = np.asarray(cells.atlas[0]["block_starts"])

        def parts() -> list[tuple[int, np.ndarray, np.ndarray]]:
            """First position, positions and similarities of some rows at a time."""
            return [
                (int(starts[number]) + low, positions[low : low + ROWS_AT_ONCE], near[low : low + ROWS_AT_ONCE])
                for number in range(cells.blocks)
                for file in [cells.lists[number]]
                for positions, near in [(np.asarray(file["positions"]), np.asarray(file["similarities"]))]
                for low in range(0, len(positions), ROWS_AT_ONCE)
            ]

        for first, positions, near in parts():
            work.poll()
            least = min(least, lowest(positions, near, first))
        bits = bits_for(least)
        with self._made("indices", np.int32, rows * listed) as flat, self._made("near", np.uint16, rows * listed) as b:
            indices, codes = flat.reshape(rows, listed), b.reshape(rows, listed)
            for first, positions, near in parts():
                work.report(done / rows, "Lists of all rows")
                work.poll()
                some = slice(first, first + len(positions))
                indices[some] = positions
                put_steps(near, bits, codes[some])
                done += len(positions)
        write_text(self.path("json"), json.dumps({"bits": bits, "facts": facts}))

    def _write_reverse(self, indices: np.ndarray, near: np.ndarray, work: Work) -> None:
        rows = len(indices)
        parts = [slice(low, min(low + ROWS_AT_ONCE, rows)) for low in range(0, rows, ROWS_AT_ONCE)]
        offsets = np.zeros(rows + 1, np.int64)
        for some in parts:
            work.poll()
            count_listed(indices[some], some.start, offsets)
        np.cumsum(offsets, out=offsets)
        entries, place = int(offsets[-1]), offsets[:-1].copy()
        with self._made("listing", np.int32, entries) as listing, self._made("listed_near", np.uint16, entries) as by:
            for some in parts:
                work.report(some.start / rows, "Who lists whom")
                work.poll()
                put_listed(indices[some], near[some], some.start, place, listing, by)
        with self._made("offsets", np.int64, rows + 1) as kept:
            kept[:] = offsets

    def _map(self, kind: str, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
        path = self.path(kind)
        try:
            return np.asarray(np.memmap(path, dtype, "r", shape=shape))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} is missing or was cut off; remove {self.path('json')} beside it") from error

    @contextlib.contextmanager
    def _made(self, kind: str, dtype: type, count: int) -> Iterator[np.ndarray]:
        """A new file of so many numbers, as a map; it is there when all of it is."""
        with replacing(self.path(kind)) as part:
            # a map of a file with holes ends the process where the disk has no room for them
            with part.open("r+b") as file:
                take_room(file, max(1, count * np.dtype(dtype).itemsize))
            mapped = np.memmap(part, dtype, "r+", shape=(count,))
            yield np.asarray(mapped)
            mapped.flush()
