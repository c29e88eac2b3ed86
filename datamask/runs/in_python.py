"""A run of a corpus that is open already, for the Python face: what `datamask select` leaves, and the selection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from datamask.config import RunConfig, SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.corpus.shards import list_files
from datamask.errors import InputError, Stopped
from datamask.evaluation.pool import Pool
from datamask.evaluation.selection import Selection
from datamask.learning.device import resolve
from datamask.polling import poll_of
from datamask.runs import digests
from datamask.runs.attempt import attempt
from datamask.runs.rooted import rooted
from datamask.runs.store import Run, RunStore


def select_as_run(
    corpus: Corpus,
    config: SelectionConfig,
    runs_dir: str | Path,
    *,
    cache_dir: str | Path | None = None,
    progress: Callable[[float, str], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[Run, Selection]:
    """Make a run in `runs_dir`, and do it.

    Args:
        cache_dir: where neighbour graphs and anchors are kept; None: where the runs folder keeps them.

    Raises:
        InputError: the corpus was not read from files. Stopped: `should_stop` answered true; the run can be resumed.
        DatamaskError: as they come; the run then says so, too.
    """
    source = corpus.provenance.config
    if source is None:
        raise InputError("runs_dir must be None for a corpus that was not read from files: a run names its shards")
    device = resolve(config.device)
    store = RunStore(Path(runs_dir).absolute())
    wanted = rooted(RunConfig(source, config))
    stamps = digests.stamps(list_files(wanted.corpus.inputs, poll=poll_of(should_stop)), should_stop)
    pool = Pool(
        corpus,
        device,
        store.cache_dir if cache_dir is None else Path(cache_dir),
        poll=poll_of(should_stop),
        progress=progress,
        center=config.center,
        neighbors=config.neighbors,
    )
    pool.stamps = stamps
    run = store.create(wanted)
    taken: list[Selection] = []
    outcome = attempt(run, should_stop=should_stop, progress=progress, pool=pool, take=taken.append)
    if outcome.error is not None:
        raise outcome.error
    if not taken:
        raise Stopped(f"stopped; `datamask resume {run.id} --runs_dir {runs_dir}` continues it")
    return run, taken[0]
