"""Sweeps of the page Frontier: what to compute, and computing it in the background as runs like any other.

One sweep at a time per open corpus. It takes turns with single runs for the device, and points that any run of the same
settings has done already are read, not computed. Loads torch only inside the background thread.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path

from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import Sign
from datamask.dashboard.runs import outcome
from datamask.dashboard.runs import sweep_kinds as kinds
from datamask.runs.store import RunStore
from datamask.runs.varying import Plan, Point
from datamask.work import lanes
from datamask.work.context import Work
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.pace import TELLING_RUNS, RunPace
from datamask.work.worker import worker


def key_of(fingerprint: str) -> str:
    """The name under which the worker knows the sweep on a corpus."""
    return f"sweep-{fingerprint}"


def start(root: str | Path, fingerprint: str, plans: Sequence[Plan], vary: str = kinds.LAMBDA) -> Job:
    """Do these plans, one after the other, in the background; joins the sweep under way on that corpus.

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

        trouble, cores = "", run_queue.beside_the_server()
        total = sum(len(plan.points) for plan in plans)
        before = 0

        def turn(device: str) -> contextlib.AbstractContextManager:
            job.report(job.share, "waiting for its turn")
            return pace.run(lanes.turn(run_queue.device_key(device), Priority.SWEEP, job.poll))

        for plan in plans:

            def report(share: float, what: str, plan: Plan = plan, before: int = before) -> None:
                job.report((before + share * len(plan.points)) / total, what)

            device = plan.points[0].selection.device
            with threads(cores):
                done = sweep(
                    RunStore(root),
                    plan,
                    Work(job.poll, report, cores),
                    reuse=True,
                    turn=functools.partial(turn, device),
                )
            trouble = trouble or next((f"{result.point.words}: {result.error}" for result in done if result.error), "")
            before += len(plan.points)
            if not trouble:
                job.poll()
            elif job.work.stopping():
                break
        return trouble

    count = sum(len(plan.points) for plan in plans)
    sign = Sign(
        f"Sweep of {count:,} runs" if count > 1 else "One more run",
        "pages/frontier.py",
        {"vary": kinds.LABELS[vary]},
        tuple(plan.id for plan in plans),
    )
    return worker().start(key_of(fingerprint), work, sign=sign, pace=pace.update if count > TELLING_RUNS else None)


def plan_name(point: Point) -> str:
    """What the runs of a sweep are called before their swept setting: objective and ratio."""
    settings = point.selection
    return f"{outcome.objective_label(settings.objective)}, {words.percent(settings.select_ratio)}"
