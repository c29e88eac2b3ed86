"""The Python face of the project: a selection in one call, in memory, without a run folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datamask import learning
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import poll_of
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
    progress: Callable[[float, str], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Selection:
    """Choose a subset of a corpus.

    Args:
        corpus: from `open_corpus`.
        config: the settings; or give them as keyword arguments named as on the command line (``objective="pairwise"``,
            ``lamb=0.5``, ``select_ratio=0.3`` ...), missing ones at their defaults.
        cache_dir: where neighbour graphs and anchors are kept between calls; None keeps them for this call only.
        progress: called with a share from 0 to 1 and a few words.
        should_stop: polled at least every 0.3 s of work.

    Raises:
        OptionError: an option is out of range, unknown, or of another estimator. TypeError: both `config` and options
        are given. Stopped: `should_stop` answered true.
    """
    if config is not None and options:
        raise TypeError(f"give either config or options, got both: config and {', '.join(options)}")
    config = config or SelectionConfig.from_options(**options)

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
        return Selection.measured(corpus, config, posed, learned.mask, estimator.logits(learned.state), poll)
