"""A finished run taken apart: why its samples are in, or not."""

from __future__ import annotations

import torch

from datamask.analyses.explanation.compute import Explainer
from datamask.errors import RunStateError
from datamask.evaluation.pool import Pool
from datamask.runs.mapping import corpus_of
from datamask.runs.store import Run
from datamask.work.cache import FOLDER
from datamask.work.context import UNWATCHED, Work


def explainer_of(run: Run, work: Work = UNWATCHED, *, pool: Pool | None = None) -> Explainer:
    """The explainer of a run's selection; its graph and anchors come from the cache beside the runs.

    Args:
        run: done.
        pool: the run's corpus, where the caller has it bound already; None opens it, on the CPU.

    Raises:
        RunStateError: the run is not done, or the corpus has changed since.
        InputError, OptionError: as opening and posing raise them. Stopped: from `work`.
    """
    state = run.status().state
    if state != "done":
        raise RunStateError(f"run {run.id} is {state}; only a done run has a selection to explain")
    if pool is None:
        settings, cpu = run.config.selection, torch.device("cpu")
        corpus = corpus_of(run, work.part(0.0, 0.5))
        pool = Pool.under(settings, corpus, cpu, run.path.parent / FOLDER, work.part(0.5, 0.8))
    recorded = run.facts().get("fingerprint")
    if recorded != pool.corpus.fingerprint:
        raise RunStateError(
            f"the corpus of run {run.id} has changed since (fingerprint {str(recorded)[:12]}, now "
            f"{pool.corpus.fingerprint[:12]}); its selection cannot be explained on other rows"
        )
    work.report(0.8, "computing what each row adds")
    mask = run.mask()
    explainer = Explainer(pool, run.config.selection, mask, work.poll)
    work.report(1.0, "computing what each row adds")
    return explainer
