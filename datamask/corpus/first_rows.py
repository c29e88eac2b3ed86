"""A first look at a corpus of any size: the first rows of some shards, read in seconds, before anything else is read.

Of up to `SHARDS` evenly spaced shards the first `ROWS` rows of the first row group that has any; behind them nothing is
decoded. It is no uniform sample: rows that come first in a shard, and rows of small shards, count more than others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from datamask.config import CorpusConfig
from datamask.corpus.columns import Columns
from datamask.corpus.corpus import Corpus
from datamask.corpus.metadata import metadata_bytes
from datamask.corpus.opening import ROW_BYTES, feature_dim, finish, opening_name, resolve_columns, row_reader
from datamask.corpus.readers import by_ending
from datamask.corpus.readers.shard import Shard, open_shard
from datamask.corpus.reading import Room, Rows, Targets, read_rows, reading_bytes
from datamask.corpus.row_plan import RowPlan
from datamask.corpus.shards import LOOK_BYTES, Source, list_files, threads_for
from datamask.corpus.threads import Tally, thread_count
from datamask.errors import InputError
from datamask.memory import memory_bytes
from datamask.parquet import SPAN_BYTES
from datamask.polling import Poll
from datamask.work.context import UNWATCHED, Work
from datamask.work.ledger import ledger

SHARDS = 64
"""Shards looked at, at most."""

WHOLE = 16
"""The same of a format whose files are read from their beginning to know what is in them: some MiB each."""

ROWS = 2_000
"""Rows of a shard, at most."""

ROOM = 512 << 20
"""Bytes that features and metadata take together, about; of longer rows fewer are read."""


@dataclass(frozen=True)
class FirstLook:
    """The first rows of some shards, as a corpus, and what it stands for.

    Attributes:
        sample: the rows that are valid; `provenance.total_rows` counts the shards looked at alone.
        shards: how many shards they are from. of_shards: how many there are.
        rows_each: the most rows read of a shard.
        left_out: a sentence for each shard that was to be looked at and could not be read.
    """

    sample: Corpus
    shards: int
    of_shards: int
    rows_each: int
    left_out: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What this is a picture of, in a sentence without its full stop."""
        if self.of_shards == 1:
            return f"First look: the first {self.sample.provenance.rows_read:,} rows, not a uniform sample"
        all_full = self.sample.provenance.rows_read == self.rows_each * self.shards
        rows = f"{self.rows_each:,} rows" if all_full else f"up to {self.rows_each:,} rows"
        return f"First look: {rows} from each of {self.shards:,} of {self.of_shards:,} shards, not a uniform sample"


def first_look(config: CorpusConfig, *, shards: int = SHARDS, rows: int = ROWS, work: Work = UNWATCHED) -> FirstLook:
    """Read the first rows of some shards.

    Rows that opening would refuse are left out and counted, as ``--drop_invalid`` does, and so are shards that cannot
    be read: what is wrong with them, opening says.

    Args:
        config: files, columns; the size of its sample does not count here.
        shards, rows: how many shards at most, and how many rows of each.
        work: told and asked from this thread, some ten times a second.

    Raises:
        InputError: nothing can be read, the columns are unclear, ids repeat, or features or scores lie in other files,
            where they are found by reading all ids. RemoteError: a store that holds files does not answer.
        NoRoomError: it needs more memory than is free.
        Stopped: from `work.poll`.
    """
    sides = [name for name, paths in config.paths.items() if paths and name != "input"]
    if sides:
        raise InputError(
            f"a first look needs features and scores next to the ids, but --{sides[0]} names other files, whose rows "
            "are found by reading all ids; write them into the shards of --input, or wait until the corpus is open"
        )
    paths = list_files(config.inputs, "input", work.poll, config.split)
    left_out: list[str] = []
    looked_at = _opened(_spread(paths, shards), left_out, work.part(0.0, 0.2))
    source = _source(looked_at)
    columns = resolve_columns(config, {"input": source})
    dim, looked_at = _dimensions(looked_at, columns, left_out, work.poll)
    source = _source(looked_at)
    room = min(ROOM, memory_bytes() // 16) // len(looked_at)
    beside = metadata_bytes(source, columns.feature, dim)
    rows_each = int(np.clip(room // (4 * dim + beside), 2, max(2, rows)))
    # of each row twice its features: those of a shard, and those of all together
    each = rows_each * (8 * dim + ROW_BYTES + beside)
    threads = threads_for((shard.path for shard in looked_at), len(looked_at)) or thread_count(len(looked_at))
    needed = each * len(looked_at) + reading_bytes(threads, SPAN_BYTES)
    with ledger().reserve(needed, f"A first look, before {opening_name(config)},", poll=work.poll) as taken:

        def room_of() -> Room:
            return Room(taken, rows_each * beside, 2 * room, 0)  # twice: it was an estimate

        kept, parts = _read(looked_at, source, columns, dim, rows_each, room_of, left_out, work.part(0.2, 0.9))
        source = _source(kept)
        numbers = np.concatenate(
            [start + np.arange(len(part.features)) for start, part in zip(source.starts, parts, strict=False)]
        )
        joined = _joined(parts)
        joined.room = Room(taken, 0, 0, 0)
        del parts
        sample = finish(
            replace(config, drop_invalid=True), source, columns, RowPlan(numbers), joined, work.part(0.9, 1.0)
        )
        taken.pass_to(sample, sample.nbytes)
    return FirstLook(sample, len(kept), len(paths), rows_each, tuple(left_out))


def _spread(paths: Sequence[str], most: int) -> list[str]:
    """At most so many of the files, evenly spaced, the first and the last among them."""
    reader = by_ending(paths[0])
    if reader is not None and not reader.group:
        most = min(most, WHOLE)
    return [paths[place] for place in np.unique(np.linspace(0, len(paths) - 1, most).round().astype(int))]


def _opened(paths: Sequence[str], left_out: list[str], work: Work) -> list[Shard]:
    """The shards that have rows; of those that cannot be opened, the sentence goes to `left_out`.

    Raises:
        InputError: there is none.
    """
    what = f"First look at {len(paths):,} file{'s' if len(paths) != 1 else ''}"
    tally = Tally(work, len(paths), lambda rows: what)

    def look(place: int) -> Shard | InputError:
        try:
            return open_shard(paths[place], tally.poll, LOOK_BYTES // max(WHOLE, len(paths)))
        except InputError as error:
            return error

    answers = tally.in_threads(look, len(paths), threads_for(paths, len(paths)))
    left_out += [str(answer) for answer in answers if isinstance(answer, InputError)]
    shards = [answer for answer in answers if isinstance(answer, Shard) and answer.rows]
    if not shards:
        raise InputError(left_out[0] if left_out else f"none of the {len(paths):,} files looked at has any rows")
    return shards


def _source(shards: Sequence[Shard]) -> Source:
    return Source("input", tuple(shards), np.cumsum([0, *(shard.rows for shard in shards)], dtype=np.int64), False)


def _dimensions(shards: list[Shard], columns: Columns, left_out: list[str], poll: Poll) -> tuple[int, list[Shard]]:
    """d, by the first shard that tells it, and the shards without those before it, which cannot be read.

    Raises:
        InputError: none tells it.
    """
    for place, shard in enumerate(shards):
        try:
            return feature_dim(_source([shard]), columns.feature, poll, columns.bits), shards[place:]
        except InputError as error:
            left_out.append(str(error))
    raise InputError(left_out[-1])


def _read(
    shards: list[Shard],
    source: Source,
    columns: Columns,
    dim: int,
    rows_each: int,
    room_of: Callable[[], Room],
    left_out: list[str],
    work: Work,
) -> tuple[list[Shard], list[Rows]]:
    """The first rows of each shard, with the shards that could be read; a sentence in `left_out` for each other.

    Raises:
        InputError: none could be read.
    """
    reader = row_reader("input", {"input": source}, columns, dim)
    tally = Tally(work, rows_each * len(shards), "First look: {:,} rows".format)

    def read(place: int) -> Rows | InputError:
        shard = shards[place]
        names = set(shard.schema.names)
        rows = np.arange(min(rows_each, next(count for count in shard.group_rows if count)))
        into = Rows.empty(len(rows), dim, columns)
        into.room = room_of()
        own = replace(
            reader,
            source=_source([shard]),
            metadata=[name for name in reader.metadata if name in names],
            text=reader.text if reader.text is not None and reader.text.name in names else None,
        )
        try:
            read_rows(own, Targets.of(rows), into, work=Work(tally.poll))
        except InputError as error:
            return error
        tally.add(len(rows))
        return into

    answers = tally.in_threads(read, len(shards), threads_for((shard.path for shard in shards), len(shards)))
    left_out += [str(answer) for answer in answers if isinstance(answer, InputError)]
    kept = [(shard, answer) for shard, answer in zip(shards, answers, strict=True) if isinstance(answer, Rows)]
    if not kept:
        raise InputError(left_out[0])
    return [shard for shard, _ in kept], [rows for _, rows in kept]


def _joined(parts: Sequence[Rows]) -> Rows:
    """The rows of several shards as those of one."""
    starts = np.cumsum([0, *(len(part.features) for part in parts)])
    spans = [slice(int(low), int(high)) for low, high in itertools.pairwise(starts)]
    n = int(starts[-1])
    joined = Rows(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.no_features for part in parts]),
        np.concatenate([part.other_length for part in parts]),
        np.concatenate([part.quality for part in parts], axis=1),
        np.concatenate([part.no_quality for part in parts]),
        None
        if parts[0].lengths is None
        else np.concatenate([part.lengths for part in parts if part.lengths is not None]),
        parts[0].names,
    )
    for span, part in zip(spans, parts, strict=True):
        if part.exponents is not None:
            if joined.exponents is None:
                joined.exponents = np.zeros(n, np.int16)
            joined.exponents[span] = part.exponents
        for index, rests in part.rests.items():
            joined.rests.setdefault(index, np.zeros(n))[span] = rests
        joined.parts += [(span.start + slot, ids, metadata) for slot, ids, metadata in part.parts]
    return joined
