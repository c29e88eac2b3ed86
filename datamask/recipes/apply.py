"""Whole shards under a recipe, each into one file: ids, a mask of 0 and 1, or the kept rows with all columns.

Shards are streamed, one thread each: memory is some batches per thread, independent of the size of the input. A file
is written whole or not at all. It says inside which recipe and which shard it was made of: path, size, time, and on the
disk a digest of the footer. The same call again skips shards that have their file.

A folder holds the result of one call, so that reading all of its files gives no other rows. One process writes into it
at a time. Where a file is asked for (`datamask.tables`), the folder lies beside it until all shards are done.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.corpus.readers.shard import Shard, output_names
from datamask.corpus.readers.stamps import footer_digest
from datamask.corpus.sampling import row_hash
from datamask.corpus.shards import Source
from datamask.corpus.threads import Tally, one_blas_thread
from datamask.errors import InputError, OptionError, Stopped
from datamask.files import check_regular, replacing, sweep
from datamask.parquet import (
    UNREADABLE,
    Gathering,
    gathering,
    open_parquet,
    read_batches,
    schema_without_views,
    without_views,
)
from datamask.polling import Poll, no_poll
from datamask.recipes.batches import Judge, Judged, shard_batches
from datamask.recipes.recipe import Recipe, read_recipe, write_recipe
from datamask.storage.address import is_address, path_of
from datamask.storage.remote import file_stamp
from datamask.tables import (
    OF_IDS,
    OF_ROWS,
    as_found,
    common_schema,
    conform,
    format_of,
    is_file,
    placed,
    table_sink,
    with_fields,
    with_places,
)
from datamask.work.context import UNWATCHED, Work
from datamask.work.locks import only_one

GROUP_ROWS = 25_000
"""Rows of a row group of what is written: small enough to read a part, large enough to compress."""

MASK_ROWS = 1 << 20
"""The same of masks, of two bytes a row."""

NOTE = "datamask_apply"
"""The name, in a file's metadata, of what it was made of."""

RECIPE_FILE = "recipe.json"
"""In the folder of what is written: the recipe by which."""

LOCK_FILE = ".apply.lock"
"""In the same folder: held by the process that claims it or writes into it."""

MOST_NAMED = 3
"""So many files are named in a refusal."""


@dataclass(frozen=True)
class OutputKind:
    """One way to write down what is kept.

    Attributes:
        ending: of the files. with_ids: whether it needs the ids. whole: whether it needs all columns.
        schema: of the file, by the judge and the shard.
        table: of a batch, by its shard's path, first row, the batch and what was judged of it.
        group_rows: rows of a row group.
        files: the endings that a file for all shards may have.
    """

    ending: str
    with_ids: bool
    whole: bool
    schema: Callable[[Judge, Shard], pa.Schema]
    table: Callable[[Judge, str, int, pa.RecordBatch, Judged], pa.Table]
    group_rows: int = GROUP_ROWS
    files: tuple[str, ...] = OF_ROWS


def _ids_schema(judge: Judge, shard: Shard) -> pa.Schema:
    places = [("source_file", pa.string()), ("source_row", pa.int64())]
    held = pa.schema([judge.id_field, *places, (judge.score_column, pa.float64())])
    return as_found(held.empty_table()).schema


def _ids(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    rows = np.flatnonzero(judged.kept)
    assert judged.ids is not None
    columns = {
        judge.id_column: judged.ids.take(pa.array(rows)),
        "source_file": pa.array([path] * len(rows), pa.string()),
        "source_row": pa.array(first + rows),
        judge.score_column: pa.array(judged.score[rows]),
    }
    return as_found(with_fields(pa.table(columns), judge.id_field))


def _mask_schema(judge: Judge, shard: Shard) -> pa.Schema:
    return pa.schema({"selected": pa.uint8(), "considered": pa.bool_()})


def _mask(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    return pa.table({"selected": judged.kept.astype(np.uint8), "considered": judged.valid})


def _rows_schema(judge: Judge, shard: Shard) -> pa.Schema:
    return schema_without_views(shard.facts.schema)


def _rows(judge: Judge, path: str, first: int, batch: pa.RecordBatch, judged: Judged) -> pa.Table:
    rows = np.flatnonzero(judged.kept)
    return without_views(pa.Table.from_batches([batch])).take(pa.array(rows))


KINDS: dict[str, OutputKind] = {
    "ids": OutputKind(".ids.parquet", True, False, _ids_schema, _ids, files=OF_IDS),
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
    dropped: Counter[str]
    reused: bool = False

    def add(self, judged: Judged) -> None:
        """Count a batch."""
        amounts = judged.amounts
        self.rows += len(judged.kept)
        self.kept += int(judged.kept.sum())
        self.amount += float(amounts.sum())
        self.amount_kept += float(amounts[judged.kept].sum())
        self.dropped.update(judged.dropped)


def apply(judge: Judge, output: str | Path, kind: str = "ids", work: Work = UNWATCHED) -> dict[str, Any]:
    """Write down what a recipe keeps of every shard.

    Args:
        judge: the recipe on the shards that are to be read; made with the ids where `kind` writes them.
        output: the folder. Files have their shards' names, below the folders in which the shards differ. Or a file for
            the rows of all shards, in the format of its ending; masks then have ``source_file`` and ``source_row``.
        kind: a key of `KINDS`.
        work: asked and told from this thread some ten times a second.

    Returns:
        Counts: ``shards``, ``reused`` (shards whose file was there), ``rows``, ``dropped`` by reason, ``kept``,
        ``share_kept`` of the valid rows (or of their tokens), ``share_expected`` where the recipe was learned or last
        cut, ``seconds``, and ``megabytes_per_second`` as decoded.

    Raises:
        OptionError: the folder holds what another recipe chose or files that this call does not write, a file would
            take the place of a shard, or `output` has the ending of another format.
        InputError: a shard is damaged, or has a row that cannot be used.
        StoreError: the folder cannot be written.
        Stopped: on request; shards that were finished stay, and need not be read again.
    """
    began, together = time.monotonic(), is_file(output, among=KINDS[kind].files)
    folder = Path(f"{output}.parts" if together else output)
    targets = _targets(folder, judge.source, kind)
    _check_apart([*targets, Path(output)], judge.source)

    def waiting() -> None:
        work.report(0.0, "Waiting for another call that writes into this folder")
        work.poll()

    claim(folder, judge.recipe, waiting)
    with only_one(folder / LOCK_FILE, waiting):
        check_leftovers(folder, judge, kind)
        for place in {target.parent for target in targets}:
            sweep(place)
        of_shards, decoded = _written_shards(judge, targets, kind, work)
        if together:
            _join(judge, targets, kind, Path(output), work.poll)
            shutil.rmtree(folder, ignore_errors=True)
    return _summary(judge.recipe, of_shards, time.monotonic() - began, decoded)


def _join(judge: Judge, parts: Sequence[Path], kind: str, output: Path, poll: Poll) -> None:
    """Write the rows of the shards' files into one, in their order."""
    schema = common_schema(pq.read_schema(part).remove_metadata() for part in parts)
    is_mask = kind == "masks"
    ids = [] if is_mask else [judge.id_column]
    schema = with_places(schema) if is_mask else schema
    with (
        replacing(output) as part,
        table_sink(part, format_of(output), schema, ids, KINDS[kind].group_rows) as sink,
    ):
        for shard, path in zip(judge.source.shards, parts, strict=True):
            first = 0
            with open_parquet(path) as file:
                for batch in read_batches(path, file):
                    poll()
                    rows = pa.Table.from_batches([batch])
                    sink.write(placed(rows, shard.path, first) if is_mask else conform(rows, schema))
                    first += batch.num_rows


def _written_shards(judge: Judge, targets: Sequence[Path], kind: str, work: Work) -> tuple[list[Counts], int]:
    """Write every file that is not there yet; the counts of all of them, and the bytes that were decoded."""
    source = judge.source
    sizes = [shard.rows * max(1.0, shard.facts.row_bytes) for shard in source.shards]
    finished: list[int] = []

    def what(rows: int) -> str:
        return f"Applied to {rows:,} of {source.rows:,} rows, {len(finished):,} of {len(targets):,} shards"

    tally = Tally(work, sum(sizes), what)

    def task(place: int) -> Counts:
        shard = source.shards[place]
        expected = made_of(judge, shard, kind, tally.poll)
        counts = written(targets[place], expected)
        if counts is None:
            counts = Counts(0, 0, 0.0, 0.0, Counter())
            with replacing(targets[place]) as part:
                for batch in _written_batches(part, judge, place, kind, expected, counts, tally.poll):
                    tally.add(batch.num_rows, batch.nbytes, sizes[place] * batch.num_rows / shard.rows)
        else:
            tally.add(counts.rows, 0, sizes[place])
        finished.append(place)
        return counts

    try:
        with one_blas_thread():
            of_shards = tally.in_threads(task, len(targets))
    except Stopped as stopped:
        raise Stopped(
            f"applying was stopped after {len(finished):,} of {len(targets):,} shards; the same command goes on from "
            "there"
        ) from stopped
    return of_shards, tally.decoded


def _written_batches(
    part: Path,
    judge: Judge,
    place: int,
    kind: str,
    expected: dict[str, Any],
    counts: Counts,
    poll: Poll,
) -> Any:
    """Write one shard's file to `part`; yields every batch when it is done with it."""
    shard, how = judge.source.shards[place], KINDS[kind]
    ids: list[tuple[np.ndarray, np.ndarray]] = []
    with gathering(part, how.schema(judge, shard), how.group_rows) as sink:
        row_bytes: float = 64 + 4 * judge.recipe.features.dim
        columns = None if how.whole else judge.columns
        row_bytes = shard.facts.row_bytes if how.whole else row_bytes
        for first, batch in shard_batches(shard, columns, row_bytes, poll):
            judged = judge(place, first, shard.with_leaves(batch, judge.columns))
            if how.with_ids and judged.ids is not None:
                ids.append((row_hash(judged.ids, 0)[judged.valid], judged.valid))
            sink.write(how.table(judge, shard.path, first, batch, judged))
            counts.add(judged)
            yield batch
        _check_unique(ids, judge, shard)
        _note(sink, expected, counts)


def _check_unique(ids: Sequence[tuple[np.ndarray, np.ndarray]], judge: Judge, shard: Shard) -> None:
    """Refuse an id that two valid rows of a shard have.

    Args:
        ids: of each batch a hash of every valid row's id, and which rows are valid: 9 bytes a row.
    """
    hashes, valid = (np.concatenate(part) for part in zip((np.zeros(0, np.uint64), np.zeros(0, bool)), *ids))
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
    if len(same):
        first, second = np.flatnonzero(valid)[order[same[0] : same[0] + 2]]
        raise InputError(
            f"column {judge.id_column!r} of {shard.path} holds {len(same):,} repeated ids (the first: rows "
            f"{first:,} and {second:,}); ids must be unique, so drop the repeats, choose another "
            "column with --id_column, or write --as masks or rows"
        )


# -- what a file was made of ------------------------------------------------------------------------------------------


def made_of(judge: Judge, shard: Shard, kind: str, poll: Poll = no_poll) -> dict[str, Any]:
    """By what a file is known to be what would be written again: recipe, shard as it is now, settings.

    Raises:
        InputError: the shard is gone. RemoteError: its store does not answer. Stopped: from `poll`.
    """
    path, stamp = shard_stamp(shard, poll)
    columns = [judge.id_column, judge.feature_column, judge.feature_bits, str(judge.id_type)]
    settings = [kind, judge.drop_invalid, *columns]
    return {
        "recipe": judge.recipe.digest,
        "shard": path,
        "stamp": stamp,
        "footer": None if is_address(shard.path) else footer_digest(shard.path),
        "settings": hashlib.blake2b(json.dumps(settings).encode(), digest_size=16).hexdigest(),
    }


def shard_stamp(shard: Shard, poll: Poll = no_poll) -> tuple[str, list[int]]:
    """Where a shard lies, and numbers that are others when it was written anew: size and time, or what a store says.

    Raises:
        InputError: it is gone. RemoteError: its store does not answer. Stopped: from `poll`.
    """
    try:
        stamp = file_stamp(shard.path, poll)
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
        note = _note_of(path)
        counts = note.pop("counts")
        numbers = {name: float(counts[name]) for name in ("rows", "kept", "amount", "amount_kept")}
        dropped = Counter({str(reason): int(count) for reason, count in counts["dropped"].items()})
        if note != expected or not all(0 <= number < math.inf for number in numbers.values()):
            return None
        rows, kept = int(numbers["rows"]), int(numbers["kept"])
        return Counts(rows, kept, numbers["amount"], numbers["amount_kept"], dropped, reused=True)
    except (*UNREADABLE, AttributeError):  # a file of somebody else's is written anew
        return None


def _note_of(path: Path) -> dict[str, Any]:
    """What a file says that it was made of.

    Raises:
        FileNotFoundError, KeyError and other of `UNREADABLE`: there is no such file, or it was not written by `apply`.
    """
    check_regular(path)
    note = json.loads((pq.read_metadata(path).metadata or {})[NOTE.encode()])
    return dict(note)


def _targets(folder: Path, source: Source, kind: str) -> list[Path]:
    """The file of each shard."""
    return [
        folder / name for name in output_names([path_of(shard.path) for shard in source.shards], KINDS[kind].ending)
    ]


def check_leftovers(folder: Path, judge: Judge, kind: str) -> None:
    """Refuse a folder with files of `apply` that this call does not write: readers would take their rows for its own.

    Allowed are the same shards in another form under the same recipe, and below it the folder of another call.

    Raises:
        OptionError: it holds such files.
    """
    own = set(_targets(folder, judge.source, kind))
    forms = {
        target: shard
        for other in KINDS
        for target, shard in zip(_targets(folder, judge.source, other), judge.source.shards, strict=True)
    }
    shards = {os.path.realpath(shard.path) for shard in judge.source.shards if not is_address(shard.path)}
    left = []
    for place, folders, files in os.walk(folder):
        if Path(place) != folder and RECIPE_FILE in files:
            folders.clear()
            continue
        folders.sort()
        for path in (Path(place) / name for name in sorted(files) if name.endswith(".parquet")):
            if path in own or os.path.realpath(path) in shards:
                continue
            try:
                note = _note_of(path)
            except (*UNREADABLE, AttributeError):  # not a file of `apply`
                continue
            if path in forms and _same_source(note, made_of(judge, forms[path], kind)):
                continue
            left.append(repr(str(path.relative_to(folder))))
    if left:
        more = f" and {len(left) - MOST_NAMED:,} more" if len(left) > MOST_NAMED else ""
        raise OptionError(
            f"--output {folder} holds files of another call of apply, which this one does not write: "
            f"{', '.join(left[:MOST_NAMED])}{more}; remove them, or choose another folder"
        )


def _same_source(note: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether two files were made of the same shard by the same recipe, in any form."""
    return all(note.get(name, value) == value for name, value in expected.items() if name != "settings")


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
            f"--output {folder} holds what another recipe chose ({folder / RECIPE_FILE}), or one cut for other shards; "
            "choose another folder, or remove it"
        )


def claim(folder: Path, recipe: Recipe, poll: Poll = no_poll) -> None:
    """Note in the folder by which recipe its files are made, so that those of two are never mixed.

    Of two processes that claim a folder at once under two recipes, one is refused.

    Raises:
        OptionError: it is a file, or another recipe is noted there.
        StoreError: it cannot be written.
        Stopped: from `poll`, while another process claimed the folder.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"--output must be a folder, got the file {folder}")
    if not _claimed(folder, recipe):
        with only_one(folder / LOCK_FILE, poll):
            if not _claimed(folder, recipe):
                write_recipe(recipe, folder / RECIPE_FILE)


def _claimed(folder: Path, recipe: Recipe) -> bool:
    """Whether this recipe is noted in the folder; false where none is.

    Raises:
        OptionError: another one is.
    """
    noted = folder / RECIPE_FILE
    if not noted.exists():
        return False
    try:
        same = read_recipe(noted).digest == recipe.digest
    except InputError:
        same = False
    if not same:
        check_unclaimed(folder)
    return True


def _summary(recipe: Recipe, of_shards: Sequence[Counts], seconds: float, decoded: int) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    for counts in of_shards:
        dropped.update(counts.dropped)
    amount = sum(counts.amount for counts in of_shards)
    amount_kept = sum(counts.amount_kept for counts in of_shards)
    return {
        "shards": len(of_shards),
        "reused": sum(counts.reused for counts in of_shards),
        "rows": sum(counts.rows for counts in of_shards),
        "dropped": dict(dropped),
        "kept": sum(counts.kept for counts in of_shards),
        "of": recipe.of,
        "share_kept": amount_kept / amount if amount > 0 else None,
        "share_expected": recipe.share_kept,
        "seconds": seconds,
        "megabytes_per_second": decoded / 1e6 / seconds if decoded else None,
    }
