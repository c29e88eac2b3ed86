"""A hook of mkdocs: the pages of the reference, made from the tables of the code while the site is built."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from typing import Any

import datamask
from datamask import catalogue
from datamask.cli.arguments import NAMES, default_words
from datamask.cli.parser import COMMANDS, Parser
from datamask.evaluation.measures import PANEL
from datamask.options import CORPUS_OPTIONS, OPTIONS, Option


def on_files(files: Any, config: Any) -> Any:
    """Add the pages; mkdocs calls this."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    return files


def pages() -> dict[str, str]:
    """Return the Markdown of every page by its file name."""
    return {
        "commands.md": commands(),
        "options.md": options(),
        "objectives.md": objectives(),
        "methods.md": methods(),
        "measures.md": measures(),
        "api.md": api(),
    }


def commands() -> str:
    """Return every command with its arguments."""
    parts = ["# Commands\n\nEvery option may be written with hyphens or underscores.\n"]
    for name, (build, about) in COMMANDS.items():
        parser = Parser(prog=f"datamask {name}", add_help=False)
        build(parser)
        rows = [(_words(action), action.help or "") for action in parser._actions if action.help != argparse.SUPPRESS]
        parts.append(f"## datamask {name}\n\n{about}\n\n{_table(('argument', 'meaning'), rows)}")
    return "\n".join(parts)


def options() -> str:
    """Return the options of a corpus and of a selection."""
    return (
        "# Options\n\nThe command line, the library and the form of the dashboard read these two tables.\n\n"
        f"## Selection\n\nSettings of a `SelectionConfig`.\n\n{_options(OPTIONS)}\n"
        f"## Corpus\n\nSettings of a `CorpusConfig`.\n\n{_options(CORPUS_OPTIONS)}"
    )


def objectives() -> str:
    """Return the diversity objectives."""
    proofs = {"relaxation": "yes, by relaxation", "dual": "yes, by the dual", "": "no"}
    rows = [
        (
            f"`{entry.name}`",
            entry.label,
            entry.sees,
            proofs[entry.proof],
            "yes" if entry.needs_neighbors else "no",
            ", ".join(f"`{alias}`" for alias in entry.aliases),
        )
        for entry in catalogue.OBJECTIVES
    ]
    return "# Objectives\n\n" + _table(
        ("name", "label", "what it rewards", "upper bound", "neighbor graph", "other names"), rows
    )


def methods() -> str:
    """Return the ways to select, with the options that belong to each."""
    rows = [
        (
            f"`{entry.name}`",
            entry.label,
            entry.about,
            "yes" if entry.guided else "no",
            "yes" if entry.spends else "no",
            "yes" if entry.weighs else "no",
            ", ".join(f"`{name}` {value}" for name, value in entry.defaults.items()),
        )
        for entry in catalogue.ESTIMATORS
    ]
    header = ("name", "label", "what it does", "uses lambda", "token budget", "repeat weights", "options with defaults")
    return f"# Methods\n\n`auto` stands for {catalogue.AUTO_RULE}.\n\n{_table(header, rows)}"


def measures() -> str:
    """Return the measures of `score --panel`."""
    rows = [(f"`{entry.name}`", entry.label, entry.says, entry.better, entry.interval) for entry in PANEL]
    return "# Measures\n\n`datamask score --panel` reports these for each selection.\n\n" + _table(
        ("name", "label", "meaning", "better", "interval"), rows
    )


def api() -> str:
    """Return the public names for mkdocstrings, which fills in their docstrings."""
    names = {name: getattr(datamask, name) for name in datamask.__all__}
    parts = [
        f"::: {value.__module__}.{value.__qualname__}\n    options:\n      heading: {name}\n      toc_label: {name}\n"
        for name, value in names.items()
    ]
    return "\n".join(("# Python API\n\nEverything that `from datamask import ...` gives.\n", *parts))


def _options(table: Mapping[str, Option]) -> str:
    rows = [(f"`{option.name}`", _default(option), _meaning(option)) for option in table.values()]
    return _table(("option", "default", "meaning"), rows)


def _default(option: Option) -> str:
    return default_words(option).strip().removeprefix("(").removesuffix(")")


def _meaning(option: Option) -> str:
    return option.line.format_map(NAMES) or option.help


def _words(action: argparse.Action) -> str:
    shown = action.metavar if action.nargs != 0 else ""
    return " ".join(f"`{word}`" for word in (*action.option_strings, shown) if word)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    """Return a text in one line, its options as code; a bar is escaped outside of code, where it ends the cell."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    for place in range(0, len(parts), 2):
        plain = parts[place].replace("|", "\\|").replace("<", "&lt;")
        parts[place] = re.sub(r"(?<![\w-])(--[a-z]\w*(?:-\w+)*)", r"`\1`", plain)
    return "".join(parts)
