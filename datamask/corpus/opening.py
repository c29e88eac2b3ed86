"""Open a corpus: find the columns, choose the rows, read them once, check them, make every feature unit length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask.config import CorpusConfig
from datamask.corpus import checks, decode
from datamask.corpus.columns import OPTIONS, Columns, require, resolve
from datamask.corpus.corpus import Corpus, Provenance
from datamask.corpus.embedders.contract import embedder_note
from datamask.corpus.metadata import assemble, metadata_bytes, metadata_names
from datamask.corpus.quality import check_sum, ranks_within, weighted_sum
from datamask.corpus.readers.kinds import inner_type, value_type
from datamask.corpus.reading import Room, Rows, Targets, read_rows, reading_bytes, spend
from datamask.corpus.refused_rows import complaint, valid_rows
from datamask.corpus.row_plan import RowPlan, column_id_field, column_id_type, plan_rows
from datamask.corpus.row_reader import RowReader
from datamask.corpus.sampling import default_row_limit
from datamask.corpus.shards import Source, open_source, pieces, read_piece, reading_threads
from datamask.corpus.text_file import bytes_in_memory, filtered
from datamask.errors import InputError, NoRoomError
from datamask.memory import give_back, memory_bytes
from datamask.places import Place
from datamask.polling import Poll, no_poll
from datamask.storage.address import file_name
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import FREED_BYTES, in_words, ledger

LOOK_SHARE = 0.3
"""Share of the whole that the look at files takes which must be read to their end for it."""

ID_BYTES = 32
"""Of an id, or of a value of another column, about."""

ROW_BYTES = 96
"""Of a row other than features, ids and metadata: lengths, norms, flags, its place, the hash and order of its id."""

TRIES = 3
"""How often a corpus is read anew that turned out larger than what its files say, where memory is short."""

SAMPLE = "take a sample (--rows), or try again when other work has ended"

FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64", "string": "JSON text"}
"""What Arrow calls types of numbers, and what everybody else does."""

DIM_ROWS = 64
"""Rows by which d is told."""

CHECKED = 0.25
"""Checking a byte of features takes so much of the time of reading one."""


def read_corpus(
    config: CorpusConfig,
    work: Work = UNWATCHED,
    *,
    row_limit: int | None = None,
    main: Source | None = None,
    beside: Collection[str] | None = None,
    into: Path | None = None,
) -> Corpus:
    """Read the rows of a corpus, check them, and scale the features to unit length; see `in_memory.open_corpus`.

    Args:
        config: files, columns and rows. work: told and asked.
        row_limit, into: as there.
        main: rows in memory, in place of the inputs of `config`.
        beside: names of the columns that are read beside ids, features, quality and tokens. None: all.

    Raises:
        InputError, RemoteError, NoRoomError: as there. Stopped: from `work.poll`.
    """
    shards = look_into(config, work.part(0.0, LOOK_SHARE), main=main, beside=beside)
    sources, columns, dim = shards.sources, shards.columns, shards.dim
    limit = row_limit
    if limit is None:
        limit = _fitting_rows(sources["input"], columns, dim) if into is None else sources["input"].rows
    looked, planned, _ = _shares(sources, dim, limit if config.rows is None else config.rows)
    plan = shards.plan(work.part(looked, planned), limit)
    return shards.read(plan, work.part(planned, 1.0), into, rows_given=config.rows is not None or into is not None)


@dataclass(frozen=True)
class Shards:
    """The shards of a corpus after a look at them: which rows there are, and how rows are read.

    Attributes:
        config: files, columns and rows. sources: the shards by their option. columns: the roles. dim: d.
    """

    config: CorpusConfig
    sources: dict[str, Source]
    columns: Columns
    dim: int

    def plan(self, work: Work = UNWATCHED, limit: int | None = None) -> RowPlan:
        """Decide which rows make the corpus, as `plan_rows`. limit: None: all rows, where the settings name no number.

        Raises:
            InputError, Stopped: as there. NoRoomError: the memory for it is not free.
        """
        config, limit = self.config, self.sources["input"].rows if limit is None else limit
        needed = _planning_bytes(self.sources, config.rows or limit)
        with ledger().reserve(needed, opening_name(config), poll=work.poll):
            return plan_rows(
                self.sources,
                self.columns,
                config.rows,
                limit,
                config.seed,
                drop_invalid=config.drop_invalid,
                work=work,
            )

    def read(
        self, plan: RowPlan, work: Work = UNWATCHED, into: Path | None = None, *, rows_given: bool = True
    ) -> Corpus:
        """Read the rows of a plan, check them, and scale the features to unit length.

        Args:
            into: as of `read_corpus`. rows_given: they may fill the memory; else a quarter.

        Raises:
            InputError, RemoteError, NoRoomError, Stopped: as `read_corpus`.
        """
        config, sources, columns, dim, place = self.config, self.sources, self.columns, self.dim, Place(into)
        needs = _needs(sources, columns, plan, dim, place, rows_given)
        _, planned, read = _shares(sources, dim, needs.rows)
        share = (read - planned) / (1 - planned)
        for tries_left in reversed(range(TRIES)):
            name = opening_name(config)
            with ledger().reserve(needs.all, name, way_out=SAMPLE, poll=work.poll) as reservation:
                rows = Rows.empty(needs.rows, dim, columns, place)
                rows.room = Room(reservation, needs.beside, needs.most, needs.threads)
                try:
                    _read(sources, columns, dim, plan, rows, work.part(0.0, share))
                    finished = finish(config, sources["input"], columns, plan, rows, work.part(share, 1.0))
                    corpus = replace(finished, place=place)
                except NoRoomError:
                    needs = needs.after(rows)
                    if not tries_left or needs.all > ledger().total():
                        raise
                else:
                    reservation.pass_to(corpus, corpus.nbytes)
                    return corpus
                finally:
                    rows.clear()  # before the reservation ends, also where an error keeps these frames
        raise AssertionError("the last try returns or raises")


def look_into(
    config: CorpusConfig,
    work: Work = UNWATCHED,
    *,
    main: Source | None = None,
    beside: Collection[str] | None = None,
) -> Shards:
    """Look at the shards of a corpus, and settle its columns. Arguments and errors: as of `read_corpus`."""
    sources = open_sources(config, work, main=main)
    columns = resolve_columns(config, sources)
    if beside is not None:
        within = [] if config.quality_within is None else [config.quality_within]
        columns = replace(columns, beside=frozenset([*beside, *within]))
    dim = feature_dim(sources[columns.feature_from], columns.feature, work.poll, columns.bits)
    return Shards(config, sources, replace(columns, notes=(used_line(sources, columns, dim), *columns.notes)), dim)


def opening_name(config: CorpusConfig) -> str:
    """What opens a corpus, as the subject of a sentence: the name of its first file, without its folders."""
    return f"Opening {Path(file_name(config.inputs[0]).rstrip('/')).name or config.inputs[0]}"


@dataclass(frozen=True)
class _Needs:
    """Memory that an opening needs, in bytes.

    Attributes:
        rows: how many are read.
        fixed: features and values of known size. beside: ids, metadata and batches that are being read, estimated.
        most: ids and metadata at most. threads: that read.
    """

    rows: int
    fixed: int
    beside: int
    most: int
    threads: int

    @property
    def all(self) -> int:
        return self.fixed + self.beside

    def after(self, rows: Rows) -> _Needs:
        """What the rest needs, by the rows that were read until memory was short."""
        assert rows.room is not None
        share = rows.rows_read / self.rows or 1.0
        spent = min(self.most, int(1.1 * rows.room.spent / share))
        working = reading_bytes(self.threads, rows.room.largest)
        return replace(self, beside=max(2 * self.beside, spent + working))


def _needs(
    sources: dict[str, Source], columns: Columns, plan: RowPlan, dim: int, place: Place, rows_given: bool
) -> _Needs:
    """What reading these rows needs.

    Raises:
        InputError: the features alone need more memory than this process may use at all.
    """
    main, total = sources["input"], ledger().total()
    n = main.rows if plan.rows is None else len(plan.rows)
    fixed = place.memory(n * 4 * dim) + n * (ROW_BYTES + 8 * (len(columns.quality) + len(sources)))
    threads = max(
        reading_threads(source, plan.rows if source is main else plan.side[name]) for name, source in sources.items()
    )
    working = reading_bytes(threads)
    if fixed + working > total:
        raise InputError(
            f"{n:,} rows of {dim:,} dimensions need {in_words(fixed + working)} of memory, but this process may use "
            f"{in_words(total)}; take a sample, such as --rows {default_row_limit(dim, None)}"
        )
    # with --rows they may fill the memory; without it a quarter, as `default_row_limit` promises
    most = total - fixed - working if rows_given else min(total - fixed - working, memory_bytes() // 4)
    each = metadata_bytes(main, columns.feature if columns.feature_from == "input" else None, dim)
    names = metadata_names(main, columns)[0]
    if columns.beside is not None or columns.text in names:
        each = min(each, ID_BYTES * (1 + len(names)))  # the texts, which are most of the rest, go to a file
    estimate = n * each
    return _Needs(n, fixed, min(estimate, most) + working, most, threads)


def _planning_bytes(sources: dict[str, Source], most_rows: int) -> int:
    """What choosing the rows takes: hashes of all ids of files that are joined, and of twice the rows of a sample."""
    rows, joined = sources["input"].rows, sum(source.rows for name, source in sources.items() if name != "input")
    return 32 * joined + (64 * min(rows, 2 * most_rows) if joined or rows > most_rows else 0)


def _fitting_rows(main: Source, columns: Columns, dim: int) -> int:
    """The most rows of these shards that are opened where nobody says how many."""
    feature = columns.feature if columns.feature_from == "input" else None
    return default_row_limit(dim, None, metadata_bytes=metadata_bytes(main, feature, dim))


@dataclass(frozen=True)
class Look:
    """What a look at the shards says of a corpus.

    Attributes:
        rows: of all shards. fitting: that are opened at most, were no number given. dim: d.
        columns: role -> name of the column, or names; None: there is none.
        used: the columns in one line (`used_line`). notes: which splits are read.
    """

    rows: int
    fitting: int
    dim: int
    columns: dict[str, str | None]
    used: str
    notes: tuple[str, ...] = ()


def look_at(config: CorpusConfig, poll: Poll = no_poll) -> Look:
    """Look at the shards of a corpus, and read none of their rows.

    Raises:
        InputError, RemoteError, Stopped: as `open_corpus`.
    """
    sources = open_sources(config, Work(poll))
    columns, main = resolve_columns(config, sources), sources["input"]
    dim = feature_dim(sources[columns.feature_from], columns.feature, poll, columns.bits)
    roles = {
        "id": columns.id,
        "features": columns.feature,
        "quality": ", ".join(column.name for column in columns.quality),
        "length": columns.length,
        "text": columns.text,
    }
    used = used_line(sources, columns, dim)
    return Look(main.rows, _fitting_rows(main, columns, dim), dim, roles, used, main.notes)


def _shares(sources: dict[str, Source], dim: int, most: int) -> tuple[float, float, float]:
    """Where of the whole, from 0 to 1, the look at the files, the choice of rows and the reading of them end.

    By the bytes that each has to decode, so that the time left follows from the share.

    Args:
        most: rows of the sample.
    """
    shards = [shard for source in sources.values() for shard in source.shards]
    everything = sum(shard.rows * max(1.0, shard.facts.row_bytes) for shard in shards)
    rows = sources["input"].rows
    # only the ids are decoded for that, but of text files all is parsed
    ids = sum(shard.rows * (ID_BYTES if shard.reader.group else max(1.0, shard.facts.row_bytes)) for shard in shards)
    ids = ids if rows > most or len(sources) > 1 else 0.0
    checks_bytes = CHECKED * 4 * dim * min(rows, most)
    looked = 0.0 if all(shard.reader.group for shard in shards) else LOOK_SHARE
    scale = (1 - looked) / (ids + everything + checks_bytes)
    return looked, looked + scale * ids, looked + scale * (ids + everything)


def used_line(sources: dict[str, Source], columns: Columns, dim: int) -> str:
    """Return what is read as one line: ids, quality, features and tokens by their columns, rows and files."""

    def kind(name: str, origin: str) -> pa.DataType:
        return value_type(sources[origin].first().schema.field(name).type)

    def of(origin: str) -> str:
        return "" if origin == "input" else f" of --{origin}"

    main = sources["input"]
    ids = "made (file:row)" if columns.made_ids else f"{columns.id} ({kind(columns.id, 'input')})"
    quality = ", ".join(
        f"{column.name}{'' if column.weight == 1 else f' x {column.weight:g}'}{of(origin)}"
        for column, origin in zip(columns.quality, columns.quality_from)
    )
    values = "bits" if columns.bits else str(inner_type(kind(columns.feature, columns.feature_from)))
    features = f"{columns.feature} ({dim:,}, {FLOATS.get(values, values)}){of(columns.feature_from)}"
    tokens = "" if columns.length is None else f" · tokens {columns.length}"
    files = f"{len(main.shards):,} file{'s' if len(main.shards) != 1 else ''}"
    return f"id {ids} · quality {quality} · features {features}{tokens} · {main.rows:,} rows of {files}"


def open_sources(
    config: CorpusConfig, work: Work = UNWATCHED, limit: int | None = None, main: Source | None = None
) -> dict[str, Source]:
    """The shards of ``--input`` and, where given, of ``--features`` and ``--scores``, by a look at each file.

    Args:
        limit: look at so many files at most. main: rows in memory in place of ``--input``.

    Raises:
        InputError: a file is missing or of another format, or there are no rows.
        Stopped: from `work.poll`.
    """
    given = {name: paths for name, paths in config.paths.items() if paths}
    return {
        name: main
        if main is not None and name == "input"
        else open_source(name, paths, work.part(place / len(given), (place + 1) / len(given)), limit, config.split)
        for place, (name, paths) in enumerate(given.items())
    }


def resolve_columns(config: CorpusConfig, sources: dict[str, Source]) -> Columns:
    """Settle the columns, and check that every shard that has rows has them.

    Raises:
        InputError: a column is missing, of the wrong type or unclear, or shards differ.
    """
    firsts = {name: source.first() for name, source in sources.items()}
    columns = resolve(
        config,
        {name: shard.schema for name, shard in firsts.items()},
        {name: shard.path for name, shard in firsts.items()},
    )
    roles = [
        *([] if columns.made_ids else [("input", columns.id, "id")]),
        (columns.feature_from, columns.feature, "feature"),
        *((origin, column.name, "quality") for origin, column in zip(columns.quality_from, columns.quality)),
    ]
    if columns.length is not None:
        roles.append(("input", columns.length, "length"))
    for name, source in sources.items():
        for shard in source.shards:
            for origin, column, role in roles:
                if shard.rows and origin == name and shard is not firsts[name]:
                    if column not in shard.schema.names:
                        raise InputError(
                            f"{shard.path} has no column {column!r} ({role}), which {firsts[name].path} "
                            "has; all shards of a corpus need the same columns "
                            f"(choose another with {OPTIONS[role]})"
                        )
                    if role != "feature" or not columns.bits:
                        require(shard.schema, column, role, shard.path)
    splits = [note for source in sources.values() for note in source.notes]
    column_id_type(sources["input"], columns.id, columns.made_ids)
    embedder = embedder_note(firsts[columns.feature_from].schema.metadata)
    notes = (*columns.notes, *splits, *([] if embedder is None else [embedder]))
    return replace(columns, notes=notes)


def feature_dim(source: Source, name: str, poll: Poll = no_poll, bits: bool = False) -> int:
    """d: the length that most of the first rows have.

    Raises:
        InputError: no row has features, or they are empty lists. RemoteError: a store does not answer.
        Stopped: from `poll`.
    """
    counts: Counter[int] = Counter()
    kind = source.first().schema.field(name).type
    if pa.types.is_fixed_size_list(kind) and kind.list_size > 1 and not bits:
        return int(kind.list_size)
    try:
        for piece in pieces(source, rows_each=1):
            for _, batch in read_piece(source, piece, [name], DIM_ROWS, poll):
                column = decode.unpacked(batch.column(0)) if bits else batch.column(0)
                counts.update(decode.feature_lengths(column).tolist())
                if counts.total() - counts[0] >= DIM_ROWS:
                    break
            if counts.total() - counts[0] >= DIM_ROWS:
                break
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {name!r} of {source.first().path} holds texts that are no lists of numbers; write lists such as "
            "[0.1, 0.2], or choose another with --feature_column"
        ) from error
    if not counts:
        raise InputError(f"column {name!r} of {source.first().path} is null in every row, so there are no features")
    dim = max(counts, key=lambda length: (length > 0, counts[length]))
    if dim == 0:
        raise InputError(f"the features in column {name!r} of {source.first().path} have no values (lists of length 0)")
    return dim


def _read(sources: dict[str, Source], columns: Columns, dim: int, plan: RowPlan, into: Rows, work: Work) -> None:
    for position, name in enumerate(sources):
        read_rows(
            row_reader(name, sources, columns, dim),
            Targets.of(plan.rows if name == "input" else plan.side[name]),
            into,
            work=work.part(position / len(sources), (position + 1) / len(sources)),
        )


def row_reader(name: str, sources: dict[str, Source], columns: Columns, dim: int) -> RowReader:
    """Return what reads the source of that name: of the columns of a corpus those that lie there."""
    main, is_main = sources["input"], name == "input"
    names, schema, _ = metadata_names(main, columns)
    return RowReader(
        sources[name],
        id=columns.id if is_main else None,
        id_type=column_id_type(main, columns.id, columns.made_ids) if is_main else None,
        made_ids=is_main and columns.made_ids,
        feature=columns.feature if columns.feature_from == name else None,
        dim=dim,
        bits=columns.bits,
        quality=[column.name for column, origin in zip(columns.quality, columns.quality_from) if origin == name],
        length=columns.length if is_main else None,
        metadata=[name for name in names if name != columns.text] if is_main else (),
        text=schema.field(columns.text) if is_main and columns.text in names else None,
    )


def finish(config: CorpusConfig, main: Source, columns: Columns, plan: RowPlan, rows: Rows, work: Work) -> Corpus:
    """Check the rows that were read and make a corpus of them, in their place: ids unique, features of unit length.

    Args:
        config: whether invalid rows are refused or dropped. main: the shards of ``--input``.
        columns: the roles. plan: which rows of `main` were read into `rows`.
        work: told how far that is; asked meanwhile.

    Raises:
        InputError: repeated ids, or rows that cannot be used. NoRoomError: memory is short.
        Stopped: from `work.poll`.
    """
    numbers = np.arange(main.rows) if plan.rows is None else plan.rows
    # for the ids in one array, and what their hashes and the fingerprint take
    ids_bytes = sum(ids.nbytes for _, ids, _ in rows.parts)
    rows.take(3 * ids_bytes)
    ids, metadata, notes = assemble(main, columns, rows.parts, lambda nbytes: spend(rows, nbytes), work.poll)
    rows.parts.clear()
    if ids_bytes >= FREED_BYTES:
        give_back()  # the ids of the parts, which are joined
    work.report(0.0, "Checking rows")
    lengths = checks.norms(rows.features, work.poll)
    judged_by = RowReader(
        main, feature=columns.feature, dim=rows.features.shape[1], quality=rows.names, length=columns.length
    )
    refused = judged_by.refused(rows, np.isfinite(rows.quality).all(axis=0), lengths)

    def place(row: int) -> str:
        return main.place(int(numbers[row]))

    keep, left_out = valid_rows(
        refused, len(ids), None if config.drop_invalid else lambda: complaint(refused, ids, place)
    )
    dropped = plan.dropped | left_out
    features = rows.features
    if refused:
        if not keep.any():
            raise InputError(
                f"every one of the {len(ids):,} rows is invalid "
                f"({', '.join(f'{count:,} with {reason}' for reason, count in dropped.items())})"
            )
        rows.take(ids.nbytes + bytes_in_memory(metadata, columns.text))
        mask = pa.array(keep)
        ids = pc.filter(ids, mask, memory_pool=pa.system_memory_pool())
        metadata = filtered(metadata, columns.text, mask)
        numbers, lengths = numbers[keep], lengths[keep]
        features = checks.compact(features, keep)
        rows.quality = rows.quality[:, keep]
        rows.rests = {index: rests[keep] for index, rests in rows.rests.items()}
        rows.lengths = None if rows.lengths is None else rows.lengths[keep]
        rows.exponents = None if rows.exponents is None else rows.exponents[keep]
    checks.check_unique(ids, place, columns.id)
    quality = weighted_sum(rows.quality, columns.quality, rows.rests, place)
    every = metadata_names(main, replace(columns, beside=None))[0] if columns.beside is not None else ()
    unread = tuple(name for name in every if not columns.reads(name))
    if config.quality_within is not None:
        quality, ranked = ranks_within(quality, metadata, config.quality_within, unread)
        notes = [*notes, ranked]
    if rows.lengths is not None:
        check_sum(rows.lengths, f"the length in column {columns.length!r}", "give counts of tokens", place)
    work.report(0.3, "Normalizing features")
    blocks = checks.normalise(features, lengths, work.poll)
    features.flags.writeable = False
    source_file, source_row = main.locate(numbers)
    # what the quality was made of: pages show it, and a rule is written in its units
    if len(columns.quality) > 1 or any(column.transform != "raw" for column in columns.quality):
        for column, values in zip(columns.quality, rows.quality):
            if column.name not in metadata.column_names:
                metadata = metadata.append_column(column.name, pa.array(values))
    provenance = Provenance(
        files=tuple(shard.path for shard in main.shards),
        total_rows=main.rows,
        rows_read=main.rows if plan.rows is None else len(plan.rows),
        columns=columns.as_dict(),
        dropped=dropped,
        notes=(*columns.notes, *plan.notes, *notes),
        config=None if isinstance(main.shards[0].facts.inside, pa.Table) else config,
        unread=unread,
        id_field=column_id_field(main, columns.id, columns.made_ids).with_type(ids.type),
    )
    digest = checks.fingerprint(ids, quality, blocks, features.shape[1], rows.lengths, rows.exponents)
    if rows.exponents is not None:
        with np.errstate(over="ignore"):
            lengths = np.minimum(np.ldexp(lengths, rows.exponents), np.finfo(np.float64).max)
    work.report(1.0, "Corpus is open")
    return Corpus(ids, quality, features, rows.lengths, metadata, source_file, source_row, digest, provenance, lengths)
