"""What selections are worth, and what none exceeds, on the rows as the shards have them.

The scratch holds features rounded to float16. A bound or a value computed there holds for the rounded rows, and where
features nearly coincide the two differ in the third digit. A rule and a threshold give a valid bound on any rows
(`datamask.out_of_core.streamed_dual`), so both are evaluated once more on the true ones: one reading of the shards for
any number of selections. Sums are in float64, in the order of the shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from datamask.corpus.shards import in_shard_threads
from datamask.corpus.threads import Tally
from datamask.out_of_core.rounding import Members
from datamask.out_of_core.scratch import ROWS_READ, Scratch
from datamask.out_of_core.scratch_writing import check_unchanged, rewritten
from datamask.out_of_core.whole_corpus import WholeCorpus
from datamask.recipes.batches import shard_batches
from datamask.recipes.passes import FINENESS, REACH, InOrder, highest
from datamask.recipes.recipe import Recipe, ScoreRule
from datamask.recipes.scoring import Scorer, unit_rows
from datamask.recipes.weights import Weights
from datamask.work.context import UNWATCHED, Work

THRESHOLDS = 257
"""Tried around the one found on the rounded rows: any gives a bound, the nearest to the true one the least."""


@dataclass(frozen=True)
class Candidate:
    """A selection of all rows, and a rule that bounds every selection.

    Attributes:
        recipe: its terms are valued. selected: bool ``(N,)``.
        rule: scores every row. tau: about the threshold that S rows reach. spread: of the scores, about.
        free: bool ``(N,)``, the rows that a selection may have or not; None: all.
    """

    recipe: Recipe
    selected: np.ndarray
    rule: ScoreRule
    tau: float
    spread: float
    free: np.ndarray | None = None


@dataclass
class ExactValues:
    """What the true rows say of a candidate.

    Attributes:
        members: sums over the selected rows. bound: no selection of so many rows has a higher joint value.
    """

    members: Members
    bound: float

    @property
    def raw(self) -> dict[str, float]:
        """Every term as its objective defines it, by name; quality as well."""
        return self.members.raw()


@dataclass
class PoolSquares:
    """Second moments of all rows, from which the value of a random selection of `disf_fixed` follows.

    Attributes:
        rows: how many. moment: float64 ``(d, d)``, the sum of y y' without its diagonal.
        own: the sum over rows of ``|y|^4 - sum_a y_a^4``, what a row adds to the square of that.
    """

    rows: int
    moment: np.ndarray
    own: float = 0.0

    @classmethod
    def none(cls, dim: int) -> PoolSquares:
        """Of no rows."""
        return cls(0, np.zeros((dim, dim)))

    def add(self, y: np.ndarray) -> None:
        """Take in standardised rows, float64 ``(n, d)``."""
        moment = y.T @ y
        np.fill_diagonal(moment, 0.0)
        squares = np.square(y)
        self.rows += len(y)
        self.moment += moment
        self.own += float((np.square(squares.sum(axis=1)) - np.square(squares).sum(axis=1)).sum())

    def join(self, other: PoolSquares) -> None:
        """Take in what another gathered."""
        self.rows += other.rows
        self.moment += other.moment
        self.own += other.own

    def random(self, size: int) -> float:
        """The mean value of random selections: a row is in with probability S / n, a pair with S (S - 1) / (n (n - 1)).

        For rows that are a sample of n of the pool's it is an unbiased estimate.
        """
        n, d = self.rows, len(self.moment)
        pair = (size - 1) / max(n - 1, 1)
        whole = float(np.square(self.moment).sum())
        return -(self.own + pair * (whole - self.own)) / (size * n * max(d * (d - 1), 1))


def exact_values(
    corpus: WholeCorpus,
    scratch: Scratch,
    candidates: Sequence[Candidate],
    size: int,
    work: Work = UNWATCHED,
    *,
    squares: bool = False,
) -> tuple[list[ExactValues], PoolSquares | None]:
    """Read all shards once more, and value every candidate on them.

    Args:
        corpus, scratch: the rows, and the raw files made of them. size: S. squares: whether `PoolSquares` are wanted.
        work: asked and told from this thread some ten times a second.

    Raises:
        InputError: a shard is damaged, or was rewritten meanwhile. RemoteError: a store does not answer.
        Stopped: on request.
    """
    source, reader = corpus.source, corpus.reader
    mean, inverse_sd = scratch.moments.standardisation()
    standard = ScoreRule(0.0, mean=mean, inverse_sd=inverse_sd)

    def fresh() -> _Gathered:
        return _Gathered(
            [_Sums.of(candidate, size, corpus.dim, standard) for candidate in candidates],
            PoolSquares.none(corpus.dim) if squares else None,
        )

    total = fresh()
    tally = Tally(work, source.rows, lambda rows: f"Valuing exactly: {rows:,} of {source.rows:,} rows read")
    joined, poll = InOrder(total.join, tally.poll), tally.poll

    def task(number: int) -> None:
        gathered, shard = fresh(), source.shards[number]
        for first, batch in shard_batches(shard, reader.columns, 64 + 4 * corpus.dim, poll):
            numbers, qualities = corpus.read(source.span(number, first, batch.num_rows), batch)
            places = scratch.find(number, np.arange(first, first + batch.num_rows))
            for low in range(0, len(places), ROWS_READ):
                poll()
                inside = low + np.flatnonzero(places[low : low + ROWS_READ] >= 0)
                rows, quality = places[inside], qualities[inside]
                units, norms = unit_rows(numbers.features[inside], corpus.center)
                if not (np.array_equal(quality, scratch.quality[rows]) and (norms > 0).all()):
                    kinds = scratch.differing(rows, corpus, number, batch.take(pa.array(inside)))
                    scratch.check_shard_changed(number, shard, kinds or ["source_row"], poll)
                    raise rewritten(shard.path)
                gathered.add(rows, quality, units, standard)
            tally.add(batch.num_rows, batch.nbytes)
        joined.put(number, gathered)

    _ = scratch.quality  # here, in one thread, before many want it
    in_shard_threads(source.shards, task, tally)
    check_unchanged(corpus, scratch, work.poll)
    return [sums.values(size) for sums in total.sums], total.squares


@dataclass
class _Sums:
    """Sums of one candidate over the rows seen so far: of its members, and of all free rows by their score; and the
    scores of the members that are not free."""

    candidate: Candidate
    members: Members
    edges: np.ndarray
    counts: np.ndarray = field(default_factory=lambda: np.zeros(THRESHOLDS + 1, np.int64))
    scores: np.ndarray = field(default_factory=lambda: np.zeros(THRESHOLDS + 1))
    fixed: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, candidate: Candidate, size: int, dim: int, standard: ScoreRule) -> _Sums:
        terms = dict(candidate.recipe.terms)
        members = Members(
            size,
            0.0,
            np.zeros(dim) if "pairwise" in terms else None,
            np.zeros((dim, dim)) if "disf_fixed" in terms else None,
            standard,
        )
        steps = np.linspace(-REACH, REACH, THRESHOLDS)
        return cls(candidate, members, FINENESS * candidate.spread * np.sinh(steps))

    def add(self, rows: np.ndarray, quality: np.ndarray, units: np.ndarray) -> None:
        candidate = self.candidate
        selected = candidate.selected[rows]
        self.members.add(units[selected], quality[selected], np.ones(int(selected.sum())))
        scorer = Scorer(candidate.rule)
        above = scorer(quality, units if candidate.rule.needs_features else None) - candidate.tau
        if candidate.free is not None:
            free = candidate.free[rows]
            self.fixed += above[selected & ~free].tolist()
            above = above[free]
        bins = np.searchsorted(self.edges, above, side="right")
        self.counts += np.bincount(bins, minlength=len(self.counts))
        self.scores += np.bincount(bins, above, minlength=len(self.scores))

    def join(self, other: _Sums) -> None:
        self.members.join(other.members)
        self.counts += other.counts
        self.scores += other.scores
        self.fixed += other.fixed

    def values(self, size: int) -> ExactValues:
        bound = self.candidate.tau + highest(self.edges, self.counts, self.scores, size, np.array(self.fixed))
        beside = Weights.of(self.candidate.recipe).beside_scores(self.candidate.rule, size)
        return ExactValues(self.members, bound + beside)


@dataclass
class _Gathered:
    """What one thread, or all, have summed up."""

    sums: list[_Sums]
    squares: PoolSquares | None

    def add(self, rows: np.ndarray, quality: np.ndarray, units: np.ndarray, standard: ScoreRule) -> None:
        for sums in self.sums:
            sums.add(rows, quality, units)
        if self.squares is not None:
            self.squares.add(standard.standardised(units))

    def join(self, other: _Gathered) -> None:
        for mine, theirs in zip(self.sums, other.sums):
            mine.join(theirs)
        if self.squares is not None and other.squares is not None:
            self.squares.join(other.squares)
