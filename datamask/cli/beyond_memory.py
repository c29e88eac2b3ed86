"""What `select` does with a corpus that does not fit into memory: all rows where that takes at most an hour."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from datamask.cli.common import shell
from datamask.cli.output import say
from datamask.config import RunConfig
from datamask.errors import OptionError
from datamask.work.context import Work

MOST_MINUTES = 60.0
"""A longer forecast is for a person to accept."""

MOST_TIME = "1 h"


def settle(options: argparse.Namespace, config: RunConfig, work: Work) -> RunConfig:
    """Return the settings of a run as they are carried out: in memory, over all rows, or on a sample (--rows).

    A corpus that fits into memory is solved there. A larger one is solved over all rows with --all, and without it if
    the forecast is at most an hour and the disk has room.

    Args:
        options: of `select`, with the words of its command line as `typed`. config: what they say.

    Raises:
        OptionError: all rows take too long or too much disk without --all.
        InputError, RemoteError: the shards cannot be read. Stopped: from `work`.
    """
    from datamask.corpus.opening import look_at

    selection = config.selection
    if selection.scratch_dir is not None:
        return config
    look = look_at(config.corpus, work.poll)
    for sentence in (look.used, *look.notes):
        say(sentence)
    total, most = look.rows, look.fitting
    if total <= most:
        return replace(config, selection=replace(selection, all_rows=False))
    all_rows = selection.all_rows
    if config.corpus.rows is not None and not all_rows:
        return config
    beyond = replace(config, selection=replace(selection, all_rows=True))
    if not all_rows and not options.dry_run:
        _check_forecast(options, beyond, total, most, work)
    return beyond


def _check_forecast(options: argparse.Namespace, config: RunConfig, total: int, most: int, work: Work) -> None:
    """Print what all rows take, and refuse what takes long or has no room."""
    from datamask.runs.forecast import forecast, room

    say(f"the corpus does not fit into memory: {most:,} of {total:,} rows do; forecasting a selection from all rows")
    told = forecast(config, work.poll)
    place, has_room = room(config, told, Path(options.runs_dir))
    say(told.sentence)
    say(place)
    if told.minutes <= MOST_MINUTES and has_room:
        return
    say(f"from a uniform sample: {shell([*options.typed, '--rows', str(most)])}")
    say(f"from all rows: {shell([*options.typed, '--all'])}")
    why = f"takes more than {MOST_TIME}" if has_room else "has no room for its files"
    raise OptionError(f"a selection from all {total:,} rows {why}; run one of the two commands above")
