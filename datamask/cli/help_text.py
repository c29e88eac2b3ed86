"""The help of a command: the common options, or all of them by topic."""

from __future__ import annotations

import argparse
import textwrap

from datamask.cli.streams import print_text

SPELLING = "Options may be spelled with hyphens or underscores."


class HelpLines(argparse.RawDescriptionHelpFormatter):
    """Help whose lines end between words, so that a search finds ``soft-quality``."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


class HelpAll(argparse.Action):
    """``--help-all``: print every option and leave."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        print_text(help_text(parser, whole=True).rstrip("\n"))
        parser.exit()


def add_help(parser: argparse.ArgumentParser) -> None:
    """Add ``--help``, which lists the common options, and ``--help-all``."""
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    parser.add_argument("--help_all", action=HelpAll, nargs=0, help=argparse.SUPPRESS)


def rare(*actions: argparse.Action) -> None:
    """Leave these options to ``--help-all``."""
    for action in actions:
        action.rare = True  # type: ignore[attr-defined]


def help_text(parser: argparse.ArgumentParser, *, whole: bool) -> str:
    """Return the help of a command.

    Args:
        whole: every option; else those that are not `rare`.
    """
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
    formatter.add_text(parser.description)
    for group in parser._action_groups:
        formatter.start_section(group.title)
        formatter.add_arguments(action for action in group._group_actions if whole or not _rare(action))
        formatter.end_section()
    if parser.epilog:
        formatter.add_text(parser.epilog)
        return formatter.format_help()
    options = [action for action in parser._actions if action.option_strings and action.help is not argparse.SUPPRESS]
    more = not whole and any(map(_rare, options))
    listed = f"`{parser.prog} --help-all` lists all {len(options)} options by topic. " if more else ""
    formatter.add_text(f"{listed}{SPELLING}")
    return formatter.format_help()


def _rare(action: argparse.Action) -> bool:
    return getattr(action, "rare", False)
