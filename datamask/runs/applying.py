"""A run on a sample carried over to all rows of its corpus: the same question, on mapped arrays, and its outcome.

What is asked is asked as `select --scratch_dir` asks it; a process of its own does it (`datamask.runs.detached`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datamask import catalogue
from datamask.config import RunConfig, SelectionConfig
from datamask.config.selection import PROBLEM, RULES
from datamask.corpus.corpus import Provenance
from datamask.corpus.opening import open_sources
from datamask.corpus.readers.shard import Shard
from datamask.corpus.shards import Source
from datamask.errors import OptionError, StoreError
from datamask.polling import Poll
from datamask.quotas import NO_VALUE
from datamask.recipes.batches import shard_batches
from datamask.runs.contents import changed, check_unchanged, shards_of
from datamask.runs.detached import start_run
from datamask.runs.folders import SCRATCH
from datamask.runs.rooted import rooted
from datamask.runs.store import Run, RunStore
from datamask.storage.address import path_of
from datamask.work.context import UNWATCHED, Work

ASKED = ("lamb", *(name for name in PROBLEM if name != "neighbors"), *RULES, "seed")
"""Settings that say what is asked of all rows too; what the command line refuses of these is refused here."""

NOTHING = NO_VALUE
"""The group of rows without a value."""


@dataclass(frozen=True)
class Group:
    """Rows of one value of a column, in the whole corpus. rows: how many can be used; kept: how many are selected."""

    name: str
    rows: int
    kept: int


def over_all_rows(config: RunConfig, root: Path) -> RunConfig:
    """The settings of a run on all rows that asks what a run on a sample of them asked, which *Solve* then solves.

    The sample stays the same, so that both runs are on one corpus wherever runs are listed.

    Args:
        root: the folder of the runs, in which the mapped files are to lie.

    Raises:
        OptionError: the run asked for rows by a rule of its own.
    """
    selection, entry = config.selection, catalogue.estimator(config.selection.estimator)
    if not entry.learns:
        raise OptionError(
            f"{entry.label} took its rows by a rule of its own, which is not what all rows would be asked for here; "
            "press Solve on the Runs page and apply what that gives"
        )
    kept = {name: getattr(selection, name) for name in ASKED}
    kept.pop("budget" if kept["budget"] is None else "select_ratio")
    options = {name: value for name, value in kept.items() if value not in (None, ())}
    asked = SelectionConfig.from_options(**options, scratch_dir=str(root / SCRATCH))
    name = f"{config.name}, all rows" if config.name else ""
    return rooted(RunConfig(config.corpus, asked, name))


def method_sentence(config: RunConfig, run: RunConfig) -> str:
    """Which way all rows are solved, beside that of the run on the sample."""
    way, of_sample = (catalogue.estimator(either.selection.estimator) for either in (config, run))
    if way == of_sample:
        return f"Method: {way.label}, as on the sample."
    return f"Method: {way.label}, in the place of {of_sample.label}, which takes many times as long on all rows."


def begin(config: RunConfig, store: RunStore) -> Run:
    """Make the run and have a process of its own do it, which outlives this one.

    Raises:
        StoreError: the runs folder cannot be written.
    """
    return start_run(config, store.root)


def newest(runs: Iterable[Run], config: RunConfig, source: Provenance, fingerprint: str) -> Run | None:
    """The newest run with these settings on these shards, whatever it is called; None: there is none.

    One that is at work counts whatever its shards held; one that has ended only if it saw the files and rows that the
    sample is of.

    Args:
        runs: newest first. source, fingerprint: of the sample.
    """
    asked = rooted(config)
    wanted = _what(asked.selection)
    seen = {"fingerprint": fingerprint, "total_rows": source.total_rows, "files": list(source.files)}
    for run in runs:
        with contextlib.suppress(StoreError):  # a damaged record says of no run what it asked
            if _what(run.config.selection) != wanted or run.config.corpus != asked.corpus:
                continue
            facts = run.facts()
            # what is not in the record yet contradicts nothing
            if run.status().active or all(facts.get(name) in (None, value) for name, value in seen.items()):
                return run
    return None


def _what(selection: SelectionConfig) -> SelectionConfig:
    """What is asked, wherever the files lie meanwhile; only that there are some counts."""
    return selection if selection.scratch_dir is None else replace(selection, scratch_dir="/")


def groups_of(
    run: Run,
    column: str,
    work: Work = UNWATCHED,
) -> list[Group]:
    """How many rows of each value of a column a finished run on all rows kept, the largest group first.

    One pass over that column of all shards.

    Raises:
        RunStateError: the run has not finished. OptionError: a shard has no such column.
        InputError: a shard is gone, damaged, new or not what it was when the run ended.
        Stopped: from `work`.
    """
    kept, unused = _places(run.selection()), _places(run.left_out())
    source = open_sources(run.config.corpus, Work(work.poll))["input"]
    _check_shards(run, source)
    check_unchanged(run, shards_of(run), work.poll)
    counts: dict[str, list[int]] = {}
    total = max(1, source.rows)
    done = 0
    for shard in source.shards:
        for first, values in _values(shard, column, work.poll):
            _count(counts, values, 0, 1)
            for places, place, sign in ((unused, 0, -1), (kept, 1, 1)):
                rows = places.get(shard.path)
                if rows is not None:
                    _count(counts, values.take(pa.array(_within(rows, first, len(values)))), place, sign)
            done += len(values)
            work.report(done / total, f"Counting {done:,} of {total:,} rows")
    groups = [Group(name, rows, chosen) for name, (rows, chosen) in counts.items() if rows]
    return sorted(groups, key=lambda group: (-group.rows, group.name))


def _check_shards(run: Run, source: Source) -> None:
    """Refuse other files, or more or fewer rows, than the run saw."""
    facts = run.facts()
    seen, now = facts.get("files", []), [str(shard.path) for shard in source.shards]
    if different := set(seen) ^ set(now):
        path = min(different)
        raise changed(path_of(path), "it is gone" if path in seen else "it was not there then")
    rows = facts.get("total_rows")
    if rows is not None and rows != source.rows:
        raise changed(path_of(now[0]), f"it and its neighbors have {source.rows:,} rows, and had {rows:,}")


def _count(counts: dict[str, list[int]], values: pa.Array, place: int, sign: int) -> None:
    """Add the rows of each value to its group's rows (place 0) or kept ones (1), or take them off."""
    for entry in pc.value_counts(values).to_pylist():
        counts.setdefault(entry["values"], [0, 0])[place] += sign * entry["counts"]


def _values(shard: Shard, column: str, poll: Poll) -> Iterator[tuple[int, pa.StringArray]]:
    """First row and values, as text, of each batch of a shard."""
    if column not in shard.schema.names:
        raise OptionError(f"column {column!r} is not in {shard.path}; choose one that all shards have")
    for first, batch in shard_batches(shard, [column], 64.0, poll):
        yield first, batch.column(0).cast(pa.string()).fill_null(NOTHING)


def _places(table: pa.Table | None) -> dict[str, np.ndarray]:
    """Row numbers by shard, rising."""
    if table is None:
        return {}
    files = table["source_file"].combine_chunks().cast(pa.string()).dictionary_encode()
    codes, rows = files.indices.to_numpy(), table["source_row"].to_numpy()
    order = np.lexsort((rows, codes))
    codes, rows = codes[order], rows[order]
    edges = np.searchsorted(codes, np.arange(len(files.dictionary) + 1))
    return {name: rows[edges[code] : edges[code + 1]] for code, name in enumerate(files.dictionary.to_pylist())}


def _within(rows: np.ndarray, first: int, count: int) -> np.ndarray:
    """Those of rising row numbers that lie in a batch, counted from its first."""
    low, high = np.searchsorted(rows, [first, first + count])
    return rows[low:high] - first
