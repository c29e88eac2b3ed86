"""A sweep: many runs of one corpus that share one pool.

Each point is a run like any other in the runs folder, with the facts ``sweep`` (an id that follows from the settings)
and ``swept`` (what is varied in it). The corpus is opened once, and its graph, anchors and bound objectives serve all
points. Repeating a sweep goes on with it: points that are done are read, one that was stopped is resumed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from datamask.config import RunConfig
from datamask.errors import DatamaskError
from datamask.evaluation.pool import Pool
from datamask.evaluation.result import NO_RESULT
from datamask.runs import stages
from datamask.runs.attempt import Outcome, attempt, fault_sentence, one_sentence
from datamask.runs.formats import to_plain
from datamask.runs.mapping import open_selected_from
from datamask.runs.status import RunStatus
from datamask.runs.store import Run, RunStore
from datamask.runs.varying import Plan, Point
from datamask.tables import write_table
from datamask.work.context import UNWATCHED, Work


@dataclass(frozen=True)
class Done:
    """A point and the run that has it.

    Attributes:
        status: the run's, read once: all that is told about the point agrees.
        error: why it failed, None where it did not. fault: the exception, where the program is to blame.
    """

    point: Point
    run: Run
    status: RunStatus
    error: str | None = None
    fault: Exception | None = None

    def row(self) -> dict[str, Any]:
        """The point as a line of the sweep's table: calibrated values, raw ones, the bound, and the effort."""
        result = self.status.result or NO_RESULT
        state = "failed" if self.error is not None else self.status.state
        return {
            **dict(self.point.swept),
            "run_id": self.run.id,
            "state": state,
            **result.calibrated.to_dict(),
            **{f"raw_{term}": value for term, value in result.raw.to_dict().items()},
            "upper_bound": result.certificate.upper_bound,
            "gap": result.certificate.gap,
            "seconds": result.effort.seconds,
            "steps": result.effort.steps,
            "error": self.error,
        }


def sweep(
    store: RunStore,
    plan: Plan,
    work: Work = UNWATCHED,
    *,
    reuse: bool = False,
    turn: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> list[Done]:
    """Do all points that are not done yet, one after the other.

    A point that fails (a ratio that selects all rows, say) is recorded and the others go on; a fault of the program
    ends the sweep with it as the last entry.

    Args:
        reuse: take a finished run with a point's very settings on this corpus for it, whatever it was made for.
        turn: held while a point is computed (`datamask.work.lanes.turn`).

    Returns:
        A `Done` per point, in the plan's order; fewer where it was stopped.

    Raises:
        InputError: the corpus cannot be opened. Stopped: before the corpus was open.
    """
    reached = 0.0

    def forward(share: float, what: str) -> None:
        """The share never falls: what the pool prepares for a point is reported beside the point itself."""
        nonlocal reached
        reached = max(reached, share)
        work.report(reached, what)

    pool = open_pool(store, plan, Work(work.poll, forward))
    stored = known_runs(store, plan, pool.corpus.fingerprint, reuse)
    done: list[Done] = []
    ends: dict[str, str] = {}
    for place, point in enumerate(plan.points):
        if work.stopping():
            break
        label = f"{f'{plan.name},' if plan.name else 'point'} {place + 1} of {len(plan.points)}"
        run = stored.get(point.selection)
        line = _line(point)
        if run is None:
            run = _fresh(store, plan, point, ends.get(line))
        status = run.status()
        if status.state == "done":
            point_done = Done(point, run, status)
        else:

            def report(share: float, what: str, place: int = place, label: str = label) -> None:
                forward(0.05 + 0.95 * (place + share) / len(plan.points), f"{label}: {what}")

            with run.queued(), turn():
                outcome = attempt(run, replace(work, report=report), pool=pool)
            point_done = Done(
                point, run, outcome.status, _why_failed(outcome), outcome.error if outcome.faulty else None
            )
        done.append(point_done)
        if point_done.fault is not None:
            break
        if point_done.status.state == "done":
            ends[line] = run.id
    forward(1.0, "finishing")
    return done


def _why_failed(outcome: Outcome) -> str | None:
    """A sentence; None where the attempt did not fail. One that ended well may have a record that cannot be read."""
    if outcome.error is not None:
        return (fault_sentence if outcome.faulty else one_sentence)(outcome.error)
    return outcome.status.error if outcome.status.state == "failed" else None


def open_pool(store: RunStore, plan: Plan, work: Work) -> Pool:
    """The corpus of a plan on its device; opening it is the first twentieth of the work."""
    first = plan.points[0].selection
    beside = frozenset[str]().union(*(point.selection.beside for point in plan.points))
    return stages.open_pool(
        plan.corpus,
        first,
        store.cache_dir,
        replace(work, report=lambda share, what: work.report(0.05, what)),
        lambda: open_selected_from(plan.corpus, first.scratch_dir, work.part(0.0, 0.05), beside=beside),
    )


def known_runs(store: RunStore, plan: Plan, fingerprint: str, reuse: bool = False) -> dict[Any, Run]:
    """Selection settings -> the latest run of this sweep on this very corpus that is done or can go on.

    With `reuse`, finished runs on it that belong to no sweep, or to another, count too.
    """
    latest: dict[Any, Run] = {}
    for run in store.list():
        try:
            facts, whole, selection = run.facts(), run.whole, run.config.selection
        except DatamaskError:  # a damaged run is no point of anything
            continue
        if (whole or facts).get("fingerprint") not in (None, fingerprint):
            continue
        own, status = facts.get("sweep") == plan.id, run.status()
        if (status.state == "done" and (own or reuse)) or (own and status.resumable):
            latest.setdefault(selection, run)
    return latest


def _fresh(store: RunStore, plan: Plan, point: Point, start: str | None) -> Run:
    """A new run for a point; `start` is a run at another lambda to start from."""
    name = f"{plan.name}: {point.words}" if plan.name else point.words
    run = store.create(RunConfig(plan.corpus, point.selection, name))
    with run.writer() as writer:
        writer.update_facts(sweep=plan.id, swept=dict(point.swept), **({} if start is None else {"start_from": start}))
    return run


def _line(point: Point) -> str:
    """What points along lambda have in common, where one can start from another; else nothing that repeats."""
    if point.selection.estimator != "relaxed":
        return json.dumps(point.selection.to_dict())
    return json.dumps({**point.selection.to_dict(), "lamb": None})


# -- the table ---------------------------------------------------------------------------------------------------------


def write_rows(rows: Sequence[dict[str, Any]], path: str) -> None:
    """Write a table of rows in the format of the name of `path`, whole or not at all.

    Raises:
        OptionError: another ending. StoreError: it cannot be written.
    """
    write_table(path, pa.Table.from_pylist([to_plain(row) for row in whole_rows(rows)]), ids=())


def whole_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the same keys in each: what one lacks (a seed, where the others are not random) is None."""
    rows = list(rows)
    swept = (
        dict.fromkeys(key for row in rows for key in list(row)[: list(row).index("run_id")])
        if rows and ("run_id" in rows[0])
        else {}
    )
    names = list(dict.fromkeys([*swept, *(key for row in rows for key in row)]))
    return [{name: row.get(name) for name in names} for row in rows]
