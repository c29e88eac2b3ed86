"""Every other column: which come along, and one table of them over shards whose schemas may differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from datamask.corpus import decode
from datamask.corpus.columns import Columns
from datamask.corpus.moments import showable
from datamask.corpus.readers.kinds import inner_type, is_list, is_number, value_type
from datamask.corpus.readers.leaves import part_of
from datamask.corpus.reading import kept
from datamask.corpus.row_plan import column_id_type
from datamask.corpus.shards import Source
from datamask.polling import Poll, no_poll


def _stays(kind: pa.DataType) -> bool:
    # a second embedding would double the memory, and bytes are of no use in a table or a colour
    if is_list(kind):
        return not is_number(inner_type(kind))
    return not (
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_null(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    )


def metadata_names(main: Source, columns: Columns) -> tuple[list[str], pa.Schema, list[str]]:
    """The metadata columns of the input that are read, their common types, and notes on what is left out of them.

    A column some shards lack is null there; columns whose types cannot be brought together stay out.
    """
    of_roles = {columns.id}
    if columns.feature_from == "input":
        of_roles.add(columns.feature)
    if len(columns.quality) == 1 and columns.quality_from[0] == "input":
        of_roles.add(columns.quality[0].name)
    if columns.length is not None:
        of_roles.add(columns.length)
    shards = [shard for shard in main.shards if shard.rows]
    repeated = sorted({name for shard in shards for name, count in Counter(shard.schema.names).items() if count > 1})
    kinds: dict[str, list[pa.DataType]] = {}
    apart = {name for name in (*of_roles, *repeated) if name is not None}
    for shard in shards:
        for field in shard.schema:
            if field.name not in apart and part_of(field) != columns.feature and columns.reads(field.name):
                kinds.setdefault(field.name, []).append(field.type)
    fields = []
    notes = [f"Column {name!r} was left out: several columns of one file have that name." for name in repeated]
    left_out = {name: why for shard in shards for name, why in shard.facts.left_out.items()}
    notes += [f"Field {name!r} was left out: it {why}." for name, why in left_out.items()]
    for name, types in kinds.items():
        common = _common(types)
        if common is None:
            notes.append(
                f"Column {name!r} was left out: its type differs between shards "
                f"({', '.join(sorted({str(kind) for kind in types}))})."
            )
        elif not _stays(common):
            notes.append(f"Column {name!r} ({common}) was left out of the metadata.")
        else:
            # `Corpus.texts` is asked for again and again, and is plain
            decoded = name == columns.text and pt.is_dictionary(common)
            fields.append(pa.field(name, common.value_type if decoded else common))
            if len(types) < len(shards):
                notes.append(
                    f"Column {name!r} is missing from {len(shards) - len(types)} of {len(shards)} files and null there."
                )
    return [field.name for field in fields], pa.schema(fields), notes


def metadata_bytes(main: Source, feature: str | None, dim: int) -> int:
    """Decoded bytes per row beside the features, about, by the first shard that has rows.

    Args:
        main: the input.
        feature: the feature column, where it lies in these shards.
        dim: its dimensions.
    """
    shard = main.first()
    features = 0
    if feature is not None:
        kind = inner_type(shard.schema.field(feature).type)
        features = dim * (kind.bit_width if is_number(kind) else 64) // 8
    return max(0, int(shard.facts.row_bytes) - features)


def _common(kinds: list[pa.DataType]) -> pa.DataType | None:
    if all(kind == kinds[0] for kind in kinds):
        # views decode to plain strings, which every writer and filter knows; the dictionaries of many shards together
        # may outgrow an 8-bit index
        if pt.is_dictionary(kinds[0]):
            return pa.dictionary(pa.int32(), kinds[0].value_type)
        return pa.string() if pt.is_string_view(kinds[0]) else kinds[0]
    plain = [value_type(kind) for kind in kinds]
    if all(is_number(kind) or pt.is_null(kind) for kind in plain) and not all(pt.is_null(kind) for kind in plain):
        numbers = [kind for kind in plain if not pt.is_null(kind)]
        if all(kind == numbers[0] for kind in numbers):
            return numbers[0]
        return pa.int64() if all(pt.is_integer(kind) and not pt.is_uint64(kind) for kind in numbers) else pa.float64()
    if (texts := decode.id_type([kind for kind in plain if not pt.is_null(kind)] or [pa.null()])) is not None:
        return texts if not pt.is_null(texts) else None
    try:
        schemas = [pa.schema([("x", kind)]) for kind in plain]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def assemble(
    main: Source,
    columns: Columns,
    parts: list[tuple[int, pa.Array, pa.RecordBatch]],
    take: Callable[[int], None] = lambda nbytes: None,
    poll: Poll = no_poll,
) -> tuple[pa.Array, pa.Table, list[str]]:
    """Ids and metadata of all batches, in row order, and notes on what was left out.

    Args:
        take: called with the bytes that a column of a batch takes more in the type that all shards share.
        poll: called before every column.
    """
    _, schema, notes = metadata_names(main, columns)
    parts.sort(key=lambda part: part[0])
    ids = decode.joined([ids for _, ids, _ in parts], column_id_type(main, columns.id, columns.made_ids))
    table = {}
    held = [dict(zip(batch.schema.names, batch.columns, strict=True)) for _, _, batch in parts]
    for field in schema:
        poll()
        chunks = []
        for (_, batch_ids, _), of_batch in zip(parts, held, strict=True):
            own = of_batch.get(field.name)
            if own is None:
                chunks.append(pa.nulls(len(batch_ids), field.type))
                continue
            chunk = decode.of_type(own, field.type)
            if own.type != field.type:
                take(max(0, chunk.nbytes - own.nbytes))
                chunk = kept(chunk)
            chunks.append(chunk)
        column = pa.chunked_array(chunks, type=field.type)
        if pt.is_dictionary(field.type):
            column = column.unify_dictionaries()
        column, note = showable(field.name, column)
        if note is not None:
            notes.append(note)
        if column is not None:
            table[field.name] = column
    return ids, pa.table(table) if table else _without_columns(len(ids)), notes


def _without_columns(n: int) -> pa.Table:
    """A table of n rows and no columns."""
    return pa.table({"none": pa.nulls(n)}).select([])
