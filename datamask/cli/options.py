"""Options that several commands share, and the kinds of value that they take."""

from __future__ import annotations

import argparse

from datamask import catalogue
from datamask.config import QualityColumn, Quota
from datamask.errors import OptionError
from datamask.runs.store import default_root

OBJECTIVE_HELP = ", ".join(entry.name for entry in catalogue.OBJECTIVES)
ESTIMATOR_HELP = ", ".join(entry.name for entry in catalogue.ESTIMATORS)

Group = argparse._ActionsContainer
"""A parser or one of its groups."""


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """INPUT, as words or as an option."""
    parser.add_argument("inputs", nargs="*", default=[], metavar="INPUT", help="parquet files, folders or globs")
    parser.add_argument("--input", action="append", default=[], metavar="INPUT", help="the same, as an option")


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Which rows and columns: the options of a `CorpusConfig`."""
    add_inputs(parser)
    group = parser.add_argument_group("which rows and columns")
    add = group.add_argument
    add("--id_column", metavar="NAME", help="(found by name, then by type)")
    add("--quality_column", action="append", default=[], type=quality, metavar="NAME[:WEIGHT[:raw|z|rank]]",
        help="may be given several times; they add up (found by name, then by type)")
    add("--feature_column", metavar="NAME", help="(found by name, then by type)")
    add("--length_column", metavar="NAME", help="tokens per row, counted wherever rows are (found by name)")
    add("--features", action="append", default=[], metavar="INPUT", help="shards that hold the features, by id or row")
    add("--scores", action="append", default=[], metavar="INPUT", help="shards that hold the quality, by id or row")
    add("--rows", type=whole, metavar="N", help="a uniform sample of so many rows (all that fit)")
    add("--row_seed", type=whole, metavar="N", help="of that sample (as --seed)")
    add("--drop_invalid", action="store_true", help="drop rows with NaN, infinite, null or zero features")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """What to select and how to find it: the options of a `SelectionConfig`."""
    group = parser.add_argument_group("what to select")
    add = group.add_argument
    add_objective(group)
    add("--select_ratio", type=decimal, metavar="SHARE", help="share of the rows to select (0.3)")
    add("--budget", metavar="TOKENS", help="tokens to fill, such as 150M or 1.5G, instead of a share of the rows; "
                                           "needs a length column")
    add_center(group)
    add("--prune", type=decimal, metavar="SHARE", help="drop the worst by quality first (0)")
    add("--collapse", metavar="HOW", help="keep the best of near-copies: none, exact or a cosine such as 0.95 (none)")
    add("--pin", metavar="IDS", help="a file of ids that must be selected: parquet, CSV, or text with one id per line")
    add("--ban", metavar="IDS", help="a file of ids that must not be")
    add("--given", metavar="IDS", help="a file of ids that you already have: the new rows are chosen beside them, and "
                                       "only the new ones are written")
    add("--quota", dest="quotas", action="append", type=quota, metavar="COLUMN=VALUE:LOW:HIGH",
        help="shares of the selection that a value of a column has at least and at most; may be given several times")
    group = parser.add_argument_group("how to find it")
    add = group.add_argument
    add("--estimator", metavar="NAME", help=f"auto, {ESTIMATOR_HELP} (auto: {catalogue.AUTO_RULE})")
    add("--preset", metavar="paper", help="paper: the setting of arXiv 2512.24265, which never changes")
    add("--n_rollout", type=whole, metavar="G", help=f"masks sampled per step ({defaults('n_rollout')})")
    add("--n_epochs", type=whole, metavar="STEPS", help=f"a ceiling on update steps ({defaults('n_epochs')})")
    add("--partial", type=decimal, metavar="SHARE", help=f"share of the rows in a step ({defaults('partial')})")
    add("--max_lr", type=decimal, metavar="LR", help=f"learning rate of the first step ({defaults('max_lr')})")
    add("--min_lr", type=decimal, metavar="LR", help=f"learning rate of the last step ({defaults('min_lr')})")
    add("--init", metavar="HOW", help=f"first logits: same or quality ({defaults('init')})")
    add("--score", metavar="HOW", help="how reinforce credits a draw: mask, as in the paper, or exact, by the gradient "
                                       f"of its log-probability ({defaults('score')})")
    add("--readout", metavar="HOW", help=f"last logits to subset: top or sample ({defaults('readout')})")
    add("--polish", metavar="HOW", help=f"swaps after learning: swaps or none ({defaults('polish')})")
    add("--neighbors", metavar="HOW", help="the neighbour graph: exact, approximate (its recall is measured), or auto, "
                                           "which is exact up to 200,000 rows and on a GPU (auto)")
    add("--seed", type=whole, metavar="N", help="of masks, batches and ties (0)")
    add("--device", metavar="DEVICE", help="auto, cpu, cuda or cuda:K (auto)")


def add_objective(group: Group) -> None:
    """What is maximised."""
    group.add_argument("--objective", "--algorithm", metavar="NAME",
                       help=f"diversity objective: {OBJECTIVE_HELP}, the paper's names, or a sum such as "
                            "pairwise:0.7,facility:0.3; module:Class is one of your own (facility)")
    group.add_argument("--lamb", type=decimal, metavar="SHARE",
                       help="lambda: 1 is quality alone, 0 diversity alone (0.5)")
    group.add_argument("--scale", metavar="SCALE",
                       help="calibrated or raw: in which units lambda balances (calibrated)")


def add_center(group: Group) -> None:
    """What the objectives see."""
    group.add_argument("--center", action="store_true", default=None,
                       help="subtract the corpus's mean from the features before they are scaled to unit length: for "
                            "embeddings whose cosines are all high (off)")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Where the run goes and what people call it."""
    group = parser.add_argument_group("the run")
    add_runs_dir(group)
    group.add_argument("--name", metavar="TEXT", help="a name for people")
    group.add_argument("--notes", metavar="TEXT", help="notes for people")
    add_json(group)


def add_runs_dir(parser: Group) -> None:
    """Where runs are kept."""
    parser.add_argument("--runs_dir", default=default_root(), metavar="FOLDER",
                        help="where runs are kept (DATAMASK_RUNS_DIR, else runs)")


def add_json(parser: Group) -> None:
    """The answer for programs."""
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")


# -- values ------------------------------------------------------------------------------------------------------------


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def decimal(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        several = "; several are tried by `datamask sweep --vary OPTION=VALUES`" if set(text) & {",", ":"} else ""
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}{several}") from None


def quality(text: str) -> QualityColumn:
    """A quality column."""
    # argparse lets only its own exception through with its text
    try:
        return QualityColumn.parse(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--quality_column ")) from None


def quota(text: str) -> Quota:
    """A quota."""
    try:
        return Quota.parse(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--quota ")) from None


def defaults(option: str) -> str:
    """An option's default, per estimator that has it."""
    return ", ".join(f"{entry.name} {entry.defaults[option]}" for entry in catalogue.ESTIMATORS
                     if option in entry.defaults)
