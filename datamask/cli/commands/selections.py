"""Options of the commands that select: select, resume, sweep."""

from __future__ import annotations

import argparse

from datamask.cli.arguments import (
    OUTPUT,
    add_corpus,
    add_detach,
    add_json,
    add_option,
    add_own,
    add_repeats,
    add_run,
    add_run_id,
    add_runs_dir,
    add_selection,
    whole,
)
from datamask.cli.help_text import rare
from datamask.options import BLOCK_OPTIONS, BLOCKS
from datamask.runs.varying import variable
from datamask.tables import IDS_FILE, ROWS_FILE


def add_select(parser: argparse.ArgumentParser) -> None:
    """Add the options of `select`."""
    add_selection(parser)
    add_corpus(parser)
    blocks = parser.add_argument_group(BLOCKS)
    for option in BLOCK_OPTIONS.values():
        add_option(blocks, option)
    group = parser.add_argument_group(OUTPUT)
    group.add_argument(
        "--output",
        metavar=IDS_FILE,
        help="file for the selected ids and their numbers (selection.parquet in the run folder)",
    )
    add_run(group)
    group.add_argument(
        "--dry_run",
        action="store_true",
        help="print the rows, columns, memory, disk and minutes that the selection takes; select and write nothing",
    )
    rare(
        group.add_argument(
            "--weights",
            metavar=ROWS_FILE,
            help="also write how often to repeat each row: repeat weights, and whole counts in proportion",
        ),
        *add_repeats(group),
        add_detach(group),
        group.add_argument(
            "--threads", type=whole, metavar="N", help="CPU threads to compute with (as many as there are cores)"
        ),
    )


def add_resume(parser: argparse.ArgumentParser) -> None:
    """Add the options of `resume`."""
    add_run_id(parser)
    parser.add_argument("--output", metavar=IDS_FILE, help="file for the selection (the one given to the run)")
    add_own(parser)
    add_detach(parser)
    add_runs_dir(parser)
    add_json(parser)


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sweep`."""
    group = parser.add_argument_group("Sweep")
    group.add_argument(
        "--vary",
        action="append",
        default=[],
        metavar="OPTION=VALUES",
        help="option to vary: START:STOP:COUNT, as in lamb=0:1:11, or a list, as in seed=0,1,2; repeat it for all "
        f"combinations. One of {', '.join(variable())}",
    )
    group.add_argument(
        "--seeds", type=whole, default=1, metavar="N", help="seeds for each point with a random method (1)"
    )
    group.add_argument("--output", metavar=ROWS_FILE, help="table of the points")
    add_run(group)
    add_selection(parser)
    add_corpus(parser)
