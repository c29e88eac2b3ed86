"""Solve one block: greedy to twice its share, and when all blocks have their picks, swaps at its final size.

The engine is that of every run (`datamask.learning.facility_solver`), with quality and coverage weighed as in the whole
corpus. A block knows its own rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from datamask.blocks.plan import Folder, Plan, amounts_of
from datamask.config import CorpusConfig
from datamask.corpus import row_hash
from datamask.corpus.corpus import Corpus
from datamask.corpus.opening import read_corpus
from datamask.errors import OptionError
from datamask.evaluation.pool import Pool
from datamask.learning.device import resolve
from datamask.learning.facility_solver import improved, picks_in_order
from datamask.learning.limits import Limits
from datamask.learning.masks import tie_order
from datamask.learning.problem import Problem
from datamask.measured import Anchor
from datamask.objectives.joint import Joint, Scale, Term
from datamask.options import QualityColumn
from datamask.quotas import Groups, amount_by_group
from datamask.tables import with_fields
from datamask.work.context import UNWATCHED, Work

PICKED = 2.0
"""Greedy picks so many times the fair share of a block, for blocks that deserve more than it."""

MEMBERS_AT_ONCE = 4096
"""Selected rows that the drawn rows are compared with at a time."""


def solve_block(folder: Folder, block: int, work: Work = UNWATCHED) -> str:
    """Do the next step of a block, unless it is done; return a sentence about it.

    Args:
        block: from 1.

    Raises:
        OptionError: there is no such block. InputError and others: as `Folder.plan` and from opening.
    """
    plan = folder.plan(work.poll)
    if not 1 <= block <= plan.count:
        raise OptionError(f"--block must be from 1 to {plan.count}, the blocks in {folder.path}, got {block}")
    if not folder.of("picks", block).is_file():
        pick(folder, plan, block, work)
        return f"block {block} of {plan.count} has its picks"
    if missing := folder.missing("picks", plan):
        return f"block {block} has its picks already; {named(missing)} of {plan.count} are missing"
    if folder.of("selected", block).is_file():
        return f"block {block} of {plan.count} is done already"
    select(folder, plan, block, work)
    return f"block {block} of {plan.count} is done"


def named(blocks: Sequence[int]) -> str:
    """Blocks in words: ``block 3`` or ``blocks 3, 4 and 9``."""
    *first, last = map(str, blocks)
    return f"blocks {', '.join(first)} and {last}" if first else f"block {last}"


def pick(folder: Folder, plan: Plan, block: int, work: Work = UNWATCHED) -> None:
    """Write the picks of greedy in a block, with their gains."""
    if not any(plan.blocks[block - 1]):
        folder.write(folder.of("picks", block), pa.table({}))
        return
    opened = _Block.open(folder, plan, block, work)
    amounts = np.array(plan.blocks[block - 1])
    fair = amounts * np.array(plan.weights)
    # every group has its fair share among the picks, so that all blocks together can obey the quotas
    if opened.lengths is None:
        fair = np.ceil(fair - 1e-9)
        most = float(min(np.ceil(PICKED * fair.sum()), len(opened.rows)))
    else:
        most = min(PICKED * float(fair.sum()) + float(opened.amounts.max()), float(amounts.sum()))
    problem = opened.problem(most, fair, amounts)
    rows, covered = picks_in_order(problem, work.poll)
    quality = opened.shares_of_quality(rows)
    folder.write(folder.of("picks", block), opened.table(rows, quality, covered * opened.diversity.slope / plan.rows))


def select(folder: Folder, plan: Plan, block: int, work: Work = UNWATCHED) -> None:
    """Write the rows that a block selects after swaps at its final size, and how near they are to the drawn rows."""
    drawn = np.array(folder.read(folder.drawn)["features"].combine_chunks().flatten()).reshape(-1, plan.dim)
    member = np.isin(folder.read(folder.of("rows", block), ["row"])["row"], cut_rows(folder, plan))
    if not member.any():
        folder.write(folder.of("near", block), pa.table({"cosine": np.zeros(len(drawn), np.float32)}))
        folder.write(folder.of("selected", block), pa.table({}))
        return
    opened = _Block.open(folder, plan, block, work)
    held = amount_by_group(opened.group, opened.lengths, member, len(plan.names))
    low = held
    if opened.lengths is not None:  # tokens that swaps leave over are spent in the join
        longest = np.zeros(len(held))
        np.maximum.at(longest, opened.group, opened.lengths)
        low = np.maximum(held - longest, 0.0)
    problem, mask = opened.problem(float(held.sum()), low, held), torch.from_numpy(member).to(opened.pool.device)
    if not member.all():
        mask = improved(problem, mask, work.poll)
    selected = np.flatnonzero(mask.cpu().numpy())
    quality, diversity = (part.cpu().numpy()[selected] for part in problem.joint.final_marginals(mask, work.poll))
    share = len(member) / plan.rows
    folder.write(folder.of("near", block), pa.table({"cosine": _nearest(drawn, opened.corpus, selected)}))
    folder.write(folder.of("selected", block), opened.table(selected, quality * share, diversity * share))


def cut_rows(folder: Folder, plan: Plan) -> np.ndarray:
    """The rows, int64, rising, that the size leaves of the picks of all blocks.

    Cells compare gains. Random blocks are cut at equal depth, so that each keeps its share.
    """
    if folder.cut.is_file():
        return np.array(folder.read(folder.cut)["row"])
    tables = [folder.read(folder.of("picks", block)) for block in range(1, plan.count + 1)]
    depths = [
        np.cumsum(table["amount"]) / sum(amounts) for table, amounts in zip(tables, plan.blocks) if table.num_columns
    ]
    picks = pa.concat_tables(table for table in tables if table.num_columns)
    scores = -np.concatenate(depths) if plan.by == "random" else np.array(picks["score"]) / np.array(picks["amount"])
    rows = np.sort(np.array(picks["row"])[top_rows(plan, picks, scores, np.zeros(len(picks), bool))])
    folder.write(folder.cut, pa.table({"row": rows}))
    return rows


def top_rows(plan: Plan, table: pa.Table, scores: np.ndarray, pinned: np.ndarray) -> np.ndarray:
    """The rows of a table with the highest scores that the size and the quotas leave, bool ``(n,)``.

    Args:
        pinned: bool ``(n,)``, rows that stay.
    """
    lengths = None if plan.config.selection.budget is None else np.array(table["amount"])
    limits = Limits(plan.most, pinned, lengths, plan.groups(np.array(table["group"])))
    ties = tie_order(row_hash(table["id"], plan.config.selection.seed))
    return limits.top(torch.from_numpy(scores), ties).numpy()


def _nearest(drawn: np.ndarray, corpus: Corpus, rows: np.ndarray) -> np.ndarray:
    """The cosine of each drawn row with the nearest of these rows, float32, at least 0."""
    nearest = np.zeros(len(drawn), np.float32)
    for low in range(0, len(rows), MEMBERS_AT_ONCE):
        np.maximum(nearest, (drawn @ corpus.features[rows[low : low + MEMBERS_AT_ONCE]].T).max(axis=1), out=nearest)
    return nearest


@dataclass(frozen=True)
class _Block:
    """A block that is open.

    Attributes:
        plan: of the whole. pool: its rows, bound to the objective.
        rows: int64 ``(n,)``, their numbers over all shards.
        group: int64 ``(n,)``, by quota. amounts: float64 ``(n,)``, 1 or tokens.
    """

    plan: Plan
    pool: Pool
    rows: np.ndarray
    group: np.ndarray
    amounts: np.ndarray

    @classmethod
    def open(cls, folder: Folder, plan: Plan, block: int, work: Work) -> _Block:
        """Open the rows of a block that has some."""
        path, selection = folder.of("rows", block), plan.config.selection
        config = CorpusConfig(
            (str(path),),
            id_column="id",
            feature_column="features",
            quality_columns=(QualityColumn("quality"),),
            length_column=None if plan.tokens is None else "tokens",
        )
        into = None if selection.scratch_dir is None else Path(selection.scratch_dir)
        corpus = read_corpus(config, work.part(0.0, 0.2), row_limit=plan.rows, into=into)
        pool = Pool.under(selection, corpus, resolve(selection.device), folder.cache, work.part(0.2, 1.0))
        rows, group = (np.array(corpus.metadata[name]) for name in ("row", "group"))
        return cls(plan, pool, rows, group, amounts_of(selection, corpus))

    @property
    def corpus(self) -> Corpus:
        return self.pool.corpus

    @property
    def lengths(self) -> np.ndarray | None:
        """Tokens, under a budget."""
        return None if self.plan.config.selection.budget is None else self.amounts

    @property
    def quality(self) -> Scale:
        return self._scale(self.plan.anchors.quality)

    @property
    def diversity(self) -> Scale:
        return self._scale(self.plan.anchors.diversity["facility"])

    def _scale(self, anchor: Anchor | None) -> Scale:
        assert anchor is not None
        return Scale.calibrated(anchor) if self.plan.config.selection.scale == "calibrated" else Scale()

    def problem(self, most: float, low: np.ndarray, high: np.ndarray) -> Problem:
        """The problem of the block, with quality and coverage weighed as in the whole corpus.

        Args:
            most: rows or tokens to select. low, high: float64 ``(C,)``, of each group, where there are quotas.
        """
        plan, pool, selection, n = self.plan, self.pool, self.plan.config.selection, len(self.rows)
        quotas = Groups(self.group, low, high, plan.names) if selection.quotas else None
        # the lists are for the fair size in both steps: one graph
        function = pool.function("facility", max(1, round(n * plan.size / plan.rows)))
        quality = Scale(self.quality.zero, self.quality.slope * (most / plan.most) / (n / plan.rows))
        term, budget = Term("facility", 1.0, function, self.diversity), None if selection.budget is None else most
        joint = Joint(pool.quality_under(budget), (term,), selection.lamb, quality)
        size = int(most) if budget is None else max(1, round(n * most / self.amounts.sum()))
        limits = Limits(most, np.zeros(n, bool), self.lengths, quotas)
        rows = torch.arange(n, device=pool.device)
        return Problem(joint, size, rows, pool.ties(selection.seed), pool.features, limits)

    def shares_of_quality(self, rows: np.ndarray) -> np.ndarray:
        """What rows add to the quality of the whole, on the scale of the settings, float64 ``(r,)``."""
        shares: np.ndarray = self.quality.slope * self.corpus.quality[rows] * self.amounts[rows] / self.plan.most
        return shares

    def table(self, rows: np.ndarray, quality: np.ndarray, diversity: np.ndarray) -> pa.Table:
        """The table of some rows. quality, diversity: float64 ``(r,)``, what each adds to the whole."""
        corpus, lamb = self.corpus, self.plan.config.selection.lamb
        columns = {
            "id": corpus.ids.take(pa.array(rows)),
            "row": self.rows[rows],
            "group": self.group[rows],
            "amount": self.amounts[rows],
            "tokens": np.full(len(rows), np.nan) if corpus.lengths is None else corpus.lengths[rows],
            "score": lamb * quality + (1 - lamb) * diversity,
            "quality": corpus.quality[rows],
            "marginal_quality": quality,
            "marginal_diversity": diversity,
            **{name: corpus.metadata[name].take(pa.array(rows)) for name in ("source_file", "source_row")},
        }
        return with_fields(pa.table(columns), corpus.id_field.with_name("id"))
