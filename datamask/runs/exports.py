"""Files to take home from a run: the selected ids, the corpus's own rows filtered, and a mask per shard.

Command line and dashboard share these. All of them read the run folder and, where rows are wanted, the shards again,
batch by batch; a shard that is gone or changed since the run is refused, never half used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from datamask.errors import InputError, OptionError, Stopped
from datamask.files import replacing
from datamask.parquet import UNREADABLE, open_parquet, read_batches, reason, refusing
from datamask.runs.formats import write_table
from datamask.runs.store import Run

BATCH_ROWS = 8192
"""Rows read at a time: 768 float32 dimensions are 24 MB."""

FORMULA_STARTS = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]"
"""What spreadsheets take for the start of a formula, full-width forms included (OWASP, CSV injection)."""

Progress = Callable[[float, str], None]


# -- the selected ids -------------------------------------------------------------------------------------------------


def write_selection(run: Run, path: str | Path) -> None:
    """Write OUT.parquet: one row per selected sample, strongest first, the config in its metadata."""
    write_table(Path(path), run.selection())


def write_ids(run: Run, path: str | Path) -> str:
    """Write the selected ids with their numbers to `path`: CSV if it ends in ``.csv``, parquet if in ``.parquet``.

    Returns:
        The path, as text.

    Raises:
        OptionError: it ends in neither.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".parquet":
        write_selection(run, path)
    elif suffix == ".csv":
        with replacing(path) as part:
            part.write_bytes(selected_csv(run))
    else:
        raise OptionError(f"--ids must end in .csv or .parquet, got {str(path)!r}")
    return str(path)


def selected_csv(run: Run) -> bytes:
    """The selection as UTF-8 CSV, the columns of OUT.parquet; see `table_csv`."""
    return table_csv(run.selection())


def table_csv(table: pa.Table) -> bytes:
    """Any flat table as UTF-8 CSV that a spreadsheet shows and never executes.

    Text that a spreadsheet would take for a formula gets a leading apostrophe; numbers stay numbers.
    """
    columns = [_without_formulas(column) for column in table.columns]
    names = _without_formulas(pa.chunked_array([pa.array(table.column_names, pa.string())])).to_pylist()
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(pa.table(columns, names=names), sink)
    return sink.getvalue().to_pybytes()


def _without_formulas(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    dangerous = pc.match_substring_regex(column, FORMULA_STARTS)
    return pc.if_else(dangerous, pc.binary_join_element_wise(pa.scalar("'", column.type), column,
                                                             pa.scalar("", column.type)), column)


# -- the corpus's own rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shard:
    """One input file with the rows of it that were in the corpus.

    Attributes:
        path: the file.
        rows: int64 ``(n,)`` positions in it, rising.
        ids: what the id column held there, in the same order.
        selected: bool ``(n,)``.
    """

    path: Path
    rows: np.ndarray
    ids: pa.ChunkedArray
    selected: np.ndarray


def filtered_rows(run: Run, path: str | Path, *, progress: Progress | None = None,
                  should_stop: Callable[[], bool] | None = None) -> int:
    """Write the selected rows as the corpus has them: original columns and types, in input order.

    Shards are streamed; where their columns differ, a missing one is null.

    Returns:
        How many rows were written.

    Raises:
        InputError: a shard is gone, or has changed since the run.
        StoreError: `path` cannot be written.
        RunStateError: the run has not finished.
    """
    id_name, shards = _shards(run)
    shards = [shard for shard in shards if shard.selected.any()]
    schema = _common_schema(shards)
    total, written = sum(int(shard.selected.sum()) for shard in shards), 0
    with replacing(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as sink:
        for shard in shards:
            keep = shard.rows[shard.selected]
            expected = shard.ids.filter(pa.array(shard.selected))
            done = 0
            for start, batch in _batches(shard.path):
                if should_stop is not None and should_stop():
                    raise Stopped("the export was stopped")
                stop = int(np.searchsorted(keep, start + batch.num_rows))
                if stop == done:
                    continue
                rows = pa.Table.from_batches([batch]).take(pa.array(keep[done:stop] - start))
                _check_unchanged(shard.path, rows, id_name, expected.slice(done, stop - done))
                sink.write_table(_conform(rows, schema))
                written, done = written + stop - done, stop
                if progress is not None:
                    progress(written / total, f"writing row {written:,} of {total:,}")
            if done < len(keep):
                raise _changed(shard.path, f"it has no row {int(keep[-1]):,} any more")
    return written


def mask_per_shard(run: Run, folder: str | Path, *, progress: Progress | None = None) -> list[Path]:
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
    _, shards = _shards(run)
    counts = [_row_count(shard) for shard in shards]
    names = _mask_names([shard.path for shard in shards])
    written = []
    for index, (shard, count, name) in enumerate(zip(shards, counts, names)):
        selected, considered = np.zeros(count, np.uint8), np.zeros(count, bool)
        selected[shard.rows] = shard.selected
        considered[shard.rows] = True
        target = Path(folder) / name
        write_table(target, pa.table({"selected": selected, "considered": considered}))
        written.append(target)
        if progress is not None:
            progress((index + 1) / len(shards), f"mask {index + 1:,} of {len(shards):,}")
    return written


# -- helpers ----------------------------------------------------------------------------------------------------------


def _shards(run: Run) -> tuple[str, list[_Shard]]:
    """The id column's name, and the input files in reading order, those without a row in the corpus included."""
    # the selection is asked first: rows.parquet of an unfinished run is not the last word
    run.selection()
    table = run.rows()
    facts = run.facts()
    id_name = facts.get("columns", {}).get("id", table.column_names[0])
    names = table["source_file"].combine_chunks().dictionary_encode()
    if isinstance(names, pa.ChunkedArray):
        names = names.combine_chunks()
    codes = names.indices.to_numpy(zero_copy_only=False)
    found = names.dictionary.to_pylist()
    files = list(dict.fromkeys([*facts.get("files", []), *found]))
    rows = table["source_row"].to_numpy()
    selected = table["selected"].to_numpy()
    shards = []
    for file in files:
        where = np.flatnonzero(codes == found.index(file)) if file in found else np.zeros(0, np.int64)
        where = where[np.argsort(rows[where], kind="stable")]
        shards.append(_Shard(Path(file), rows[where], table[id_name].take(pa.array(where)), selected[where]))
    return id_name, shards


def _open(path: Path) -> pq.ParquetFile:
    try:
        return open_parquet(path)
    except FileNotFoundError:
        raise InputError(f"{path} is gone since the run; put it back to export its rows") from None
    except UNREADABLE as error:
        raise InputError(f"{path} cannot be read: {reason(error)}") from error


def _row_count(shard: _Shard) -> int:
    with _open(shard.path) as file:
        count = file.metadata.num_rows
    if len(shard.rows) and shard.rows[-1] >= count:
        raise _changed(shard.path, f"it has {count:,} rows, and row {int(shard.rows[-1]):,} was in the corpus")
    return count


def _batches(path: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    start = 0
    with _open(path) as file, refusing(f"{path} is damaged or has changed since the run"):
        for batch in read_batches(path, file, most_rows=BATCH_ROWS):
            yield start, batch
            start += batch.num_rows


def _common_schema(shards: list[_Shard]) -> pa.Schema:
    schemas = [_open(shard.path).schema_arrow for shard in shards]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the shards' columns do not go into one table: {error}; use a mask per shard instead"
                         ) from error


def _conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    if rows.schema.names == schema.names:  # a name may occur twice
        return pa.table([column.cast(kind) for column, kind in zip(rows.columns, schema.types)], schema=schema)
    columns = [rows[field.name].cast(field.type) if field.name in rows.column_names
               else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _check_unchanged(path: Path, rows: pa.Table, id_name: str, expected: pa.ChunkedArray) -> None:
    # ids may come from a side shard; then this file has no such column and its length is all there is to compare
    if id_name in rows.column_names and not rows[id_name].cast(expected.type).equals(expected):
        raise _changed(path, f"its {id_name!r} column holds other ids")


def _changed(path: Path, how: str) -> InputError:
    return InputError(f"{path} has changed since the run: {how}; run the selection again")


def _mask_names(paths: list[Path]) -> list[Path]:
    """Relative names, unique because the paths are: the part of each path below their common folder."""
    absolute = [path.absolute() for path in paths]
    base = absolute[0].parent
    while not all(base in path.parents for path in absolute):
        base = base.parent
    return [path.relative_to(base).with_suffix(".mask.parquet") for path in absolute]
