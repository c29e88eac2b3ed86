"""A corpus as raw files: what every pass after the first reads in the place of its shards.

One set of files per shard, named by its number: unit features as float16, quality, a hash of the id and the row in the
shard, of the rows that can be used, in input order. ``scratch.json`` is written last: without it there is no scratch.
How all of it is written: `scratch_writing`.
"""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from datamask.corpus.checks import unit_rows as opened_rows
from datamask.corpus.readers.shard import Shard
from datamask.corpus.refused_rows import valid_rows
from datamask.corpus.sampling import row_hash
from datamask.errors import StoreError
from datamask.files import open_regular, read_bounded
from datamask.measured import PROVED, Anchor
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.polling import Poll, no_poll
from datamask.recipes.apply import shard_stamp
from datamask.recipes.scoring import ROWS_AT_ONCE, unit_rows

FORMAT = "datamask scratch 2"

FOLDER_NOTE, RECORD = "about.txt", "scratch.json"
"""Files of the folder: what it is, written first; the record of the whole, written last."""

NOTE = "Raw files of a selection that is being made; datamask removes them.\n"
"""What the first of them says: a folder without it is never removed."""

KINDS = {"features": "<f2", "quality": "<f8", "id_hash": "<u8", "source_row": "<i8", "length": "<f8"}
"""What is kept of a row, and how; lengths where the corpus has any."""

MOST_BYTES = 1 << 30
"""Of a record: a million shards."""

ROWS_READ = 8192
"""Rows that are widened at a time."""

UNIT = (0.9, 1.1)
"""Lengths of rows rounded to float16 are in this range; others were never written."""

ROUNDING = 2.0**-11
"""Of a number up to 1 as float16."""

HASH_SEED = 0
"""Of the hashes of ids."""


class Scratch:
    """A corpus as raw files. Any number of threads and processes may read it.

    Attributes:
        folder: where it lies. rows, dim: N valid rows, d dimensions.
        starts: int64 ``(F + 1,)``, the first row of each shard.
        files: path or address of each shard. dropped: reason -> how many rows could not be used.
        digest: of what all of it was made of.
        moments: mean and variance of the unit features as the shards have them, before they were rounded.
    """

    def __init__(self, folder: Path, record: dict[str, Any]) -> None:
        self.folder = folder
        self.dim = int(record["dim"])
        self.starts = np.cumsum([0, *record["rows"]], dtype=np.int64)
        self.files: tuple[str, ...] = tuple(record["files"])
        self.dropped: dict[str, int] = dict(record["dropped"])
        self.digest = str(record["digest"])
        self.has_lengths = bool(record["lengths"])
        self.moments = FeatureMoments.from_dict(record["moments"])

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    @functools.cached_property
    def quality(self) -> np.ndarray:
        """Quality of every row, float64 ``(N,)``; read once.

        Raises:
            StoreError: the files are damaged.
        """
        quality = self._whole("quality")
        if not np.isfinite(quality).all():
            number = int(np.searchsorted(self.starts, int(np.isfinite(quality).argmin()), side="right")) - 1
            raise self._damaged(f"has a {number:06d}.quality with values that are no finite numbers")
        return quality

    def quality_ends(self, size: int) -> Anchor:
        """The ends of the scale of the mean quality of S rows."""
        best = np.partition(self.quality, self.rows - size)[self.rows - size :]
        return Anchor(float(self.quality.mean()), float(best.mean()), PROVED)

    @functools.cached_property
    def id_hash(self) -> np.ndarray:
        """A hash of every row's id, uint64 ``(N,)``, for ties and uniform samples; read once.

        Raises:
            StoreError: the files are damaged.
        """
        return self._whole("id_hash")

    def quality_of(self, low: int, high: int) -> np.ndarray:
        """Quality of the rows from `low` to before `high`, float64 ``(high - low,)``; read where not all of it was."""
        if "quality" in vars(self):
            return self.quality[low:high]
        return np.concatenate([np.zeros(0), *(self._read(*part, "quality") for part in self._parts(low, high))])

    def id_hash_of(self, low: int, high: int) -> np.ndarray:
        """Hashes of the ids of the rows from `low` to before `high`, uint64 ``(high - low,)``."""
        parts = (self._read(*part, "id_hash") for part in self._parts(low, high))
        return np.concatenate([np.zeros(0, np.uint64), *parts])

    def lengths(self, low: int, high: int) -> np.ndarray:
        """Tokens of the rows from `low` to before `high`, float64 ``(high - low,)``, of a corpus that has lengths."""
        return np.concatenate([np.zeros(0), *(self._read(*part, "length") for part in self._parts(low, high))])

    def features(self, low: int, high: int) -> np.ndarray:
        """Unit features of the rows from `low` to before `high`: float32 ``(high - low, d)``.

        Raises:
            StoreError: the files are damaged.
        """
        features = np.empty((high - low, self.dim), np.float32)
        done = 0
        for number, first, last in self._parts(low, high):
            for start in range(first, last, ROWS_READ):
                kept = self._read(number, start, min(start + ROWS_READ, last), "features").reshape(-1, self.dim)
                self._widen(number, kept, features[done : done + len(kept)])
                done += len(kept)
        return features

    def rows_at(self, rows: np.ndarray) -> np.ndarray:
        """Unit features of some rows: float32 ``(k, d)``.

        Args:
            rows: int64 ``(k,)``, rising.

        Raises:
            StoreError: the files are damaged.
        """
        features = np.empty((len(rows), self.dim), np.float32)
        for number, kept, part in self._kept_at(rows):
            self._widen(number, kept, features[part])
        return features

    def _kept_at(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray, slice]]:
        """Shard number, features as kept and which of the rising rows these are, some thousand at a time."""
        for number, places in self._by_shard(rows):
            count = int(self.starts[number + 1] - self.starts[number])
            kept = self._mapped(number, "features", count * self.dim).reshape(count, self.dim)
            inside = rows[places] - self.starts[number]
            for start in range(0, len(inside), ROWS_READ):
                part = slice(places.start + start, min(places.start + start + ROWS_READ, places.stop))
                yield number, kept[inside[start : start + ROWS_READ]], part

    def differing(self, rows: np.ndarray, corpus: WholeCorpus, number: int, batch: pa.RecordBatch) -> list[str]:
        """Return the kinds of files in which rows of a shard are not what the shard holds now; features to rounding.

        Where all of them differ, these may be other rows of the shard.

        Args:
            rows: int64 ``(k,)``, rising, of the scratch. corpus: it was made of.
            batch: the same rows of shard `number` as they are now.
        """
        low, high = int(self.starts[number]), int(self.starts[number + 1])
        places = corpus.source.starts[number] + self._source_rows(number)[rows - low]
        columns, norms, _, _ = columns_of(corpus, places, batch)
        kept = {
            kind: self._mapped(number, kind, high - low)[rows - low]
            for kind in ("quality", "id_hash", *(["length"] if self.has_lengths else []))
        }
        # the last digit of a row's length may go by where it stands in its batch
        far = np.abs(columns["features"].astype(np.float32) - self.rows_at(rows)) > 2 * ROUNDING
        kinds = ["features"] if far.any() or not (norms > 0).all() else []
        kinds += [kind for kind, values in kept.items() if not np.array_equal(values, columns.get(kind, values))]
        return ["source_row", *kinds] if len(kinds) == 1 + len(kept) else kinds

    def check_shard_changed(self, number: int, shard: Shard, kinds: list[str], poll: Poll = no_poll) -> None:
        """Refuse the scratch where it and a shard disagree, and the shard is as it was when it was read.

        Args:
            number: of the shard. kinds: of the files that disagree with it.

        Raises:
            StoreError: the shard has the size and time that the scratch was made of, so these files were altered.
            InputError: the shard is gone. RemoteError: its store does not answer. Stopped: from `poll`.
        """
        try:
            note = json.loads(read_bounded(file_of(self.folder, number, "json"), MOST_BYTES))
            unchanged = note["made_of"]["shard"] == list(shard_stamp(shard, poll))
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            raise self._damaged(f"has no {number:06d}.json that can be read") from None
        if unchanged:
            names = " or ".join(file_of(self.folder, number, kind).name for kind in kinds)
            raise self._damaged(f"has a {names} that no longer agrees with {shard.path}, which has not changed")

    def id_hash_at(self, rows: np.ndarray) -> np.ndarray:
        """`id_hash` of some rows, uint64 ``(k,)``, without reading all. rows: int64 ``(k,)``, rising."""
        hashes = np.empty(len(rows), np.uint64)
        for number, places in self._by_shard(rows):
            low, high = int(self.starts[number]), int(self.starts[number + 1])
            hashes[places] = self._mapped(number, "id_hash", high - low)[rows[places] - low]
        return hashes

    def place(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where rows come from: the shard's number and the row in it, int64 ``(k,)`` each.

        Args:
            rows: int64 ``(k,)``, rising.
        """
        shards, inside = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for number, places in self._by_shard(rows):
            shards[places] = number
            inside[places] = self._source_rows(number)[rows[places] - self.starts[number]]
        return shards, inside

    def find(self, shard: int, inside: np.ndarray) -> np.ndarray:
        """The rows that are these rows of a shard, int64 ``(k,)``; -1 for one that could not be used."""
        kept = self._source_rows(shard)
        if not len(kept):
            return np.full(len(inside), -1)
        at = np.minimum(np.searchsorted(kept, inside), len(kept) - 1)
        return np.where(kept[at] == inside, self.starts[shard] + at, -1)

    def _source_rows(self, shard: int) -> np.ndarray:
        rows = self._mapped(shard, "source_row", int(self.starts[shard + 1] - self.starts[shard]))
        if len(rows) and (rows[0] < 0 or (rows[1:] <= rows[:-1]).any()):
            raise self._damaged(f"has a {shard:06d}.source_row with rows that do not rise")
        return rows

    def _parts(self, low: int, high: int) -> Iterator[tuple[int, int, int]]:
        """Shard number, first row in its files and the one behind the last, of a range of rows."""
        if not 0 <= low <= high <= self.rows:
            raise IndexError(f"rows {low} to {high} of {self.rows}")
        number = int(np.searchsorted(self.starts, low, side="right")) - 1
        while low < high:
            end = min(high, int(self.starts[number + 1]))
            if end > low:
                yield number, low - int(self.starts[number]), end - int(self.starts[number])
            low, number = max(low, end), number + 1

    def _by_shard(self, rows: np.ndarray) -> Iterator[tuple[int, slice]]:
        """Shard number and which of the rising rows lie in it."""
        if len(rows) and not (rows[0] >= 0 and rows[-1] < self.rows and (np.diff(rows) >= 0).all()):
            raise IndexError(f"rows must rise from 0 to below {self.rows}")
        edges = np.searchsorted(rows, self.starts)
        for number in np.flatnonzero(np.diff(edges)).tolist():
            yield number, slice(int(edges[number]), int(edges[number + 1]))

    def _whole(self, kind: str) -> np.ndarray:
        whole = np.empty(self.rows, np.dtype(KINDS[kind]).newbyteorder("="))
        for number in range(len(self.files)):
            low, high = int(self.starts[number]), int(self.starts[number + 1])
            if high > low:
                whole[low:high] = self._read(number, 0, high - low, kind)
        return whole

    def _read(self, number: int, first: int, last: int, kind: str) -> np.ndarray:
        """Values of rows of one shard's file, flat."""
        width = self.dim if kind == "features" else 1
        dtype = np.dtype(KINDS[kind])
        path = file_of(self.folder, number, kind)
        try:
            with open_regular(path) as file:
                values = np.fromfile(file, dtype, (last - first) * width, offset=first * width * dtype.itemsize)
        except OSError as error:
            raise self._damaged(f"lacks {path.name} ({getattr(error, 'strerror', None) or error})") from error
        if len(values) < (last - first) * width:
            raise self._damaged(f"has a {path.name} that was cut off")
        return values

    def _mapped(self, number: int, kind: str, count: int) -> np.ndarray:
        """All values of one shard's file, as a map of the file, which takes no memory that counts."""
        path = file_of(self.folder, number, kind)
        if count == 0:
            return np.zeros(0, KINDS[kind])  # an empty file cannot be mapped
        try:
            with open_regular(path) as file:
                mapped: np.ndarray = np.memmap(file, np.dtype(KINDS[kind]), "r", shape=(count,))
        except (OSError, ValueError) as error:
            raise self._damaged(f"lacks {path.name}, or has one that was cut off") from error
        return mapped

    def _widen(self, number: int, kept: np.ndarray, into: np.ndarray) -> None:
        """Rows of a shard as kept to unit rows, as opening a corpus makes them."""
        into[:] = kept
        norms = np.sqrt(np.einsum("ij,ij->i", into, into).astype(np.float64))
        if not ((norms > UNIT[0]) & (norms < UNIT[1])).all():
            raise self._damaged(f"has a {number:06d}.features with rows that are not of unit length")
        into *= (1.0 / norms).astype(np.float32)[:, None]

    def _damaged(self, how: str) -> StoreError:
        return StoreError(f"the scratch in {self.folder} {how}; remove the folder, and it is written anew")


class Shuffled(Scratch):
    """The same rows with a random number in the place of quality, from the hash of the id."""

    def __init__(self, scratch: Scratch) -> None:
        vars(self).update(vars(scratch))
        vars(self).pop("quality", None)

    @functools.cached_property
    def quality(self) -> np.ndarray:
        return self.id_hash * 2.0**-64

    def quality_of(self, low: int, high: int) -> np.ndarray:
        return self.quality[low:high] if "quality" in vars(self) else self.id_hash_of(low, high) * 2.0**-64


def scratch_bytes(rows: int, dim: int, *, lengths: bool = False) -> int:
    """Bytes that the scratch of so many rows takes."""
    return rows * (2 * dim + 8 * (4 if lengths else 3))


def open_scratch(folder: str | Path) -> Scratch:
    """A scratch that was written whole, by its path alone.

    Raises:
        StoreError: there is none, or its record is damaged.
    """
    place = Path(folder)
    try:
        record = json.loads(read_bounded(place / RECORD, MOST_BYTES))
        whole = (
            record["format"] == FORMAT
            and len(record["rows"]) == len(record["files"])
            and all(isinstance(rows, int) and rows >= 0 for rows in record["rows"])
            and isinstance(record["dim"], int)
            and record["dim"] > 0
            and len(record["moments"]["mean"]) == record["dim"]
        )
        if not whole:
            raise ValueError("it is no record of this version")
        return Scratch(place, record)
    except FileNotFoundError:
        raise StoreError(f"there is no whole scratch in {place}; its first pass was not finished") from None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise StoreError(f"{place / RECORD} is damaged ({str(error)[:120]}); remove the folder {place}") from error


def scratch_folder(run_id: str, scratch_dir: str | Path) -> Path:
    """The folder of a run's scratch below the folder for such."""
    return Path(scratch_dir) / f"datamask-{run_id}"


def remove_scratch(folder: str | Path, run_id: str) -> None:
    """Remove the folder of a run's scratch, with all that was written beside it; any other is left alone.

    Args:
        folder: as the run's record says, which may come from anywhere: the name must be that of the run's scratch.

    Raises:
        StoreError: it cannot be removed.
    """
    place = Path(folder)
    if place != scratch_folder(run_id, place.parent) or place.is_symlink() or not place.is_dir():
        return
    try:
        # an empty one is what is left of a scratch whose removal was cut off at its very end
        if not is_ours(place) and any(place.iterdir()):
            return
        # what says whose it is goes last: where one cannot be removed, the next to come may try
        for path in place.iterdir():
            if path.name != FOLDER_NOTE:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.rmtree(place)
    except OSError as error:
        raise StoreError(f"the scratch in {place} cannot be removed: {error.strerror or error}") from error


def columns_of(
    corpus: WholeCorpus, rows: Sequence[int] | np.ndarray, batch: pa.RecordBatch
) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray], FeatureMoments]:
    """What is kept of each row of a batch, by `KINDS`; the lengths of its features; the rows that cannot be used, by
    reason; and the moments of the features of those that can, before they are rounded.

    Args:
        rows: of the long table, which these are.
    """
    numbers, quality = corpus.read(rows, batch)
    finite = np.isfinite(quality)
    kept, norms = np.empty(numbers.features.shape, KINDS["features"]), np.empty(len(quality))
    clean, _ = valid_rows(corpus.reader.refused(numbers, finite), len(quality))
    moments = FeatureMoments.none(corpus.dim)
    for low in range(0, len(norms), ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        units, norms[part] = unit_rows(numbers.features[part], corpus.center)
        kept[part] = opened_rows(numbers.features[part]) if corpus.center is None else units
        valid = clean[part] & (norms[part] > 0)
        moments = FeatureMoments.of(units if valid.all() else units[valid]).after(moments)
    columns: dict[str, np.ndarray] = {
        "features": kept,
        "quality": quality,
        "id_hash": row_hash(corpus.reader.ids(rows, batch), HASH_SEED),
        "source_row": corpus.source.locate(np.asarray(rows))[1],
    }
    if numbers.lengths is not None:
        columns["length"] = numbers.lengths
    return columns, norms, corpus.reader.refused(numbers, finite, norms), moments


def is_ours(folder: Path) -> bool:
    """Whether it is a folder that a scratch was written into."""
    try:
        return read_bounded(folder / FOLDER_NOTE, len(NOTE)) == NOTE.encode()
    except (OSError, StoreError):
        return False


def file_of(folder: Path, number: int, kind: str) -> Path:
    return folder / f"{number:06d}.{kind}"
