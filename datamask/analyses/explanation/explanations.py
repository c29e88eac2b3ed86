"""Why single samples are in a run's selection, or not: asked for by a page, found in a thread, kept for a while.

Taking a selection apart opens its corpus and measures every score, so it is done once per run, and the latest runs are
kept for all sessions. Answers are jobs (`datamask.work.worker`); only they load torch.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from datamask.analyses.frontier import tables as frontier
from datamask.dashboard.drawing.signs import Sign
from datamask.polling import Poll
from datamask.process import held
from datamask.runs.store import Run
from datamask.work import lanes
from datamask.work.context import Work
from datamask.work.job import Job
from datamask.work.worker import worker

if TYPE_CHECKING:
    from datamask.analyses.explanation.compute import Explainer, Explanation, Flip

KEPT = 2
"""Runs taken apart that are kept; each holds some ten numbers a row and its corpus's neighbour lists."""

MEMBERSHIPS = 128
"""Stored selections whose members are kept, a bit a row."""


@dataclass(frozen=True)
class Along:
    """Whether a sample is in the stored runs that differ from one run in lambda alone.

    Attributes:
        lambdas: rising; inside: whether it is in at each; run_ids: the runs.
        intervals: first and last lambda of each stretch at which it is in.
        others: stored runs on the corpus besides this one, whatever their settings.
    """

    lambdas: tuple[float, ...] = ()
    inside: tuple[bool, ...] = ()
    run_ids: tuple[str, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    others: int = 0


@dataclass(frozen=True)
class Answer:
    """Everything about one sample under one run.

    Attributes:
        explanation: why it is in or out. sd: standard deviation of the scores of all samples that could be selected.
        exceptions: how many samples are on the other side of the threshold than their score says.
        copies: rows that were left out as near-copies of this one.
        along: the sample over lambda.
    """

    explanation: Explanation
    sd: float
    exceptions: int
    copies: tuple[int, ...]
    along: Along


def ask(run: Run, row: int, runs: Sequence[Run]) -> Job:
    """The job whose result is the `Answer` about a row, started where there is none.

    Args:
        run: done. runs: finished runs on its corpus; those that differ in lambda alone give `Answer.along`.
    """
    known = hashlib.sha256(" ".join(sorted(listed.id for listed in runs)).encode()).hexdigest()[:12]
    key = f"why {run.path} {row} {known}"

    def work(job: Job) -> Answer:
        with _explainer(run, job.work.part(0.0, 0.9)) as explainer:
            job.report(0.9, "finishing")
            explanation = explainer.explain([row], job.poll)[0]
            copies = tuple(explainer.copies_of(row).tolist())
        return Answer(explanation, explainer.sd, explainer.exceptions, copies, _along(run, row, runs, job.poll))

    return _joined(key, work)


def flip(run: Run, row: int, along: Along, sign: Sign | None = None) -> Job:
    """Start looking for the lambda at which a row changes sides; the job's result is a `Flip`.

    Args:
        along: the stored runs beside it; what they say of the row need not be found out again.
        sign: how the menu names the search.
    """

    def work(job: Job) -> Flip:
        import torch

        from datamask.analyses.explanation.compute import Again, find_flip

        with _explainer(run, job.work.part(0.0, 0.1)) as explainer:
            # kept with the explainer, under its lock: what is selected for one sample serves the next
            kept = _holder().again
            if str(run.path) not in kept:
                kept[str(run.path)] = Again(explainer.pool, run.config.selection, explainer.mask, job.poll)
            again = kept[str(run.path)]
        # under a lock of its own: it takes a while, and other samples are to be explained meanwhile
        with _held(_holder().selecting, job.work):
            torch.set_num_threads(1)
            return find_flip(
                again,
                row,
                dict(zip(along.lambdas, along.inside)),
                work=job.work.part(0.1, 1.0),
            )

    return worker().start(flip_key(run, row), work, device="cpu", sign=sign)


def flip_key(run: Run, row: int) -> str:
    """The key of the job that `flip` starts."""
    return f"flip {run.path} {row}"


def _joined(key: str, work: Callable[[Job], object]) -> Job:
    """The job of that key, whatever its state, or a new one."""
    job = worker().find(key)
    return job if job is not None else worker().start(key, work, device="cpu")


@contextlib.contextmanager
def _explainer(run: Run, work: Work) -> Iterator[Explainer]:
    """The run's explainer, for this thread alone as long as it is held; made where it is not kept."""
    import torch

    from datamask.analyses.explanation.compute.explained_run import explainer_of

    holder = _holder()
    with _held(holder.lock, work):
        torch.set_num_threads(1)  # of this thread: the pages want the other cores
        key = str(run.path)
        explainer = holder.explainers.get(key)
        if explainer is None:
            explainer = explainer_of(run, work)
            holder.explainers[key] = explainer
        holder.explainers.move_to_end(key)
        while len(holder.explainers) > KEPT:
            holder.again.pop(holder.explainers.popitem(last=False)[0], None)
        yield explainer


def _held(lock: threading.Lock, work: Work) -> contextlib.AbstractContextManager:
    return lanes.locked(lock, work.poll, lambda: work.report(0.0, "another answer is being worked out"))


def _along(run: Run, row: int, runs: Sequence[Run], poll: Poll) -> Along:
    """The row in every stored run of the same curve and seed."""
    from datamask.analyses.explanation.compute import intervals

    by_id = {listed.id: listed for listed in runs}
    lines = frontier.survey(by_id.values(), run.facts().get("fingerprint")).lines
    mine = next((line for line in lines if any(spot.run_id == run.id for spot in line.spots)), None)
    others = sum(run_id != run.id for run_id in by_id)
    if mine is None:
        return Along(others=others)
    seed = run.config.selection.seed
    # of several runs at one lambda the run in question, else the newest
    spots = {spot.lamb: spot for spot in mine.spots if spot.settings.seed == seed}
    spots[run.config.selection.lamb] = next(spot for spot in mine.spots if spot.run_id == run.id)
    lambdas = sorted(spots)
    inside = []
    for lamb in lambdas:
        poll()
        inside.append(_inside(by_id[spots[lamb].run_id], row))
    return Along(
        tuple(lambdas),
        tuple(inside),
        tuple(spots[lamb].run_id for lamb in lambdas),
        tuple(intervals(lambdas, inside)),
        others,
    )


def _inside(run: Run, row: int) -> bool:
    holder = _holder()
    key = str(run.path)
    with holder.reading:
        bits = holder.memberships.get(key)
        if bits is None:
            bits = holder.memberships[key] = np.packbits(run.mask())
        holder.memberships.move_to_end(key)
        while len(holder.memberships) > MEMBERSHIPS:
            holder.memberships.popitem(last=False)
    return bool(bits[row // 8] >> (7 - row % 8) & 1)


def _holder() -> types.SimpleNamespace:
    return held(
        "explanations",
        lambda: types.SimpleNamespace(
            explainers=OrderedDict(),
            memberships=OrderedDict(),
            again={},
            lock=threading.Lock(),
            reading=threading.Lock(),
            selecting=threading.Lock(),
        ),
    )
