"""All rows of a corpus that is not held in memory: its shards, its columns, and what a row's numbers are made of."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from datamask.config import CorpusConfig, SelectionConfig
from datamask.corpus.checks import check_unique
from datamask.corpus.columns import Columns
from datamask.corpus.decode import joined
from datamask.corpus.opening import feature_dim, open_sources, resolve_columns, row_reader
from datamask.corpus.reading import refuse_rounded
from datamask.corpus.row_reader import RowNumbers, RowReader
from datamask.corpus.shards import Source, scan
from datamask.errors import OptionError
from datamask.polling import Poll, no_poll
from datamask.recipes.quality import FrozenQuality, total
from datamask.work.context import Work

SAMPLE_ROWS, SAMPLE_MEMBERS, LARGEST_SAMPLE = 20_000, 100, 200_000
"""Rows of the sample where nobody says how many; more, to the last, where fewer members than that were among them."""


@dataclass(frozen=True)
class WholeCorpus:
    """All rows of a corpus, in the order of its shards; see the module.

    Attributes:
        source: the shards. columns: the roles. dim: d.
        quality: the quality columns, with transforms as they are over the sample that the run was learned on.
        center: float64 ``(d,)``, subtracted from every feature before it is made unit length; None: nothing is.
        drop_invalid: leave out rows that cannot be used, and count them, instead of refusing them.
    """

    source: Source
    columns: Columns
    dim: int
    quality: tuple[FrozenQuality, ...]
    center: np.ndarray | None = None
    drop_invalid: bool = False

    @classmethod
    def open(
        cls,
        config: CorpusConfig,
        *,
        quality: Sequence[FrozenQuality] | None = None,
        center: np.ndarray | None = None,
        poll: Poll = no_poll,
    ) -> WholeCorpus:
        """Look at the shards of a corpus; no row is read.

        Args:
            config: its ``rows`` and ``seed`` are not looked at: they say which rows a sample has.
            quality, center: of the sample; None: the quality columns are plain weighted sums, nothing is subtracted.

        Raises:
            InputError: a file or column that cannot be used. OptionError: features or scores lie in shards of their
                own. RemoteError: a store does not answer. Stopped: from `poll`.
        """
        _check_unjoined(config)
        sources = open_sources(config, Work(poll))
        columns = resolve_columns(config, sources)
        source = sources["input"]
        refuse_rounded(source, [column.name for column in columns.quality])
        if quality is None:
            if ranked := [column.name for column in columns.quality if column.transform != "raw"]:
                raise ValueError(f"quality column {ranked[0]!r} is transformed by what a sample says of it")
            quality = [FrozenQuality(column.name, column.weight) for column in columns.quality]
        dim = feature_dim(source, columns.feature, poll, columns.bits)
        return cls(source, columns, dim, tuple(quality), center, config.drop_invalid)

    @functools.cached_property
    def reader(self) -> RowReader:
        """What reads its batches."""
        reader = row_reader("input", {"input": self.source}, self.columns, self.dim)
        return replace(reader, quality=[column.name for column in self.quality], metadata=())

    def read(self, rows: Sequence[int] | np.ndarray, batch: pa.RecordBatch) -> tuple[RowNumbers, np.ndarray]:
        """Return the numbers of a batch, and its quality, all columns together, float64 ``(n,)``.

        Args:
            rows: of the long table, which these are.

        Raises:
            InputError: features of another length.
        """
        numbers = self.reader.read(rows, batch)
        return numbers, total(self.quality, numbers.quality)

    @property
    def settings(self) -> str:
        """A digest of everything beside the shards by which a row's numbers are made."""
        center = None if self.center is None else np.ascontiguousarray(self.center, np.float64).tobytes().hex()
        record = [
            [column.to_dict() for column in self.quality],
            [self.columns.feature, self.columns.id, self.columns.length],
            [self.dim, center, self.drop_invalid, str(self.reader.id_type)],
        ]
        return hashlib.blake2b(json.dumps(record).encode(), digest_size=16).hexdigest()

    def ids_at(self, rows: np.ndarray, poll: Poll = no_poll) -> pa.Array:
        """The ids of a few rows of the long table, read from the shards.

        Args:
            rows: int64, rising.
        """
        parts: list[tuple[int, pa.Array]] = []

        def take(numbers: np.ndarray, batch: pa.RecordBatch) -> None:
            wanted = np.flatnonzero(np.isin(numbers, rows))
            if len(wanted):
                ids = self.reader.ids(numbers, batch).take(pa.array(wanted))
                parts.append((int(numbers[wanted[0]]), ids))  # appending is one step, whatever thread does it

        scan(self.source, [self.columns.id], take, row_bytes=64, only_rows=rows, work=Work(poll))
        return joined([ids for _, ids in sorted(parts, key=lambda part: part[0])], self.reader.id_type)

    def refuse_repeated(self, rows: np.ndarray, poll: Poll = no_poll) -> None:
        """Refuse ids that occur twice among a few rows, which have a hash in common with another each.

        Args:
            rows: int64, rising rows of the long table.

        Raises:
            InputError: an id occurs twice.
        """

        def place(row: int) -> str:
            return self.source.place(int(rows[row]))

        check_unique(self.ids_at(rows, poll), place, self.columns.id)


def is_joined(config: CorpusConfig) -> bool:
    """Whether rows are put together from several shards each, or ranked among each other."""
    return config.quality_within is not None or any(config.paths.get(name) for name in ("features", "scores"))


def _check_unjoined(config: CorpusConfig) -> None:
    """Raises OptionError: features or scores lie in shards of their own, or the quality is ranked among all rows."""
    if is_joined(config):
        raise OptionError(
            "--features, --scores and --quality_within put rows together in memory, and a pass over shards reads each "
            "once; write the columns into the shards of --input"
        )


def sample_rows(config: SelectionConfig) -> int:
    """Rows of the sample with which a run begins, where nobody says how many."""
    return min(max(SAMPLE_ROWS, math.ceil(SAMPLE_MEMBERS / config.select_ratio)), LARGEST_SAMPLE)
