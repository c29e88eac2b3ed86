"""A corpus as raw files: what every pass after the first reads in the place of its shards.

One set of files per shard, named by its number: unit features as float16, quality, a hash of the id and the row in the
shard, of the rows that can be used, in input order. A set is written whole or not at all and says what it was made of
(the shard's stamp, the settings), so that whoever starts again writes those alone that are not there. ``scratch.json``
is written last: without it there is no scratch.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from datamask.corpus.quality import check_sum
from datamask.corpus.readers.shard import Shard
from datamask.corpus.sampling import row_hash
from datamask.corpus.shards import threads_for
from datamask.corpus.threads import Progress, ShouldStop, Speed, in_threads, one_blas_thread
from datamask.errors import InputError, OptionError, Stopped, StoreError
from datamask.files import folder_bytes, open_regular, read_bounded, replacing, sweep, write_text
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.recipes.apply import shard_stamp
from datamask.recipes.batches import RawRows, RowReader, shard_batches
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

    @functools.cached_property
    def id_hash(self) -> np.ndarray:
        """A hash of every row's id, uint64 ``(N,)``, for ties and uniform samples; read once.

        Raises:
            StoreError: the files are damaged.
        """
        return self._whole("id_hash")

    def quality_of(self, low: int, high: int) -> np.ndarray:
        """Quality of the rows from `low` to before `high`, float64 ``(high - low,)``."""
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
        for number, places in self._by_shard(rows):
            count = int(self.starts[number + 1] - self.starts[number])
            kept = self._mapped(number, "features", count * self.dim).reshape(count, self.dim)
            inside = rows[places] - self.starts[number]
            for start in range(0, len(inside), ROWS_READ):
                part = slice(places.start + start, min(places.start + start + ROWS_READ, places.stop))
                self._widen(number, kept[inside[start : start + ROWS_READ]], features[part])
        return features

    def differing(self, rows: np.ndarray, reader: RowReader, number: int, batch: pa.RecordBatch) -> list[str]:
        """Return the kinds of files in which rows of a shard are not what the shard holds now; features to rounding.

        Where all of them differ, these may be other rows of the shard.

        Args:
            rows: int64 ``(k,)``, rising, of the scratch. batch: the same rows of shard `number` as they are now.
        """
        columns, norms, _, _ = _columns_of(reader, number, 0, batch)
        low, high = int(self.starts[number]), int(self.starts[number + 1])
        kept = {
            kind: self._mapped(number, kind, high - low)[rows - low]
            for kind in ("quality", "id_hash", *(["length"] if self.has_lengths else []))
        }
        # the last digit of a row's length may go by where it stands in its batch
        far = np.abs(columns["features"].astype(np.float32) - self.rows_at(rows)) > 2 * ROUNDING
        kinds = ["features"] if far.any() or not (norms > 0).all() else []
        kinds += [kind for kind, values in kept.items() if not np.array_equal(values, columns.get(kind, values))]
        return ["source_row", *kinds] if len(kinds) == 1 + len(kept) else kinds

    def check_shard_changed(
        self, number: int, shard: Shard, kinds: list[str], should_stop: ShouldStop | None = None
    ) -> None:
        """Refuse the scratch where it and a shard disagree, and the shard is as it was when it was read.

        Args:
            number: of the shard. kinds: of the files that disagree with it.

        Raises:
            StoreError: the shard has the size and time that the scratch was made of, so these files were altered.
            InputError: the shard is gone. RemoteError: its store does not answer. Stopped: `should_stop` answered true.
        """
        try:
            note = json.loads(read_bounded(_file(self.folder, number, "json"), MOST_BYTES))
            unchanged = note["made_of"]["shard"] == list(shard_stamp(shard, should_stop))
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            raise self._damaged(f"has no {number:06d}.json that can be read") from None
        if unchanged:
            names = " or ".join(_file(self.folder, number, kind).name for kind in kinds)
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
        path = _file(self.folder, number, kind)
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
        path = _file(self.folder, number, kind)
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


def write_scratch(
    corpus: WholeCorpus,
    folder: str | Path,
    *,
    beside: int = 0,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> Scratch:
    """Read all shards once, in threads, into raw files; what a stopped or killed pass before this has written stays.

    Args:
        corpus: the rows. folder: an empty one, or that of such a pass.
        beside: bytes that whoever reads the scratch will write beside it, for which there must be room too.
        progress, should_stop: called from this thread some ten times a second.

    Raises:
        InputError: a shard is damaged, has a row that cannot be used or an id that occurs twice, or no row is left.
        OptionError: the folder holds something else, or has not the room.
        StoreError: the folder cannot be written. RemoteError: a store does not answer. Stopped: asked to.
    """
    place, source, reader = Path(folder), corpus.source, corpus.reader
    _claim(place, corpus, beside)
    settings = corpus.settings
    stop, lock, speed = threading.Event(), threading.Lock(), Speed()
    rows_done = decoded = 0

    def task(number: int) -> dict[str, Any]:
        nonlocal rows_done, decoded
        shard = source.shards[number]
        made_of = _made_of(corpus, settings, number, stop.is_set)
        note = _written(place, number, made_of, corpus.dim, reader.length_column is not None)
        if note is not None:
            with lock:
                rows_done += shard.rows
            return note
        note = {"made_of": made_of, "rows": 0, "dropped": {}}
        moments = FeatureMoments.none(corpus.dim)
        with contextlib.suppress(OSError):
            for stale in (place / RECORD, _file(place, number, "json")):
                stale.unlink(missing_ok=True)
        with _sinks(place, number, reader.length_column is not None) as sinks:
            for first, batch in shard_batches(shard, reader.columns, 64 + 4 * corpus.dim, stop.is_set):
                if stop.is_set():
                    raise Stopped("reading was stopped")
                moments = _add(reader, number, first, batch, sinks, note).after(moments)
                with lock:
                    rows_done += batch.num_rows
                    decoded += batch.nbytes
        note["moments"] = moments.to_dict()
        write_text(_file(place, number, "json"), json.dumps(note))
        return note

    def tick() -> None:
        if progress is not None:
            what = f"Reading all rows: {rows_done:,} of {source.rows:,}{speed.words(decoded)}"
            progress(rows_done / max(source.rows, 1), what)

    with one_blas_thread():
        notes = in_threads(
            task,
            len(source.shards),
            threads=threads_for((shard.path for shard in source.shards), len(source.shards)),
            should_stop=should_stop,
            stop=stop,
            tick=tick,
        )
    return _finished(corpus, place, notes, should_stop)


def centered(
    corpus: WholeCorpus,
    folder: str | Path,
    *,
    beside: int = 0,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> WholeCorpus:
    """The same corpus with the mean of its features, as they were read, subtracted: one reading of all shards.

    What a stopped or killed attempt has added up of a shard stays in the folder.

    Args, Raises: as `write_scratch`; InputError as well where the mean is beyond the range of float64.
    """
    place, source, reader = Path(folder), corpus.source, corpus.reader
    _claim(place, corpus, beside)
    settings, stop, done = corpus.settings, threading.Event(), 0

    def task(number: int) -> tuple[int, np.ndarray]:
        nonlocal done
        made_of = _made_of(corpus, settings, number, stop.is_set)
        path = _file(place, number, "mean")
        with contextlib.suppress(OSError, StoreError, ValueError, TypeError, KeyError, RecursionError):
            note = json.loads(read_bounded(path, MOST_BYTES))
            if note["made_of"] == made_of and len(note["total"]) == corpus.dim:
                return int(note["rows"]), np.array(note["total"], float)
        rows, total = 0, np.zeros(corpus.dim)
        for first, batch in shard_batches(source.shards[number], reader.columns, 64 + 4 * corpus.dim, stop.is_set):
            raw = reader.read(number, first, batch)
            assert raw.features is not None
            for low in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = slice(low, low + ROWS_AT_ONCE)
                units, norms = unit_rows(raw.features[part])
                valid = raw.clean[part] & (norms > 0)
                rows += int(valid.sum())
                total += norms[valid] @ units[valid]
            done += batch.num_rows  # what is shown may be a batch behind
            if stop.is_set():
                raise Stopped("reading was stopped")
        write_text(path, json.dumps({"made_of": made_of, "rows": rows, "total": total.tolist()}))
        return rows, total

    def tick() -> None:
        if progress is not None:
            progress(done / max(source.rows, 1), f"Averaging features: {done:,} of {source.rows:,} rows")

    with one_blas_thread():
        parts = in_threads(
            task,
            len(source.shards),
            threads=threads_for((shard.path for shard in source.shards), len(source.shards)),
            should_stop=should_stop,
            stop=stop,
            tick=tick,
        )
    rows = sum(count for count, _ in parts)
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.sum([total for _, total in parts], axis=0) / max(rows, 1)
    if not np.isfinite(center).all():
        raise InputError("the mean of the features is beyond the range of float64; divide them by a constant")
    return replace(corpus, center=center)


def check_unchanged(corpus: WholeCorpus, scratch: Scratch, should_stop: ShouldStop | None = None) -> None:
    """Refuse shards that were rewritten after the scratch was made of them.

    Raises:
        InputError: one was. RemoteError: a store does not answer. Stopped: `should_stop` answered true.
    """
    settings, shards = corpus.settings, range(len(corpus.source.shards))
    if _digest([_made_of(corpus, settings, number, should_stop) for number in shards]) != scratch.digest:
        raise rewritten(f"{scratch.files[0]}, or a shard next to it,")


def rewritten(what: str) -> InputError:
    """The error for shards that were rewritten during the run."""
    return InputError(f"{what} was rewritten while the run read it; start a new run")


def scratch_folder(run_id: str, scratch_dir: str | None = None) -> Path:
    """Where the scratch of a run lies. scratch_dir: as it was asked for; None: the system's temporary folder."""
    return Path(scratch_dir or tempfile.gettempdir()) / f"datamask-{run_id}"


def remove_scratch(folder: str | Path, run_id: str) -> None:
    """Remove the folder of a run's scratch, with all that was written beside it; any other is left alone.

    Args:
        folder: as the run's record says, which may come from anywhere: the name must be that of the run's scratch.

    Raises:
        StoreError: it cannot be removed.
    """
    place = Path(folder)
    if place.name != scratch_folder(run_id).name or place.is_symlink() or not place.is_dir():
        return
    try:
        # an empty one is what is left of a scratch whose removal was cut off at its very end
        if not _ours(place) and any(place.iterdir()):
            return
        # what says whose it is goes last: where one cannot be removed, the next to come may try
        for path in place.iterdir():
            if path.name != FOLDER_NOTE:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.rmtree(place)
    except OSError as error:
        raise StoreError(f"the scratch in {place} cannot be removed: {error.strerror or error}") from error


# -- writing ----------------------------------------------------------------------------------------------------------


def _claim(folder: Path, corpus: WholeCorpus, beside: int) -> None:
    """Make the folder, and see that there is room.

    Args:
        beside: bytes that will be written beside the scratch.

    Raises:
        OptionError: it holds something else, or its disk has not the room. StoreError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        ours = _ours(folder)
        if not ours and any(folder.iterdir()):
            raise OptionError(f"--scratch-dir: {folder} holds something else than scratch; remove it or name another")
        free = shutil.disk_usage(folder).free
        present = folder_bytes(folder)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
    needed = beside + scratch_bytes(corpus.source.rows, corpus.dim, lengths=corpus.columns.length is not None)
    if needed - present > free:
        raise OptionError(
            f"scratch of {corpus.source.rows:,} rows of {corpus.dim:,} dimensions takes {needed / 1e9:,.1f} GB, and "
            f"{folder} has {free / 1e9:,.1f} GB free; name a larger disk with --scratch-dir, or leave --scope out and "
            "take a sample"
        )
    if not ours:
        write_text(folder / FOLDER_NOTE, NOTE)


def _ours(folder: Path) -> bool:
    """Whether it is a folder that a scratch was written into."""
    try:
        return read_bounded(folder / FOLDER_NOTE, len(NOTE)) == NOTE.encode()
    except (OSError, StoreError):
        return False


def _file(folder: Path, number: int, kind: str) -> Path:
    return folder / f"{number:06d}.{kind}"


@contextlib.contextmanager
def _sinks(folder: Path, number: int, with_lengths: bool) -> Iterator[dict[str, BinaryIO]]:
    """Open files for what is kept of one shard; they take their names when all is written."""
    with contextlib.ExitStack() as stack:
        sinks: dict[str, BinaryIO] = {}
        for kind in KINDS:
            if kind != "length" or with_lengths:
                part = stack.enter_context(replacing(_file(folder, number, kind)))
                sinks[kind] = stack.enter_context(part.open("wb"))
        yield sinks


def _add(
    reader: RowReader,
    number: int,
    first: int,
    batch: pa.RecordBatch,
    sinks: dict[str, BinaryIO],
    note: dict[str, Any],
) -> FeatureMoments:
    """Write down the rows of a batch that can be used; the moments of their features."""
    columns, norms, raw, moments = _columns_of(reader, number, first, batch)
    valid, dropped = reader.usable(number, first, raw, norms)
    everything = bool(valid.all())
    for kind, sink in sinks.items():
        values = columns[kind] if everything else columns[kind][valid]
        sink.write(np.ascontiguousarray(values, KINDS[kind]).data)
    note["rows"] += int(valid.sum())
    for reason, count in dropped.items():
        note["dropped"][reason] = note["dropped"].get(reason, 0) + count
    return moments


def _columns_of(
    reader: RowReader, number: int, first: int, batch: pa.RecordBatch
) -> tuple[dict[str, np.ndarray], np.ndarray, RawRows, FeatureMoments]:
    """What is kept of each row of a batch, by `KINDS`; the lengths of its features; the rows as they stand; and the
    moments of the features of those that can be used, before they are rounded."""
    raw = reader.read(number, first, batch)
    assert raw.features is not None and reader.features is not None
    kept, norms = np.empty(raw.features.shape, KINDS["features"]), np.empty(len(raw.quality))
    clean, moments = raw.clean, FeatureMoments.none(reader.features.dim)
    for low in range(0, len(norms), ROWS_AT_ONCE):
        part = slice(low, low + ROWS_AT_ONCE)
        units, norms[part] = unit_rows(raw.features[part], reader.features.center)
        kept[part] = units
        valid = clean[part] & (norms[part] > 0)
        moments = FeatureMoments.of(units if valid.all() else units[valid]).after(moments)
    columns: dict[str, np.ndarray] = {
        "features": kept,
        "quality": raw.quality,
        "id_hash": row_hash(reader.ids(number, first, batch), HASH_SEED),
        "source_row": first + np.arange(len(norms)),
    }
    if raw.lengths is not None:
        columns["length"] = raw.lengths
    return columns, norms, raw, moments


def _written(folder: Path, number: int, made_of: dict[str, Any], dim: int, with_lengths: bool) -> dict[str, Any] | None:
    """What was noted of a shard whose files are there, made of just that; None: they are to be written."""
    try:
        note = json.loads(read_bounded(_file(folder, number, "json"), MOST_BYTES))
        rows = note["rows"]
        if note["made_of"] != made_of or not isinstance(rows, int):
            return None
        for kind, dtype in KINDS.items():
            if kind == "length" and not with_lengths:
                continue
            path = _file(folder, number, kind)
            if path.stat().st_size != rows * np.dtype(dtype).itemsize * (dim if kind == "features" else 1):
                return None
        dropped = {str(reason): int(count) for reason, count in note["dropped"].items()}
        moments = FeatureMoments.from_dict(note["moments"])
        if moments.rows != rows or len(moments.mean) != dim:
            return None
        return {"made_of": made_of, "rows": rows, "dropped": dropped, "moments": moments.to_dict()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _made_of(corpus: WholeCorpus, settings: str, number: int, should_stop: ShouldStop | None) -> dict[str, Any]:
    """What the files of one shard are made of."""
    stamp = shard_stamp(corpus.source.shards[number], should_stop)
    return {"format": FORMAT, "shard": list(stamp), "settings": settings}


def _digest(made_of: list[dict[str, Any]]) -> str:
    return hashlib.blake2b(json.dumps(made_of).encode(), digest_size=16).hexdigest()


def _finished(
    corpus: WholeCorpus, folder: Path, notes: list[dict[str, Any]], should_stop: ShouldStop | None
) -> Scratch:
    """The scratch of shards that are all written: nothing twice, nothing too large; its record."""
    dropped: dict[str, int] = {}
    for note in notes:
        for reason, count in note["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + count
    digest = _digest([note["made_of"] for note in notes])
    moments = FeatureMoments.none(corpus.dim)
    for note in notes:
        moments = FeatureMoments.from_dict(note["moments"]).after(moments)
    record = {
        "format": FORMAT,
        "dim": corpus.dim,
        "rows": [note["rows"] for note in notes],
        "files": [shard.path for shard in corpus.source.shards],
        "lengths": corpus.columns.length is not None,
        "dropped": dropped,
        "digest": digest,
        "moments": moments.to_dict(),
    }
    scratch = Scratch(folder, record)
    with contextlib.suppress(StoreError):
        if open_scratch(folder).digest == digest:
            return scratch
    if scratch.rows < 2:
        reasons = ", ".join(f"{count:,} with {reason}" for reason, count in dropped.items())
        raise InputError(
            f"{scratch.rows:,} of the {corpus.source.rows:,} rows can be used" + (f" ({reasons})" if reasons else "")
        )

    def place(row: int) -> str:
        shards, inside = scratch.place(np.array([row]))
        return f"{scratch.files[int(shards[0])]} row {int(inside[0]):,}"

    names = ", ".join(repr(column.name) for column in corpus.quality)
    check_sum(
        scratch.quality,
        f"the quality in column {names}",
        f"divide it by a constant, or take ranks with --quality-column {corpus.quality[0].name}:1:rank",
        place,
    )
    _refuse_repeated(corpus, scratch, should_stop)
    write_text(folder / RECORD, json.dumps(record))
    return open_scratch(folder)  # this one has read hashes and qualities of all rows, which take memory


def _refuse_repeated(corpus: WholeCorpus, scratch: Scratch, should_stop: ShouldStop | None) -> None:
    """Refuse an id that occurs twice. Hashes say where one may; there the ids themselves are read again.

    Raises:
        InputError: one does.
    """
    rising = np.sort(scratch.id_hash)
    repeated = np.unique(rising[1:][rising[1:] == rising[:-1]])
    del rising
    if not len(repeated):
        return
    rows = np.flatnonzero(np.isin(scratch.id_hash, repeated))
    shards, inside = scratch.place(rows)
    corpus.refuse_repeated(corpus.source.starts[shards] + inside, should_stop)
