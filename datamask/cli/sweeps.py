"""The command that does many runs: `sweep`."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datamask.cli.common import BAD, DONE, FAULT, STOPPED, check_device, command_work
from datamask.cli.output import Progress, check_apart, check_output, percent, print_json, say, table_text
from datamask.cli.parser import corpus_config, given_options
from datamask.cli.streams import print_text
from datamask.config import RunConfig
from datamask.errors import OptionError
from datamask.runs.rooted import absolute_corpus, rooted
from datamask.runs.store import RunStore
from datamask.runs.varying import Plan, Point, parse_vary, points
from datamask.tables import OF_ROWS
from datamask.work.pace import TELLING_RUNS, RunPace

if TYPE_CHECKING:
    from datamask.runs.sweep import Done


def sweep(options: argparse.Namespace) -> int:
    """`sweep`: the cross product of what is varied, as runs that share one corpus."""
    if not options.vary:
        raise OptionError("sweep needs --vary OPTION=VALUES, such as --vary lamb=0:1:11")
    spanned = points(given_options(options), [parse_vary(text) for text in options.vary], options.seeds)
    plan = _plan(options, spanned)
    from datamask.runs import sweep as sweeps

    if options.output is not None:
        options.output = check_output(options.output, plan.corpus.inputs, among=OF_ROWS)
    pace = RunPace()
    progress = Progress(pace=pace if len(spanned) > TELLING_RUNS else None)
    with command_work(progress=progress) as work:
        done = sweeps.sweep(RunStore(options.runs_dir), plan, work, turn=pace.run)
    rows = sweeps.whole_rows([point_done.row() for point_done in done])
    if options.output is not None:
        sweeps.write_rows(rows, options.output)
    if options.json:
        print_json({"sweep": plan.id, "points": len(plan.points), "rows": rows, "output": options.output})
    elif rows:
        print_text(table_text(list(map(_for_people, rows))))
        print_text(
            f"Sweep {plan.id} in {options.runs_dir}. 0 % is a random subset of the size, 100 % the best a term "
            "reaches alone."
        )
    return _ending(done, len(plan.points))


def _plan(options: argparse.Namespace, spanned: Sequence[Point]) -> Plan:
    """The points on the corpus that was asked for, with absolute paths, after checking what can be checked now.

    Raises:
        OptionError: no such device, or the runs would lie among the inputs.
    """
    corpus = absolute_corpus(corpus_config(options, spanned[0].selection.seed))
    check_apart("runs_dir", options.runs_dir, corpus.inputs)
    check_device(spanned[0].selection.device)
    placed = tuple(replace(point, selection=rooted(RunConfig(corpus, point.selection)).selection) for point in spanned)
    return Plan(corpus, placed, options.name or "")


def _ending(done: Sequence[Done], planned: int) -> int:
    """What went wrong, on stderr, and the exit code."""
    for point_done in done:
        if point_done.error is not None:
            say(f"{point_done.point.words or 'the only point'}: {point_done.error}")
    if done and done[-1].fault is not None:
        traceback.print_exception(done[-1].fault)
        return FAULT
    if any(point_done.error is not None for point_done in done):
        return BAD
    finished = sum(point_done.status.state == "done" for point_done in done)
    if finished < planned:
        say(f"stopped after {finished:,} of {planned:,} points; the same command goes on from there")
        return STOPPED
    return DONE


def _for_people(row: dict[str, Any]) -> dict[str, Any]:
    """A row as people read it: shares in percent, a hyphen where there is nothing, no raw values."""
    cells: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("quality", "diversity", "joint"):
            cells[name] = percent(value)
        elif name != "error" and not name.startswith("raw_"):
            cells[name] = f"{value:.4g}" if isinstance(value, float) else "-" if value is None else value
    return cells
