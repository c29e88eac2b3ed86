"""Options that several commands share, and the kinds of value that they take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from datamask import catalogue
from datamask.cli.help_text import rare
from datamask.errors import OptionError
from datamask.options import (
    CORPUS_OPTIONS,
    OPTIONS,
    ROWS,
    TOPICS,
    Flag,
    IdFile,
    Number,
    Option,
    QualityColumn,
    QualityColumns,
    Quota,
    Quotas,
    Whole,
)
from datamask.runs.store import default_root

NAMES = {
    "objectives": ", ".join(entry.name for entry in catalogue.OBJECTIVES if not entry.more)
    + f" (more: {', '.join(entry.name for entry in catalogue.OBJECTIVES if entry.more)})",
    "estimators": ", ".join(entry.name for entry in catalogue.ESTIMATORS),
    "auto": catalogue.AUTO_RULE,
}
"""What stands in braces in the lines of the options."""

OUTPUT = "Output"
"""Title of the options that say where results go."""

Group = argparse._ActionsContainer
"""A parser or one of its groups."""


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add INPUT, as words or as an option."""
    option = CORPUS_OPTIONS["inputs"]
    parser.add_argument("inputs", nargs="*", default=[], metavar=option.metavar, help=option.line)
    rare(
        parser.add_argument(
            *option.flags, action="append", default=[], metavar=option.metavar, help="the same, as an option"
        )
    )


def add_corpus(parser: argparse.ArgumentParser) -> Group:
    """Add the options of a `CorpusConfig`: rows and columns; return their group."""
    add_inputs(parser)
    group = parser.add_argument_group(ROWS)
    for name, option in CORPUS_OPTIONS.items():
        if name != "inputs":
            add_option(group, option)
    return group


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add the options of a `SelectionConfig`, by topic."""
    for topic in TOPICS:
        add_options(
            parser.add_argument_group(topic), *(name for name, option in OPTIONS.items() if option.group == topic)
        )


def add_options(group: Group, *names: str) -> None:
    """Add options of a selection, by their names."""
    for name in names:
        add_option(group, OPTIONS[name])


def add_option(group: Group, option: Option) -> None:
    """Add one option of a table, kept under its `word`; None where it is not given."""
    text = f"{option.line.format_map(NAMES)}{default_words(option)}".strip()
    about: dict[str, Any] = {"dest": option.word, "help": text, "default": None}
    if isinstance(option.kind, Flag):
        about["action"] = "store_true"
    else:
        about |= {"metavar": option.metavar, "type": READ_AS.get(type(option.kind), str)}
    if option.kind.many:
        about["action"] = "append"
    elif isinstance(option.kind, IdFile):
        about["action"] = OneFile
    action = group.add_argument(*(option.flags or (f"--{option.name}",)), **about)
    if not option.common:
        rare(action)


class OneFile(argparse.Action):
    """An option that names one file; argparse would let a second one replace the first without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: object = None
    ) -> None:
        """Keep the name of the file, or refuse a second one."""
        if (first := getattr(namespace, self.dest)) is not None:
            parser.error(f"--{self.dest} takes one file, got {first} and {values}; put the ids of both into one file")
        setattr(namespace, self.dest, values)


def given_values(options: argparse.Namespace, table: Mapping[str, Option]) -> dict[str, Any]:
    """Return those options of a table that were given, by their names."""
    return {name: value for name, option in table.items() if (value := getattr(options, option.word, None)) is not None}


def default_words(option: Option) -> str:
    """Return an option's default in brackets, one for each estimator that has it; empty where there is none."""
    if option.unset:
        return f" ({option.unset})"
    if option.owners:
        return f" ({', '.join(f'{name} {default}' for name, default in option.owners.items())})"
    if isinstance(option.kind, Flag):
        return f" ({'on' if option.default else 'off'})"
    return "" if option.default in (None, ()) else f" ({option.kind.text(option.default)})"


def add_run(group: Group) -> None:
    """Add where the run goes and its name."""
    add_json(group)
    rare(
        group.add_argument("--name", metavar="TEXT", help="name of the run"),
        group.add_argument("--notes", metavar="TEXT", help="notes on the run"),
        add_runs_dir(group),
    )


def add_run_id(parser: Group) -> None:
    """Add RUN."""
    parser.add_argument("run", metavar="RUN", help="id of a run, from `runs list`")


def add_runs_dir(parser: Group, *flags: str) -> argparse.Action:
    """Add the folder of the runs; `flags` are other names of the option."""
    return parser.add_argument(
        *flags,
        "--runs_dir",
        dest="runs_dir",
        default=default_root(),
        metavar="FOLDER",
        help="folder of the runs (DATAMASK_RUNS_DIR, else runs)",
    )


def add_json(parser: Group) -> None:
    """Add the answer for programs."""
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line of stdout")


def add_device(parser: Group, **about: Any) -> argparse.Action:
    """Add the device of a command that is no selection."""
    return parser.add_argument("--device", metavar="DEVICE", help=f"{OPTIONS['device'].line} (auto)", **about)


def add_own(parser: Group) -> None:
    """Add the objective of a run, which is typed again before its code is loaded."""
    parser.add_argument(
        "--objective",
        metavar="module:Class",
        help="required if the run uses an objective of your own; a run folder alone never loads code",
    )


def add_detach(parser: Group) -> argparse.Action:
    """Add the process of its own."""
    return parser.add_argument(
        "--detach",
        action="store_true",
        help="run in the background and print the run's id; `runs show` shows its progress, `runs stop` ends it",
    )


def add_repeats(parser: Group) -> tuple[argparse.Action, argparse.Action]:
    """Add what the counts of --weights add up to."""
    return (
        parser.add_argument(
            "--repeats", type=whole, metavar="N", help="sum of the counts of --weights (the number of selected rows)"
        ),
        parser.add_argument(
            "--repeat_tokens", metavar="TOKENS", help="sum of the tokens of --weights with repeats, such as 10B"
        ),
    )


# -- values ------------------------------------------------------------------------------------------------------------


def whole(text: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None


def decimal(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        several = "; for several values, use `datamask sweep --vary OPTION=VALUES`" if set(text) & {",", ":"} else ""
        raise argparse.ArgumentTypeError(f"must be a number such as 0.2, got {text!r}{several}") from None


def quality(text: str) -> QualityColumn:
    """Read a quality column."""
    # argparse lets only its own exception through with its text
    try:
        return QualityColumn.parse(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--quality_column ")) from None


def quota(text: str) -> Quota:
    """Read a quota."""
    try:
        return Quota.parse(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--quota ")) from None


READ_AS: dict[type, Callable[[str], object]] = {Whole: whole, Number: decimal, Quotas: quota, QualityColumns: quality}
"""Kind of an option -> what reads its word; all others are words, and checked with the settings."""
