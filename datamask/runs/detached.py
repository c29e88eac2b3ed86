"""A run in a process of its own, which outlives whoever started it: a terminal, a notebook, a web server.

The starter holds the run's ``queue`` lock and hands it to the driver (`datamask.runs.driver`) with the open file, so
that there is no moment in which nobody holds it and a reader takes the run for interrupted. From then on both meet in
the run folder alone: whoever wants to look, to stop or to resume does so as with any other run.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from datamask.config import RunConfig
from datamask.errors import RunStateError, StoreError
from datamask.process import child_environment
from datamask.runs.rooted import rooted
from datamask.runs.store import Run, RunStore, default_root
from datamask.work.locks import FileLock

LOG = "driver.log"
"""In the run folder: what the driver and its libraries print."""


def start_run(config: RunConfig, runs_dir: str | Path | None = None, output: str | Path | None = None) -> Run:
    """Start a run in a separate process, which continues when this one ends.

    Args:
        config: corpus, selection, name and notes.
        runs_dir: folder of the runs. None: that of the command line.
        output: file for a copy of the selection. None: the selection is in the run folder only.

    Returns:
        The run. ``run.status().state`` is queued, running, and then done, stopped or failed; ``run.request_stop()``
        stops it.

    Raises:
        StoreError: the runs folder cannot be written.

    Examples:
        >>> from tempfile import mkdtemp
        >>> from datamask import CorpusConfig, RunConfig, SelectionConfig, start_run
        >>> selection = SelectionConfig.from_options(objective="pairwise", select_ratio=0.1)
        >>> run = start_run(RunConfig(CorpusConfig(["sample_data/tiny"]), selection), runs_dir=mkdtemp())
        >>> run.status().state in ("queued", "running", "done")
        True
    """
    run = RunStore(default_root() if runs_dir is None else runs_dir).create(
        rooted(config), None if output is None else str(Path(output).absolute())
    )
    start_detached(run)
    return run


def start_detached(run: Run, objectives: Sequence[str] = ()) -> int:
    """Have a new, stopped, failed or interrupted run done in a process of its own; the number of that process.

    Args:
        objectives: custom ones, ``module:Class``, which the run may load because a person named them now.

    Raises:
        RunStateError: it is done, running, or waits in a queue already.
        StoreError: the run folder cannot be written.
    """
    status = run.status()
    if status.state in ("done", "running"):
        raise RunStateError(
            f"run {run.id} is {status.state}; only a new, stopped, failed or interrupted run can be started"
        )
    lock = FileLock(run.path / "queue")
    if not lock.acquire():
        raise RunStateError(f"run {run.id} is already waiting in another queue")
    try:
        if status.state != "queued":
            with run.writer() as writer:
                writer.set_status("queued")
        return _start_driver(run, lock, objectives)
    finally:
        # this end of it: the driver has its own by now
        lock.release()


def _start_driver(run: Run, lock: FileLock, objectives: Sequence[str]) -> int:
    handle = lock.handle
    try:
        with (run.path / LOG).open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, "-m", "datamask.runs.driver", str(run.path.absolute()), str(handle), *objectives],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=child_environment(),
                pass_fds=[handle],
                # no signal that a terminal sends to what runs in it, and no hang-up when it closes
                start_new_session=True,
            )
    except OSError as error:
        raise StoreError(f"the driver of run {run.id} cannot be started: {error.strerror or error}") from error
    # a starter that lives on must take note of its end, or the process stays in the system's table
    threading.Thread(target=driver.wait, name=f"driver of {run.id}", daemon=True).start()
    return driver.pid
