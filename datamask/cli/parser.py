"""The words of a command line: read by the options of its command, and turned into a `RunConfig`.

Options are spelled with underscores here, as the paper does; `parse` accepts hyphens as well. Values are checked by
`datamask.config`, whose sentences name the option; what argparse itself refuses is turned into one sentence too.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

from datamask import __version__, catalogue
from datamask.cli.arguments import given_values
from datamask.cli.commands import COMMANDS
from datamask.cli.help_text import HelpLines, add_help, help_text
from datamask.cli.streams import print_text
from datamask.config import CorpusConfig, RunConfig, SelectionConfig
from datamask.config.run import MEASURING
from datamask.errors import OptionError
from datamask.options import CORPUS_OPTIONS, OPTIONS

SELECTING = {f"--{option.word}" for option in (*OPTIONS.values(), *CORPUS_OPTIONS.values())}
"""The options of a corpus and of a selection, as `select` has them."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one-sentence `OptionError`s."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (\S+?)(?:/\S+)*: ", r"\1 ", message)
        message = re.sub(r"^the following arguments are required: (.*)", r"\1 is required", message)
        message = re.sub(r" expected one argument$", " needs a value", message)
        message = re.sub(r"^unrecognized arguments: (.*)", r"too many words: \1", message)
        raise OptionError(message)

    def format_help(self) -> str:
        """Return the short help: the common options."""
        return help_text(self, whole=False)

    def _print_message(self, message: str, file: object = None) -> None:
        # the one way out of help and version; argparse's own says nothing where they are lost
        print_text(message.rstrip("\n"))

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Check option names first, so that a misspelled option is not reported as another one missing.

        Raises:
            OptionError: a word looks like an option and is none.
        """
        for word in words:
            name = word.split("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                if name in SELECTING:
                    raise OptionError(f"{name} is an option of `datamask select`, not of `{self.prog}`")
                near = difflib.get_close_matches(name, self._option_string_actions, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; `{self.prog} --help-all` lists all options"
                raise OptionError(f"{name} is not an option of `{self.prog}`{hint}")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Read the words after ``python -m datamask``; the result's `command` names what to do.

    Raises:
        OptionError: a word that no option knows, a missing one, or a value of the wrong kind.
        SystemExit: after printing help or version.
    """
    words = list(words)
    name = next((n for n in sorted(COMMANDS, key=len, reverse=True) if words[: len(n.split())] == n.split()), None)
    if name is None:
        _without_command(words)
    build, about = COMMANDS[name]
    parser = Parser(
        prog=f"datamask {name}",
        description=about,
        allow_abbrev=False,
        add_help=False,
        formatter_class=HelpLines,
    )
    parser._positionals.title, parser._optionals.title = "Arguments", "Options"
    add_help(parser)
    build(parser)
    places = " ".join(f"{action.metavar}{'...' if action.nargs else ''}" for action in parser._get_positional_actions())
    parser.usage = f"datamask {name} {places} [options]".replace("  ", " ")
    words = _underscored(words[len(name.split()) :])
    if "--" in words:
        # argparse forgets a bare -- when words are intermixed; what follows it are inputs, whatever they look like
        place = words.index("--")
        words[place:] = [f"--input={word}" for word in words[place + 1 :]]
    parser.refuse_unknown(words)
    # intermixed, so that `select A.parquet --output O.parquet B.parquet` reads both files
    options = parser.parse_intermixed_args(words)
    options.command = name
    return options


def run_config(options: argparse.Namespace) -> RunConfig:
    """Return the settings of `select`, with defaults.

    Raises:
        OptionError: an option out of range, or not one of the chosen estimator.
    """
    selection = SelectionConfig.from_options(**given_options(options))
    return RunConfig(corpus_config(options, selection.seed), selection, options.name or "", options.notes or "")


def given_options(options: argparse.Namespace) -> dict[str, object]:
    """Return the options of a selection as given; None where not given."""
    return {name: getattr(options, option.word) for name, option in OPTIONS.items()}


def corpus_config(options: argparse.Namespace, seed: int = 0) -> CorpusConfig:
    """Return the settings of the corpus; `seed` stands in for a missing `--row_seed`."""
    return CorpusConfig(**{"seed": seed, **given_values(options, CORPUS_OPTIONS), "inputs": inputs(options)})


def import_config(options: argparse.Namespace) -> RunConfig:
    """Return the settings of `runs import`; the ratio is found when the list is read.

    Raises:
        OptionError: an option out of range.
    """
    given = {name: value for name in MEASURING if (value := getattr(options, name)) is not None}
    selection = SelectionConfig(**given, estimator=catalogue.IMPORTED.name)
    return RunConfig(
        corpus_config(options, selection.seed),
        selection,
        options.name or "",
        options.notes or "",
        options.ids,
        options.ignore_unknown,
    )


def inputs(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the positional inputs, then those of `--input`.

    Raises:
        OptionError: there are none.
    """
    paths = (*options.inputs, *options.input)
    if not paths:
        raise OptionError(f"INPUT is required: `datamask {options.command}` needs at least one file, folder or glob")
    return paths


# -- words -------------------------------------------------------------------------------------------------------------


def _underscored(words: Sequence[str]) -> list[str]:
    """Return the words with underscores in option names; values and words after a bare ``--`` stay."""
    out: list[str] = []
    for place, word in enumerate(words):
        if word == "--":
            return [*out, *words[place:]]
        name, equals, value = word.partition("=")
        out.append(f"--{name[2:].replace('-', '_')}{equals}{value}" if word.startswith("--") else word)
    return out


def _without_command(words: list[str]) -> NoReturn:
    """No command was given: print help or version, or say which commands there are.

    Raises:
        OptionError: a word that is no command, or none at all.
        SystemExit: after printing help or version.
    """
    width = max(map(len, COMMANDS))
    table = "\n".join(f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items())
    parser = Parser(
        prog="datamask",
        usage="datamask COMMAND [options]",
        allow_abbrev=False,
        formatter_class=HelpLines,
        description=f"Select a high-quality, diverse subset of a corpus.\n\n{table}",
        epilog="`datamask COMMAND --help` lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"datamask {__version__}")
    if words and words[0].startswith("-"):
        parser.parse_args(words)
    if words[:1] == ["runs"] and set(words[1:]) & {"-h", "--help", "--help_all", "--help-all"}:
        print_text(
            "\n".join(f"datamask {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items() if "runs " in name)
        )
        raise SystemExit(0)
    given = " ".join(words[: 2 if words[:1] == ["runs"] else 1])
    near = difflib.get_close_matches(given, COMMANDS, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise OptionError(f"a command is required, one of {', '.join(COMMANDS)}; got {given!r}{hint}")
