"""The Python interface: a selection in one call, in memory or as a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from datamask import learning
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import OptionError
from datamask.evaluation.pool import Pool
from datamask.evaluation.problems import pose
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.learning.loop import UNWATCHED, ShareWatch, learn
from datamask.work.context import Work


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
    """Select a subset of a corpus.

    Args:
        corpus: from `open_corpus`.
        config: the settings, or None to give them as keyword arguments.
        cache_dir: folder for neighbor graphs and anchors. None: the runs folder, or none.
        runs_dir: folder in which the selection is kept as a run. None: in memory only.
        progress: called with a share from 0 to 1 and a few words.
        should_stop: polled at least every 0.3 s of work; True stops.
        **options: settings named as on the command line, such as ``objective="pairwise"``, ``lamb=0.5`` and
            ``select_ratio=0.3``; the others have their defaults.

    Returns:
        The selected rows with ids, scores and values. `Selection.show` says where the dashboard shows a run.

    Raises:
        OptionError: an option is out of range, unknown, or of another method.
        TypeError: both `config` and options are given.
        Stopped: `should_stop` returned True.
        InputError: `runs_dir` is given, and the corpus was not read from files.

    Examples:
        >>> from datamask import CorpusConfig, open_corpus, select
        >>> corpus = open_corpus(CorpusConfig(["sample_data/tiny"]))
        >>> selection = select(corpus, objective="pairwise", lamb=0.5, select_ratio=0.1)
        >>> len(selection.rows) == round(0.1 * len(corpus))
        True
    """
    if config is not None and options:
        raise TypeError(f"give either config or options, got both: config and {', '.join(options)}")
    config = config or SelectionConfig.from_options(**options)
    if runs_dir is not None:
        from datamask.runs.in_python import select_as_run

        run, selection = select_as_run(
            corpus, config, runs_dir, cache_dir=cache_dir, work=Work.of(should_stop, progress)
        )
        return replace(selection, run=run.path)

    if config.scratch_dir is not None:
        raise OptionError(
            "scratch_dir says where the arrays of a run lie, and this corpus is open already; open it with "
            "open_corpus(into=...), or give runs_dir too"
        )
    work = Work.of(should_stop, progress)
    poll = work.poll
    with tempfile.TemporaryDirectory(prefix="datamask-") as scratch:
        pool = Pool.under(config, corpus, resolve(config.device), Path(cache_dir or scratch), work)
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
