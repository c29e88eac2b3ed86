"""A finished run taken apart: why its samples are in, or not."""

from __future__ import annotations

from collections.abc import Callable

import torch

from datamask.corpus.shared_corpora import shared_corpora
from datamask.errors import RunStateError
from datamask.evaluation.explaining import Explainer
from datamask.evaluation.pool import Pool
from datamask.polling import poll_of
from datamask.runs.store import Run


def explainer_of(
    run: Run,
    *,
    pool: Pool | None = None,
    progress: Callable[[float, str], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Explainer:
    """The explainer of a run's selection; its graph and anchors come from the cache beside the runs.

    Args:
        run: done.
        pool: the run's corpus, where the caller has it bound already; None opens it, on the CPU.
        progress: called with a share from 0 to 1 and a few words. should_stop: polled at least every 0.3 s of work.

    Raises:
        RunStateError: the run is not done, or the corpus has changed since.
        InputError, OptionError: as opening and posing raise them. Stopped: `should_stop` answered true.
    """
    state = run.status().state
    if state != "done":
        raise RunStateError(f"run {run.id} is {state}; only a done run has a selection to explain")

    poll = poll_of(should_stop, "explaining was stopped")
    report = progress or (lambda share, what: None)
    if pool is None:
        corpus = shared_corpora().get(
            run.config.corpus, progress=lambda share, what: report(0.5 * share, what), should_stop=should_stop
        )
        pool = Pool(
            corpus,
            torch.device("cpu"),
            run.path.parent / ".cache",
            poll=poll,
            progress=lambda share, what: report(0.5 + 0.3 * share, what),
            center=run.config.selection.center,
            neighbors=run.config.selection.neighbors,
        )
    recorded = run.facts().get("fingerprint")
    if recorded != pool.corpus.fingerprint:
        raise RunStateError(
            f"the corpus of run {run.id} has changed since (fingerprint {str(recorded)[:12]}, now "
            f"{pool.corpus.fingerprint[:12]}); its selection cannot be explained on other rows"
        )
    report(0.8, "taking the selection apart")
    mask = run.mask()
    explainer = Explainer(pool, run.config.selection, mask, poll)
    report(1.0, "taking the selection apart")
    return explainer
