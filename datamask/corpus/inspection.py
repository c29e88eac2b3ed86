"""A look at inputs before opening them: footers, guessed columns, sizes and problems; no feature is read."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from datamask.config import CorpusConfig
from datamask.corpus.columns import IS_ROLE, Columns, candidates, guess
from datamask.corpus.metadata import metadata_bytes
from datamask.corpus.opening import feature_dim, open_sources, resolve_columns
from datamask.corpus.sampling import default_row_limit
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.work.context import Work


@dataclass(frozen=True)
class Inspection:
    """What the footers say.

    Attributes:
        files: the shards of ``--input`` in reading order; rows: their rows together; bytes: their size on disk.
        complete: False where there are more files or rows than were looked at, so that rows and bytes are too small.
        schema: of the first file with rows.
        columns: role -> guessed or chosen column name or None, roles ``id``, ``quality`` (the first one), ``feature``,
            ``length``, ``text``.
        candidates: role -> columns whose type fits, likeliest first.
        dim: feature dimensions, or None where no feature column is clear.
        memory_bytes: of the float32 features of all rows, or None without `dim`.
        row_limit: how many rows open at once by default (see `default_row_limit`), or None without `dim`.
        problems: sentences about what keeps the corpus from opening as configured; empty where nothing does.
        notes: sentences about guesses.
    """

    files: tuple[str, ...]
    rows: int
    bytes: int
    complete: bool
    schema: pa.Schema
    columns: dict[str, str | None]
    candidates: dict[str, list[str]]
    dim: int | None
    memory_bytes: int | None
    row_limit: int | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def inspect_inputs(config: CorpusConfig, limit: int = 1000, poll: Poll = no_poll) -> Inspection:
    """Look at the footers of at most `limit` files of each option, or at the first rows where a format has none.

    Raises:
        InputError: a path does not exist, a file is not parquet, or there are no rows. What concerns columns is not
            raised but listed in ``problems``, so that a form can offer the choice.
        RemoteError: a store that holds files does not answer. Stopped: from `poll`.
    """
    sources = open_sources(config, Work(poll), limit)
    main = sources["input"]
    schema = main.first().schema
    problems: list[str] = []
    notes: tuple[str, ...] = ()
    columns = None
    try:
        columns = resolve_columns(config, sources)
        notes = columns.notes
    except InputError as error:
        problems.append(str(error))
    chosen = _guessed(config, schema) if columns is None else _named(columns)
    origin = columns.feature_from if columns is not None else "features" if "features" in sources else "input"
    feature = chosen["feature"]
    dim = None
    bits = columns is not None and columns.bits
    if feature is not None and (bits or feature in candidates(sources[origin].first().schema, "feature")):
        try:
            dim = feature_dim(sources[origin], feature, poll, bits)
        except InputError as error:
            problems.append(str(error))
    row_limit = None
    if dim is not None:
        left_out = feature if origin == "input" else None
        row_limit = default_row_limit(dim, metadata_bytes=metadata_bytes(main, left_out, dim))
    fitting = {
        role: candidates(sources[origin].first().schema if role == "feature" else schema, role) for role in IS_ROLE
    }
    return Inspection(
        files=tuple(shard.path for shard in main.shards),
        rows=main.rows,
        bytes=sum(shard.bytes for shard in main.shards),
        complete=all(source.complete for source in sources.values()),
        schema=schema,
        columns=chosen,
        candidates=fitting,
        dim=dim,
        memory_bytes=None if dim is None else main.rows * dim * 4,
        row_limit=row_limit,
        problems=tuple(dict.fromkeys(problems)),
        notes=notes,
    )


def _named(columns: Columns) -> dict[str, str | None]:
    return {
        "id": columns.id,
        "feature": columns.feature,
        "quality": columns.quality[0].name,
        "length": columns.length,
        "text": columns.text,
    }


def _guessed(config: CorpusConfig, schema: pa.Schema) -> dict[str, str | None]:
    """Role by role, so that one unclear column does not hide the others."""
    configured = {
        "id": config.id_column,
        "feature": config.feature_column,
        "length": config.length_column,
        "quality": config.quality_columns[0].name if config.quality_columns else None,
        "text": None,
    }
    return {role: name if name is not None else guess(schema, role)[0] for role, name in configured.items()}
