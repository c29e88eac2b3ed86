"""The Python face of the project: a selection in one call, in memory, or as a run that the dashboard shows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from datamask import learning
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError, poll_of
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.learning.loop import UNWATCHED, ShareWatch, learn


def select(
    corpus: Corpus,
    config: SelectionConfig | None = None,
    *,
    cache_dir: str | Path | None = None,
    runs_dir: str | Path | None = None,
    progress: Callable[[float, str], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Selection:
    """Choose a subset of a corpus.

    Args:
        corpus: from `open_corpus`.
        config: the settings; or give them as keyword arguments named as on the command line (``objective="pairwise"``,
            ``lamb=0.5``, ``select_ratio=0.3`` ...), missing ones at their defaults.
        cache_dir: where neighbour graphs and anchors are kept between calls; None: in the runs folder, and without one
            for this call only.
        runs_dir: keep the selection as a run in this folder, as the command line does; then `Selection.show` tells
            where to look at it. None: it is in memory only.
        progress: called with a share from 0 to 1 and a few words.
        should_stop: polled at least every 0.3 s of work.

    Raises:
        OptionError: an option is out of range, unknown, or of another estimator. TypeError: both `config` and options
        are given. Stopped: `should_stop` answered true. InputError: `runs_dir` is given, and the corpus was not read
        from files.
    """
    if config is not None and options:
        raise TypeError(f"give either config or options, got both: config and {', '.join(options)}")
    config = config or SelectionConfig.from_options(**options)
    if runs_dir is not None:
        from datamask.runs.in_python import select_as_run

        run, selection = select_as_run(
            corpus, config, runs_dir, cache_dir=cache_dir, progress=progress, should_stop=should_stop
        )
        return replace(selection, run=run.path)

    if config.scratch_dir is not None:
        raise OptionError(
            "scratch_dir asks for all rows out of core, and this corpus is open in memory; leave it out, or give "
            "runs_dir too: such a selection is a run"
        )
    poll = poll_of(should_stop)
    with tempfile.TemporaryDirectory(prefix="datamask-") as scratch:
        pool = Pool(
            corpus,
            resolve(config.device),
            Path(cache_dir or scratch),
            poll=poll,
            progress=progress,
            center=config.center,
            neighbors=config.neighbors,
        )
        posed = pose(pool, config, poll)
        estimator = learning.load(config.estimator)(posed.problem, config)
        learned = learn(estimator, poll=poll, watch=ShareWatch(estimator, progress) if progress else UNWATCHED)
        return Selection.measured(
            corpus,
            config,
            posed,
            learned.mask,
            estimator.logits(learned.state),
            poll,
            inclusion=estimator.inclusion(learned.state, poll),
        )
