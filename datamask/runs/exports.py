"""Files to take home from a run: the selected ids, the corpus's own rows filtered, and a mask per shard.

Command line and dashboard share these. All of them read the run folder and, where rows are wanted, the shards again,
batch by batch; a shard that is gone, or of another size or footer than when the run opened it, is refused.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus.readers.shard import output_names
from datamask.errors import RunStateError, StoreError
from datamask.evaluation.result import NO_RESULT
from datamask.files import replacing
from datamask.polling import Poll
from datamask.repeat_counts import refusal
from datamask.runs.contents import ShardRows, changed, check_unchanged, open_file, selected_rows, shards_of
from datamask.runs.store import Run
from datamask.tables import (
    OF_ROWS,
    common_schema,
    conform,
    format_of,
    is_file,
    placed,
    table_sink,
    with_places,
    write_table,
)
from datamask.work.context import UNWATCHED, Work
from datamask.work.locks import is_held

# -- the selected ids -------------------------------------------------------------------------------------------------


def write_selection(run: Run, path: str | Path) -> None:
    """Write one row per selected row, strongest first, in the format of the name; see `datamask.tables`.

    Parquet has the config in its metadata.
    """
    write_table(path, run.selection())


def note_unwritten(run: Run, why: str | None) -> None:
    """Note in the run why its selection does not lie where it was asked for; None: it does.

    What cannot be noted, since the disk or another process is in the way, is left as it was.
    """
    with contextlib.suppress(RunStateError, StoreError), run.writer() as writer:
        writer.update_facts(unwritten=why)


def unwritten(run: Run) -> str:
    """Why the selection of a run that is done is not where it was asked for; ``""``: it is, or is being written.

    Raises:
        StoreError: the run's record cannot be read.
    """
    facts = run.facts()
    if not facts.get("unwritten") or run.status().state != "done" or is_held(run.path / "queue"):
        return ""
    return f"{facts.get('output')} is not written: {facts['unwritten']}"


# -- how often to repeat each sample (`datamask.runs.weights`) --------------------------------------------------------


WEIGHT_COLUMNS = ("weight", "repeat", "selected", "tokens", "source_file", "source_row")
"""Of a file of weights, beside the id."""


def no_weights(run: Run) -> str:
    """Why a finished run has no inclusion weights, in a sentence; "": it has."""
    if run.whole is not None:
        return "A run on mapped arrays keeps no repeat weights; a run in memory, of a sample (--rows) too, keeps them."
    if why := refusal(run.config.selection):
        return f"{why[0].upper()}{why[1:]}."
    result, name = run.status().result or NO_RESULT, run.facts().get("columns", {}).get("id")
    if name in WEIGHT_COLUMNS:
        return f"The id column is named {name}, as a column of the weights. Rename it and run again."
    if result.weights is None:
        return "This run ended without repeat weights, because it learned no finite numbers."
    return ""


# -- the corpus's own rows --------------------------------------------------------------------------------------------


def filtered_rows(run: Run, path: str | Path, work: Work = UNWATCHED) -> int:
    """Write the selected rows as the corpus has them: original columns, in input order, in the format of the name.

    Shards are streamed; where their columns differ, a missing one is null. Parquet keeps the types.

    Returns:
        How many rows were written.

    Raises:
        OptionError: the name has another ending. InputError: a shard is gone, or has changed since the run.
        StoreError: `path` cannot be written.
        RunStateError: the run has not finished.
    """
    run.selection()  # rows.parquet of an unfinished run is not the last word
    shards = [shard for shard in shards_of(run) if shard.selected.any()]
    check_unchanged(run, shards, work.poll)
    return write_rows(shards, path, work)


def write_rows(shards: list[ShardRows], path: str | Path, work: Work = UNWATCHED) -> int:
    """Write the selected rows of some shards, as `filtered_rows`.

    Args:
        shards: each with a selected row at least.

    Returns, Raises: as `filtered_rows`.
    """
    kind, schema = (
        format_of(path, "rows", OF_ROWS),
        common_schema(open_file(shard.path, work.poll).facts.schema for shard in shards),
    )
    total, written = sum(int(shard.selected.sum()) for shard in shards), 0
    with replacing(path) as part, table_sink(part, kind, schema, [shard.id_name for shard in shards[:1]]) as sink:
        for shard in shards:
            for rows in selected_rows(shard, work.poll):
                sink.write(conform(rows, schema))
                written += rows.num_rows
                work.report(written / total, f"writing row {written:,} of {total:,}")
    return written


MASK = pa.schema({"selected": pa.uint8(), "considered": pa.bool_()})


def write_masks(run: Run, place: str | Path, work: Work = UNWATCHED) -> list[Path]:
    """Write for each row of each shard, in order, whether it was selected.

    Columns: ``selected`` (uint8, 0 or 1) and ``considered`` (bool): whether the row was in the corpus at all; a row
    that was left out by `--rows` or `--drop_invalid` is neither. All shards are looked at before anything is written.

    Args:
        place: a folder for one parquet per shard, named as the shard with ``.mask.parquet``, below the folders in which
            the shards differ; or a file for all of them, with ``source_file`` and ``source_row`` in front.

    Returns:
        The files written, in reading order.

    Raises:
        OptionError: the name has the ending of another format.
        InputError: a shard is gone, or has changed since the run.
        StoreError: the folder cannot be written.
        RunStateError: the run has not finished.
    """
    run.selection()  # rows.parquet of an unfinished run is not the last word
    together = is_file(place, "mask", OF_ROWS)
    shards = shards_of(run)
    check_unchanged(run, shards, work.poll)
    counts = [_row_count(shard, work.poll) for shard in shards]
    if together:
        with replacing(place) as part, table_sink(part, format_of(place), with_places(MASK), ids=()) as sink:
            for index, (shard, count) in enumerate(zip(shards, counts)):
                sink.write(placed(_mask(shard, count), str(shard.path)))
                work.report((index + 1) / len(shards), f"mask {index + 1:,} of {len(shards):,}")
        return [Path(place)]
    targets = [Path(place) / name for name in output_names([shard.path for shard in shards], ".mask.parquet")]
    for index, (shard, count, target) in enumerate(zip(shards, counts, targets)):
        write_table(target, _mask(shard, count))
        work.report((index + 1) / len(shards), f"mask {index + 1:,} of {len(shards):,}")
    return targets


def _mask(shard: ShardRows, count: int) -> pa.Table:
    selected, considered = np.zeros(count, np.uint8), np.full(count, shard.left_out is not None)
    selected[shard.rows] = shard.selected
    considered[shard.rows] = True
    if shard.left_out is not None:
        considered[shard.left_out] = False
    return pa.table([selected, considered], schema=MASK)


# -- helpers ----------------------------------------------------------------------------------------------------------


def _row_count(shard: ShardRows, poll: Poll) -> int:
    count = open_file(shard.path, poll).rows
    if len(shard.rows) and shard.rows[-1] >= count:
        raise changed(shard.path, f"it has {count:,} rows, and row {int(shard.rows[-1]):,} was in the corpus")
    return count
