"""Writing a scratch: all shards read once, in threads, into raw files.

The files of a shard are written whole or not at all, and say what they were made of (the shard's stamp, the settings),
so that a pass after a stopped one writes those alone that are not there. ``scratch.json`` comes last.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from datamask.corpus.quality import check_sum
from datamask.corpus.refused_rows import first_complaint, valid_rows
from datamask.corpus.shards import in_shard_threads
from datamask.corpus.threads import Tally
from datamask.errors import InputError, OptionError, StoreError
from datamask.files import folder_bytes, read_bounded, replacing, sweep, write_text
from datamask.out_of_core.feature_moments import FeatureMoments
from datamask.out_of_core.scratch import (
    FOLDER_NOTE,
    FORMAT,
    KINDS,
    MOST_BYTES,
    NOTE,
    RECORD,
    Scratch,
    columns_of,
    file_of,
    is_ours,
    open_scratch,
    scratch_bytes,
)
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.polling import Poll, no_poll
from datamask.recipes.apply import shard_stamp
from datamask.recipes.batches import shard_batches
from datamask.recipes.scoring import ROWS_AT_ONCE, unit_rows
from datamask.work.context import UNWATCHED, Work


def write_scratch(
    corpus: WholeCorpus,
    folder: str | Path,
    work: Work = UNWATCHED,
) -> Scratch:
    """Read all shards once, in threads, into raw files; what a stopped or killed pass before this has written stays.

    Args:
        corpus: the rows. folder: an empty one, or that of such a pass.
        work: asked and told from this thread some ten times a second.

    Raises:
        InputError: a shard is damaged, has a row that cannot be used or an id that occurs twice, or no row is left.
        OptionError: the folder holds something else, or has not the room.
        StoreError: the folder cannot be written. RemoteError: a store does not answer. Stopped: asked to.
    """
    place, source, reader = Path(folder), corpus.source, corpus.reader
    _claim(place, corpus)
    settings = corpus.settings
    tally = Tally(work, source.rows, lambda rows: f"Reading all rows: {rows:,} of {source.rows:,}")

    def task(number: int) -> dict[str, Any]:
        shard = source.shards[number]
        made_of = _made_of(corpus, settings, number, tally.poll)
        note = _written(place, number, made_of, corpus.dim, reader.length is not None)
        if note is not None:
            tally.add(shard.rows)
            return note
        note = {"made_of": made_of, "rows": 0, "dropped": Counter()}
        moments = FeatureMoments.none(corpus.dim)
        with contextlib.suppress(OSError):
            for stale in (place / RECORD, file_of(place, number, "json")):
                stale.unlink(missing_ok=True)
        with _sinks(place, number, reader.length is not None) as sinks:
            for first, batch in shard_batches(shard, reader.columns, 64 + 4 * corpus.dim, tally.poll):
                moments = _add(corpus, number, first, batch, sinks, note).after(moments)
                tally.add(batch.num_rows, batch.nbytes)
        note["moments"] = moments.to_dict()
        write_text(file_of(place, number, "json"), json.dumps(note))
        return note

    notes = in_shard_threads(source.shards, task, tally)
    return _finished(corpus, place, notes, work.poll)


def centered(
    corpus: WholeCorpus,
    folder: str | Path,
    work: Work = UNWATCHED,
) -> WholeCorpus:
    """The same corpus with the mean of its features, as they were read, subtracted: one reading of all shards.

    What a stopped or killed attempt has added up of a shard stays in the folder.

    Args, Raises: as `write_scratch`; InputError as well where the mean is beyond the range of float64.
    """
    place, source, reader = Path(folder), corpus.source, corpus.reader
    _claim(place, corpus)
    settings = corpus.settings
    tally = Tally(work, source.rows, lambda rows: f"Averaging features: {rows:,} of {source.rows:,} rows")

    def task(number: int) -> tuple[int, np.ndarray]:
        made_of = _made_of(corpus, settings, number, tally.poll)
        path = file_of(place, number, "mean")
        with contextlib.suppress(OSError, StoreError, ValueError, TypeError, KeyError, RecursionError):
            note = json.loads(read_bounded(path, MOST_BYTES))
            if note["made_of"] == made_of and len(note["total"]) == corpus.dim:
                return int(note["rows"]), np.array(note["total"], float)
        rows, total = 0, np.zeros(corpus.dim)
        for first, batch in shard_batches(source.shards[number], reader.columns, 64 + 4 * corpus.dim, tally.poll):
            numbers, quality = corpus.read(corpus.source.span(number, first, batch.num_rows), batch)
            clean, _ = valid_rows(reader.refused(numbers, np.isfinite(quality)), len(quality))
            for low in range(0, batch.num_rows, ROWS_AT_ONCE):
                part = slice(low, low + ROWS_AT_ONCE)
                units, norms = unit_rows(numbers.features[part])
                valid = clean[part] & (norms > 0)
                rows += int(valid.sum())
                total += norms[valid] @ units[valid]
            tally.add(batch.num_rows)
        write_text(path, json.dumps({"made_of": made_of, "rows": rows, "total": total.tolist()}))
        return rows, total

    parts = in_shard_threads(source.shards, task, tally)
    rows = sum(count for count, _ in parts)
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.sum([total for _, total in parts], axis=0) / max(rows, 1)
    if not np.isfinite(center).all():
        raise InputError("the mean of the features is beyond the range of float64; divide them by a constant")
    return replace(corpus, center=center)


def check_unchanged(corpus: WholeCorpus, scratch: Scratch, poll: Poll = no_poll) -> None:
    """Refuse shards that were rewritten after the scratch was made of them.

    Raises:
        InputError: one was. RemoteError: a store does not answer. Stopped: from `poll`.
    """
    settings, shards = corpus.settings, range(len(corpus.source.shards))
    if _digest([_made_of(corpus, settings, number, poll) for number in shards]) != scratch.digest:
        raise rewritten(f"{scratch.files[0]}, or a shard next to it,")


def rewritten(what: str) -> InputError:
    """The error for shards that were rewritten during the run."""
    return InputError(f"{what} was rewritten while the run read it; start a new run")


def _claim(folder: Path, corpus: WholeCorpus) -> None:
    """Make the folder, and see that there is room.

    Raises:
        OptionError: it holds something else, or its disk has not the room. StoreError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        ours = is_ours(folder)
        if not ours and any(folder.iterdir()):
            raise OptionError(f"--scratch_dir: {folder} holds something else than scratch; remove it or name another")
        free = shutil.disk_usage(folder).free
        present = folder_bytes(folder)
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
    needed = scratch_bytes(corpus.source.rows, corpus.dim, lengths=corpus.columns.length is not None)
    if needed - present > free:
        raise OptionError(
            f"scratch of {corpus.source.rows:,} rows of {corpus.dim:,} dimensions takes {needed / 1e9:,.1f} GB, and "
            f"{folder} has {free / 1e9:,.1f} GB free; name a larger disk with --scratch_dir, or take a "
            "sample: --rows N"
        )
    if not ours:
        write_text(folder / FOLDER_NOTE, NOTE)


@contextlib.contextmanager
def _sinks(folder: Path, number: int, with_lengths: bool) -> Iterator[dict[str, BinaryIO]]:
    """Open files for what is kept of one shard; they take their names when all is written."""
    with contextlib.ExitStack() as stack:
        sinks: dict[str, BinaryIO] = {}
        for kind in KINDS:
            if kind != "length" or with_lengths:
                part = stack.enter_context(replacing(file_of(folder, number, kind)))
                sinks[kind] = stack.enter_context(part.open("wb"))
        yield sinks


def _add(
    corpus: WholeCorpus,
    number: int,
    first: int,
    batch: pa.RecordBatch,
    sinks: dict[str, BinaryIO],
    note: dict[str, Any],
) -> FeatureMoments:
    """Write down the rows of a batch that can be used; the moments of their features."""
    rows, place = corpus.source.span(number, first, batch.num_rows), corpus.source.place
    columns, _, refused, moments = columns_of(corpus, rows, batch)
    valid, dropped = valid_rows(
        refused, len(rows), None if corpus.drop_invalid else lambda: first_complaint(refused, rows, place)
    )
    everything = bool(valid.all())
    for kind, sink in sinks.items():
        values = columns[kind] if everything else columns[kind][valid]
        sink.write(np.ascontiguousarray(values, KINDS[kind]).data)
    note["rows"] += int(valid.sum())
    note["dropped"].update(dropped)
    return moments


def _written(folder: Path, number: int, made_of: dict[str, Any], dim: int, with_lengths: bool) -> dict[str, Any] | None:
    """What was noted of a shard whose files are there, made of just that; None: they are to be written."""
    try:
        note = json.loads(read_bounded(file_of(folder, number, "json"), MOST_BYTES))
        rows = note["rows"]
        if note["made_of"] != made_of or not isinstance(rows, int):
            return None
        for kind, dtype in KINDS.items():
            if kind == "length" and not with_lengths:
                continue
            path = file_of(folder, number, kind)
            if path.stat().st_size != rows * np.dtype(dtype).itemsize * (dim if kind == "features" else 1):
                return None
        dropped = {str(reason): int(count) for reason, count in note["dropped"].items()}
        moments = FeatureMoments.from_dict(note["moments"])
        if moments.rows != rows or len(moments.mean) != dim:
            return None
        return {"made_of": made_of, "rows": rows, "dropped": dropped, "moments": moments.to_dict()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _made_of(corpus: WholeCorpus, settings: str, number: int, poll: Poll) -> dict[str, Any]:
    """What the files of one shard are made of."""
    stamp = shard_stamp(corpus.source.shards[number], poll)
    return {"format": FORMAT, "shard": list(stamp), "settings": settings}


def _digest(made_of: list[dict[str, Any]]) -> str:
    return hashlib.blake2b(json.dumps(made_of).encode(), digest_size=16).hexdigest()


def _finished(corpus: WholeCorpus, folder: Path, notes: list[dict[str, Any]], poll: Poll) -> Scratch:
    """The scratch of shards that are all written: nothing twice, nothing too large; its record."""
    dropped: Counter[str] = Counter()
    for note in notes:
        dropped.update(note["dropped"])
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
        "dropped": dict(dropped),
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
        f"divide it by a constant, or take ranks with --quality_column {corpus.quality[0].name}:1:rank",
        place,
    )
    _refuse_repeated(corpus, scratch, poll)
    write_text(folder / RECORD, json.dumps(record))
    return open_scratch(folder)  # this one has read hashes and qualities of all rows, which take memory


def _refuse_repeated(corpus: WholeCorpus, scratch: Scratch, poll: Poll) -> None:
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
    corpus.refuse_repeated(corpus.source.starts[shards] + inside, poll)
