"""A run of a corpus that is open already, for the Python face: what `datamask select` leaves, and the selection."""

from __future__ import annotations

from pathlib import Path

from datamask.config import RunConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import InputError, Stopped
from datamask.evaluation.selection import Selection
from datamask.runs.attempt import attempt
from datamask.runs.callbacks import Callbacks
from datamask.runs.rooted import rooted
from datamask.runs.stages import open_pool
from datamask.runs.store import Run, RunStore
from datamask.work.context import UNWATCHED, Work


def select_as_run(
    corpus: Corpus,
    config: SelectionConfig,
    runs_dir: str | Path,
    *,
    cache_dir: str | Path | None = None,
    work: Work = UNWATCHED,
) -> tuple[Run, Selection]:
    """Make a run in `runs_dir`, and do it.

    Args:
        cache_dir: where neighbour graphs and anchors are kept; None: where the runs folder keeps them.

    Raises:
        InputError: the corpus was not read from files. Stopped: from `work`; the run can be resumed.
        DatamaskError: as they come; the run then says so, too.
    """
    source = corpus.provenance.config
    if source is None:
        raise InputError("runs_dir must be None for a corpus that was not read from files: a run names its shards")
    store = RunStore(Path(runs_dir).absolute())
    wanted = rooted(RunConfig(source, config))
    cache_folder = store.cache_dir if cache_dir is None else Path(cache_dir)
    pool = open_pool(wanted.corpus, config, cache_folder, work, lambda: corpus)
    run = store.create(wanted)
    taken: list[Selection] = []
    outcome = attempt(run, work, pool=pool, callbacks=Callbacks(take=taken.append))
    if outcome.error is not None:
        raise outcome.error
    if not taken:
        raise Stopped(f"stopped; `datamask resume {run.id} --runs_dir {runs_dir}` continues it")
    return run, taken[0]
