"""Sweeps of the page Frontier: what to compute, and computing it in the background as runs like any other.

One sweep at a time per open corpus. It takes turns with single runs for the device, and points that any run of the same
settings has done already are read, not computed. Loads torch only inside the background thread.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from datamask.analyses.frontier import kinds
from datamask.dashboard.drawing.signs import Sign
from datamask.runs.store import RunStore
from datamask.runs.varying import Plan
from datamask.work import lanes
from datamask.work.context import Work
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.pace import TELLING_RUNS, RunPace
from datamask.work.worker import worker


def key_of(fingerprint: str) -> str:
    """The name under which the worker knows the sweep on a corpus."""
    return f"sweep-{fingerprint}"


def start(root: str | Path, fingerprint: str, plan: Plan, vary: str = kinds.LAMBDA) -> Job:
    """Do a plan in the background; joins the sweep under way on that corpus.

    Args:
        vary: of `kinds`, under which the page Frontier shows it.

    The job's result is the sentence of the first point that failed, or an empty string.
    """
    pace = RunPace()

    def work(job: Job) -> str:
        # torch comes with them, so only here
        from datamask.evaluation.threads import threads
        from datamask.runs import run_queue
        from datamask.runs.sweep import sweep

        cores, device = run_queue.beside_the_server(), run_queue.device_key(plan.points[0].selection.device)

        def turn() -> contextlib.AbstractContextManager:
            job.report(job.share, "waiting for its turn")
            return pace.run(lanes.turn(device, Priority.SWEEP, job.poll))

        with threads(cores):
            done = sweep(RunStore(root), plan, Work(job.poll, job.report, cores), reuse=True, turn=turn)
        trouble = next((f"{result.point.words}: {result.error}" for result in done if result.error), "")
        if not trouble:
            job.poll()
        return trouble

    count = len(plan.points)
    sign = Sign(
        f"Sweep of {count:,} runs" if count > 1 else "One more run",
        "pages/frontier.py",
        {"vary": kinds.LABELS[vary]},
        (plan.id,),
    )
    return worker().start(key_of(fingerprint), work, sign=sign, pace=pace.update if count > TELLING_RUNS else None)
