"""Options of the commands that measure: ablate, score, explain, check-objective."""

from __future__ import annotations

import argparse

from datamask.ablation.question import LAMBDAS, LEAST_SEEDS, METHODS, OBJECTIVES, SEEDS
from datamask.cli.arguments import (
    OUTPUT,
    add_corpus,
    add_device,
    add_json,
    add_options,
    add_own,
    add_run_id,
    add_runs_dir,
    whole,
)
from datamask.cli.help_text import rare
from datamask.tables import IDS_FILE, ROWS_FILE


def add_ablate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `ablate`."""
    group = parser.add_argument_group("Comparison")
    add = group.add_argument
    add(
        "--target",
        metavar="TARGET",
        help="one target: random (held-out rows), COLUMN=VALUE (held-out rows of one kind), high:COLUMN (the best "
        "quarter by a second quality column), or a file of your own texts (one per line, or .jsonl with text). Or 100 "
        "to 10,000 examples, half to score the rows and half to evaluate: ids:FILE, features:FILE.parquet, or "
        "examples:FILE with texts (several targets at once)",
    )
    add("--label", default="", metavar="COLUMN", help="column whose values are the targets; regions: of the features")
    add("--methods", metavar="NAME,NAME", help=f"methods to compare, of {', '.join(METHODS)} (all)")
    add("--objectives", metavar="NAME,NAME", help=f"objectives of the joint methods ({','.join(OBJECTIVES)})")
    tried = ",".join(f"{lamb:g}" for lamb in LAMBDAS)
    add("--lambdas", metavar="VALUES", help=f"START:STOP:COUNT or a list ({tried}); 1 is top-quality")
    add("--select_ratio", type=float, default=0.3, metavar="SHARE", help="share of the rows to select (0.3)")
    add("--seeds", type=whole, default=SEEDS, metavar="N", help=f"number of seeds, at least {LEAST_SEEDS} ({SEEDS})")
    add("--judge", default="bigram", metavar="MODEL", help="proxy model: bigram or transformer (bigram)")
    add(
        "--confirm",
        action="store_true",
        help="also run the second proxy model, the transformer, on the first seeds; prints its minutes first",
    )
    rare(
        add("--seed_rows", type=whole, metavar="N", help="maximum number of rows of one seed (12000)"),
        add("--words", type=whole, metavar="N", help="words of each selection that train the bigram model (150000)"),
        add(
            "--train_bytes",
            type=whole,
            metavar="N",
            help="bytes of each selection that train the transformer (150000)",
        ),
        add("--seed", type=whole, metavar="N", help="seed of splits, random selections and ties (0)"),
        add_device(group, default="auto"),
    )
    output = parser.add_argument_group(OUTPUT)
    output.add_argument("--output", metavar="OUT.json", help="file for the whole result")
    add_json(output)
    rare(add_runs_dir(output))
    add_corpus(parser)


def add_score(parser: argparse.ArgumentParser) -> None:
    """Add the options of `score`."""
    group = parser.add_argument_group("Selections")
    group.add_argument(
        "--selection",
        action="append",
        required=True,
        metavar=IDS_FILE,
        help="ids to measure: the output of select, or any file with the id column; repeat it to see the overlap",
    )
    group.add_argument(
        "--panel",
        action="store_true",
        help="every measure with intervals, next to random and top quality, and the best of each",
    )
    add_options(group, "center")
    add_options(group, "components")
    group.add_argument("--objective", metavar="module:Class", help="also measure an objective of your own")
    rare(add_device(group, default="auto"))
    output = parser.add_argument_group(OUTPUT)
    add_json(output)
    rare(add_runs_dir(output))
    add_corpus(parser)


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the options of `explain`."""
    add_run_id(parser)
    parser.add_argument("sample", metavar="ID", nargs="*", help="ids of the rows to explain")
    parser.add_argument("--ids", metavar="FILE", help="explain the ids in a file")
    parser.add_argument("--all", action="store_true", help="explain every row of the corpus")
    parser.add_argument("--output", metavar=ROWS_FILE, help="one line per row, one column per part")
    add_own(parser)
    add_runs_dir(parser)
    add_json(parser)


def add_check_objective(parser: argparse.ArgumentParser) -> None:
    """Add the options of `check-objective`."""
    parser.add_argument("name", metavar="module:Class", help="an objective of your own; see docs/own-objective.md")
    add_json(parser)
