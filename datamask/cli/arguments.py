"""Options that several commands share, and the kinds of value that they take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from datamask import catalogue
from datamask.errors import OptionError
from datamask.options import (
    CORPUS_OPTIONS,
    FIND,
    OPTIONS,
    ROWS,
    WHAT,
    Flag,
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

Group = argparse._ActionsContainer
"""A parser or one of its groups."""


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """INPUT, as words or as an option."""
    option = CORPUS_OPTIONS["inputs"]
    parser.add_argument("inputs", nargs="*", default=[], metavar=option.metavar, help=option.line)
    parser.add_argument(
        *option.flags, action="append", default=[], metavar=option.metavar, help="the same, as an option"
    )


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """Which rows and columns: the options of a `CorpusConfig`."""
    add_inputs(parser)
    group = parser.add_argument_group(ROWS)
    for name, option in CORPUS_OPTIONS.items():
        if name != "inputs":
            add_option(group, option)


def add_selection(parser: argparse.ArgumentParser) -> None:
    """What to select and how to find it: the options of a `SelectionConfig`."""
    for title in (WHAT, FIND):
        add_options(
            parser.add_argument_group(title), *(name for name, option in OPTIONS.items() if option.group == title)
        )


def add_options(group: Group, *names: str) -> None:
    """Options of a selection, by their names."""
    for name in names:
        add_option(group, OPTIONS[name])


def add_option(group: Group, option: Option) -> None:
    """One option of a table, kept under its `word`; None where it is not given."""
    text = f"{option.line.format_map(NAMES)}{default_words(option)}".strip()
    about: dict[str, Any] = {"dest": option.word, "help": text, "default": None}
    if isinstance(option.kind, Flag):
        about["action"] = "store_true"
    else:
        about |= {"metavar": option.metavar, "type": READ_AS.get(type(option.kind), str)}
    if option.kind.many:
        about["action"] = "append"
    group.add_argument(*(option.flags or (f"--{option.name}",)), **about)


def given_values(options: argparse.Namespace, table: Mapping[str, Option]) -> dict[str, Any]:
    """Those options of a table that were given, by their names."""
    return {name: value for name, option in table.items() if (value := getattr(options, option.word, None)) is not None}


def default_words(option: Option) -> str:
    """An option's default in brackets, per estimator where only some have it; nothing where there is none."""
    if option.unset:
        return f" ({option.unset})"
    if option.owners:
        return f" ({', '.join(f'{name} {default}' for name, default in option.owners.items())})"
    if isinstance(option.kind, Flag):
        return f" ({'on' if option.default else 'off'})"
    return "" if option.default in (None, ()) else f" ({option.kind.text(option.default)})"


def add_run(parser: argparse.ArgumentParser) -> None:
    """Where the run goes and what people call it."""
    group = parser.add_argument_group("the run")
    add_runs_dir(group)
    group.add_argument("--name", metavar="TEXT", help="a name for people")
    group.add_argument("--notes", metavar="TEXT", help="notes for people")
    add_json(group)


def add_runs_dir(parser: Group, *flags: str) -> None:
    """Where runs are kept; `flags` are other names of the option."""
    parser.add_argument(
        *flags,
        "--runs_dir",
        dest="runs_dir",
        default=default_root(),
        metavar="FOLDER",
        help="where runs are kept (DATAMASK_RUNS_DIR, else runs)",
    )


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


READ_AS: dict[type, Callable[[str], object]] = {Whole: whole, Number: decimal, Quotas: quota, QualityColumns: quality}
"""Kind of an option -> what reads its word; all others are words, and checked with the settings."""
