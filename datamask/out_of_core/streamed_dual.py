"""Pair-wise similarity and the DiSF with fixed scale over all rows of a scratch, with a proved bound.

Notation: h_i the score of row i under direction m (and moment M), f the joint value. Since minus a squared norm is
concave, its tangent at any point bounds it; so for every subset U of S rows and any m and M,

    f(U) <= const(m, M, S) + (1/S) sum over U of h_i <= const + t + (1/S) sum over all i of max(0, h_i - t)

for every t. The m with the least bound is the mean of its own members; a Newton step towards it has the curvature of
the rows near the threshold:

    (I + b K) (m' - m) = v - m,     v: the members' mean,  K: density of scores at t times the covariance of x there

Where the rule has a moment too, the step goes along (v - m, V - M) as far as the same curvature says.

The dual is solved until bound and value meet: each pass scores all rows under one rule, takes the S of highest score,
and steps to the next rule by the means of these and the rows near the threshold. Scores are kept, so the threshold and
the rows above it are exact in every pass; what the S rows of a pass are worth is therefore exact too. At the optimum
about d rows lie between in and out: of the rows near the threshold those are swapped that raise the value (`rounding`),
and nothing else of the corpus need be looked at.

Kept in memory: quality and scores of all rows, a copy of the scores while they are cut, and some thousand rows with
their features in each thread. Sums are in float64.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datamask.corpus.threads import MOST_THREADS
from datamask.errors import InputError
from datamask.measured import is_bound
from datamask.out_of_core.rounding import Members, rounded
from datamask.out_of_core.row_rules import RowRules
from datamask.out_of_core.scratch import ROWS_READ, Scratch
from datamask.out_of_core.scratch_passes import Passes
from datamask.polling import Poll
from datamask.recipes.passes import AHEAD, MOMENT_BINS, MOMENT_BYTES, Pass
from datamask.recipes.recipe import RULE_ARRAYS, Recipe, ScoreRule, Thresholds
from datamask.recipes.scoring import ROWS_AT_ONCE, Scorer
from datamask.recipes.stepping import between, next_rule, rule_of, slope_along
from datamask.recipes.weights import Weights
from datamask.work.context import UNWATCHED, Work
from datamask.work.kept import Kept, of_work
from datamask.work.result_file import Content, Entry, digest_of, require

MOST_PASSES, USUAL_PASSES = 12, 5

CLOSE = 1e-5
"""Bound less value at which it ends, on the scale of the objective; as in `datamask.learning.newton`. The step before
led most of the way: the value is nearer to the best than that by far, and further passes swap rows worth the same."""

STILL, TIRED = 0.7, 2
"""Where the gap is more than this share of that so many passes before, no more are made: whole rows come no nearer."""

NEARBY = 1e-3
"""Largest gap at which that is so; with a larger one it is the rule that is far off, and it is still being moved."""

SHARES, NO_STEP = tuple(0.8**k for k in range(16)), 1e-3
"""Of a step, that are tried on the pilot rows; and one by which slopes are told."""

BLOCK_BYTES = 10
"""Of memory for each number of a block of rows."""

NEAR_ROWS = (512, 8192)
"""Rows near the threshold that may be swapped, at least and at most."""

PILOT_ROWS = 8192
"""Rows, evenly spaced, that give the standard deviation of the scores, and where a threshold moves when a rule does."""

CLOSE_SHARE = 5e-6
"""The same for an end of a scale, as a share of the way from random to best: calibrated values rest on it. 200,000 x
128: the value at the first gap below it, 4.0e-6, was within 1e-7 of the way of those after three more passes."""


@dataclass
class Dual:
    """What the passes so far came to.

    Attributes:
        rule, expected: for the next pass, and about the threshold there. spread: standard deviation of the scores,
            about: how far apart thresholds are tried.
        value, bound: the best so far, on the recipe's scale. packed: uint8, the members of that value, by bits.
        raw: quality and diversity terms of the members, as the objectives define them.
        passes: what each came to: ``value``, ``upper_bound``, ``gap``, ``tau``.
        proved: whether no bound lay below the value by more than rounding, which would be a fault.
        least: rule of the least bound, and least_tau: its threshold, which rounding moved some rows across.
        random: value of a random selection, where the gap is measured as a share of the way from there to the value;
            None: the scale of the objective is that measure.
    """

    rule: ScoreRule
    expected: float
    spread: float
    value: float = -np.inf
    bound: float = np.inf
    packed: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    raw: dict[str, float] = field(default_factory=dict)
    passes: list[dict[str, float]] = field(default_factory=list)
    proved: bool = True
    least: ScoreRule | None = None
    least_tau: float = np.nan
    random: float | None = None

    @property
    def reach(self) -> float:
        """What the gap is measured against."""
        return 1.0 if self.random is None else max(self.value - self.random, 0.0)

    @property
    def close(self) -> float:
        """Gap at which it ends."""
        return CLOSE if self.random is None else CLOSE_SHARE * self.reach

    @property
    def gap(self) -> float:
        """Bound less value, at least 0: both are rounded."""
        return max(self.bound - self.value, 0.0)

    @property
    def over(self) -> bool:
        """Whether no further pass is worth its time."""
        if self.gap <= self.close or len(self.passes) >= MOST_PASSES or not self.rule.needs_features:
            return bool(self.passes)
        gaps, values = ([record[name] for record in self.passes] for name in ("gap", "value"))
        if len(gaps) < 2 or self.gap > NEARBY * self.reach:
            return False
        # an end of a scale is a value: where it stands still, what the bound of d x d unknowns lacks changes nothing
        still = gaps[-1] < gaps[-2] and self.value - max(values[:-1]) <= self.close
        if still and self.random is not None and self.rule.moment is not None:
            return True
        return len(gaps) > TIRED and gaps[-1] > STILL * gaps[-1 - TIRED]

    def selected(self, rows: int) -> np.ndarray:
        """The members, bool ``(N,)``."""
        return np.unpackbits(self.packed, count=rows).astype(bool)


def memory_bytes(rows: int, dim: int, block_rows: int, *, moments: bool = False) -> int:
    """The most anonymous memory that `solve` takes beside what the program itself takes. moments: the rule has some."""
    sums = (MOST_THREADS + AHEAD) * min(MOMENT_BYTES, MOMENT_BINS * 8 * dim * dim) if moments else 0
    return 600_000_000 + 40 * rows + BLOCK_BYTES * block_rows * dim + sums


def solve(
    scratch: Scratch,
    recipe: Recipe,
    size: int,
    work: Work = UNWATCHED,
    *,
    block_rows: int,
    name: str = "dual",
    random: float | None = None,
    rules: RowRules | None = None,
    on_pass: Callable[[Dual], None] | None = None,
) -> Dual:
    """Select `size` of all rows.

    Args:
        recipe: weights, anchors and standardisation hold for all rows; its rule is where the passes begin.
        work: told of the share of the passes as if there were `USUAL_PASSES`, and slower after these.
        block_rows: bounds the memory; see `memory_bytes`.
        name: of the file in the scratch that keeps what the passes come to.
        random: value of a random selection, for an end of a scale; see `Dual.random`.
        rules: pins, bans and given rows, which count among the `size`; None: all rows are free.
        on_pass: called after every pass, those of a stopped attempt included.

    Raises:
        InputError: no such selection is possible.
        Stopped: on request; the finished passes are kept in the scratch and not done again.
    """
    check_size(scratch.rows, size)
    weights = Weights.of(recipe)
    limits = _Limits.of(scratch.rows, size, rules)
    made_of = {"scratch": scratch.digest, "rule": _digest(recipe), "size": size}
    if rules is not None:
        made_of["rules"] = rules.digest
    stored = stored_dual(scratch, name, made_of)
    dual = stored.find()
    pilot = Pilot(scratch, limits.free)
    if dual is None:
        rule = rule_of(recipe, weights, size)
        dual = Dual(rule, *pilot.threshold(rule, limits.chosen), random=random)
    elif on_pass is not None:
        for done in range(1, len(dual.passes) + 1):
            on_pass(replace(dual, passes=dual.passes[:done]))
    passes = Passes(scratch, block_rows, limits.free)
    while not dual.over:
        number = len(dual.passes)
        part = work.part(_share(number), _share(number + 1))
        one_pass = passes(dual.rule, dual.expected, dual.spread, f"Pass {number + 1} over", part)
        _after(dual, scratch, one_pass, passes.scores, limits, weights, pilot, work.poll)
        stored.keep(dual)
        if on_pass is not None:
            on_pass(dual)
    return dual


def check_size(rows: int, size: int) -> None:
    """Refuse a size that no selection by passes has: a single row has no pair, and all rows leave nothing to choose.

    Raises:
        InputError: it is below 2, or not below the rows.
    """
    if not 2 <= size < rows:
        raise InputError(
            f"a selection from all {rows:,} rows must have from 2 to {rows - 1:,}, got {size:,}; "
            "choose another --select_ratio"
        )


def _share(passes: int) -> float:
    """The share of the work that so many passes are."""
    more = max(0, passes - USUAL_PASSES) / (MOST_PASSES - USUAL_PASSES)
    return (min(passes, USUAL_PASSES) + more) / (USUAL_PASSES + 1)


def pilot_rows(rows: int) -> np.ndarray:
    """Some rows, evenly spaced, int64, rising."""
    return np.unique(np.linspace(0, rows - 1, min(PILOT_ROWS, rows)).astype(np.int64))


class Pilot:
    """Some rows all over the corpus, whose scores under any rule are known without a pass."""

    def __init__(self, scratch: Scratch, free: np.ndarray | None = None) -> None:
        """Args: free: bool ``(N,)``, the rows that thresholds part; None: all."""
        self._scratch, self._of = scratch, scratch.rows if free is None else int(free.sum())
        self._rows = pilot_rows(self._of) if free is None else np.flatnonzero(free)[pilot_rows(self._of)]
        self._units: np.ndarray | None = None

    def __call__(self, rule: ScoreRule) -> np.ndarray:
        """Their scores, float64 ``(r,)``."""
        quality, scorer = self._scratch.quality[self._rows], Scorer(rule)
        if not rule.needs_features:
            return scorer(quality)
        if self._units is None:
            self._units = self._scratch.rows_at(self._rows)
        parts = [slice(low, low + ROWS_AT_ONCE) for low in range(0, len(quality), ROWS_AT_ONCE)]
        return np.concatenate([scorer(quality[part], self._units[part].astype(np.float64)) for part in parts])

    def threshold(self, rule: ScoreRule, size: int) -> tuple[float, float]:
        """About the threshold that keeps so many of the rows, and the standard deviation of the scores.

        The latter is 1 where all rows score alike: there the first threshold is the last.
        """
        scores = self(rule)
        spread = float(scores.std())
        return float(np.quantile(scores, 1.0 - size / self._of)), spread if spread > 0 else 1.0

    def along(
        self, rule: ScoreRule, stepped: ScoreRule, slope: float, limits: _Limits, weights: Weights
    ) -> tuple[float, float]:
        """How much of a step to take, and how much higher the threshold is there.

        The step is right near the rule and may lead too far. As much of it is taken as makes the dual least: that of
        these rows, with the slope of all.

        Args:
            slope: the dual's derivative at the rule, over all rows, by the share of the step.
        """
        start, end = self(rule), self(stepped)

        def scores_and_tau(share: float) -> tuple[np.ndarray, float]:
            scores = start + share * (end - start)
            return scores, float(np.quantile(scores, 1.0 - limits.chosen / self._of))

        def dual(share: float) -> float:
            scores, tau = scores_and_tau(share)
            above = self._of * float(np.maximum(scores - tau, 0.0).mean()) + limits.chosen * tau
            return above / limits.size + weights.beside_scores(between(rule, stepped, share), limits.size)

        off = slope - (dual(NO_STEP) - dual(0.0)) / NO_STEP
        best = min(SHARES, key=lambda share: dual(share) + off * share)
        return best, scores_and_tau(best)[1] - scores_and_tau(0.0)[1]


def scores_by(
    scratch: Scratch, dual: Dual, size: int, lamb: float
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What some rows are worth under the rule of the least bound: `scores` of a `WholeSolution`."""
    assert dual.least is not None
    scorer = Scorer(replace(dual.least, quality_weight=0.0))
    slope = dual.least.quality_weight / lamb if lamb > 0 else 0.0

    def scores(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        quality = scratch.quality[rows] * (slope / size)
        diversity = np.zeros(len(rows))
        if lamb < 1 and dual.least is not None and dual.least.needs_features:
            for low in range(0, len(rows), ROWS_READ):
                part = slice(low, low + ROWS_READ)
                units = scratch.rows_at(rows[part]).astype(np.float64)
                diversity[part] = scorer(np.zeros(len(units)), units) / (size * (1 - lamb))
        return quality, diversity

    return scores


@dataclass(frozen=True)
class _Limits:
    """What restricts a selection.

    Attributes:
        size: S. always: rows that every selection has, int64, rising. free: bool ``(N,)``, rows that may be in or out;
            None: all.
    """

    size: int
    always: np.ndarray
    free: np.ndarray | None

    @classmethod
    def of(cls, rows: int, size: int, rules: RowRules | None) -> _Limits:
        """Raises InputError: nothing is left to choose."""
        if rules is None:
            return cls(size, np.zeros(0, np.int64), None)
        limits = cls(size, np.flatnonzero(rules.always), rules.free)
        left = int(rules.free.sum())
        if not 0 < limits.chosen < left:
            raise InputError(
                f"{len(limits.always):,} rows must be in and {int(rules.banned.sum()):,} must not be, which leaves "
                f"{left:,} of {rows:,} to choose {max(limits.chosen, 0):,} from; pin or ban fewer, or choose another "
                "--select_ratio"
            )
        return limits

    @property
    def chosen(self) -> int:
        """How many of the free rows are selected."""
        return self.size - len(self.always)

    def scores(self, scores: np.ndarray) -> np.ndarray:
        """The scores of the rows that are always in, float64; rows that are not free have none from then on."""
        fixed: np.ndarray = scores[self.always]
        if self.free is not None:
            scores[~self.free] = -np.inf
        return fixed


# -- after a pass ------------------------------------------------------------------------------------------------------


def _after(
    dual: Dual,
    scratch: Scratch,
    one_pass: Pass,
    scores: np.ndarray,
    limits: _Limits,
    weights: Weights,
    pilot: Pilot,
    poll: Poll,
) -> None:
    """Take note of a pass: the exact members, what they are worth, what nothing exceeds, and the next rule."""
    rule, size, fixed = one_pass.rule, limits.size, limits.scores(scores)
    tau, selected = top_rows(scores, limits.chosen, scratch)
    price = tau + (_above(scores, tau) + float((fixed - tau).sum())) / size
    bound = price + weights.beside_scores(rule, size)
    selected[limits.always] = True
    members = _members(scratch, one_pass, scores, selected, limits, poll)
    near = _near(scores, tau, scratch.dim, rule)
    better, swaps = rounded(scratch, members, selected, near, weights, poll)
    value = better.value(weights)
    if bound < dual.bound:
        dual.bound, dual.least, dual.least_tau = bound, rule, tau
    if value > dual.value:
        dual.value, dual.raw = value, better.raw()
        dual.packed = np.packbits(selected)
    dual.proved &= is_bound(dual.bound, dual.value)
    dual.bound = max(dual.bound, dual.value)
    dual.passes = [
        *dual.passes,
        {"value": value, "upper_bound": dual.bound, "gap": dual.gap, "tau": tau, "swaps": float(swaps)},
    ]
    mean, moment = members.mean, members.moment
    # the means are exact wherever tau is, and the curvature near the threshold expected is nearly that at tau
    stepped = next_rule(one_pass, weights, size, mean, moment)
    slope = slope_along(rule, stepped, mean, moment, weights.crowding(size))
    share, moved = pilot.along(rule, stepped, slope, limits, weights)
    dual.rule, dual.expected = between(rule, stepped, share), tau + moved


def top_rows(scores: np.ndarray, size: int, scratch: Scratch) -> tuple[float, np.ndarray]:
    """The threshold, and which rows are the `size` of highest score, bool ``(N,)``; of equal ones by hash of the id."""
    cut = scores.copy()
    cut.partition(len(cut) - size)
    tau = float(cut[len(cut) - size])
    del cut
    selected: np.ndarray = scores > tau
    ties = np.flatnonzero(scores == tau)
    missing = size - int(selected.sum())
    if missing < len(ties):
        hashes = scratch.id_hash_at(ties)
        ties = ties[np.lexsort((ties, hashes))[:missing]]
    selected[ties] = True
    return tau, selected


def _above(scores: np.ndarray, tau: float) -> float:
    """``sum of max(0, score - tau)``, without an array as long as the scores."""
    step = 1 << 20
    return float(sum(np.maximum(scores[low : low + step] - tau, 0.0).sum() for low in range(0, len(scores), step)))


def _near(scores: np.ndarray, tau: float, dim: int, rule: ScoreRule) -> np.ndarray:
    """The rows nearest to the threshold, rising: some of them are neither in nor out, and so are swapped.

    Eight times d, the unknowns in a rule without moments. With moments as many as are allowed: of so many unknowns a
    rule says little where few rows are selected.
    """
    wanted = 8 * dim if rule.moment is None else NEAR_ROWS[1]
    count = int(min(len(scores), np.clip(wanted, *NEAR_ROWS)))
    off = np.abs(scores - tau)
    near = np.flatnonzero((off <= np.partition(off, count - 1)[count - 1]) & (scores > -np.inf))
    if len(near) > 2 * count:  # scores that are equal: all of them are at the threshold
        near = near[:: -(-len(near) // count)]
    return near


def _members(
    scratch: Scratch,
    one_pass: Pass,
    scores: np.ndarray,
    selected: np.ndarray,
    limits: _Limits,
    poll: Poll,
) -> Members:
    """Means over the members: those above the nearest threshold of the pass, the rows between that and theirs, and
    those that are always in."""
    cut = one_pass.cut_nearest(limits.chosen)
    edge = float(one_pass.edges[one_pass.cuts[cut]])
    count = one_pass.kept(cut)
    mean, moment = one_pass.members(cut)
    members = Members(
        size=limits.size,
        quality=one_pass.mean_quality(cut) * count,
        total=None if mean is None else mean * count,
        moments=None if moment is None else moment * count,
        rule=one_pass.rule,
    )
    # rows that are always in have no score, and are in no sum of the pass
    apart = np.flatnonzero(selected != (scores >= edge))
    for low in range(0, len(apart), ROWS_READ):
        poll()
        rows = apart[low : low + ROWS_READ]
        units = scratch.rows_at(rows).astype(np.float64) if one_pass.rule.needs_features else None
        members.add(units, scratch.quality[rows], np.where(selected[rows], 1.0, -1.0))
    return members


# -- kept between attempts ---------------------------------------------------------------------------------------------

_NUMBERS = ("expected", "spread", "value", "bound", "raw", "passes", "proved", "least_tau", "random")


def _digest(recipe: Recipe) -> str:
    """Of what decides where the passes begin and what they are worth; not of where the recipe was learned."""
    return replace(recipe, learned={}, all_rows={}, notes=(), thresholds=Thresholds(None)).digest


def stored_dual(scratch: Scratch, name: str, made_of: Mapping[str, Any]) -> Kept[Dual]:
    """Describe what the passes of an attempt came to, of just the same."""

    def read(content: Content) -> Dual:
        note = json.loads(content.value["note"])
        require(len(content["packed"]) == -(-scratch.rows // 8), "the members are of other rows")
        rules = {}
        for each in ("rule", "least"):
            arrays: dict[str, Any] = {part: content.arrays.get(f"{each}_{part}") for part in RULE_ARRAYS}
            rules[each] = ScoreRule(**note[each], **arrays)
        numbers = {part: note[part] for part in _NUMBERS}
        return Dual(rules["rule"], packed=content["packed"], least=rules["least"], **numbers)

    return of_work(scratch.folder, Entry("dual", name, 1, digest_of(made_of)), read, _content)


def _content(dual: Dual) -> Content:
    """What is written down of the passes so far."""
    arrays: dict[str, np.ndarray] = {"packed": dual.packed}
    numbers: dict[str, Any] = {part: getattr(dual, part) for part in _NUMBERS}
    for name, rule in (("rule", dual.rule), ("least", dual.least)):
        if rule is not None:
            numbers[name], of_rule = rule.parts()
            arrays |= {f"{name}_{part}": array for part, array in of_rule.items()}
    return Content({"note": json.dumps(numbers)}, arrays)  # as text: bounds may be infinite
