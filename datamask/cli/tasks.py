"""The command `task`: what a run over a whole corpus put into a folder for others to do."""

from __future__ import annotations

import argparse

from datamask.cli.common import DONE, stop_on_signals
from datamask.cli.output import print_json, say
from datamask.polling import poll_of


def task(options: argparse.Namespace) -> int:
    """`task`: one call, or one open call of a folder after another."""
    from datamask.out_of_core.engines import open_engine
    from datamask.out_of_core.engines.files import do_calls

    with stop_on_signals("and leaving the call to others") as stop, open_engine("local", workers=1) as engine:
        done = do_calls(
            options.call,
            engine,
            wait=options.wait,
            poll=poll_of(stop.is_set, "stopped; a call that is not done stays open for others"),
            tell=lambda path: say(f"did {path.stem}"),
            warn=lambda error: say(f"warning: {error}"),
        )
    if options.json:
        print_json({"done": done})
    else:
        none = "; no run that is at work puts any there" if not done and options.wait else ""
        say(f"{done:,} call{'s' if done != 1 else ''} done{none}")
    return DONE
