"""Whole shards under a recipe, each into one file: ids, a mask of 0 and 1, or the kept rows with all columns.

Shards are streamed, one thread each: memory is some batches per thread, whatever the size of the input. A file is
written whole or not at all, and says inside which recipe and which shard, by size and time, it was made of; whoever
starts again reads no shard a second time for which such a file is there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.corpus.readers.shard import Shard, output_names
from datamask.corpus.sampling import row_hash
from datamask.corpus.shards import Source
from datamask.corpus.threads import Progress, ShouldStop, Speed, in_threads, one_blas_thread
from datamask.errors import InputError, OptionError, Stopped
from datamask.files import check_regular, replacing
from datamask.parquet import UNREADABLE, Gathering, gathering, schema_without_views, without_views
from datamask.recipes.batches import Judge, Judged, shard_batches
from datamask.recipes.recipe import Recipe, read_recipe, write_recipe
from datamask.storage.address import is_address, path_of
from datamask.storage.remote import file_stamp

GROUP_ROWS = 25_000
"""Rows of a row group of what is written: small enough to read a part, large enough to compress."""

MASK_ROWS = 1 << 20
"""The same of masks, of two bytes a row."""

NOTE = "datamask_apply"
"""The name, in a file's metadata, of what it was made of."""

RECIPE_FILE = "recipe.json"
"""In the folder of what is written: the recipe by which."""


@dataclass(frozen=True)
class OutputKind:
    """One way to write down what is kept.

    Attributes:
        ending: of the files. with_ids: whether it needs the ids. whole: whether it needs all columns.
        schema: of the file, by the judge and the shard.
        table: of a batch, by its shard's path, first row, the batch and what was judged of it.
        group_rows: rows of a row group.
    """

    ending: str
    with_ids: bool
    whole: bool
    schema: Callable[[Judge, Shard], pa.Schema]
    table: Callable[[Judge, str, int, pa.RecordBatch, Judged], pa.Table]
    group_rows: int = GROUP_ROWS


def _ids_schema(judge: Judge, shard: Shard) -> pa.Schema:
    return pa.schema(
        {
            judge.id_column: judge.id_type,
            "source_file": pa.string(),
            "source_row": pa.int64(),
            "score": pa.float64(),
        }
    )


def _ids(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    rows = np.flatnonzero(judged.kept)
    assert judged.ids is not None
    columns = [
        judged.ids.take(pa.array(rows)),
        pa.array([path] * len(rows), pa.string()),
        pa.array(first + rows),
        pa.array(judged.score[rows]),
    ]
    return pa.table(columns, names=[judge.id_column, "source_file", "source_row", "score"])


def _mask_schema(judge: Judge, shard: Shard) -> pa.Schema:
    return pa.schema({"selected": pa.uint8(), "considered": pa.bool_()})


def _mask(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    return pa.table({"selected": judged.kept.astype(np.uint8), "considered": judged.valid})


def _rows_schema(judge: Judge, shard: Shard) -> pa.Schema:
    return schema_without_views(shard.schema)


def _rows(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    rows = np.flatnonzero(judged.kept)
    return without_views(pa.Table.from_batches([batch])).take(pa.array(rows))


KINDS: dict[str, OutputKind] = {
    "ids": OutputKind(".ids.parquet", True, False, _ids_schema, _ids),
    "masks": OutputKind(".mask.parquet", False, False, _mask_schema, _mask, MASK_ROWS),
    "rows": OutputKind(".parquet", False, True, _rows_schema, _rows),
}
"""What may be written, by the word that asks for it."""


@dataclass
class Counts:
    """What became of one shard's rows. Amounts are rows, or tokens where the recipe counts those."""

    rows: int
    kept: int
    amount: float
    amount_kept: float
    dropped: dict[str, int]
    reused: bool = False

    def add(self, judged: Judged) -> None:
        """Count a batch."""
        amounts = judged.amounts
        self.rows += len(judged.kept)
        self.kept += int(judged.kept.sum())
        self.amount += float(amounts.sum())
        self.amount_kept += float(amounts[judged.kept].sum())
        for reason, count in judged.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count


def apply(
    judge: Judge,
    output: str | Path,
    kind: str = "ids",
    *,
    progress: Progress | None = None,
    should_stop: ShouldStop | None = None,
) -> dict[str, Any]:
    """Write down what a recipe keeps of every shard.

    Args:
        judge: the recipe on the shards that are to be read; made with the ids where `kind` writes them.
        output: the folder. Files have their shards' names, below the folders in which the shards differ.
        kind: a key of `KINDS`.
        progress, should_stop: called from this thread some ten times a second.

    Returns:
        Counts: ``shards``, ``reused`` (shards whose file was there), ``rows``, ``dropped`` by reason, ``kept``,
        ``share_kept`` of the valid rows (or of their tokens), ``share_expected`` where the recipe was learned or last
        estimated, ``seconds``, and ``megabytes_per_second`` as decoded.

    Raises:
        OptionError: the folder holds what another recipe chose, or a file would take the place of a shard.
        InputError: a shard is damaged, or has a row that cannot be used.
        StoreError: the folder cannot be written.
        Stopped: `should_stop` answered true; shards that were finished stay, and need not be read again.
    """
    began, source, folder = time.monotonic(), judge.source, Path(output)
    names = output_names([path_of(shard.path) for shard in source.shards], KINDS[kind].ending)
    _check_apart([folder / name for name in names], source)
    claim(folder, judge.recipe)
    sizes = [max(1.0, shard.rows * max(1.0, shard.facts.row_bytes)) for shard in source.shards]
    stop, lock, speed = threading.Event(), threading.Lock(), Speed()
    share_done, decoded, rows_done, shards_done = [0.0] * len(names), 0, 0, 0

    def task(place: int) -> Counts:
        nonlocal decoded, rows_done, shards_done
        shard = source.shards[place]
        expected = made_of(judge, shard, kind, stop.is_set)
        counts = written(folder / names[place], expected)
        if counts is None:
            counts = Counts(0, 0, 0.0, 0.0, {})
            with replacing(folder / names[place]) as part:
                for first, batch in _written_batches(part, judge, place, kind, expected, counts, stop.is_set):
                    if stop.is_set():
                        raise Stopped("applying was stopped")
                    with lock:
                        decoded += batch.nbytes
                        rows_done += batch.num_rows
                        share_done[place] = (first + batch.num_rows) / shard.rows
        with lock:
            shards_done += 1
            rows_done += counts.rows if counts.reused else 0
            share_done[place] = 1.0
        return counts

    def tick() -> None:
        if progress is not None:
            share = sum(map(float.__mul__, share_done, sizes)) / sum(sizes)
            what = f"Applied to {rows_done:,} of {source.rows:,} rows, {shards_done:,} of {len(names):,} shards"
            progress(share, what + speed.words(decoded))

    try:
        with one_blas_thread():
            of_shards = in_threads(task, len(names), should_stop=should_stop, stop=stop, tick=tick)
    except Stopped as stopped:
        raise Stopped(
            f"applying was stopped after {shards_done:,} of {len(names):,} shards; the same command goes on from there"
        ) from stopped
    return _summary(judge.recipe, of_shards, time.monotonic() - began, decoded)


def _written_batches(
    part: Path,
    judge: Judge,
    place: int,
    kind: str,
    expected: dict[str, Any],
    counts: Counts,
    should_stop: ShouldStop,
) -> Any:
    """Write one shard's file to `part`; yields every batch when it is done with it."""
    shard, how = judge.source.shards[place], KINDS[kind]
    hashes: list[np.ndarray] = []
    with gathering(part, how.schema(judge, shard), how.group_rows) as sink:
        row_bytes: float = 64 + 4 * judge.recipe.features.dim
        columns = None if how.whole else judge.columns
        row_bytes = shard.facts.row_bytes if how.whole else row_bytes
        for first, batch in shard_batches(shard, columns, row_bytes, should_stop):
            judged = judge(place, first, batch)
            if how.with_ids and judged.ids is not None:
                hashes.append(row_hash(judged.ids, 0))
            sink.write(how.table(judge, shard.path, first, batch, judged))
            counts.add(judged)
            yield first, batch
        _check_unique(hashes, judge, shard)
        _note(sink, expected, counts)


def _check_unique(hashes: Sequence[np.ndarray], judge: Judge, shard: Shard) -> None:
    """Refuse an id that occurs twice in a shard, of whose ids only hashes are kept: 8 bytes a row."""
    whole = np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)
    order = np.argsort(whole, kind="stable")
    same = np.flatnonzero(whole[order][1:] == whole[order][:-1])
    if len(same):
        raise InputError(
            f"column {judge.id_column!r} of {shard.path} holds {len(same):,} repeated ids (the first: rows "
            f"{order[same[0]]:,} and {order[same[0] + 1]:,}); ids must be unique, so drop the repeats, choose another "
            "column with --id-column, or write --as masks or rows"
        )


# -- what a file was made of ------------------------------------------------------------------------------------------


def made_of(judge: Judge, shard: Shard, kind: str, should_stop: ShouldStop | None = None) -> dict[str, Any]:
    """By what a file is known to be what would be written again: recipe, shard as it is now, settings.

    Raises:
        InputError: the shard is gone. RemoteError: its store does not answer. Stopped: `should_stop` answered true.
    """
    path, stamp = shard_stamp(shard, should_stop)
    settings = [kind, judge.drop_invalid, judge.id_column, judge.feature_column, str(judge.id_type)]
    return {
        "recipe": judge.recipe.digest,
        "shard": path,
        "stamp": stamp,
        "settings": hashlib.blake2b(json.dumps(settings).encode(), digest_size=16).hexdigest(),
    }


def shard_stamp(shard: Shard, should_stop: ShouldStop | None = None) -> tuple[str, list[int]]:
    """Where a shard lies, and numbers that are others when it was written anew: size and time, or what a store says.

    Raises:
        InputError: it is gone. RemoteError: its store does not answer. Stopped: `should_stop` answered true.
    """
    try:
        stamp = file_stamp(shard.path, should_stop)
    except OSError as error:
        raise InputError(f"{shard.path} cannot be read: {error.strerror or error}") from error
    if is_address(shard.path):
        return shard.path, list(stamp)
    return str(Path(shard.path).absolute()), list(stamp[:2])  # a copy of the folder is the same shards


def _note(sink: Gathering, expected: dict[str, Any], counts: Counts) -> None:
    counted = {name: value for name, value in vars(counts).items() if name != "reused"}
    sink.note(NOTE, json.dumps({**expected, "counts": counted}))


def written(path: Path, expected: dict[str, Any]) -> Counts | None:
    """The counts of a file that was made of just that; None where there is none, or one of something else."""
    try:
        check_regular(path)
        note = json.loads((pq.read_metadata(path).metadata or {})[NOTE.encode()])
        counts = note.pop("counts")
        numbers = {name: float(counts[name]) for name in ("rows", "kept", "amount", "amount_kept")}
        dropped = {str(reason): int(count) for reason, count in counts["dropped"].items()}
        if note != expected or not all(0 <= number < math.inf for number in numbers.values()):
            return None
        rows, kept = int(numbers["rows"]), int(numbers["kept"])
        return Counts(rows, kept, numbers["amount"], numbers["amount_kept"], dropped, reused=True)
    except (*UNREADABLE, AttributeError):  # a file of somebody else's is written anew
        return None


def _check_apart(targets: Sequence[Path], source: Source) -> None:
    """Refuse to write where a shard lies.

    Raises:
        OptionError: a file would take the place of one.
    """
    shards = {os.path.realpath(shard.path) for shard in source.shards if not is_address(shard.path)}
    for target in targets:
        if os.path.realpath(target) in shards:
            raise OptionError(f"--output would write over the shard {target}; choose another folder")


def check_unclaimed(folder: Path) -> None:
    """Refuse a folder in which another recipe is noted, before one is made for it.

    Raises:
        OptionError: a recipe is noted there.
    """
    if (folder / RECIPE_FILE).exists():
        raise OptionError(
            f"--output {folder} holds what another recipe chose ({folder / RECIPE_FILE}), or one estimated from other "
            "shards; choose another folder, or remove it"
        )


def claim(folder: Path, recipe: Recipe) -> None:
    """Note in the folder by which recipe its files are made, so that those of two are never mixed.

    Raises:
        OptionError: it is a file, or another recipe is noted there.
        StoreError: it cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"--output must be a folder, got the file {folder}")
    noted = folder / RECIPE_FILE
    if noted.exists():
        try:
            same = read_recipe(noted).digest == recipe.digest
        except InputError:
            same = False
        if not same:
            check_unclaimed(folder)
        return
    write_recipe(recipe, noted)


def _summary(recipe: Recipe, of_shards: Sequence[Counts], seconds: float, decoded: int) -> dict[str, Any]:
    dropped: dict[str, int] = {}
    for counts in of_shards:
        for reason, count in counts.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + count
    amount = sum(counts.amount for counts in of_shards)
    amount_kept = sum(counts.amount_kept for counts in of_shards)
    return {
        "shards": len(of_shards),
        "reused": sum(counts.reused for counts in of_shards),
        "rows": sum(counts.rows for counts in of_shards),
        "dropped": dropped,
        "kept": sum(counts.kept for counts in of_shards),
        "of": recipe.of,
        "share_kept": amount_kept / amount if amount > 0 else None,
        "share_expected": recipe.share_kept,
        "seconds": seconds,
        "megabytes_per_second": decoded / 1e6 / seconds if decoded else None,
    }
