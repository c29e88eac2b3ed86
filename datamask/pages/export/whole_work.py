"""What takes long around a run on all rows, behind the Export page: its plan, and counting what its groups kept. Pure.

The run itself is done by a process of its own (`datamask.runs.applying`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from datamask.config import RunConfig
from datamask.polling import poll_of
from datamask.runs import applying
from datamask.runs.forecast import Forecast, forecast
from datamask.runs.store import Run
from datamask.work.job import Job
from datamask.work.worker import worker


def plan_key(config: RunConfig) -> str:
    """The name under which the worker knows the plan of a run on all rows."""
    return f"plan of all rows {hashlib.blake2b(repr(config).encode(), digest_size=12).hexdigest()}"


def groups_key(whole: Run, column: str) -> str:
    """The name under which the worker knows the counting of a run's groups."""
    return f"groups of all rows {whole.path.resolve()} {column}"


def start_plan(config: RunConfig, root: Path) -> Job:
    """Plan it, or join the job that does. root: the folder of the runs."""

    def work(job: Job) -> Forecast:
        job.report(0.0, "Timing the first rows")
        # asked without giving way: it times what it does, and waiting in the middle would be timed too
        return forecast(config, root, poll_of(lambda: job.stopping))

    return worker().start(plan_key(config), work, device="cpu")


def start_counting(whole: Run, column: str) -> Job:
    """Count what each group of a finished run on all rows kept, or join whoever does."""
    return worker().start(groups_key(whole, column), lambda job: applying.groups_of(whole, column, job.work))
