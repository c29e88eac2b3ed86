"""Cut the rows of a corpus into blocks, a file each: one pass over the shards, a part of them in memory at a time.

A sample gives the ends of the scales and the centers of cells. A block is a group of neighboring cells: all cells are
halved across their widest direction until there are as many groups as blocks.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from datamask.blocks.plan import Folder, Plan, amounts_of, group_of, stamps_of
from datamask.config import RunConfig, SelectionConfig
from datamask.corpus.centres import Centres, cell_count
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import Shards, look_into, read_corpus
from datamask.corpus.rounded_rows import rounded
from datamask.corpus.row_plan import RowPlan
from datamask.corpus.sampling import default_row_limit, uniform_rows
from datamask.errors import OptionError
from datamask.evaluation.anchors import diversity_anchor, quality_anchor
from datamask.evaluation.pool import Pool
from datamask.files import sweep
from datamask.learning.device import resolve
from datamask.learning.limits import Limits
from datamask.measured import Anchors
from datamask.objectives.estimate import ESTIMATE_ROWS
from datamask.quotas import SLACK, Groups, quota_limits, unit_and_option
from datamask.tables import as_found, score_name, with_fields
from datamask.work.context import UNWATCHED, Work

SAMPLE_ROWS = 200_000
"""Rows of the sample, at most."""

CELLS_OF_A_BLOCK = 16

BLOCKED_BY, DRAWN_BY = (1 << 62) - 13, (1 << 62) - 14
"""Seeds of the hashes that make random blocks, and that draw the rows that diversity is estimated by."""


def cut_blocks(config: RunConfig, count: int, by: str, folder: Folder, work: Work = UNWATCHED) -> Plan:
    """Write the rows of each block and the plan of a selection; return the plan.

    Args:
        config: with absolute paths. count: N. by: ``cells`` or ``random``.

    Raises:
        OptionError: the folder has other blocks, there are more blocks than rows, or no selection obeys the quotas.
        InputError, RemoteError, NoRoomError, StoreError, Stopped: as they come.
    """
    if (folder.path / "plan.json").exists():
        plan = folder.plan(work.poll)
        if (plan.config, plan.by, plan.count) == (config, by, count):
            return plan
        raise OptionError(f"--into {folder.path} holds the blocks of other settings; name an empty folder")
    if any(folder.path.glob("picks-*.parquet")):
        raise OptionError(f"--into {folder.path} holds picks of other blocks; name an empty folder")
    sweep(folder.path)  # what a killed command left; later other machines write here, whose locks may not be seen
    selection, stamps = config.selection, stamps_of(config.corpus, work.poll)
    sampling = replace(config.corpus, rows=min(config.corpus.rows or SAMPLE_ROWS, SAMPLE_ROWS))
    sample = read_corpus(sampling, work.part(0.0, 0.1), beside=selection.beside)
    if count >= len(sample):
        raise OptionError(f"--blocks must be below {len(sample):,}, the number of rows, got {count:,}")
    cells = _Cells.learn(sample, count, work.part(0.1, 0.2)) if by == "cells" else None

    def blocks_of(corpus: Corpus) -> np.ndarray:
        """The block of each row, int64 ``(n,)``."""
        if cells is not None:
            return cells.blocks_of(corpus, Work(work.poll))
        return (corpus.hashes(BLOCKED_BY) % np.uint64(count)).astype(np.int64)

    shards = look_into(config.corpus, Work(work.poll), beside=selection.beside)
    amounts, rows, tokens = np.zeros((count, len(selection.quotas) + 1)), 0, 0.0
    with contextlib.ExitStack() as files:
        schema = _table(selection, sample, np.zeros(0, np.int64), 0).schema
        sinks = [files.enter_context(folder.writing(block, schema)) for block in range(1, count + 1)]
        for corpus in _parts(shards, work.part(0.2, 0.8)):
            blocks = blocks_of(corpus)
            order = np.argsort(blocks, kind="stable")
            edges = np.searchsorted(blocks[order], np.arange(count + 1))
            table = _table(selection, corpus, order, rows)
            np.add.at(amounts, (blocks[order], np.array(table["group"])), amounts_of(selection, corpus)[order])
            for sink, (low, high) in zip(sinks, itertools.pairwise(edges)):
                if high > low:
                    sink.write_table(table.slice(low, high - low))
            rows += len(corpus)
            tokens += 0.0 if corpus.lengths is None else float(corpus.lengths.sum())
    size = selection.size(rows, tokens or None)
    groups, weights = _fair_weights(selection, amounts.sum(axis=0), float(selection.budget or size))
    anchors = _anchors(selection, sample, size / rows, tokens, folder, work.part(0.8, 1.0))
    drawn = uniform_rows(sample.hashes(), ESTIMATE_ROWS, DRAWN_BY)
    features = pa.FixedSizeListArray.from_arrays(pa.array(sample.features[drawn].ravel()), sample.dim)
    folder.write(folder.drawn, pa.table({"features": features}))
    limits = {name: tuple(values.tolist()) for name, values in (("low", groups.low), ("high", groups.high))}
    plan = Plan(
        config=config,
        by=by,
        stamps=stamps,
        rows=rows,
        size=size,
        tokens=tokens or None,
        dim=sample.dim,
        sampled=len(sample),
        anchors=anchors,
        names=groups.names,
        **limits,
        weights=tuple(weights.tolist()),
        blocks=tuple(map(tuple, amounts.tolist())),
        id_column=sample.id_field.name,
        score_column=score_name(sample.input_columns),
    )
    folder.write_plan(plan)
    return plan


def _parts(shards: Shards, work: Work) -> Iterator[Corpus]:
    """Open all valid rows, a part at a time."""
    plan, main = shards.plan(work.part(0.0, 0.1)), shards.sources["input"]
    count = main.rows if plan.rows is None else len(plan.rows)
    # an eighth of the memory, and as much for the rows in the order of blocks
    step, work = max(1, default_row_limit(shards.dim, None) // 2), work.part(0.1, 1.0)
    for low in range(0, count, step):
        high = min(low + step, count)
        rows = np.arange(low, high) if plan.rows is None else plan.rows[low:high]
        side = {name: rows if partner is None else partner[low:high] for name, partner in plan.side.items()}
        yield shards.read(RowPlan(rows, dict(side)), work.part(low / count, high / count))


def _table(config: SelectionConfig, corpus: Corpus, order: np.ndarray, first: int) -> pa.Table:
    """Rows of a part as the files of blocks hold them.

    Args:
        order: int64, which rows. first: rows of the parts before.
    """
    files = pa.array(list(corpus.provenance.files), pa.string())
    features = pa.FixedSizeListArray.from_arrays(pa.array(corpus.features[order].ravel()), corpus.dim)
    columns = {
        "id": corpus.ids.take(pa.array(order)),
        "features": features,
        "quality": corpus.quality[order],
        **({} if corpus.lengths is None else {"tokens": corpus.lengths[order]}),
        "group": group_of(config, corpus)[order],
        "row": first + order,
        "source_file": files.take(pa.array(corpus.source_file[order])),
        "source_row": corpus.source_row[order],
    }
    return as_found(with_fields(pa.table(columns), corpus.id_field.with_name("id")))


@dataclass(frozen=True)
class _Cells:
    """Centers of cells, and the block of each cell, int64 ``(C,)``."""

    centres: Centres
    block: np.ndarray

    @classmethod
    def learn(cls, sample: Corpus, count: int, work: Work) -> _Cells:
        rows = rounded(sample.features)
        cells = min(max(cell_count(len(rows)), CELLS_OF_A_BLOCK * count), len(rows))
        centres = Centres.learn(rows.__getitem__, sample.hashes(), cells, work)
        held = np.bincount(centres.nearest_cells(rows, 1, work)[:, 0], minlength=len(centres))
        return cls(centres, halved(centres.points.astype(np.float64), held.astype(np.float64), count))

    def blocks_of(self, corpus: Corpus, work: Work) -> np.ndarray:
        blocks: np.ndarray = self.block[self.centres.nearest_cells(rounded(corpus.features), 1, work)[:, 0]]
        return blocks


def halved(points: np.ndarray, held: np.ndarray, count: int) -> np.ndarray:
    """Put cells into so many groups of neighbors that hold about equally many rows, int64 ``(C,)``.

    Args:
        points: float64 ``(C, d)``, the centers. held: float64 ``(C,)``, rows of each. count: at most C.
    """
    group = np.zeros(len(points), np.int64)
    stack = [(np.arange(len(points)), 0, count)]
    while stack:
        cells, first, groups = stack.pop()
        if groups == 1:
            group[cells] = first
            continue
        weights = held[cells] + 1.0 / len(points)  # a cell without rows has a place too
        centred = points[cells] - np.average(points[cells], axis=0, weights=weights)
        axis = np.linalg.eigh((centred * weights[:, None]).T @ centred)[1][:, -1]
        order = np.argsort(centred @ axis, kind="stable")
        cells, weights = cells[order], weights[order]
        lower = groups // 2
        at = int(np.abs(np.cumsum(weights) - weights.sum() * lower / groups).argmin()) + 1
        at = min(max(at, lower), len(cells) - (groups - lower))  # a group has a cell at least
        stack += [(cells[:at], first, lower), (cells[at:], first + lower, groups - lower)]
    return group


def _fair_weights(config: SelectionConfig, amounts: np.ndarray, most: float) -> tuple[Groups, np.ndarray]:
    """The quotas, and the share of each group's rows or tokens that a fair selection has, float64 ``(C,)``.

    Args:
        amounts: float64 ``(C,)``, rows or tokens of all groups. most: to select.

    Raises:
        OptionError: no selection obeys the quotas, or all rows are to be selected.
    """
    unit, option = unit_and_option(None if config.budget is None else amounts)
    if most >= amounts.sum():
        raise OptionError(f"{option} selects all {amounts.sum():,.0f} {unit}; lower it")
    no_rows = np.zeros(0, np.int64)
    tokens = None if config.budget is None else no_rows.astype(float)
    low, high, names = quota_limits(config.quotas, no_rows, most, no_rows.astype(bool), tokens)
    least, greatest = low.sum(), np.minimum(high, amounts).sum()
    if (low > amounts).any() or not least <= most <= greatest * (1 + SLACK):
        there = ", ".join(f"{amount:,.0f} {unit} of {name}" for name, amount in zip(names, amounts))
        raise OptionError(f"--quota: {there} allow no selection of {most:,.0f}; loosen a quota or change {option}")
    # of each group one row that holds all of it
    groups = Groups(np.arange(len(names)), low.astype(float), high.astype(float), names)
    return groups, Limits(most, np.zeros(len(names), bool), amounts, groups).even()


def _anchors(
    config: SelectionConfig, sample: Corpus, ratio: float, tokens: float, folder: Folder, work: Work
) -> Anchors:
    """The ends of the scales, by the sample."""
    pool = Pool.under(config, sample, resolve(config.device), folder.cache, work)
    size = min(max(1, round(ratio * len(sample))), len(sample) - 1)
    budget = None if config.budget is None or pool.tokens is None else config.budget * pool.tokens / tokens
    diversity = diversity_anchor(pool, "facility", size, work.poll, budget)
    return Anchors(quality_anchor(pool, size, budget), {"facility": diversity})
