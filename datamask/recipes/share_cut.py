"""The threshold that keeps a share of the rows of shards, by histograms of their scores: memory does not depend on N.

A pass counts the rows, and their amounts, between `BINS` thresholds around the one that the first rows of some shards
suggest. If none of them keeps the share to `TOLERANCE`, another pass looks into the bin that holds it, until one does
or only rows of one score are left in the bin: these are kept or left out together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datamask.corpus.threads import Tally, one_blas_thread
from datamask.errors import InputError, OptionError
from datamask.polling import Poll
from datamask.recipes.batches import Judge, Judged, shard_batches
from datamask.recipes.recipe import Recipe
from datamask.work.context import UNWATCHED, Work

BINS = 1 << 16

TOLERANCE = 1e-4
"""Share of all amounts by which the threshold may keep more or less than asked, where scores tell rows apart."""

PILOT_ROWS, PILOT_SHARDS, PILOT_ERROR = 4096, 16, 0.1
"""The first rows of evenly spaced shards, so many together, say where thresholds are tried: at the share that they put
there, give or take the error."""


AHEAD = 4
"""Tasks that may wait, summed up, for one before them."""


@dataclass
class Histogram:
    """Rows by score.

    Attributes:
        edges: float64 ``(B,)``, rising thresholds. counts, amounts: ``(B + 1,)``, rows and amounts below the first
            edge, between two, and above the last, of the rows that can be kept.
        rows, total: all valid rows and their amount. low, high: extremes of the counted scores.
    """

    edges: np.ndarray
    counts: np.ndarray = field(init=False)
    amounts: np.ndarray = field(init=False)
    rows: int = 0
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    def __post_init__(self) -> None:
        self.counts, self.amounts = np.zeros(len(self.edges) + 1, np.int64), np.zeros(len(self.edges) + 1)

    def add(self, judged: Judged, least_quality: float | None) -> None:
        """Count a batch."""
        could, amounts = judged.valid, judged.amounts
        self.rows += int(could.sum())
        self.total += float(amounts.sum())
        if least_quality is not None:
            with np.errstate(invalid="ignore"):
                could = could & (judged.quality >= least_quality)
        score = judged.score[could]
        if len(score):
            bins = np.searchsorted(self.edges, score, side="right")
            self.counts += np.bincount(bins, minlength=len(self.counts))
            self.amounts += np.bincount(bins, amounts[could], minlength=len(self.counts))
            self.low, self.high = min(self.low, float(score.min())), max(self.high, float(score.max()))

    def join(self, other: Histogram) -> None:
        """Take in another one with the same edges."""
        self.counts += other.counts
        self.amounts += other.amounts
        self.rows += other.rows
        self.total += other.total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


def cut_at_share(judge: Judge, share: float, work: Work = UNWATCHED) -> Recipe:
    """Return the recipe with the threshold that keeps a share of the valid rows, or of their tokens under a budget.

    Args:
        judge: the recipe on the shards. share: above 0, below 1.
        work: asked and told from this thread some ten times a second.

    Raises:
        OptionError: the share is out of range, or the recipe has quotas, pins, bans or given rows.
        InputError: a shard is damaged, has a row that cannot be used, or all rows score alike.
        Stopped: on request.
    """
    recipe = judge.recipe
    check_cuttable(recipe, share)
    edges, done = _first_edges(judge, share, work.poll), 0.0
    while True:
        histogram = _counted(judge, edges, work.part(done, (1.0 + done) / 2))
        done = (1.0 + done) / 2
        goal, above = share * histogram.total, _tails(histogram.amounts)
        best = int(np.abs(np.where(above > 0, above, np.inf) - goal).argmin())
        place = int(np.count_nonzero(above >= goal))  # the bin that holds the goal
        low = edges[place - 1] if place else histogram.low
        high = edges[place] if place < len(edges) else np.nextafter(histogram.high, np.inf)
        finer = _edges(low, high)
        near = abs(above[best] - goal) <= TOLERANCE * histogram.total
        parted = place > 0 or edges[0] <= histogram.low
        if above[best] > 0 and (near or (parted and (histogram.counts[place] <= 1 or len(finer) <= 2))):
            break
        edges = finer
    facts = {
        "rows": histogram.rows,
        "kept": int(_tails(histogram.counts)[best]),
        "share_kept": float(above[best] / histogram.total),
    }
    return replace(recipe, share=share, thresholds=replace(recipe.thresholds, tau=float(edges[best])), all_rows=facts)


def check_cuttable(recipe: Recipe, share: float) -> None:
    """Refuse what has no single threshold.

    Raises:
        OptionError: the share is out of range, or the recipe has quotas, pins, bans or given rows.
    """
    if not 0 < share < 1:
        raise OptionError(f"--select_ratio must be above 0 and below 1, got {share:g}")
    thresholds = recipe.thresholds
    if thresholds.column is not None or thresholds.tau is None or recipe.always or recipe.never:
        raise OptionError(
            "--select_ratio sets one threshold for all rows, and this recipe has quotas, pinned, banned or given rows; "
            "make it of a run without them, or apply it without --select_ratio"
        )


def _edges(low: float, high: float) -> np.ndarray:
    """Return rising thresholds from low to high, both among them; these two alone where no number lies between."""
    steps = np.linspace(0.0, 1.0, BINS)
    grid = low * (1.0 - steps) + high * steps  # high - low may overflow
    return np.unique(np.clip(np.concatenate([[low, np.nextafter(low, np.inf), high], grid]), low, high))


def _first_edges(judge: Judge, share: float, poll: Poll) -> np.ndarray:
    """Return thresholds around the one that the first rows of some shards suggest."""
    source, scores = judge.source, [np.zeros(0)]
    places = [place for place, shard in enumerate(source.shards) if shard.rows]
    places = places[:: max(1, len(places) // PILOT_SHARDS)]
    for place in places:
        wanted = PILOT_ROWS // len(places)
        for first, batch in shard_batches(source.shards[place], judge.columns, 64 + 4 * _dim(judge), poll):
            judged = judge(place, first, source.shards[place].with_leaves(batch, judge.columns))
            scores.append(judged.score[judged.valid])
            wanted -= batch.num_rows
            if wanted <= 0:
                break
    found = np.concatenate(scores)
    if not len(found):
        return np.zeros(1)
    ends = np.clip([1.0 - share - PILOT_ERROR, 1.0 - share + PILOT_ERROR], 0.0, 1.0)
    return _edges(*np.quantile(found, ends, method="nearest"))


def _counted(judge: Judge, edges: np.ndarray, work: Work) -> Histogram:
    """Return the scores of all rows between thresholds.

    Raises:
        InputError: a row cannot be used, none can, all score alike, or none has tokens. Stopped: on request.
    """
    shards, least = judge.source.shards, judge.recipe.thresholds.least_quality
    total = Histogram(edges)
    tally = Tally(work, judge.source.rows, lambda rows: f"Scored {rows:,} of {judge.source.rows:,} rows")
    # in the order of the shards, so that the sums of tokens are the same to the last bit
    joined = _InOrder(total.join, tally.poll)

    def task(place: int) -> None:
        part = Histogram(edges)
        for first, batch in shard_batches(shards[place], judge.columns, 64 + 4 * _dim(judge), tally.poll):
            part.add(judge(place, first, shards[place].with_leaves(batch, judge.columns)), least)
            tally.add(batch.num_rows, batch.nbytes)
        joined.put(place, part)

    with one_blas_thread():
        tally.in_threads(task, len(shards))
    if not total.low < total.high:
        raise InputError(
            f"no threshold tells the {total.rows:,} valid rows apart: all that can be selected have the same score "
            "under this recipe; apply it without --select_ratio, or make another one"
        )
    if not total.amounts.any():
        raise InputError(
            "the rows that can be selected have no tokens, so no share of the tokens can be selected; "
            "apply it without --select_ratio"
        )
    return total


class _InOrder:
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


def _tails(of_bins: np.ndarray) -> np.ndarray:
    """The sum above every edge, ``(B,)``, of numbers ``(B + 1,)`` below, between and above the edges."""
    tails: np.ndarray = of_bins[::-1].cumsum()[::-1][1:]
    return tails


def _dim(judge: Judge) -> int:
    return judge.recipe.features.dim if judge.recipe.rule.needs_features else 0
