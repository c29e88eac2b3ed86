"""One pass over all rows under one rule: sums by score, and from them the members of a thousand thresholds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from datamask.corpus.sampling import row_hash
from datamask.corpus.threads import Tally, one_blas_thread
from datamask.errors import InputError
from datamask.polling import Poll, no_poll
from datamask.recipes.batches import Judged
from datamask.recipes.recipe import ScoreRule
from datamask.work.context import UNWATCHED, Work

BINS = 1024
"""Thresholds that one pass tries."""

REACH, FINENESS = 6.5, 0.02
"""They lie around the expected one at ``FINENESS * sd * sinh(u)``, u up to `REACH`: closer the nearer to it."""

CUT_REACH = 4.0
"""So far, in u, members are summed up for each threshold alone: half a standard deviation to both sides."""

MOMENT_BINS, MOMENT_REACH, MOMENT_BYTES = 24, 3.5, 64 << 20
"""Where the rule has a moment, of which each threshold wants its own: so many, up to that u, in so many bytes."""

BAND = 0.05
"""In standard deviations of the score: rows so near to the threshold give the curvature there."""

BAND_ROWS, BAND_SHARE = 8192, 0.04
"""So many of them are remembered, drawn by a hash of their places; they are about this share of all."""

AHEAD = 4
"""Tasks that may wait, summed up, for one before them."""


SUMS = ("counts", "qualities", "scores", "sums", "moments")
"""Of a pass: arrays that add up over rows."""


@dataclass(frozen=True)
class Aim:
    """What a pass looks at.

    Attributes:
        rule: by which it scores. expected: about the threshold. sd: standard deviation of the scores, about.
        dim: d. rows: how many it goes over, about.
    """

    rule: ScoreRule
    expected: float
    sd: float
    dim: int
    rows: int

    @property
    def share(self) -> float:
        """The share of the rows near the threshold that is remembered."""
        return min(1.0, BAND_ROWS / max(1.0, BAND_SHARE * self.rows))


@dataclass
class Pass:
    """What one pass over all rows, or over some of them, found under one rule.

    Attributes:
        rule: as it scored. edges: float64 ``(B,)``, rising thresholds that were tried.
        counts, qualities, scores: ``(B + 1,)``, how many rows there are below the first edge, between two and above
            the last, and the sums of their quality and score.
        cuts: int64 ``(C,)``, the edges for which sums of features are known.
        sums: float64 ``(C + 1, d)``; moments: float64 ``(C + 1, d, d)``; of unit features, and of y y', between cuts.
        expected: about the threshold. width: half that of the band around it.
        rows: valid ones. in_band: how many lie in the band. near: of those that are remembered, quality and unit
            features, float32 ``(r, 1 + d)`` of each batch.
    """

    rule: ScoreRule
    edges: np.ndarray
    counts: np.ndarray
    qualities: np.ndarray
    scores: np.ndarray
    cuts: np.ndarray
    sums: np.ndarray | None
    moments: np.ndarray | None
    expected: float
    width: float
    rows: int = 0
    in_band: int = 0
    near: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def none(cls, aim: Aim) -> Pass:
        """A pass over no rows."""
        rule, dim = aim.rule, aim.dim
        steps = np.linspace(-REACH, REACH, BINS + 1)  # an odd number, so that the expected threshold is one of them
        if rule.moment is None:
            cuts = np.flatnonzero(np.abs(steps) <= CUT_REACH)
        else:
            count = max(4, min(MOMENT_BINS, MOMENT_BYTES // (8 * dim * dim)))
            wanted = np.linspace(-MOMENT_REACH, MOMENT_REACH, count | 1)
            cuts = np.unique(np.abs(steps[None, :] - wanted[:, None]).argmin(axis=1))
        return cls(
            rule,
            aim.expected + FINENESS * aim.sd * np.sinh(steps),
            np.zeros(BINS + 2, np.int64),
            np.zeros(BINS + 2),
            np.zeros(BINS + 2),
            cuts,
            None if rule.direction is None else np.zeros((len(cuts) + 1, dim)),
            None if rule.moment is None else np.zeros((len(cuts) + 1, dim, dim)),
            aim.expected,
            BAND * aim.sd,
        )

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the rows near the expected threshold that are remembered: quality, float32 ``(r,)``, and unit features,
        float64 ``(r, d)``."""
        near = np.concatenate(self.near) if self.near else np.empty((0, 1), np.float32)
        return near[:, 0], near[:, 1:].astype(np.float64)

    def add(self, judged: Judged, aim: Aim, place: int, first: int) -> None:
        """Take in the rows of a batch. place, first: by these those of the band are drawn that are remembered."""
        rows = np.flatnonzero(judged.valid)
        self.rows += len(rows)
        quality, score, units = judged.quality[rows], judged.score[rows], judged.units
        bins = np.searchsorted(self.edges, score, side="right")
        self.counts += np.bincount(bins, minlength=len(self.counts))
        self.qualities += np.bincount(bins, quality, minlength=len(self.counts))
        self.scores += np.bincount(bins, score, minlength=len(self.counts))
        near = np.flatnonzero(np.abs(score - self.expected) <= self.width)
        self.in_band += len(near)
        if units is None:
            return
        # of how many cuts a row is above follows from its bin
        self._add_members(units, rows, np.searchsorted(self.cuts, np.arange(len(self.counts)))[bins])
        if aim.share < 1:
            near = near[row_hash(pa.array(first + rows[near]), place) < np.uint64(int(aim.share * 2**64))]
        if len(near):
            self.near.append(np.column_stack([quality[near], units[rows[near]]]).astype(np.float32))

    def _add_members(self, units: np.ndarray, rows: np.ndarray, groups: np.ndarray) -> None:
        """Take the features of rows into the sums between the cuts. groups: int64 ``(r,)``, of each row."""
        order = np.flatnonzero(groups)  # what lies below all thresholds is no member at any
        if not len(order):
            return
        order = order[np.argsort(groups[order], kind="stable")]
        present, starts = np.unique(groups[order], return_index=True)
        members = units[rows[order]]
        if self.sums is not None:
            self.sums[present] += np.add.reduceat(members, starts, axis=0)
        if self.moments is not None:
            y = self.rule.standardised(members)
            for group, low, high in zip(present, starts, [*starts[1:], len(order)]):
                self.moments[group] += y[low:high].T @ y[low:high]

    def join(self, other: Pass) -> None:
        """Take in what a pass over other rows found under the same rule."""
        for name in SUMS:
            if (values := getattr(other, name)) is not None:
                getattr(self, name).__iadd__(values)
        self.near += other.near
        self.rows += other.rows
        self.in_band += other.in_band

    def kept(self, cut: int) -> int:
        """Rows at or above the threshold of a cut."""
        return int(self.counts[self.cuts[cut] + 1 :].sum())

    def mean_quality(self, cut: int) -> float:
        """Of those rows."""
        return float(self.qualities[self.cuts[cut] + 1 :].sum()) / max(self.kept(cut), 1)

    def members(self, cut: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Their mean feature and mean y y' without its diagonal; None where the rule has no such part."""
        count = max(self.kept(cut), 1)
        mean = None if self.sums is None else self.sums[cut + 1 :].sum(axis=0) / count
        moment = None if self.moments is None else self.moments[cut + 1 :].sum(axis=0) / count
        if moment is not None:
            np.fill_diagonal(moment, 0.0)
        return mean, moment

    def cut_nearest(self, size: float) -> int:
        """The cut that keeps nearest to so many rows, but two at least."""
        return _nearest(tails(self.counts)[self.cuts], size)


def tails(of_bins: np.ndarray) -> np.ndarray:
    """The sum above every edge, ``(B,)``, of numbers ``(B + 1,)`` below, between and above the edges."""
    tails: np.ndarray = of_bins[::-1].cumsum()[::-1][1:]
    return tails


def highest(
    edges: np.ndarray, counts: np.ndarray, scores: np.ndarray, size: int, fixed: np.ndarray | None = None
) -> float:
    """What the mean score of no `size` rows exceeds, from sums by score: the least over the edges as thresholds.

    Args:
        fixed: float64, scores of rows that every subset has and that are in none of the sums; None: there are none.
    """
    above = tails(scores) - edges * tails(counts)
    if fixed is not None and len(fixed):
        above = above + (fixed.sum() - len(fixed) * edges)
    return float((edges + above / size).min())


def _nearest(kept: np.ndarray, size: float) -> int:
    return int(np.abs(np.where(kept >= 2, kept, np.inf) - size).argmin())


Batch = tuple[int, int, Judged, int]
"""The number of a shard or the like, the row of it that the batch begins with, the rows judged by a rule, and how many
bytes were read for them."""

Batches = Callable[[int, Poll], Iterator[Batch]]
"""Task -> its batches."""


class Feed(Protocol):
    """Rows that a pass goes over, in tasks of their own."""

    @property
    def rows(self) -> int:
        """How many there are, for progress."""

    @property
    def dim(self) -> int:
        """d."""

    @property
    def tasks(self) -> int:
        """Tasks, each of which is done by one thread."""

    def under(self, rule: ScoreRule) -> Batches:
        """The rows judged by a rule; unit features come with them where the rule needs any."""


class InOrder:
    """Takes in what tasks have summed up in the order of their numbers, so that sums are the same to the last bit,
    whatever the threads do. Tasks begin in their order; one waits for those before it where `AHEAD` do already."""

    def __init__(self, take: Callable[[Any], None], poll: Poll) -> None:
        """Args: take: is called by one thread at a time. poll: raises what ends the waiting."""
        self._take, self._poll = take, poll
        self._changed, self._waiting, self._next = threading.Condition(), dict[int, Any](), 0

    def put(self, task: int, summed: Any) -> None:
        """Hand over what a task has; it is taken in once all before it are.

        Raises:
            Stopped: its turn will not come, since the pass is being stopped; from `poll`.
        """
        with self._changed:
            while task > self._next + AHEAD:
                self._poll()
                self._changed.wait(0.05)
            self._waiting[task] = summed
            while self._next in self._waiting:
                self._take(self._waiting.pop(self._next))
                self._next += 1
            self._changed.notify_all()


def pass_of(feed: Feed, aim: Aim, what: str, work: Work = UNWATCHED) -> Pass:
    """Score all rows and sum them up around the expected threshold, in threads of this process.

    Args:
        feed: the rows. what: for the report, before the number of rows.
        work: asked and told from this thread some ten times a second.

    Raises:
        InputError: a shard is damaged, has a row that cannot be used, or none that can.
        Stopped: on request.
    """
    batches = feed.under(aim.rule)
    total, tally = Pass.none(aim), Tally(work, feed.rows, lambda rows: f"{what} {rows:,} of {feed.rows:,} rows")
    joined = InOrder(total.join, tally.poll)

    def task(place: int) -> None:
        joined.put(place, summed(batches, place, aim, tally.poll, tally.add))

    with one_blas_thread():
        tally.in_threads(task, feed.tasks)
    if total.rows == 0:
        raise InputError("no row of the input can be used, so nothing can be estimated from it")
    return total


def summed(
    batches: Batches,
    task: int,
    aim: Aim,
    poll: Poll = no_poll,
    count: Callable[[int, int], None] = lambda rows, size: None,
) -> Pass:
    """Sum up the rows of one task. count: called with the rows of every batch, and their bytes."""
    part = Pass.none(aim)
    for place, first, judged, size in batches(task, poll):
        part.add(judged, aim, place, first)
        count(len(judged.valid), size)
    return part
