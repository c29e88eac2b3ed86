"""Join the blocks: the ids, and the values of the whole."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from datamask.blocks.plan import Folder, Plan
from datamask.blocks.solving import named, select, top_rows
from datamask.errors import RunStateError
from datamask.evaluation.result import RunResult, SelectedSize
from datamask.measured import Anchor, Estimate, TermValues
from datamask.objectives.joint import Scale
from datamask.work.context import UNWATCHED, Work

NORMAL = 1.96
"""Standard errors on both sides of a 95 % interval."""


def join_blocks(folder: Folder, work: Work = UNWATCHED) -> tuple[pa.Table, RunResult, Plan]:
    """Return the selected rows, strongest first, with the columns of every selection, the result and the plan.

    Blocks that lack only their swaps are done here, one after another.

    Raises:
        RunStateError: blocks have no picks yet; it names them. InputError and others: as `solve_block`.
    """
    plan = folder.plan(work.poll)
    if missing := folder.missing("picks", plan):
        raise RunStateError(
            f"{named(missing)} of {plan.count} in {folder.path} {'are' if len(missing) > 1 else 'is'} missing; do each "
            f"with `datamask select --block I --into {folder.path}`"
        )
    todo = folder.missing("selected", plan)
    for place, block in enumerate(todo):
        select(folder, plan, block, work.part(place / len(todo), (place + 1) / len(todo)))
    rows = _filled(folder, plan)
    return _output(plan, rows), _result(folder, plan, rows), plan


def _tables(folder: Folder, plan: Plan, kind: str) -> pa.Table:
    tables = (folder.read(folder.of(kind, block)) for block in range(1, plan.count + 1))
    return pa.concat_tables(table for table in tables if table.num_columns)


def _filled(folder: Folder, plan: Plan) -> pa.Table:
    """The rows that all blocks select; under a budget also picks that fit into the tokens that swaps left over."""
    selected = _tables(folder, plan, "selected")
    if plan.config.selection.budget is None:
        return selected
    picks = _tables(folder, plan, "picks")
    others = picks.filter(pa.array(~np.isin(picks["row"], selected["row"])))
    rows = pa.concat_tables([selected, others])
    scores = np.array(rows["score"]) / np.array(rows["amount"])
    return rows.filter(pa.array(top_rows(plan, rows, scores, np.arange(len(rows)) < len(selected))))


def _output(plan: Plan, rows: pa.Table) -> pa.Table:
    """The columns of OUT.parquet, by falling score; under a budget per token."""
    strength = np.array(rows["score"]) / np.array(rows["amount"])
    rows = rows.take(pa.array(np.lexsort((np.array(rows["row"]), -strength))))
    columns = {
        "rank": pa.array(np.arange(1, len(rows) + 1)),
        "logit": pa.nulls(len(rows), pa.float32()),
        plan.score_column: rows["score"],
        **{name: rows[name] for name in ("quality", "marginal_quality", "marginal_diversity")},
        **{name: rows[name] for name in ("source_file", "source_row")},
    }
    columns.pop(plan.id_column, None)
    field = rows.schema.field("id").with_name(plan.id_column)
    fields = [field, *(pa.field(name, column.type) for name, column in columns.items())]
    return pa.table([rows["id"], *columns.values()], schema=pa.schema(fields))


def _result(folder: Folder, plan: Plan, rows: pa.Table) -> RunResult:
    """The values: quality is exact, diversity is the mean of drawn rows that were compared with all selected rows."""
    selection, quality_ends = plan.config.selection, plan.anchors.quality
    diversity_ends = plan.anchors.diversity["facility"]
    assert quality_ends is not None
    scores, amounts = np.array(rows["quality"]), np.array(rows["amount"])
    # tokens that are left over count as average ones
    quality = float(quality_ends.random + ((scores - quality_ends.random) * amounts).sum() / plan.most)
    near = np.zeros(0, np.float32)
    for block in range(1, plan.count + 1):
        cosines = np.array(folder.read(folder.of("near", block))["cosine"])
        near = np.maximum(near, cosines) if len(near) else cosines
    diversity, rows_drawn = float(near.mean(dtype=np.float64)), len(near)
    reach = NORMAL * float(near.std(dtype=np.float64)) * math.sqrt((1 - rows_drawn / plan.rows) / rows_drawn)
    estimate = Estimate(diversity, diversity - reach, min(1.0, diversity + reach), rows_drawn)
    exact = rows_drawn == plan.rows

    def joint(a: float, b: float) -> TermValues:
        return TermValues(a, b, selection.lamb * a + (1 - selection.lamb) * b)

    def share(raw: float, ends: Anchor) -> float:
        return Scale.calibrated(ends)(raw)

    return RunResult(
        estimator=selection.estimator,
        size=SelectedSize(
            n=plan.rows,
            selected=len(rows),
            given=0,
            budget=selection.budget,
            tokens=None if plan.tokens is None else float(np.array(rows["tokens"]).sum()),
        ),
        raw=joint(quality, diversity),
        objectives={"facility": diversity},
        values="exact" if exact else "estimate",
        estimate=None if exact else estimate,
        calibrated=joint(share(quality, quality_ends), share(diversity, diversity_ends)),
        scale=selection.scale,
        anchors=plan.anchors,
    )
