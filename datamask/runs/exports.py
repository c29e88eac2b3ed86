"""Files to take home from a run: the selected ids, the corpus's own rows filtered, and a mask per shard.

Command line and dashboard share these. All of them read the run folder and, where rows are wanted, the shards again,
batch by batch; a shard that is gone, or whose selected rows hold something else than when the run ended, is refused,
never half used. `unchecked` says where a run is too old for that.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from datamask.corpus.readers.shard import output_names
from datamask.errors import InputError, OptionError, RunStateError, StoreError
from datamask.evaluation.result import NO_RESULT
from datamask.files import replacing
from datamask.parquet import gathering
from datamask.polling import Poll
from datamask.repeat_counts import refusal
from datamask.runs.contents import UNSETTLED, Digest, ShardRows, changed, open_file, selected_rows, shards_of
from datamask.runs.formats import write_table
from datamask.runs.store import Run
from datamask.storage.address import FilePath
from datamask.work.context import UNWATCHED, Work
from datamask.work.locks import is_held

_UNSEEN = "\\x00-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff"
FORMULA_STARTS = f"^(?:[\t\r\n]|[{_UNSEEN}]*[-=+@＝＋－＠])"
"""What spreadsheets take for the start of a formula, full-width forms included (OWASP, CSV injection); blanks of every
kind, control characters and marks without width before the sign are dropped by some of them when they read a cell."""

GROUP_ROWS = 8192
"""Rows are gathered up to so many before they are written: each write is a row group."""

# -- the selected ids -------------------------------------------------------------------------------------------------


def write_selection(run: Run, path: str | Path) -> None:
    """Write one row per selected sample, strongest first: CSV if the name ends in ``.csv``, else parquet.

    Parquet has the config in its metadata.
    """
    if Path(path).suffix.lower() == ".csv":
        with replacing(path) as part:
            part.write_bytes(selected_csv(run))
    else:
        write_table(Path(path), run.selection())


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


def write_ids(run: Run, path: str | Path) -> str:
    """Write the selected ids with their numbers to `path`: CSV if it ends in ``.csv``, parquet if in ``.parquet``.

    Returns:
        The path, as text.

    Raises:
        OptionError: it ends in neither.
    """
    if Path(path).suffix.lower() not in (".csv", ".parquet"):
        raise OptionError(f"--ids must end in .csv or .parquet, got {str(path)!r}")
    write_selection(run, path)
    return str(path)


def selected_csv(run: Run) -> bytes:
    """The selection as UTF-8 CSV, the columns of OUT.parquet; see `table_csv`."""
    return table_csv(run.selection())


def defused(value: Any) -> Any:
    """A value for a CSV cell: text that a spreadsheet would take for a formula with a leading apostrophe."""
    return f"'{value}" if isinstance(value, str) and re.match(FORMULA_STARTS, value) else value


def table_csv(table: pa.Table) -> bytes:
    """Any flat table as UTF-8 CSV that a spreadsheet shows and never executes.

    Text that a spreadsheet would take for a formula gets a leading apostrophe; numbers stay numbers.
    """
    columns = [_without_formulas(column) for column in table.columns]
    names = _without_formulas(pa.chunked_array([pa.array(table.column_names, pa.string())])).to_pylist()
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns, names=names), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    dangerous = pc.match_substring_regex(column, FORMULA_STARTS)
    return pc.if_else(
        dangerous, pc.binary_join_element_wise(pa.scalar("'", column.type), column, pa.scalar("", column.type)), column
    )


# -- how often to repeat each sample (`datamask.runs.weights`) --------------------------------------------------------


WEIGHT_COLUMNS = ("weight", "repeat", "selected", "tokens", "source_file", "source_row")
"""Of a file of weights, beside the id."""


def no_weights(run: Run) -> str:
    """Why a finished run has no inclusion weights, in a sentence; "": it has."""
    if run.whole is not None:
        return "A run on all rows of a corpus beyond memory has no repeat weights; a run on a sample (--rows) has them."
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
    """Write the selected rows as the corpus has them: original columns and types, in input order.

    Shards are streamed; where their columns differ, a missing one is null.

    Returns:
        How many rows were written.

    Raises:
        InputError: a shard is gone, or has changed since the run.
        StoreError: `path` cannot be written.
        RunStateError: the run has not finished.
    """
    run.selection()  # rows.parquet of an unfinished run is not the last word
    shards = [shard for shard in shards_of(run) if shard.selected.any()]
    return write_rows(shards, path, _noted_digests(run), work)


def write_rows(
    shards: list[ShardRows],
    path: str | Path,
    noted: dict[str, str | None] | None = None,
    work: Work = UNWATCHED,
) -> int:
    """Write the selected rows of some shards, as `filtered_rows`.

    Args:
        shards: each with a selected row at least. noted: what they held; None: only their ids are compared.

    Returns, Raises: as `filtered_rows`.
    """
    schema = _common_schema(shards, work.poll)
    total, written = sum(int(shard.selected.sum()) for shard in shards), 0
    with replacing(path) as part, gathering(part, schema, GROUP_ROWS) as sink:
        for shard in shards:
            digest = Digest()
            for rows in selected_rows(shard, work.poll):
                digest.add(rows)
                sink.write(_conform(rows, schema))
                written += rows.num_rows
                work.report(written / total, f"writing row {written:,} of {total:,}")
            _check_contents(shard.path, digest, noted)
    return written


def mask_per_shard(run: Run, folder: str | Path, work: Work = UNWATCHED) -> list[Path]:
    """Write one small parquet per shard that says, for each of its rows in order, whether it was selected.

    Columns: ``selected`` (uint8, 0 or 1) and ``considered`` (bool): whether the row was in the corpus at all; a row
    that was left out by `--rows` or `--drop_invalid` is neither. A file keeps its shard's name with ``.mask.parquet``,
    below the folders in which the shards differ. All shards are looked at before the first mask is written.

    Returns:
        The files written, one per shard, in reading order.

    Raises:
        InputError: a shard is gone, or has changed since the run.
        StoreError: the folder cannot be written.
        RunStateError: the run has not finished.
    """
    run.selection()  # rows.parquet of an unfinished run is not the last word
    shards, noted = shards_of(run), _noted_digests(run)
    counts = [_row_count(shard, work.poll) for shard in shards]
    for shard in shards:
        _check_unread(shard, noted, work.poll)
    names = output_names([shard.path for shard in shards], ".mask.parquet")
    written = []
    for index, (shard, count, name) in enumerate(zip(shards, counts, names)):
        selected, considered = np.zeros(count, np.uint8), np.full(count, shard.left_out is not None)
        selected[shard.rows] = shard.selected
        considered[shard.rows] = True
        if shard.left_out is not None:
            considered[shard.left_out] = False
        target = Path(folder) / name
        write_table(target, pa.table({"selected": selected, "considered": considered}))
        written.append(target)
        work.report((index + 1) / len(shards), f"mask {index + 1:,} of {len(shards):,}")
    return written


# -- helpers ----------------------------------------------------------------------------------------------------------


def unchecked(run: Run) -> str | None:
    """Why an export of this run's rows cannot be checked, in a sentence; None where it can."""
    noted = _noted_digests(run)
    if noted and None not in noted.values():
        return None
    return (
        "This run keeps no digest of what all its selected rows hold: whether the shards still hold the same cannot be "
        "checked beyond ids and lengths."
    )


def check_rewritten(run: Run, poll: Poll) -> None:
    """Refuse shards whose selected rows hold something else than when the run ended.

    Files of the disk that nobody wrote since the run began are not read.

    Raises:
        InputError: a shard is gone or has changed. RemoteError: a store does not answer.
        Stopped: from `poll`.
    """
    noted, began = _noted_digests(run), run.created
    for shard in shards_of(run):
        path = shard.path
        # the time of the file's record, which nobody can put back; systems write it some milliseconds late
        if isinstance(path, Path) and path.exists() and path.stat().st_ctime < began - 1.0:
            continue
        _check_unread(shard, noted, poll)


def _noted_digests(run: Run) -> dict[str, str | None]:
    """What was noted of the files' contents when the run ended, by path; None where there was no telling."""
    noted: dict[str, str | None] = run.facts().get("contents", {})
    return noted


def _check_unread(shard: ShardRows, noted: dict[str, str | None], poll: Poll) -> None:
    if shard.selected.any():
        digest = Digest()
        for rows in selected_rows(shard, poll):
            digest.add(rows)
        _check_contents(shard.path, digest, noted)


def _check_contents(path: FilePath, digest: Digest, noted: dict[str, str | None] | None) -> None:
    expected = None if noted is None else noted.get(str(path))
    if expected == UNSETTLED:
        raise changed(path, "it was written anew while the run was going on")
    if expected is not None and expected != digest.text():
        raise changed(path, "its selected rows hold something else")


def _row_count(shard: ShardRows, poll: Poll) -> int:
    count = open_file(shard.path, poll).rows
    if len(shard.rows) and shard.rows[-1] >= count:
        raise changed(shard.path, f"it has {count:,} rows, and row {int(shard.rows[-1]):,} was in the corpus")
    return count


def _common_schema(shards: list[ShardRows], poll: Poll) -> pa.Schema:
    schemas = [open_file(shard.path, poll).facts.schema for shard in shards]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"the shards' columns do not go into one table: {error}; use a mask per shard instead"
        ) from error


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    if rows.schema.names == schema.names:  # a name may occur twice
        return pa.table([column.cast(kind) for column, kind in zip(rows.columns, schema.types)], schema=schema)
    columns = [
        rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
