"""Layouts as jobs, outside every lane."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from datamask.corpus import Corpus
from datamask.corpus.projections import DEFAULT
from datamask.corpus.projections.layouts import compute_layout
from datamask.work.job import Job
from datamask.work.worker import worker

_NUMBERS = count()


def start_layout(corpus: Corpus, cache_dir: Path, projection: str = DEFAULT) -> Job:
    """A job of its own that computes a layout: it joins no other."""
    return worker().start(
        f"layout {next(_NUMBERS)}", lambda job: compute_layout(corpus, cache_dir, projection, work=job.work)
    )


def waited(job: Job, seconds: float = 120.0) -> tuple[str, str]:
    """How it ended, and the sentence where it failed."""
    assert job.wait(seconds)
    return job.state, job.error
