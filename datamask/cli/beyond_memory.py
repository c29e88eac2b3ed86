"""Where `select` solves a corpus: in memory, or in mapped files if it does not fit there."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from datamask.cli.output import say
from datamask.config import RunConfig
from datamask.errors import OptionError
from datamask.memory import lies_in_memory
from datamask.runs.folders import SCRATCH
from datamask.work.context import Work


def settle(options: argparse.Namespace, config: RunConfig, work: Work) -> RunConfig:
    """Return the settings of a run as they are carried out: all rows that do not fit into memory lie in mapped files.

    Args:
        options: of `select`. config: what they say.

    Raises:
        OptionError: the files save no memory beside the runs, or have no room there.
        InputError, RemoteError: the shards cannot be read. StoreError, Stopped: as `datamask.runs.forecast.forecast`.
    """
    from datamask.corpus.opening import look_at
    from datamask.runs.forecast import LARGER_DISK, forecast

    selection, root, look = config.selection, Path(options.runs_dir).absolute(), look_at(config.corpus, work.poll)
    for sentence in (look.used, *look.notes):
        say(sentence)
    if selection.scratch_dir is not None or config.corpus.rows is not None or look.rows <= look.fitting:
        return config
    folder = root / SCRATCH
    config = replace(config, selection=replace(selection, scratch_dir=str(folder)))
    if lies_in_memory(folder):
        raise OptionError(
            f"{folder} lies in memory (tmpfs), where files save none; name a disk with --scratch_dir, or take a "
            "uniform sample with --rows N"
        )
    if options.dry_run:
        return config
    told = forecast(config, root, work.poll)
    if not told.fits:
        raise OptionError(f"{look.rows:,} rows do not fit into memory, and take {told.disk}; {LARGER_DISK}")
    say(
        f"{look.fitting:,} of {look.rows:,} rows fit into memory, so all are selected from in mapped files; --rows N "
        f"takes a uniform sample instead. {told.takes}"
    )
    return config
