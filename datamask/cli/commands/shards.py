"""Options of the commands on shards of any number: recipe, apply."""

from __future__ import annotations

import argparse

from datamask.cli.arguments import add_inputs, add_json, add_option, add_runs_dir
from datamask.options import CORPUS_OPTIONS, ROWS
from datamask.recipes.apply import KINDS
from datamask.tables import IDS_FILE


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """Add the options of `recipe`."""
    parser.add_argument("run", metavar="RUN", help="id of a run, from `runs list`, or a file written by this command")
    parser.add_argument("--output", metavar="RECIPE.json", help="file for the recipe")
    parser.add_argument("--sql", metavar="OUT.sql", help="file for the same rule as a DuckDB query (pairwise)")
    add_runs_dir(parser)
    add_json(parser)


def add_apply(parser: argparse.ArgumentParser) -> None:
    """Add the options of `apply`."""
    parser.add_argument("recipe", metavar="RECIPE", help="file written by `recipe`")
    add_inputs(parser)
    parser.add_argument(
        "--output", required=True, metavar=f"FOLDER|{IDS_FILE}", help="folder for a file per shard, or one file"
    )
    parser.add_argument(
        "--as",
        dest="kind",
        default="ids",
        metavar="KIND",
        help=f"one of {', '.join(KINDS)}: the selected ids with their scores; 0 or 1 for each row; the selected rows "
        "with all columns (ids)",
    )
    parser.add_argument(
        "--select_ratio",
        type=float,
        metavar="R",
        help="share of the valid rows to keep, or of their tokens under a budget; reads the shards once more (the "
        "recipe's own threshold)",
    )
    group = parser.add_argument_group(ROWS)
    for name in ("id_column", "feature_column"):
        group.add_argument(f"--{name}", metavar="NAME", help=f"{CORPUS_OPTIONS[name].line} (the name in the recipe)")
    for name in ("feature_bits", "drop_invalid"):
        add_option(group, CORPUS_OPTIONS[name])
    add_json(parser)
