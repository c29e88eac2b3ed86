"""Agreements behind a page: counted on request in the background, one thread, and kept on disk.

They wait for the runs and give way to them. Torch is loaded inside the thread.
"""

from __future__ import annotations

from pathlib import Path

from datamask.corpus import Corpus
from datamask.dashboard.drawing.signs import Sign
from datamask.runs.store import Run
from datamask.work.job import Job
from datamask.work.lanes import Priority
from datamask.work.worker import worker


def agreement_key(run: Run, corpus: Corpus) -> str:
    """The name under which the worker knows the agreement of this run."""
    return f"agreement-{run.id}-{corpus.fingerprint}"


def start_agreement(run: Run, corpus: Corpus, cache_dir: Path, sign: Sign | None = None) -> Job:
    """Select again on random parts of the corpus; joins the work under way where there is one."""

    def work(job: Job) -> None:
        from datamask.analyses.agreement import compute
        from datamask.evaluation.threads import threads

        with threads(1):
            compute.write_agreement(run, corpus, cache_dir, job.work)

    return worker().start(agreement_key(run, corpus), work, device="cpu", priority=Priority.SWEEP, sign=sign)
