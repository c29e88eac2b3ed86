"""Execute a run: its stages, one after the other, under the run's lock.

It reads the run's config and writes everything through the run's writer. It catches nothing but its own stop: whoever
calls it (the job thread, the command line) turns errors into a failed status.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch

from datamask.errors import RunStateError, Stopped
from datamask.evaluation.pool import Pool
from datamask.evaluation.result import RunResult
from datamask.process import asked_threads
from datamask.runs import stages
from datamask.runs.callbacks import Callbacks
from datamask.runs.execution import Execution
from datamask.runs.store import Run
from datamask.work.context import UNWATCHED, Work

DEFAULT_THREADS = torch.get_num_threads()
"""As torch found them."""

Stage = Callable[[Execution], None]

STAGES: tuple[Stage, ...] = (
    stages.load_corpus,
    stages.pose_problem,
    stages.learn_selection,
    stages.measure_selection,
    stages.write_selection,
)
"""Of every run, whether its arrays are in memory or in mapped files."""


def execute(
    run: Run, work: Work = UNWATCHED, *, pool: Pool | None = None, callbacks: Callbacks | None = None
) -> RunResult | None:
    """Do a run from where it stands to its end, or to where it is stopped.

    Args:
        run: queued, stopped, failed or interrupted; a checkpoint is taken up where there is one.
        work: a resumed run keeps the threads it started with, so that it ends in the same selection as an unbroken one.
        pool: the run's corpus with what is already bound to it, shared by the runs of a sweep; None opens the corpus.

    Returns:
        The result; None where the run was stopped.

    Raises:
        RunStateError: the run is already done, or another worker holds it, or the corpus changed since its checkpoint.
        InputError, OptionError, StoreError: as they come.
    """
    with run.writer() as writer:
        if run.status().state == "done":
            raise RunStateError(f"run {run.id} is done; start a new one to select again")
        writer.set_status("running", message="starting")
        threads = int(run.facts().get("threads") or work.threads or asked_threads() or DEFAULT_THREADS)
        torch.set_num_threads(threads)
        writer.update_facts(threads=threads)
        try:
            with contextlib.ExitStack() as held:
                execution = Execution(run, writer, work, callbacks or Callbacks(), held, pool)
                for stage in STAGES:
                    execution.poll()  # here, not after the last one: a run that is done is not stopped
                    stage(execution)
        except Stopped:
            writer.finish("stopped", ending="stopped on request")
            return None
    execution.pace.over()
    work.report(1.0, "done")
    execution.callbacks.take(execution.selection)
    return execution.selection.result
