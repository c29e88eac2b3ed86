"""Which rows to read, before any feature is: the uniform sample, and the rows that side shards know.

Needs the ids only where there is something to decide; a corpus without side shards that fits is read in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from datamask.corpus import decode
from datamask.corpus.columns import ID_NAMES, Columns, require, side_id
from datamask.corpus.row_reader import RowReader
from datamask.corpus.sampling import Chosen, row_hash
from datamask.corpus.shards import Source, scan
from datamask.errors import InputError
from datamask.tables import id_field
from datamask.work.context import UNWATCHED, Work


@dataclass(frozen=True)
class RowPlan:
    """The rows to read.

    Attributes:
        rows: sorted int64 rows of the input, or None for all.
        side: source name -> its row for each of `rows` (None: the same row).
        dropped: reason -> count of rows that found no partner.
        notes: sentences for people.
    """

    rows: np.ndarray | None
    side: dict[str, np.ndarray | None] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def plan_rows(
    sources: dict[str, Source],
    columns: Columns,
    rows: int | None,
    limit: int,
    seed: int,
    *,
    drop_invalid: bool = False,
    work: Work = UNWATCHED,
) -> RowPlan:
    """Decide which rows are read.

    Args:
        sources: ``input`` and, where given, ``features`` and ``scores``.
        columns: the roles.
        rows: size of the sample asked for, or None.
        limit: the most rows where no size was asked for.
        seed: of the sample.
        drop_invalid: leave out rows that a side source lacks, instead of refusing them.
        work: told and asked while ids are read.

    Raises:
        InputError: null ids, side shards that do not fit or lack rows, or repeated ids in them.
        Stopped: from `work.poll`.
    """
    main = sources["input"]
    side_ids = {
        name: None
        if columns.made_ids
        else side_id(source.first().schema, columns.id, main.first().schema.field(columns.id).type)
        for name, source in sources.items()
        if name != "input"
    }
    for name, id_name in side_ids.items():
        if id_name is None and sources[name].rows != main.rows:
            raise InputError(
                f"--{name} has {sources[name].rows:,} rows and no id column ({columns.id!r} or one of "
                f"{', '.join(ID_NAMES[:4])} ...), so it can only be joined by row position, but --input has "
                f"{main.rows:,} rows; give it the id column, or the same rows"
            )
    notes = [
        f"--{name} was joined by {'row position' if id_name is None else f'the id column {id_name!r}'}."
        for name, id_name in side_ids.items()
    ]
    k = rows if rows is not None else limit
    by_id = {name: id_name for name, id_name in side_ids.items() if id_name is not None}
    steps = len(by_id) + 1
    joins = {
        name: _Index(sources[name], id_name, columns.id, main, seed, work.part(step / steps, (step + 1) / steps))
        for step, (name, id_name) in enumerate(by_id.items())
    }
    if not joins and main.rows <= k:
        return RowPlan(None, dict.fromkeys(side_ids), notes=tuple(notes))

    chosen = Chosen(k)
    kind = column_id_type(main, columns.id, columns.made_ids)
    reader = RowReader(main, columns.id, kind, made_ids=columns.made_ids)
    lost = {name: Lost() for name in joins}

    def take(numbers: np.ndarray, batch: pa.RecordBatch) -> None:
        ids = reader.ids(numbers, batch)
        hashes = row_hash(ids, seed)
        partners = {name: index.find(hashes) for name, index in joins.items()}
        keep = np.ones(len(hashes), bool)
        for name, partner in partners.items():
            with chosen.lock:
                lost[name].add(ids, numbers, keep & (partner < 0))
            keep &= partner >= 0
        chosen.offer(hashes[keep], numbers[keep], *(partner[keep] for partner in partners.values()))

    scan(main, reader.columns, take, row_bytes=64, work=work.part((steps - 1) / steps, 1.0), what="Reading ids:")
    if chosen.offered == 0:
        name = next(name for name in joins if lost[name].rows)
        raise InputError(
            f"no id of --input ({main.first().path}, column {columns.id!r}) occurs in --{name} "
            f"({sources[name].first().path}, column {side_ids[name]!r}); check that both hold "
            "the same ids"
        )
    for name, missing in lost.items():
        if missing.rows and not drop_invalid:
            raise InputError(
                f"{missing.rows:,} of {main.rows:,} rows of --input have no row in --{name} (ids {missing.ids()}; the "
                f"first is {main.place(missing.first[0][0])}); add them to {sources[name].first().path}, or leave such "
                "rows out with --drop_invalid"
            )
    picked = chosen.finish()[1]
    side = dict.fromkeys(side_ids)
    side.update({name: picked[i + 1] for i, name in enumerate(joins)})
    side = {name: picked[0] if value is None else value for name, value in side.items()}
    dropped = {f"no row in --{name}": missing.rows for name, missing in lost.items() if missing.rows}
    matched = chosen.offered
    notes += [
        f"{sources[name].rows - matched:,} rows of --{name} are of no row of --input."
        for name in joins
        if sources[name].rows > matched
    ]
    if picked.shape[1] < matched:
        why = f"as --rows {rows:,} asks" if rows is not None else "as many as the memory budget allows"
        notes.append(
            f"A uniform sample of {picked.shape[1]:,} of {matched:,} rows was taken by hash of id and seed "
            f"{seed}, {why}."
        )
    return RowPlan(picked[0], side, dropped, tuple(notes))


def column_id_type(source: Source, name: str, made: bool = False) -> pa.DataType:
    """The one type that holds the ids of all shards of a source. made: they are made of file and row.

    Raises:
        InputError: a shard has no such column, or some have strings and others integers.
    """
    if made:
        return pa.string()
    shards = [shard for shard in source.shards if shard.rows]
    kinds = [shard.schema.field(require(shard.schema, name, "id", shard.path)).type for shard in shards]
    kind = decode.id_type(kinds)
    if kind is None:
        other = next(i for i in range(len(kinds)) if decode.id_type(kinds[: i + 1]) is None)
        raise InputError(
            f"column {name!r} is {kinds[0]} in {shards[0].path} but {kinds[other]} in "
            f"{shards[other].path}; write all shards with one id type"
        )
    return kind


def column_id_field(source: Source, name: str, made: bool = False) -> pa.Field:
    """The field of the ids of a source: `column_id_type`, and what it is in the shards, where that is one type."""
    kind = column_id_type(source, name, made)
    found = {shard.schema.field(name).type for shard in source.shards if shard.rows} if not made else ()
    return id_field(name, kind, *found) if len(found) == 1 else pa.field(name, kind)


@dataclass
class Lost:
    """Rows that a side source lacks. rows: how many; first: row and id of the first three."""

    rows: int = 0
    first: list[tuple[int, object]] = field(default_factory=list)

    def add(self, ids: pa.Array, numbers: np.ndarray, mask: np.ndarray) -> None:
        """Take in the rows of a batch where `mask` is true."""
        self.rows += int(mask.sum())
        places = np.flatnonzero(mask)[:3]
        here = zip(numbers[places].tolist(), ids.take(pa.array(places)).to_pylist(), strict=True)
        self.first = sorted([*self.first, *here], key=lambda pair: pair[0])[:3]

    def ids(self) -> str:
        """The first ids, for a message."""
        return ", ".join(repr(value) for _, value in self.first) + (", ..." if self.rows > len(self.first) else "")


class _Index:
    """The ids of a side source by hash, 16 bytes a row.

    Two ids with one 64-bit hash would be taken for one: joining 10^8 rows with 10^8, the chance is 5 in 10 000.
    """

    def __init__(self, source: Source, id_name: str, main_name: str, main: Source, seed: int, work: Work) -> None:
        kind = column_id_type(source, id_name)
        main_kind = column_id_type(main, main_name)
        if pa.types.is_integer(kind) != pa.types.is_integer(main_kind):
            raise InputError(
                f"ids are {main_kind} in --input (column {main_name!r}) but {kind} in --{source.name} "
                f"({source.first().path}, column {id_name!r}); write both with one type"
            )
        hashes, reader = np.empty(source.rows, np.uint64), RowReader(source, id_name, kind)

        def take(rows: np.ndarray, batch: pa.RecordBatch) -> None:
            hashes[rows] = row_hash(reader.ids(rows, batch), seed)

        scan(source, [id_name], take, row_bytes=64, work=work, what=f"Reading ids of --{source.name}:")
        self.rows = np.argsort(hashes, kind="stable")
        self.hashes = hashes[self.rows]
        same = np.flatnonzero(self.hashes[1:] == self.hashes[:-1])
        if len(same):
            first, second = self.rows[same[0]], self.rows[same[0] + 1]
            raise InputError(
                f"column {id_name!r} of --{source.name} holds {len(same):,} repeated ids (the first: "
                f"{source.place(int(first))} and {source.place(int(second))}); ids must be unique"
            )

    def find(self, hashes: np.ndarray) -> np.ndarray:
        """The row of the side source for each hash, -1 where it has none."""
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, self.rows[at], -1)
