"""The commands `runs list`, `runs show`, `runs stop` and `runs import`: nothing is learned here."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

from datamask.cli.common import DONE, check_device, command_work, deliver, of_run, shell
from datamask.cli.output import check_apart, percent, print_json, say, summary_text, table_text
from datamask.cli.parser import import_config
from datamask.cli.streams import print_text
from datamask.errors import DatamaskError, RunStateError
from datamask.evaluation.result import NO_RESULT
from datamask.files import user_path
from datamask.options.amounts import tokens_text
from datamask.runs import exports
from datamask.runs.health import learning
from datamask.runs.rooted import absolute_corpus
from datamask.runs.store import Run, RunStore

STOP_SECONDS, ASK_SECONDS = 10.0, 0.05
"""A run hears a request to stop within a second, and then writes its checkpoint; looked at so often."""


def runs_list(options: argparse.Namespace) -> int:
    """`runs list`: newest first."""
    rows = [_listed(run) for run in RunStore(options.runs_dir).list()]
    if options.json:
        print_json({"runs": rows})
    elif rows:
        in_percent = [
            {**row, "quality": percent(row["quality"]), "diversity": percent(row["diversity"])} for row in rows
        ]
        print_text(table_text(in_percent))
    else:
        say(f"there are no runs in {options.runs_dir} yet; `datamask select` makes one")
    return DONE


def _listed(run: Run) -> dict[str, Any]:
    status = run.status()
    row: dict[str, Any] = {
        "run": run.id,
        "state": status.state,
        "objective": "?",
        "lambda": "?",
        "ratio": "?",
        "quality": None,
        "diversity": None,
        "name": "",
    }
    try:
        config = run.config
    except DatamaskError:  # its message says why
        row["name"] = status.message
    else:
        row |= {
            "objective": config.selection.objective,
            "lambda": config.selection.lamb,
            "ratio": tokens_text(budget) if (budget := config.selection.budget) else config.selection.select_ratio,
            "name": config.name,
        }
    calibrated = (status.result or NO_RESULT).calibrated
    return row | {"quality": calibrated.quality, "diversity": calibrated.diversity}


def runs_show(options: argparse.Namespace) -> int:
    """`runs show`: everything small that is known about one run."""
    run = RunStore(options.runs_dir).get(options.run)
    status, config = run.status(), run.config
    if options.json:
        print_json(
            {
                "run_id": run.id,
                "path": str(run.path),
                "status": status.to_dict(),
                "config": config.to_dict(),
                "facts": run.facts(),
                "learning": learning(run),
            }
        )
        return DONE
    print_text(f"{config.name or run.id}: {status.state}" + (f", {status.message}" if status.message else ""))
    if config.notes:
        print_text(config.notes)
    if status.error:
        print_text(f"error: {status.error}")
    print_text(shell(config.arguments(run.facts().get("output") or "OUT.parquet")) + "\n")
    if status.result is not None:
        print_text(summary_text(run, status.result, None))
        if why := exports.unwritten(run):
            print_text(f"{why}; write it with: {shell(of_run(['resume'], run.id, options))}")
    else:
        print_text(f"step {status.step:,} of {status.total_steps:,}")
        lines = [line for line in (_whole_line(run), learning(run)) if line]
        print_text("".join(f"{line}\n" for line in lines) + f"Run folder: {run.path}")
    return DONE


def _whole_line(run: Run) -> str:
    """Of a run on mapped arrays, what it selects from."""
    whole = run.whole or {}
    return f"{whole['rows']:,} rows of {whole['shards']:,} shards" if "shards" in whole else ""


def runs_stop(options: argparse.Namespace) -> int:
    """`runs stop`: ask whoever does the run, and wait a while to see that it was heard."""
    run = RunStore(options.runs_dir).get(options.run)
    if not run.status().active:
        raise RunStateError(f"run {run.id} is {run.status().state}; there is nothing to stop")
    run.request_stop()
    deadline = time.monotonic() + STOP_SECONDS
    while run.status().active and time.monotonic() < deadline:
        time.sleep(ASK_SECONDS)
    status = run.status()
    if options.json:
        print_json({"run_id": run.id, "status": status.state, "requested": True})
    elif status.active:
        say(f"run {run.id} is asked to stop, and still {status.state}: {status.message or 'it has not begun'}")
    else:
        say(f"run {run.id} is {status.state}")
    return DONE


def runs_import(options: argparse.Namespace) -> int:
    """`runs import`: a list of ids from anywhere as a finished run."""
    from datamask.runs.imports import import_ids

    config = import_config(options)
    check_apart("runs_dir", options.runs_dir, config.corpus.inputs)
    check_device(config.selection.device)
    config = replace(config, corpus=absolute_corpus(config.corpus), ids=str(user_path(options.ids).absolute()))
    with command_work() as work:
        run = import_ids(RunStore(options.runs_dir), config, work)
    return deliver(run, None, run.status().result or NO_RESULT, options)
