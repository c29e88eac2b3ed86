"""The command line: the same calls the pages make, one module per group of commands.

Exit codes: 0 done; 2 bad input, option or disk, with one sentence on stderr; 130 stopped, resumable; 1 a fault of the
program, with its traceback. Importing this loads no torch; commands that compute import what they need.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

from datamask import endings
from datamask.cli.common import BAD, DONE, STOPPED
from datamask.cli.output import say
from datamask.cli.own import permit_own
from datamask.cli.parser import parse
from datamask.cli.streams import ReaderLeft, flush_stdout, prepare_streams
from datamask.errors import DatamaskError, Stopped
from datamask.options.checks import check
from datamask.process import ask_threads
from datamask.runs.attempt import one_sentence

HANDLERS: dict[str, str] = {
    "open": "datamask.cli.opening:open_dashboard",
    "select": "datamask.cli.selecting:select",
    "sweep": "datamask.cli.sweeps:sweep",
    "resume": "datamask.cli.selecting:resume",
    "prepare": "datamask.cli.selecting:prepare",
    "score": "datamask.cli.scoring:score",
    "copies": "datamask.cli.copies:copies",
    "ablate": "datamask.analyses.ablation.command:ablate",
    "explain": "datamask.analyses.explanation.command:explain",
    "check-objective": "datamask.cli.own:check_objective",
    "recipe": "datamask.cli.recipes:recipe",
    "apply": "datamask.cli.recipes:apply",
    "runs list": "datamask.cli.stored:runs_list",
    "runs show": "datamask.cli.stored:runs_show",
    "runs stop": "datamask.cli.stored:runs_stop",
    "runs export": "datamask.analyses.report.command:runs_export",
    "runs import": "datamask.cli.stored:runs_import",
}
"""Command -> the function that runs it, as text: what one command needs is no other's to load."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` are the words after ``python -m datamask``. Returns the exit code.

    Without `argv` the process is taken to end with it.
    """
    if argv is not None:
        return _run(argv)
    prepare_streams()
    return endings.leaving(_run(sys.argv[1:]))


def _run(argv: Sequence[str]) -> int:
    try:
        code = _command(argv)
        flush_stdout()
        return code
    except ReaderLeft:
        return DONE
    except Stopped as stopped:
        say(one_sentence(stopped))
        return STOPPED
    except DatamaskError as error:
        say(one_sentence(error))
        return BAD
    except KeyboardInterrupt:
        say("interrupted")
        return STOPPED


def _command(argv: Sequence[str]) -> int:
    try:
        options = parse(argv)
    except SystemExit as leaving:  # argparse, after printing help or version
        return int(leaving.code or 0)
    permit_own(options)
    if (threads := getattr(options, "threads", None)) is not None:
        check(threads > 0, "threads", "a whole number from 1 on", threads)
        ask_threads(threads)
    if getattr(options, "run", None):
        options.run = _run_id(options.run, options.runs_dir)
    code: int = pkgutil.resolve_name(HANDLERS[options.command])(options)
    return code


def _run_id(word: str, runs_dir: str) -> str:
    """The run's id, where its folder was given as it is printed: ``runs/ID``."""
    path = Path(word)
    return path.name if len(path.parts) > 1 and path.parent.resolve() == Path(runs_dir).resolve() else word
