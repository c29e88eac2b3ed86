"""Options of the commands on stored runs: runs list, show, stop, export, import."""

from __future__ import annotations

import argparse

from datamask.cli.arguments import (
    OUTPUT,
    add_corpus,
    add_device,
    add_json,
    add_options,
    add_repeats,
    add_run,
    add_run_id,
    add_runs_dir,
    whole,
)
from datamask.runs.export_table import EXPORTS


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs list`."""
    add_runs_dir(parser)
    add_json(parser)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs show`."""
    add_run_id(parser)
    add_runs_dir(parser)
    add_json(parser)


add_stop = add_show


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs export`."""
    add_run_id(parser)
    for export in EXPORTS:
        parser.add_argument(f"--{export.name}", metavar=export.metavar, help=export.about)
    parser.add_argument(
        "--card", metavar="FOLDER", help="the ids with recipe, settings, map and a dataset card, ready for `hf upload`"
    )
    parser.add_argument(
        "--card_rows", action="store_true", help="--card writes the selected rows in place of the ids (off)"
    )
    add_repeats(parser)
    add_runs_dir(parser)
    add_json(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of `runs import`."""
    parser.add_argument(
        "ids", metavar="IDS", help="file with the id column (parquet, CSV, JSON lines), or .txt with one id per line"
    )
    group = parser.add_argument_group("Measures")
    add_options(group, "objective", "lamb", "scale")
    group.add_argument("--ignore_unknown", action="store_true", help="skip ids that are not in the corpus")
    group.add_argument("--seed", type=whole, metavar="N", help="seed of ties in the ranks (0)")
    add_device(group)
    add_run(parser.add_argument_group(OUTPUT))
    add_corpus(parser)
