"""The rule of a sample estimated anew on all rows, in two passes, with the value that it reaches and a proved bound.

Notation: h_i the score of row i under direction m (and moment M), k rows kept, A, B, C the weights of quality,
pair-wise similarity and the DiSF with fixed scale in the joint value f. Since minus a squared norm is concave, its
tangent at any point bounds it; so for every subset U of k rows and any m and M, whatever they were estimated from,

    f(U) <= const(m, M, k) + (1/k) sum over U of h_i <= const + t + (1/k) sum over all i of max(0, h_i - t)

for every t. One pass gives the last sum for a thousand t at once, and the mean of the members for each as threshold,
from which f itself follows exactly. The m with the least bound is the mean of its own members; the second pass is made
with one Newton step towards it, whose curvature is that of the rows near the threshold:

    (I + b K) (m' - m) = v - m,     v: the members' mean,  K: density of scores at t times the covariance of x there

Where the rule has a moment too, the step goes along (v - m, V - M) as far as the same curvature says.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from datamask.corpus.sampling import row_hash
from datamask.corpus.threads import Progress, ShouldStop, Speed, in_threads, one_blas_thread, within
from datamask.errors import InputError, OptionError, Stopped
from datamask.recipes.apply import RECIPE_FILE
from datamask.recipes.batches import Judge, Judged, shard_batches
from datamask.recipes.derive import newton_step, slopes
from datamask.recipes.recipe import Recipe, Rule, Thresholds, read_recipe
from datamask.recipes.scoring import Scorer

PASSES = 2

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

OFF_SHARE = 0.01
"""Of the passes that keep the share to this part of it, the one of the highest value is taken."""

PILOT_ROWS, PILOT_SHARDS = 4096, 16
"""The first rows of so many evenly spaced shards, so many together, give the standard deviation of the scores."""


@dataclass(frozen=True)
class Weights:
    """Of the joint value on the recipe's scale.

    Attributes:
        quality, pairs, moments: A, B and C, slopes included. zero: what all terms together have at their zeros.
    """

    quality: float
    pairs: float
    moments: float
    zero: float

    @classmethod
    def of(cls, recipe: Recipe) -> Weights:
        """The weights of a recipe's objective."""
        quality, terms = slopes(recipe)
        by_name = dict(terms)
        zero = 0.0
        if recipe.scale == "calibrated":
            zero = quality * float(recipe.anchors["quality"]["random"])
            zero += sum(weight * float(recipe.anchors["diversity"][name]["random"]) for name, weight in terms if weight)
        return cls(quality, by_name.get("pairwise", 0.0), by_name.get("disf_fixed", 0.0), zero)


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

    rule: Rule
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
    dropped: dict[str, int] | None = None

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
        return _nearest(_tails(self.counts), size)

    def cut_nearest(self, size: float) -> int:
        """The same of the cuts."""
        return _nearest(_tails(self.counts)[self.cuts], size)

    def value(self, cut: int, weights: Weights) -> float:
        """The joint value of the rows above a cut, exact."""
        count, (mean, moment) = self.kept(cut), self.members(cut)
        if count < 2:
            return -np.inf
        value = weights.quality * self.mean_quality(cut) - weights.zero
        if mean is not None and weights.pairs > 0:
            value -= weights.pairs * (count * float(mean @ mean) - 1.0) / (count - 1)
        if moment is not None and weights.moments > 0:
            value -= weights.moments * float((moment * moment).sum()) / _pairs(moment)
        return value

    def bound(self, size: int, weights: Weights) -> float:
        """What no subset of so many rows exceeds in joint value."""
        above = _tails(self.scores) - self.edges * _tails(self.counts)
        best = float((self.edges + above / size).min()) - weights.zero
        rule = self.rule
        if rule.direction is not None and weights.pairs > 0:
            # the score's weight may be that of another size: the tangent is then taken at another multiple of m
            factor = rule.crowding_weight / (2.0 * weights.pairs * size / (size - 1))
            best += weights.pairs * (size * factor**2 * float(rule.direction @ rule.direction) + 1.0) / (size - 1)
        if rule.moment is not None and weights.moments > 0:
            best += weights.moments * float((rule.moment * rule.moment).sum()) / _pairs(rule.moment)
        return best


def _tails(of_bins: np.ndarray) -> np.ndarray:
    """The sum above every edge, ``(B,)``, of numbers ``(B + 1,)`` below, between and above the edges."""
    tails: np.ndarray = of_bins[::-1].cumsum()[::-1][1:]
    return tails


def _nearest(kept: np.ndarray, size: float) -> int:
    return int(np.abs(np.where(kept >= 2, kept, np.inf) - size).argmin())


def _pairs(moment: np.ndarray) -> int:
    return max(len(moment) * (len(moment) - 1), 1)


def refit(judge: Judge, *, progress: Progress | None = None, should_stop: ShouldStop | None = None) -> Recipe:
    """Estimate direction and threshold on all rows.

    Args:
        judge: the recipe on the shards. progress, should_stop: called from this thread some ten times a second.

    Returns:
        The recipe with the new rule and threshold. Its `refit` says ``rows``, ``kept``, ``share_kept``, ``value``
        (joint, on the run's scale and between its anchors), ``upper_bound`` and ``gap`` (None where rounding could
        matter), ``passes``, and ``before``: the same of the learned direction with its threshold estimated anew, and
        ``share_kept`` of the learned threshold.

    Raises:
        OptionError: the recipe counts tokens, or has quotas, pins, bans or given rows.
        InputError: a shard is damaged, has a row that cannot be used, or all rows score alike.
        Stopped: `should_stop` answered true.
    """
    recipe = judge.recipe
    check_refittable(recipe)
    weights = Weights.of(recipe)
    sd = _score_sd(judge)
    expected = float(recipe.thresholds.tau or 0.0)
    rule, done = _rule_of(recipe, weights), []
    for step in range(PASSES):
        share = within(progress, step / PASSES, (step + 1) / PASSES)
        what = f"Pass {step + 1} of {PASSES} over"
        done.append(_pass(judge, rule, expected, sd, what, share, should_stop))
        if step + 1 < PASSES:
            rule, expected = _stepped(recipe, done[-1], weights)
    return _refitted(judge, done, weights)


def _rule_of(recipe: Recipe, weights: Weights) -> Rule:
    """The recipe's rule with the weights of its objective, which a bound has to be made of.

    Raises:
        InputError: it lacks a part that its objective has.
    """
    d, rule = recipe.features.dim, recipe.rule
    for part, weight, name in ((rule.direction, weights.pairs, "direction"), (rule.moment, weights.moments, "moment")):
        if part is None and weight > 0:
            raise InputError(
                f"the recipe has no {name}, and its objective {recipe.objective} asks for one; make it again"
            )
    return replace(
        rule,
        quality_weight=weights.quality,
        direction=rule.direction if weights.pairs > 0 else None,
        crowding_weight=rule.crowding_weight if weights.pairs > 0 else 0.0,
        moment=rule.moment if weights.moments > 0 else None,
        moment_weight=2.0 * weights.moments / max(d * (d - 1), 1),
    )


def kept_refit(judge: Judge, folder: Path) -> Recipe | None:
    """What was estimated from this recipe and these very shards before, and noted in the folder; None: nothing was."""
    try:
        noted = read_recipe(folder / RECIPE_FILE)
    except InputError:
        return None
    made_of = (noted.refit.get("of"), noted.refit.get("inputs"))
    return noted if made_of == (judge.recipe.digest, inputs_digest(judge)) else None


def check_refittable(recipe: Recipe) -> None:
    """Refuse a recipe whose threshold is not one of so many rows.

    Raises:
        OptionError: it counts tokens, or has quotas, pins, bans or given rows.
    """
    thresholds = recipe.thresholds
    if recipe.of != "rows":
        raise OptionError("--refit estimates a threshold for a share of the rows, and this recipe fills a token budget")
    if thresholds.column is not None or thresholds.tau is None or recipe.always or recipe.never:
        raise OptionError(
            "--refit estimates one threshold for all rows, and this recipe has quotas, pinned, banned or given rows; "
            "make it of a run without them"
        )


def inputs_digest(judge: Judge) -> str:
    """By what the shards are known to be the same: paths, sizes and times.

    Raises:
        InputError: one is gone.
    """
    digest = hashlib.blake2b(digest_size=16)
    for shard in judge.source.shards:
        try:
            facts = Path(shard.path).stat()
        except OSError as error:
            raise InputError(f"{shard.path} cannot be read: {error.strerror or error}") from error
        digest.update(json.dumps([shard.path, facts.st_size, facts.st_mtime_ns, judge.drop_invalid]).encode())
    return digest.hexdigest()


def _refitted(judge: Judge, done: list[Pass], weights: Weights) -> Recipe:
    """The best of the passes as a recipe."""
    recipe, first = judge.recipe, done[0]
    cuts = [one_pass.cut_nearest(recipe.share * one_pass.rows) for one_pass in done]
    values = [one_pass.value(cut, weights) for one_pass, cut in zip(done, cuts)]
    # a pass under a threshold that was expected far from where it is does not keep the share
    off = np.abs([one_pass.kept(cut) - recipe.share * one_pass.rows for one_pass, cut in zip(done, cuts)])
    best = int(np.where(off <= max(OFF_SHARE * recipe.share * first.rows, off.min()), values, -np.inf).argmax())
    chosen, cut, value = done[best], cuts[best], values[best]
    kept = chosen.kept(cut)
    if kept >= chosen.rows or kept < 2:
        raise InputError(
            f"no threshold keeps a share of {recipe.share:g} of the {chosen.rows:,} rows: their scores are alike, so "
            "the recipe tells nothing of them"
        )
    facts = {
        "of": recipe.digest,
        "inputs": inputs_digest(judge),
        "rows": chosen.rows,
        "dropped": first.dropped,
        "kept": kept,
        "share_kept": kept / chosen.rows,
        "value": value,
        **_proved(value, min(one_pass.bound(kept, weights) for one_pass in done)),
        "passes": len(done),
        "before": {
            "share_kept": first.kept(int(np.searchsorted(first.cuts, BINS // 2))) / first.rows,
            "value": values[0],
            **_proved(values[0], first.bound(first.kept(cuts[0]), weights)),
        },
    }
    thresholds = Thresholds(float(chosen.edges[chosen.cuts[cut]]), least_quality=recipe.thresholds.least_quality)
    return replace(recipe, rule=chosen.rule, thresholds=thresholds, refit=facts)


def _proved(value: float, bound: float) -> dict[str, float | None]:
    """Bound and gap; none where the bound lies below the value by more than rounding."""
    if bound < value - 1e-9 * max(abs(value), 1.0):
        return {"upper_bound": None, "gap": None}
    return {"upper_bound": max(bound, value), "gap": max(bound - value, 0.0)}


# -- one pass ---------------------------------------------------------------------------------------------------------


def _pass(
    judge: Judge,
    rule: Rule,
    expected: float,
    sd: float,
    what: str,
    progress: Progress | None,
    should_stop: ShouldStop | None,
) -> Pass:
    """Score all rows by `rule` and sum them up around the expected threshold."""
    d, source = judge.recipe.features.dim, judge.source
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
        dropped={},
    )
    judge = judge.under(replace(judge.recipe, rule=rule), with_ids=False, with_units=True)
    scorer = Scorer(judge.recipe)
    share = min(1.0, BAND_ROWS / max(1.0, BAND_SHARE * source.rows))
    band: dict[int, list[np.ndarray]] = {place: [] for place in range(len(source.shards))}
    stop, lock, speed = threading.Event(), threading.Lock(), Speed()
    decoded = rows_done = 0

    def task(place: int) -> None:
        nonlocal decoded, rows_done
        shard = source.shards[place]
        for first, batch in shard_batches(shard, judge.columns, 64 + 4 * d):
            if stop.is_set():
                raise Stopped("estimating the recipe anew was stopped; nothing of it is kept")
            judged = judge(place, first, batch)
            near = _add(total, lock, scorer, judged, share, place, first)
            if near is not None:
                band[place].append(near)
            with lock:
                total.rows += int(judged.valid.sum())
                for reason, count in judged.dropped.items():
                    assert total.dropped is not None
                    total.dropped[reason] = total.dropped.get(reason, 0) + count
                decoded += batch.nbytes
                rows_done += batch.num_rows

    def tick() -> None:
        if progress is not None:
            progress(rows_done / source.rows, f"{what} {rows_done:,} of {source.rows:,} rows{speed.words(decoded)}")

    with one_blas_thread():
        in_threads(task, len(source.shards), should_stop=should_stop, stop=stop, tick=tick)
    if total.rows == 0:
        raise InputError("no row of the input can be used, so nothing can be estimated from it")
    near_rows = [rows for place in sorted(band) for rows in band[place]]
    if near_rows:
        whole = np.concatenate(near_rows)
        total.band, total.band_quality = whole[:, 1:], whole[:, 0]
    return total


def _add(
    total: Pass,
    lock: threading.Lock,
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
    with lock:
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


def _score_sd(judge: Judge) -> float:
    """The standard deviation of the scores of some first rows, which says how far apart thresholds are tried.

    Raises:
        InputError: all of them score alike.
    """
    source, scores = judge.source, []
    places = [place for place, shard in enumerate(source.shards) if shard.rows]
    places = places[:: max(1, len(places) // PILOT_SHARDS)]
    for place in places:
        wanted = PILOT_ROWS // len(places)
        for first, batch in shard_batches(source.shards[place], judge.columns, 64 + 4 * judge.recipe.features.dim):
            judged = judge(place, first, batch)
            scores.append(judged.score[judged.valid])
            wanted -= batch.num_rows
            if wanted <= 0:
                break
    sd = float(np.concatenate(scores).std()) if scores else 0.0
    if not sd > 0:
        raise InputError("all rows score alike under this recipe, so no threshold tells them apart")
    return sd


# -- the step between two passes --------------------------------------------------------------------------------------


def _stepped(recipe: Recipe, one_pass: Pass, weights: Weights) -> tuple[Rule, float]:
    """The rule for the next pass, and the threshold that is expected for it."""
    cut, edge = (nearest(recipe.share * one_pass.rows) for nearest in (one_pass.cut_nearest, one_pass.edge_nearest))
    size, rule = one_pass.kept(cut), one_pass.rule
    tau = float(one_pass.edges[edge])
    mean, moment = one_pass.members(cut)
    pairs = 2.0 * weights.pairs * size / max(size - 1, 1)
    band = one_pass.band
    shifted = (
        not one_pass.cuts[0] < edge < one_pass.cuts[-1]
    )  # nothing is known of the members there, nor the curvature
    if shifted or band is None or one_pass.band_quality is None or len(band) < 2 or not rule.needs_features:
        return replace(rule, crowding_weight=pairs if rule.direction is not None else 0.0), tau
    band = band.astype(np.float64)
    density = one_pass.in_band / (2.0 * one_pass.width * size)
    if rule.moment is None and rule.direction is not None and mean is not None:
        stepped = replace(
            rule, direction=newton_step(rule.direction, mean, pairs * density, band), crowding_weight=pairs
        )
    else:
        stepped = _along(rule, mean, moment, band, density, pairs)
    before, after = (Scorer(replace(recipe, rule=each))(one_pass.band_quality, band) for each in (rule, stepped))
    return stepped, float(np.quantile(after, float((before < tau).mean())))


def _along(
    rule: Rule,
    mean: np.ndarray | None,
    moment: np.ndarray | None,
    band: np.ndarray,
    density: float,
    pairs: float,
) -> Rule:
    """The rule moved towards the means of its members, to where the bound is least by its curvature there."""
    slope, change = 0.0, np.zeros(len(band))
    towards_mean = towards_moment = None
    if rule.direction is not None and mean is not None:
        towards_mean = mean - rule.direction
        slope += pairs * float(towards_mean @ towards_mean)
        change += pairs * (band @ towards_mean)
    if rule.moment is not None and moment is not None:
        towards_moment = moment - rule.moment
        slope += rule.moment_weight * float((towards_moment * towards_moment).sum())
        y = (band - rule.mean) * rule.inverse_sd
        change += rule.moment_weight * ((y @ towards_moment) * y).sum(axis=1)
    length = slope / (slope + density * float(change.var())) if slope > 0 else 0.0
    return replace(
        rule,
        direction=None if towards_mean is None or rule.direction is None else rule.direction + length * towards_mean,
        moment=None if towards_moment is None or rule.moment is None else rule.moment + length * towards_moment,
        crowding_weight=pairs if rule.direction is not None else 0.0,
    )
