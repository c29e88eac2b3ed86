"""The folder of a selection by blocks: `plan.json`, written last, and tables in parquet.

| file | rows |
|---|---|
| ``drawn.parquet`` | features of random rows, by which the value of the whole is estimated |
| ``rows-0001.parquet`` | rows of block 1: a shard with id, features, quality and tokens, and where each row came from |
| ``picks-0001.parquet`` | what greedy picked, strongest first, with the gain of each pick |
| ``cut.parquet`` | the picks of all blocks that the size leaves |
| ``near-0001.parquet`` | cosine of each drawn row with the nearest row that block 1 selects |
| ``selected-0001.parquet`` | rows that block 1 selects; written last |
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.remote_listing import file_stamps
from datamask.corpus.shards import list_files
from datamask.errors import InputError, OptionError, RemoteError, VersionError
from datamask.evaluation.token_lengths import token_lengths
from datamask.files import FORMAT, replacing, write_text
from datamask.measured import Anchors
from datamask.parquet import read_table, refusing
from datamask.polling import Poll, no_poll
from datamask.quotas import Groups, quota_groups


@dataclass(frozen=True)
class Plan:
    """Everything that decides which ids are selected.

    Attributes:
        config: corpus and selection. by: ``cells`` or ``random``.
        stamps: size and time of every input file, by its path.
        rows: n, valid rows of all shards. size: S; under a budget a guide. tokens: of all rows; None: unknown.
        dim: d. sampled: rows of the sample that the anchors are of.
        anchors: ends of the scales.
        names, low, high: groups of the quotas; without quotas, one.
        weights: share of the rows, or tokens, of each group that a fair selection under the quotas has.
        blocks: rows, or tokens, of each group, by block.
        id_column, score_column: names of two columns of the output.
    """

    config: RunConfig
    by: str
    stamps: Mapping[str, tuple[int, ...]]
    rows: int
    size: int
    tokens: float | None
    dim: int
    sampled: int
    anchors: Anchors
    names: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    weights: tuple[float, ...]
    blocks: tuple[tuple[float, ...], ...]
    id_column: str
    score_column: str

    @property
    def count(self) -> int:
        """N, the number of blocks."""
        return len(self.blocks)

    @property
    def most(self) -> float:
        """Rows or tokens to select."""
        budget = self.config.selection.budget
        return float(self.size) if budget is None else budget

    def groups(self, group: np.ndarray) -> Groups | None:
        """The quotas over rows of these groups; None: there are none."""
        if not self.config.selection.quotas:
            return None
        return Groups(group, np.array(self.low), np.array(self.high), self.names)

    def to_dict(self) -> dict[str, Any]:
        given = {"config": self.config.to_dict(), "anchors": self.anchors.to_dict()}
        others = {name: value for name, value in vars(self).items() if name not in given}
        return {"format": FORMAT, **given, **others}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        held = dict(data)
        held.pop("format")
        tuples = {name: tuple(held[name]) for name in ("names", "low", "high", "weights")}
        return cls(
            **{
                **held,
                **tuples,
                "config": RunConfig.from_dict(held["config"]),
                "anchors": Anchors.from_dict(held["anchors"]),
                "stamps": {path: tuple(stamp) for path, stamp in held["stamps"].items()},
                "blocks": tuple(map(tuple, held["blocks"])),
            }
        )


@dataclass(frozen=True)
class Folder:
    """The files. `block` counts from 1."""

    path: Path

    @property
    def cut(self) -> Path:
        return self.path / "cut.parquet"

    @property
    def drawn(self) -> Path:
        return self.path / "drawn.parquet"

    @property
    def cache(self) -> Path:
        """Where neighbor graphs of blocks are kept between their two steps."""
        return self.path / "cache"

    def of(self, kind: str, block: int) -> Path:
        """The file of a block. kind: ``rows``, ``picks``, ``near`` or ``selected``."""
        return self.path / f"{kind}-{block:04d}.parquet"

    def missing(self, kind: str, plan: Plan) -> list[int]:
        """The blocks without such a file."""
        return [block for block in range(1, plan.count + 1) if not self.of(kind, block).is_file()]

    def write(self, path: Path, table: pa.Table) -> None:
        """Write a table whole or not at all. Raises StoreError."""
        with replacing(path) as part:
            pq.write_table(table, part)

    @contextlib.contextmanager
    def writing(self, block: int, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
        """Give what takes the rows of a block, a row group at a time. Raises StoreError."""
        with replacing(self.of("rows", block)) as part, pq.ParquetWriter(part, schema) as sink:
            yield sink

    def read(self, path: Path, columns: Sequence[str] | None = None) -> pa.Table:
        """Read a table, or some columns of it.

        Raises:
            InputError: it is missing or damaged.
        """
        with refusing(path, "remove it and give its block again"):
            return read_table(path, columns)

    def write_plan(self, plan: Plan) -> None:
        write_text(self.path / "plan.json", json.dumps(plan.to_dict(), indent=1))

    def plan(self, poll: Poll = no_poll) -> Plan:
        """Read the plan, and make sure that the inputs are those of the plan.

        Raises:
            OptionError: there is no plan. InputError: it cannot be read, or an input has changed since.
        """
        path = self.path / "plan.json"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise OptionError(
                f"{self.path} has no plan.json; cut the blocks first: `datamask select INPUT... --blocks N --into "
                f"{self.path}`"
            ) from None
        except ValueError as error:
            raise InputError(f"{path} is no JSON; cut the blocks again into an empty folder") from error
        try:
            if data.get("format") != FORMAT:
                raise VersionError
            plan = Plan.from_dict(data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} is damaged or of another version of datamask; cut the blocks again into an empty folder"
            ) from error
        try:
            now = stamps_of(plan.config.corpus, poll)
        except (InputError, RemoteError):  # a machine without the inputs: blocks have files of their own
            return plan
        changed = sorted(name for name in {*now, *plan.stamps} if now.get(name) != plan.stamps.get(name))
        if changed:
            raise InputError(
                f"{changed[0]} has changed since the blocks in {self.path} were cut; cut them into an empty folder"
            )
        return plan


def stamps_of(config: CorpusConfig, poll: Poll = no_poll) -> dict[str, tuple[int, ...]]:
    """Size and time of every input file, by its path.

    Raises:
        InputError: a file cannot be found or read.
    """
    stamps = {}
    for option, paths in config.paths.items():
        files = list_files(paths, option, poll, config.split)
        for path, stamp in zip(files, file_stamps(files, poll), strict=True):
            if isinstance(stamp, OSError):
                raise InputError(f"{path} cannot be read: {stamp.strerror or stamp}") from stamp
            stamps[str(path)] = stamp[:2]
    return stamps


def group_of(config: SelectionConfig, corpus: Corpus) -> np.ndarray:
    """The quota group of each row, int64 ``(n,)``.

    Raises:
        OptionError: the corpus has no such column.
    """
    return quota_groups(config.quotas, corpus, 1.0, np.zeros(len(corpus), bool)).group


def amounts_of(config: SelectionConfig, corpus: Corpus) -> np.ndarray:
    """What each row counts for, float64 ``(n,)``: 1, or under a budget its tokens.

    Raises:
        InputError: there are no tokens. OptionError: a row has none.
    """
    if config.budget is None:
        return np.ones(len(corpus))
    lengths = token_lengths(corpus)
    if len(empty := np.flatnonzero(lengths <= 0)):
        raise OptionError(
            f"--budget: {len(empty):,} rows have no tokens, such as {corpus.ids[int(empty[0])]}; take them out of the "
            "shards, or use --select_ratio"
        )
    return lengths
