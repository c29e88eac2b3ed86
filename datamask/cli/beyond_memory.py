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
    """Return the settings of a run as they are carried out: in memory, over all rows, or on a sample.

    A corpus that fits into memory is solved there. A larger one is solved over all rows with --all, and without it if
    the forecast is at most an hour and the disk has room. Methods without a solver for all rows take a sample, which
    stderr says.

    Args:
        options: of `select`, with the words of its command line as `typed`. config: what they say.

    Raises:
        OptionError: all rows take too long or too much disk without --all, or another option refuses --all.
        InputError, RemoteError: the shards cannot be read. Stopped: from `work`.
    """
    from datamask.corpus.opening import look_at
    from datamask.out_of_core.solvers import solver_for
    from datamask.out_of_core.whole_corpus import check_wholly_readable

    selection = config.selection
    if selection.scratch_dir is not None:
        solver_for(selection)
        check_wholly_readable(config.corpus)
        return config
    look = look_at(config.corpus, work.poll)
    for sentence in (look.used, *look.notes):
        say(sentence)
    total, most = look.rows, look.fitting
    if total <= most:
        return _in_memory(config)
    all_rows = selection.all_rows
    if config.corpus.rows is not None and not all_rows:
        return config
    way_out = "leave --all out for a sample" if all_rows else "--rows N takes a sample of another size"
    try:
        beyond = replace(config, selection=replace(selection, all_rows=True))
        solver_for(beyond.selection, way_out)
        check_wholly_readable(config.corpus, way_out)
    except OptionError as error:
        if all_rows:
            raise
        say(f"the corpus does not fit into memory. A uniform sample of {most:,} rows is taken: {error}")
        return config
    if not all_rows and not options.dry_run:
        _check_forecast(options, beyond, total, most, work)
    return beyond


def _in_memory(config: RunConfig) -> RunConfig:
    """Return settings without --all."""
    engine = config.selection.engine
    if engine != "local":
        say(f"the corpus fits into memory and is solved there, without --engine {engine}; --scratch_dir FOLDER uses it")
    return replace(config, selection=replace(config.selection, all_rows=False))


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
    why = f"takes more than {MOST_TIME}" if has_room else "has no room for its scratch"
    raise OptionError(f"a selection from all {total:,} rows {why}; run one of the two commands above")
