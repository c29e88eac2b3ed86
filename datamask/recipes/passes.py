"""One pass over all rows under one rule: sums by score, and from them values and bounds of a thousand thresholds."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from datamask.corpus.sampling import row_hash
from datamask.corpus.threads import Speed, in_threads, one_blas_thread
from datamask.errors import InputError
from datamask.polling import Poll, no_poll, poll_of
from datamask.recipes.batches import Judge, Judged, shard_batches
from datamask.recipes.recipe import Recipe, ScoreRule
from datamask.recipes.scoring import Scorer
from datamask.recipes.weights import Weights
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

PILOT_ROWS, PILOT_SHARDS = 4096, 16
"""The first rows of so many evenly spaced shards, so many together, give the standard deviation of the scores."""


@dataclass
class Pass:
    """What one pass over all rows found under one rule.

    Attributes:
        rule: as it scored. edges: float64 ``(B,)``, rising thresholds that were tried.
        counts, qualities, scores: ``(B + 1,)``, how many rows there are below the first edge, between two and above
            the last, and the sums of their quality and score; rows that can never be kept are in none.
        cuts: int64 ``(C,)``, the edges for which sums of features are known.
        sums: float64 ``(C + 1, d)``; moments: float64 ``(C + 1, d, d)``; of unit features, and of y y', between cuts.
        rows: valid ones. band: float32 ``(r, d)``, unit features of rows near the expected threshold; in_band: how
            many lay there; expected: that threshold; width: half that of the band.
        dropped: reason -> count of rows that could not be used.
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
    band: np.ndarray | None = None
    band_quality: np.ndarray | None = None
    dropped: Counter[str] = field(default_factory=Counter)

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

    def edge_nearest(self, size: float) -> int:
        """The edge that keeps nearest to so many rows, but two at least."""
        return _nearest(tails(self.counts), size)

    def cut_nearest(self, size: float) -> int:
        """The same of the cuts."""
        return _nearest(tails(self.counts)[self.cuts], size)

    def value(self, cut: int, weights: Weights) -> float:
        """The joint value of the rows above a cut, exact."""
        count = self.kept(cut)
        return -np.inf if count < 2 else weights.value(count, self.mean_quality(cut), *self.members(cut))

    def bound(self, size: int, weights: Weights) -> float:
        """What no subset of so many rows exceeds in joint value."""
        above = tails(self.scores) - self.edges * tails(self.counts)
        return float((self.edges + above / size).min()) + weights.beside_scores(self.rule, size)


def tails(of_bins: np.ndarray) -> np.ndarray:
    """The sum above every edge, ``(B,)``, of numbers ``(B + 1,)`` below, between and above the edges."""
    tails: np.ndarray = of_bins[::-1].cumsum()[::-1][1:]
    return tails


def _nearest(kept: np.ndarray, size: float) -> int:
    return int(np.abs(np.where(kept >= 2, kept, np.inf) - size).argmin())


Batches = Callable[[int, Poll], Iterator[tuple[int, Judged, int]]]
"""Task -> of each of its batches the first row, the rows judged by a rule, and how many bytes were read for it."""


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

    @property
    def in_order(self) -> bool:
        """Whether each task is one batch, so that batches can be added up in their order."""

    def under(self, rule: ScoreRule) -> Batches:
        """The rows judged by a rule; unit features come with them where the rule needs any."""


class Turns:
    """Tasks add up what they have in their order: sums are then the same to the last bit, whatever the threads do.

    Tasks begin in their order and take about as long as each other, so nobody waits for long.
    """

    def __init__(self, poll: Poll) -> None:
        self._poll, self._changed, self._next = poll, threading.Condition(), 0

    @contextlib.contextmanager
    def of(self, task: int) -> Iterator[None]:
        """Hold the turn of a task.

        Raises:
            Stopped: it will not come, since the pass is being stopped; from `poll`.
        """
        with self._changed:
            while self._next != task:
                self._poll()
                self._changed.wait(0.05)
            yield
            self._next += 1
            self._changed.notify_all()


class ShardFeed:
    """The rows of shards, as a `Feed`."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.rows, self.dim = judge.source.rows, judge.recipe.features.dim
        self.tasks = len(judge.source.shards)
        self.in_order = False

    def under(self, rule: ScoreRule) -> Batches:
        """See `Feed`."""
        judge = self._judge.under(replace(self._judge.recipe, rule=rule), with_ids=False, with_units=True)

        def batches(place: int, poll: Poll) -> Iterator[tuple[int, Judged, int]]:
            shard = judge.source.shards[place]
            for first, batch in shard_batches(shard, judge.columns, 64 + 4 * self.dim, poll):
                yield first, judge(place, first, batch), batch.nbytes

        return batches


def pass_over(judge: Judge, rule: ScoreRule, expected: float, sd: float, what: str, work: Work = UNWATCHED) -> Pass:
    """Score all rows of shards by `rule` and sum them up around the expected threshold; see `pass_of`.

    Args:
        judge: a recipe of the same features on the shards; its own rule is not looked at.
    """
    return pass_of(ShardFeed(judge), judge.recipe, rule, expected, sd, what, work)


def pass_of(
    feed: Feed,
    recipe: Recipe,
    rule: ScoreRule,
    expected: float,
    sd: float,
    what: str,
    work: Work = UNWATCHED,
) -> Pass:
    """Score all rows by `rule` and sum them up around the expected threshold.

    Args:
        feed: the rows. recipe: one of the same features; its own rule is not looked at.
        expected: about where the threshold is. sd: standard deviation of the scores, about (`score_sd`).
        what: for the report, before the number of rows.
        work: asked and told from this thread some ten times a second.

    Raises:
        InputError: a shard is damaged, has a row that cannot be used, or none that can.
        Stopped: on request.
    """
    d = feed.dim
    steps = np.linspace(-REACH, REACH, BINS + 1)  # an odd number, so that the expected threshold is one of them
    edges = expected + FINENESS * sd * np.sinh(steps)
    if rule.moment is None:
        cuts = np.flatnonzero(np.abs(steps) <= CUT_REACH)
    else:
        count = max(4, min(MOMENT_BINS, MOMENT_BYTES // (8 * d * d)))
        wanted = np.linspace(-MOMENT_REACH, MOMENT_REACH, count | 1)
        cuts = np.unique(np.abs(steps[None, :] - wanted[:, None]).argmin(axis=1))
    total = Pass(
        rule,
        edges,
        np.zeros(BINS + 2, np.int64),
        np.zeros(BINS + 2),
        np.zeros(BINS + 2),
        cuts,
        None if rule.direction is None else np.zeros((len(cuts) + 1, d)),
        None if rule.moment is None else np.zeros((len(cuts) + 1, d, d)),
        expected,
        BAND * sd,
    )
    batches, scorer = feed.under(rule), Scorer(replace(recipe, rule=rule))
    share = min(1.0, BAND_ROWS / max(1.0, BAND_SHARE * feed.rows))
    band: dict[int, list[np.ndarray]] = {place: [] for place in range(feed.tasks)}
    stop, lock, speed = threading.Event(), threading.Lock(), Speed()
    poll = poll_of(stop.is_set)
    turns = Turns(poll)
    decoded = rows_done = 0

    def task(place: int) -> None:
        nonlocal decoded, rows_done
        for first, judged, size in batches(place, poll):
            near = _add(total, turns.of(place) if feed.in_order else lock, scorer, judged, share, place, first)
            if near is not None:
                band[place].append(near)
            with lock:
                total.rows += int(judged.valid.sum())
                total.dropped.update(judged.dropped)
                decoded += size
                rows_done += len(judged.valid)

    def tick() -> None:
        work.report(rows_done / feed.rows, f"{what} {rows_done:,} of {feed.rows:,} rows{speed.words(decoded)}")

    with one_blas_thread():
        in_threads(task, feed.tasks, poll=work.poll, stop=stop, tick=tick)
    if total.rows == 0:
        raise InputError("no row of the input can be used, so nothing can be estimated from it")
    near_rows = [rows for place in sorted(band) for rows in band[place]]
    if near_rows:
        whole = np.concatenate(near_rows)
        total.band, total.band_quality = whole[:, 1:], whole[:, 0]
    return total


def _add(
    total: Pass,
    turn: contextlib.AbstractContextManager[object],
    scorer: Scorer,
    judged: Judged,
    share: float,
    place: int,
    first: int,
) -> np.ndarray | None:
    """Add some rows of a batch to the sums; those near the threshold that are remembered, quality before features."""
    least, could = scorer.recipe.thresholds.least_quality, judged.valid
    if least is not None:
        with np.errstate(invalid="ignore"):
            could = could & (judged.quality >= least)
    rows = np.flatnonzero(could)
    quality, score, units = judged.quality[rows], judged.score[rows], judged.units
    bins = np.searchsorted(total.edges, score, side="right")
    groups = np.searchsorted(total.edges[total.cuts], score, side="right")
    counts = np.bincount(bins, minlength=len(total.counts))
    of_quality = np.bincount(bins, quality, minlength=len(total.counts))
    of_score = np.bincount(bins, score, minlength=len(total.counts))
    order = np.flatnonzero(groups)  # what lies below all thresholds is no member at any
    order = order[np.argsort(groups[order], kind="stable")]
    present, starts = np.unique(groups[order], return_index=True)
    sums = moments = None
    if units is not None and len(order):
        of_members = units[rows[order]]
        if total.sums is not None:
            sums = np.add.reduceat(of_members, starts, axis=0)
    if units is not None and total.moments is not None and len(order):
        y = scorer.standardised(of_members)
        ends = [*starts[1:], len(order)]
        moments = [y[low:high].T @ y[low:high] for low, high in zip(starts, ends)]
    near = np.flatnonzero(np.abs(score - total.expected) <= total.width)
    with turn:
        total.counts += counts
        total.qualities += of_quality
        total.scores += of_score
        total.in_band += len(near)
        if sums is not None and total.sums is not None:
            total.sums[present] += sums
        if moments is not None and total.moments is not None:
            for group, moment in zip(present, moments):
                total.moments[group] += moment
    if units is None or not len(near):
        return None
    if share < 1:
        near = near[row_hash(pa.array(first + rows[near]), place) < np.uint64(int(share * 2**64))]
    return np.column_stack([quality[near], units[rows[near]]]).astype(np.float32) if len(near) else None


def score_sd(judge: Judge, poll: Poll = no_poll) -> float:
    """The standard deviation of the scores of some first rows, which says how far apart thresholds are tried.

    Raises:
        InputError: all of them score alike. Stopped: from `poll`.
    """
    source, scores = judge.source, []
    places = [place for place, shard in enumerate(source.shards) if shard.rows]
    places = places[:: max(1, len(places) // PILOT_SHARDS)]
    for place in places:
        wanted = PILOT_ROWS // len(places)
        row_bytes = 64 + 4 * judge.recipe.features.dim
        for first, batch in shard_batches(source.shards[place], judge.columns, row_bytes, poll):
            judged = judge(place, first, batch)
            scores.append(judged.score[judged.valid])
            wanted -= batch.num_rows
            if wanted <= 0:
                break
    sd = float(np.concatenate(scores).std()) if scores else 0.0
    if not sd > 0:
        raise InputError("all rows score alike under this recipe, so no threshold tells them apart")
    return sd
