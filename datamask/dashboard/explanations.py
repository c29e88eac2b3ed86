"""Why single samples are in a run's selection, or not: asked for by a page, found in a thread, kept for a while.

Taking a selection apart opens its corpus and measures every score, so it is done once per run, and the latest runs are
kept for all sessions. Answers are tasks (`datamask.dashboard.tasks`); only they load torch.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from datamask.dashboard import tasks
from datamask.dashboard.tasks import Progress, Task
from datamask.dashboard.views import frontier
from datamask.errors import Stopped, poll_of
from datamask.runs.store import Run

if TYPE_CHECKING:
    from datamask.evaluation.explaining import Explainer, Explanation

_ANCHOR = "_datamask_explanations"
KEPT = 2
"""Runs taken apart that are kept; each holds some ten numbers a row and its corpus's neighbour lists."""

STOPPED = "explaining was stopped"

MEMBERSHIPS = 128
"""Stored selections whose members are kept, a bit a row."""


@dataclass(frozen=True)
class Along:
    """Whether a sample is in the stored runs that differ from one run in lambda alone.

    Attributes:
        lambdas: rising; inside: whether it is in at each; run_ids: the runs.
        intervals: first and last lambda of each stretch at which it is in.
    """

    lambdas: tuple[float, ...] = ()
    inside: tuple[bool, ...] = ()
    run_ids: tuple[str, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Answer:
    """Everything about one sample under one run.

    Attributes:
        told: the explanation. sd: standard deviation of the scores of all samples that could be selected.
        exceptions: how many samples are on the other side of the threshold than their score says.
        copies: rows that were left out as near-copies of this one.
        along: the sample over lambda.
    """

    told: Explanation
    sd: float
    exceptions: int
    copies: tuple[int, ...]
    along: Along


@dataclass(frozen=True)
class Flip:
    """Where a sample changes sides.

    Attributes:
        lamb: lambda, None where no change was found.
        below: whether the sample is in at smaller lambdas than that.
        between: the lambdas that were searched between.
    """

    lamb: float | None
    below: bool
    between: tuple[float, float]


@dataclass(frozen=True)
class Deck:
    """Samples nearest their threshold, in random order.

    Attributes:
        rows: int64 ``(k,)``; selected: bool ``(k,)``; margin: float64 ``(k,)``, score minus threshold in standard
            deviations of all scores.
    """

    rows: np.ndarray
    selected: np.ndarray
    margin: np.ndarray


def ask(run: Run, row: int, runs: Sequence[Run]) -> Task:
    """The task whose result is the `Answer` about a row, started where there is none.

    Args:
        run: done. runs: finished runs on its corpus; those that differ in lambda alone give `Answer.along`.
    """
    known = hashlib.sha256(" ".join(sorted(one.id for one in runs)).encode()).hexdigest()[:12]
    key = f"why {run.path} {row} {known}"

    def work(report: Progress, should_stop: Callable[[], bool]) -> Answer:
        with _explainer(run, report, should_stop) as explainer:
            told = explainer.explain([row], poll_of(should_stop, STOPPED))[0]
            copies = tuple(explainer.copies_of(row).tolist())
        return Answer(told, explainer.sd, explainer.exceptions, copies, _along(run, row, runs, should_stop))

    return _joined(key, work)


def flip(run: Run, row: int, selected: bool, along: Along) -> Task:
    """Start looking for the lambda at which a row changes sides; the task's result is a `Flip`.

    Args:
        selected: whether it is in. along: narrows the search where a stored run has it on the other side.
    """
    def work(report: Progress, should_stop: Callable[[], bool]) -> Flip:
        from datamask.evaluation.explaining import flip_lambda

        with _explainer(run, lambda share, what: report(0.3 * share, what), should_stop) as explainer:
            for low, high in brackets(run.config.selection.lamb, selected, along):
                with contextlib.suppress(ValueError):  # on the same side at both ends: try elsewhere
                    found = flip_lambda(explainer.pool, run.config.selection, row, low, high,
                                        poll=poll_of(should_stop, STOPPED),
                                        progress=lambda share, what: report(0.3 + 0.7 * share, what))
                    here = run.config.selection.lamb
                    return Flip(found, selected if here <= found else not selected, (low, high))
        return Flip(None, selected, (0.0, 1.0))

    return tasks.start(flip_key(run, row), work)


def flip_key(run: Run, row: int) -> str:
    """The key of the task that `flip` starts."""
    return f"flip {run.path} {row}"


def brackets(lamb: float, selected: bool, along: Along) -> list[tuple[float, float]]:
    """Pairs of lambdas to look between, the likeliest first: next to the nearest stored run on the other side."""
    stored = list(zip(along.lambdas, along.inside))
    other = sorted((there for there, inside in stored if inside != selected), key=lambda there: abs(there - lamb))
    found = []
    for there in (next((x for x in other if x < lamb), None), next((x for x in other if x > lamb), None)):
        if there is not None:
            # the stored run next to it on the way here has the sample on this side
            beside = min((x for x, _ in stored if (x > there) == (lamb > there) and x != there),
                         key=lambda x: abs(x - there), default=lamb)
            found.append((min(there, beside), max(there, beside)))
    found.sort(key=lambda pair: min(abs(pair[0] - lamb), abs(pair[1] - lamb)))
    ends = sorted((end for end in (0.0, 1.0) if end != lamb), key=lambda end: abs(end - lamb))
    return list(dict.fromkeys([*found, *((min(lamb, end), max(lamb, end)) for end in ends)]))


def deck(run: Run, count: int, seed: int) -> Task:
    """The task whose result is a `Deck`: `count` kept and `count` dropped samples nearest their threshold, shuffled."""
    def work(report: Progress, should_stop: Callable[[], bool]) -> Deck:
        with _explainer(run, report, should_stop) as explainer:
            free = explainer.eligible & ~explainer.pinned
            far = np.abs(explainer.score - explainer.threshold)
            rows = []
            for side in (explainer.mask, ~explainer.mask):
                here = np.flatnonzero(free & side)
                rows.append(here[np.argsort(far[here], kind="stable")[:count]])
            both = np.random.default_rng(seed).permutation(np.concatenate(rows))
            sd = explainer.sd if explainer.sd > 0 else 1.0
            return Deck(both, explainer.mask[both], (explainer.score - explainer.threshold)[both] / sd)

    return _joined(f"borderline {run.path} {count} {seed}", work)


def _joined(key: str, work: Callable[[Progress, Callable[[], bool]], object]) -> Task:
    """The task of that key, whatever its state, or a new one."""
    found = tasks.find(key)
    return found if found is not None else tasks.start(key, work)


@contextlib.contextmanager
def _explainer(run: Run, report: Progress, should_stop: Callable[[], bool]) -> Iterator[Explainer]:
    """The run's explainer, for this thread alone as long as it is held; made where it is not kept."""
    import torch

    from datamask.runs.explaining import explainer_of

    holder = _holder()
    while not holder.lock.acquire(timeout=0.2):
        report(0.0, "another answer is being worked out")
        if should_stop():
            raise Stopped(STOPPED)
    try:
        torch.set_num_threads(1)  # of this thread: the pages want the other cores
        key = str(run.path)
        found = holder.explainers.get(key)
        if found is None:
            found = explainer_of(run, progress=report, should_stop=should_stop)
            holder.explainers[key] = found
        holder.explainers.move_to_end(key)
        while len(holder.explainers) > KEPT:
            holder.explainers.popitem(last=False)
        yield found
    finally:
        holder.lock.release()


def _along(run: Run, row: int, runs: Sequence[Run], should_stop: Callable[[], bool]) -> Along:
    """The row in every stored run of the same curve and seed."""
    from datamask.evaluation.explaining import intervals

    by_id = {one.id: one for one in runs}
    lines = frontier.survey(by_id.values(), run.facts().get("fingerprint")).lines
    mine = next((line for line in lines if any(spot.run_id == run.id for spot in line.spots)), None)
    if mine is None:
        return Along()
    seed = run.config.selection.seed
    # of several runs at one lambda the run in question, else the newest
    spots = {spot.lamb: spot for spot in mine.spots if spot.settings.seed == seed}
    spots[run.config.selection.lamb] = next(spot for spot in mine.spots if spot.run_id == run.id)
    lambdas = sorted(spots)
    inside = []
    for lamb in lambdas:
        if should_stop():
            raise Stopped(STOPPED)
        inside.append(_inside(by_id[spots[lamb].run_id], row))
    return Along(tuple(lambdas), tuple(inside), tuple(spots[lamb].run_id for lamb in lambdas),
                 tuple(intervals(lambdas, inside)))


def _inside(run: Run, row: int) -> bool:
    holder = _holder()
    key = str(run.path)
    with holder.reading:
        bits = holder.memberships.get(key)
        if bits is None:
            selected = pq.read_table(run.path / "rows.parquet", columns=["selected"])["selected"]
            bits = holder.memberships[key] = np.packbits(selected.to_numpy().astype(bool))
        holder.memberships.move_to_end(key)
        while len(holder.memberships) > MEMBERSHIPS:
            holder.memberships.popitem(last=False)
    return bool(bits[row // 8] >> (7 - row % 8) & 1)


def _holder() -> types.ModuleType:
    found = sys.modules.get(_ANCHOR)
    if found is None:
        fresh = types.ModuleType(_ANCHOR)
        fresh.explainers, fresh.memberships = OrderedDict(), OrderedDict()
        fresh.lock, fresh.reading = threading.Lock(), threading.Lock()
        found = sys.modules.setdefault(_ANCHOR, fresh)
    return found
