"""Objectives of one's own on the command line: loaded where they are typed, asked for again on resuming, checked."""

from __future__ import annotations

import argparse

from datamask import catalogue
from datamask.cli.common import BAD, DONE
from datamask.cli.output import print_json
from datamask.cli.streams import print_text
from datamask.errors import OptionError, RunStateError
from datamask.runs.store import Run


def permit_own(options: argparse.Namespace) -> None:
    """Load the objectives of one's own that this command line names; only what is typed here is ever loaded.

    Raises:
        OptionError: one of them cannot be imported, or is no objective.
    """
    typed = [
        getattr(options, "objective", None),
        getattr(options, "objectives", None),
        *(text.partition("=")[2] for text in getattr(options, "vary", ()) if text.startswith("objective=")),
    ]
    names = [name for text in typed if text for name in catalogue.objective_terms(text) if catalogue.is_own(name)]
    if names:
        from datamask.objectives import own

        for name in names:
            own.permit(name)


def check_typed(run: Run, typed: str | None) -> None:
    """A run folder may come from anywhere: code that it names is loaded only if the same name is typed again.

    Raises:
        OptionError: the run has other objectives. RunStateError: it has a user's own one that was not typed.
    """
    terms = [name for name, _ in run.config.selection.terms]
    given = list(catalogue.objective_terms(typed)) if typed else []
    if other := [name for name in given if name not in terms]:
        raise OptionError(
            f"--objective must be what run {run.id} was made with, {run.config.selection.objective}, got "
            f"{', '.join(other)}; start a new run for another objective"
        )
    if missing := [name for name in terms if catalogue.is_own(name) and name not in given]:
        raise RunStateError(
            f"run {run.id} uses a custom objective, and a run folder alone never loads code; if you trust it, add "
            f"--objective {','.join(missing)}"
        )


def check_objective(options: argparse.Namespace) -> int:
    """`check-objective`: the contract, checked on small random problems; one line per check."""
    from datamask.objectives import own
    from datamask.testing import check_objective as checked

    checks = checked(own.permit(options.name))
    failed = sum(not check.passed for check in checks)
    if options.json:
        print_json(
            {
                "objective": options.name,
                "failed": failed,
                "checks": [{"name": check.name, "says": check.says, "failure": check.failure} for check in checks],
            }
        )
    else:
        print_text("\n".join(map(str, checks)))
        print_text(f"{failed} of {len(checks)} checks failed" if failed else f"all {len(checks)} checks hold")
    return BAD if failed else DONE
