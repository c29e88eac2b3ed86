"""The command line: the same calls the pages make, one module per group of commands.

Exit codes: 0 done; 2 bad input, option or disk, with one sentence on stderr; 130 stopped, resumable; 1 a fault of the
program, with its traceback. Importing this loads no torch; commands that compute import what they need.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from datamask import endings
from datamask.cli.ablating import ablate, which_lambda
from datamask.cli.common import BAD, DONE, STOPPED
from datamask.cli.copies import copies
from datamask.cli.explaining import explain
from datamask.cli.opening import open_dashboard
from datamask.cli.output import say
from datamask.cli.own import check_objective, permit_own
from datamask.cli.parser import parse
from datamask.cli.planning import plan
from datamask.cli.recipes import apply, recipe
from datamask.cli.scoring import score
from datamask.cli.selecting import prepare, resume, select
from datamask.cli.stored import runs_export, runs_import, runs_list, runs_show, runs_stop
from datamask.cli.streams import ReaderLeft, flush_stdout, prepare_streams
from datamask.cli.sweeps import sweep
from datamask.cli.tasks import task
from datamask.errors import DatamaskError, Stopped
from datamask.runs.attempt import one_sentence

HANDLERS = {
    "open": open_dashboard,
    "select": select,
    "plan": plan,
    "sweep": sweep,
    "resume": resume,
    "prepare": prepare,
    "score": score,
    "copies": copies,
    "ablate": ablate,
    "which-lambda": which_lambda,
    "explain": explain,
    "check-objective": check_objective,
    "recipe": recipe,
    "apply": apply,
    "task": task,
    "runs list": runs_list,
    "runs show": runs_show,
    "runs stop": runs_stop,
    "runs export": runs_export,
    "runs import": runs_import,
}


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
    if getattr(options, "run", None):
        options.run = _run_id(options.run, options.runs_dir)
    return HANDLERS[options.command](options)


def _run_id(word: str, runs_dir: str) -> str:
    """The run's id, where its folder was given as it is printed: ``runs/ID``."""
    path = Path(word)
    return path.name if len(path.parts) > 1 and path.parent.resolve() == Path(runs_dir).resolve() else word
