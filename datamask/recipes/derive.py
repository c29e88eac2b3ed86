"""From a selection of an open corpus to its rule: means of the members, weights of the terms, thresholds.

The rule is the gradient of the joint objective in the inclusion of a row, at the selection, times S. With pair-wise
similarity as in `datamask.objectives.pairwise` it is ``q - 2 S / (S - 1) x.s / S`` in the weights of the terms; a
member's own pair, a share of 1 / S of its crowding, is left out, since an unseen row has none. At an optimum all but
about d rows lie on their side of one threshold; where swaps ended the search, or masks were learned, more may not, and
the threshold is the one that leaves the fewest on the wrong side. The mean of S whole members is a little off the
optimum over weights, where the rule is exact; where the directions of the members cancel, as after --center, that
little turns many rows. So some Newton steps towards that optimum are tried (`sharpened`), and the direction is the one
that leaves the fewest rows on the wrong side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.corpus.corpus import Corpus
from datamask.errors import InputError, OptionError
from datamask.feasibility import quota_groups
from datamask.recipes.quality import FrozenQuality, total
from datamask.recipes.recipe import RULED, FeatureColumn, Recipe, Rule, Thresholds
from datamask.recipes.scoring import Scorer

ROWS_AT_ONCE = 8192

DEAD_SHARE = 1e-4
"""As in `datamask.objectives.disf`: a dimension whose sd is below this share of the median one counts as dead."""

OFF_SIZE = 0.005
"""The threshold may keep so much more or less than the selection holds, where that puts more rows on their side."""

MOST_IDS = 100_000
"""Pinned, banned and given ids that a recipe names, all together."""

SHARPENINGS = 6
"""Newton steps that are tried."""

BAND_SHARE, BAND_ROWS = 0.01, 20_000
"""Rows nearest to the threshold that give the curvature there: this share, 200 at least, and so many at most."""

POOR_FIT = 0.05
"""Share of the selection that comes out otherwise from which on a recipe says so."""

Poll = Callable[[], None]


def no_poll() -> None:
    """Nobody stops it."""


@dataclass(frozen=True)
class Learned:
    """A selection with what is needed for its rule.

    Attributes:
        corpus: as it was opened. space: the same or its centered twin, in whose features the objective was measured;
            center: what was subtracted, float64 ``(d,)``, None for nothing.
        config: the settings. anchors: the ends of the scales, as runs keep them.
        quality: the quality columns as they stand in the shards, float64 ``(Q, N)``, and how they add up.
        selected, eligible, given, pinned, banned: bool ``(N,)``, as in the run.
    """

    corpus: Corpus
    space: Corpus
    center: np.ndarray | None
    config: SelectionConfig
    anchors: dict[str, Any]
    quality: tuple[FrozenQuality, ...]
    quality_values: np.ndarray
    selected: np.ndarray
    eligible: np.ndarray
    given: np.ndarray
    pinned: np.ndarray
    banned: np.ndarray


def refusal(config: SelectionConfig) -> str:
    """Why selections with these settings have no rule, in a sentence; "" where they have one."""
    if config.estimator == catalogue.IMPORTED.name:
        return (
            "This selection was made elsewhere, so no rule of an objective is behind it; a recipe is made of a run "
            "that solved pairwise or disf_fixed."
        )
    unruled = [name for name, _ in config.terms if name not in RULED]
    if unruled and config.lamb < 1:
        return (
            f"Objective {unruled[0]} has no rule of one row's own numbers: whether a row is in depends on which of its "
            f"neighbours are; recipes are made of runs with {' or '.join(RULED)}, or a sum of them."
        )
    return ""


def derive(learned: Learned, poll: Poll = no_poll, **provenance: Any) -> Recipe:
    """The recipe of a selection.

    Args:
        poll: called at least every 0.3 s. provenance: what `Recipe.learned` says besides.

    Raises:
        OptionError: the settings have no rule. InputError: no threshold tells rows apart, or too many ids to name.
        Stopped: from `poll`.
    """
    config, corpus = learned.config, learned.corpus
    if why := refusal(config):
        raise OptionError(why[:1].lower() + why[1:].rstrip("."))
    mask = learned.selected | learned.given
    shares = _shares(learned, mask)
    rule = _rule(learned, mask, shares, poll)
    columns = corpus.provenance.columns
    under_budget = config.budget is not None
    fixed = learned.pinned | learned.banned | learned.given
    if int(fixed.sum()) > MOST_IDS:
        raise InputError(
            f"the run pins, bans or was given {int(fixed.sum()):,} ids, and a recipe names at most {MOST_IDS:,}; make "
            "it of a run without them, and leave those ids out before or after"
        )
    whole = float(_lengths(learned).sum()) if under_budget else float(len(corpus))
    tokens = corpus.lengths
    amounts = np.ones(len(corpus)) if not under_budget else _lengths(learned)
    recipe = Recipe(
        objective=config.objective,
        lamb=config.lamb,
        scale=config.scale,
        anchors=learned.anchors,
        share=(float(config.budget) if config.budget is not None else float(learned.selected.sum())) / whole,
        of="tokens" if under_budget else "rows",
        rule=rule,
        thresholds=Thresholds(0.0),
        quality=learned.quality,
        features=FeatureColumn(columns["feature"], corpus.dim, learned.center),
        id_column=columns["id"],
        length_column=columns.get("length") if under_budget else None,
        always=tuple(corpus.ids.filter(pa.array(learned.pinned)).to_pylist()),
        never=tuple(corpus.ids.filter(pa.array(learned.banned | learned.given)).to_pylist()),
    )
    quality = total(recipe.quality, list(learned.quality_values))
    if rule.direction is not None and rule.moment is None:
        recipe = replace(recipe, rule=sharpened(learned, recipe, quality, amounts, poll))
    scores = corpus_scores(recipe, learned.space, quality, tokens if under_budget else None, poll)
    thresholds, needed = _thresholds(learned, scores, quality, amounts)
    kept = scores >= needed
    kept &= True if thresholds.least_quality is None else quality >= thresholds.least_quality
    kept = (kept | learned.pinned) & ~learned.banned & ~learned.given
    could = learned.eligible | learned.pinned
    otherwise = int((kept != learned.selected)[could].sum())
    provenance |= {
        "rows": len(corpus),
        "selected": int(learned.selected.sum()),
        "share_selected": float(amounts[learned.selected].sum()) / whole,
        "kept": int(kept.sum()),
        "share_kept": float(amounts[kept].sum()) / whole,
        "otherwise": otherwise,
        "beyond_the_run": int(kept[~could].sum()),
        "prune": config.prune,
        "collapse": config.collapse,
        "center": config.center,
        "quotas": [str(quota) for quota in config.quotas],
        "pinned": len(recipe.always),
        "left_out": len(recipe.never),
    }
    return replace(recipe, thresholds=thresholds, learned=provenance, notes=_notes(learned, provenance))


def slope(anchors: dict[str, Any], scale: str, term: str) -> float:
    """What one unit of a term is on the run's scale; 0 where the term is the same for all selections.

    Args:
        term: ``quality`` or an objective.
    """
    if scale == "raw":
        return 1.0
    ends = anchors["quality"] if term == "quality" else anchors["diversity"][term]
    reach = float(ends["best"]) - float(ends["random"])
    # as `datamask.objectives.joint.Anchor.constant`
    return 1.0 / reach if reach > 1e-9 * max(abs(float(ends["best"])), abs(float(ends["random"]))) else 0.0


def _lengths(learned: Learned) -> np.ndarray:
    if learned.corpus.lengths is None:
        raise InputError("the run fills a budget of tokens, and the corpus has no lengths any more")
    return learned.corpus.lengths


def _shares(learned: Learned, mask: np.ndarray) -> np.ndarray:
    """With what weights rows enter the members' mean, float64 ``(N,)``, adding up to 1.

    Under a budget by their tokens, and tokens not spent are average ones (`datamask.objectives.budgeted`).
    """
    if learned.config.budget is None:
        equal: np.ndarray = mask / mask.sum()
        return equal
    lengths = _lengths(learned)
    most = float(learned.config.budget) + float(lengths[learned.given].sum())
    counted = np.where(lengths <= most, lengths, 0.0)
    spent = np.where(mask, lengths / most, 0.0)
    shares: np.ndarray = spent + (1.0 - spent.sum()) * counted / counted.sum()
    return shares


def _rule(learned: Learned, mask: np.ndarray, shares: np.ndarray, poll: Poll) -> Rule:
    config, size, d = learned.config, int(mask.sum()), learned.corpus.dim
    weights = {
        name: (1.0 - config.lamb) * weight * slope(learned.anchors, config.scale, name)
        for name, weight in config.terms
        if config.lamb < 1
    }
    rule: dict[str, Any] = {"quality_weight": config.lamb * slope(learned.anchors, config.scale, "quality")}
    if (weight := weights.get("pairwise", 0.0)) > 0:
        if config.budget is None:
            pairs = size / (size - 1) if size > 1 else 0.0
        else:
            lengths = _lengths(learned)
            most = float(config.budget) + float(lengths[learned.given].sum())
            counted = np.where(lengths <= most, lengths, 0.0)
            omega = float(counted @ (lengths / most)) / float(counted.sum())
            pairs = 1.0 / (1.0 - omega) if omega < 1.0 - 1e-9 else 0.0
            rule["length_weight"] = weight * pairs / most
        rule["crowding_weight"] = 2.0 * weight * pairs
        rule["direction"] = weighted_mean(learned.space.features, shares, poll)
    if (weight := weights.get("disf_fixed", 0.0)) > 0:
        mean, inverse_sd = standardisation(learned.space.features, poll)
        rule["moment_weight"] = 2.0 * weight / max(d * (d - 1), 1)
        rule["mean"], rule["inverse_sd"] = mean, inverse_sd
        rule["moment"] = weighted_moment(learned.space.features, shares, mean, inverse_sd, poll)
    return Rule(**rule)


def sharpened(learned: Learned, recipe: Recipe, quality: np.ndarray, amounts: np.ndarray, poll: Poll = no_poll) -> Rule:
    """Of the rule and those that Newton steps lead to, the one that leaves the fewest rows on the wrong side.

    The steps are those of `datamask.recipes.refit`, towards the direction that is the mean of its own members.

    Args:
        recipe: with the rule to begin with, which has a direction and no moment.
        quality, amounts: float64 ``(N,)``; amounts are tokens under a budget, else ones.
    """
    free = np.flatnonzero(learned.eligible & ~learned.pinned)
    lengths = amounts if recipe.of == "tokens" else None
    fewest, best = len(free) + 1, recipe.rule
    for step in range(SHARPENINGS + 1):
        rule = recipe.rule
        scores = corpus_scores(recipe, learned.space, quality, lengths, poll)
        needed = _thresholds(learned, scores, quality, amounts)[1]
        inside = scores[free] >= needed[free]
        wrong = int((inside != learned.selected[free]).sum())
        if wrong < fewest:
            fewest, best = wrong, rule
        off = np.abs(scores - needed)[free]
        count = min(len(free), max(200, int(BAND_SHARE * len(free))))
        width = float(np.partition(off, count - 1)[count - 1])
        if step == SHARPENINGS or rule.direction is None or not 0 < width < np.inf:
            break
        mask = learned.pinned | learned.given
        mask[free[inside]] = True
        mean = weighted_mean(learned.space.features, _shares(learned, mask), poll)
        near = free[off <= width]
        density = float(amounts[near].sum() / amounts[mask].sum()) / (2.0 * width)
        band = learned.space.features[near[:: max(1, -(-len(near) // BAND_ROWS))]].astype(np.float64)
        direction = newton_step(rule.direction, mean, rule.crowding_weight * density, band)
        recipe = replace(recipe, rule=replace(rule, direction=direction))
    return best


def newton_step(direction: np.ndarray, mean: np.ndarray, density: float, band: np.ndarray) -> np.ndarray:
    """The next direction, float64 ``(d,)``: ``(I + K) (m' - m) = v - m``.

    Args:
        direction: m. mean: v, of the members under m. density: b times the share of rows per score at the threshold.
        band: float64 ``(r, d)``, unit features of rows near it, whose covariance times the density is K.
    """
    d = len(direction)
    curvature = density * np.cov(band.T, bias=True).reshape(d, d)
    moved: np.ndarray = direction + np.linalg.solve(np.eye(d) + curvature, mean - direction)
    return moved


def weighted_mean(features: np.ndarray, shares: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """``sum of shares_i x_i``, float64 ``(d,)``; rows of weight 0 are skipped."""
    mean, rows = np.zeros(features.shape[1]), np.flatnonzero(shares)
    for part in _parts(rows):
        poll()
        mean += shares[part] @ features[part].astype(np.float64)
    return mean


def weighted_moment(
    features: np.ndarray, shares: np.ndarray, mean: np.ndarray, inverse_sd: np.ndarray, poll: Poll = no_poll
) -> np.ndarray:
    """``sum of shares_i y_i y_i'`` without its diagonal, float64 ``(d, d)``."""
    d = features.shape[1]
    moment, rows = np.zeros((d, d)), np.flatnonzero(shares)
    for part in _parts(rows):
        poll()
        y = (features[part].astype(np.float64) - mean) * inverse_sd
        moment += y.T @ (y * shares[part, None])
    np.fill_diagonal(moment, 0.0)
    return (moment + moment.T) / 2


def standardisation(features: np.ndarray, poll: Poll = no_poll) -> tuple[np.ndarray, np.ndarray]:
    """Mean and inverse standard deviation of every dimension, float64 ``(d,)`` each; 0 for dead dimensions.

    Rounded to float32, in which the objective standardises.
    """
    n, d = features.shape
    parts = _parts(np.arange(n))
    mean, variance = np.zeros(d), np.zeros(d)
    for part in parts:
        poll()
        mean += features[part].astype(np.float64).sum(axis=0)
    mean /= n
    for part in parts:
        poll()
        variance += np.square(features[part].astype(np.float64) - mean).sum(axis=0)
    sd = np.sqrt(variance / n)
    alive = sd > DEAD_SHARE * np.sort(sd)[(d - 1) // 2]
    inverse = np.where(alive, 1.0 / np.maximum(sd, np.finfo(np.float64).tiny), 0.0)
    return mean.astype(np.float32).astype(np.float64), inverse.astype(np.float32).astype(np.float64)


def _parts(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[low : low + ROWS_AT_ONCE] for low in range(0, len(rows), ROWS_AT_ONCE)]


def corpus_scores(
    recipe: Recipe, space: Corpus, quality: np.ndarray, lengths: np.ndarray | None, poll: Poll = no_poll
) -> np.ndarray:
    """The scores of all rows of an open corpus, float64 ``(N,)``. space: its features, centered if need be."""
    scorer = Scorer(recipe)
    if not recipe.rule.needs_features:
        return scorer(quality, None, lengths)
    scores = np.empty(len(quality))
    for part in _parts(np.arange(len(quality))):
        poll()
        units = space.features[part].astype(np.float64)
        scores[part] = scorer(quality[part], units, None if lengths is None else lengths[part])
    return scores


def _thresholds(
    learned: Learned, scores: np.ndarray, quality: np.ndarray, amounts: np.ndarray
) -> tuple[Thresholds, np.ndarray]:
    """The thresholds, and that of every row, float64 ``(N,)``, infinite where none of its kind is kept."""
    config, n = learned.config, len(scores)
    free = learned.eligible & ~learned.pinned
    least = None
    if config.prune > 0:
        falling = np.sort(quality)[::-1]
        left = max(1, round((1.0 - config.prune) * n))
        # between the two, so that the rounding of a weighted sum moves nobody across
        least = float(falling[left - 1] / 2 + falling[min(left, n - 1)] / 2)
    if not config.quotas:
        tau = threshold(scores[free], learned.selected[free], amounts[free])
        return Thresholds(tau, least_quality=least), np.full(n, tau)
    mask = learned.selected | learned.given
    group, low, high, _ = quota_groups(config.quotas, learned.corpus.metadata, int(mask.sum()), learned.given)
    counts = np.bincount(group[mask], minlength=len(low))
    loose = ~((counts == low) | (counts == high))
    common = free & loose[group]
    shared = threshold(scores[common], learned.selected[common], amounts[common]) if common.any() else None
    taus: list[float | None] = []
    for number in range(len(low)):
        rows = free & (group == number)
        if loose[number] or (
            high[number] > 0 and not rows.any()
        ):  # a value that the corpus has no rows of binds nobody
            taus.append(shared)
        elif not learned.selected[rows].any():
            taus.append(None)
        elif learned.selected[rows].all():
            taus.append(float(scores[rows].min()))
        else:
            taus.append(threshold(scores[rows], learned.selected[rows], amounts[rows]))
    column = config.quotas[0].column
    is_truth = pa.types.is_boolean(learned.corpus.metadata[column].type)
    values = [quota.value.lower() if is_truth else quota.value for quota in config.quotas]
    needed = np.array([np.inf if tau is None else tau for tau in taus])[group]
    return Thresholds(taus[0], column, dict(zip(values, taus[1:])), least), needed


def threshold(scores: np.ndarray, inside: np.ndarray, amounts: np.ndarray) -> float:
    """The score that parts members from others with the fewest rows on the wrong side.

    Among the cuts that keep as much as the members are, to `OFF_SIZE`; of equal ones the nearest to that amount. Half
    way between two scores.

    Args:
        scores, amounts: float64 ``(m,)``; inside: bool ``(m,)``.

    Raises:
        InputError: all scores are the same.
    """
    order = np.argsort(-scores, kind="stable")
    falling, members, sizes = scores[order], inside[order], amounts[order]
    cuts = np.flatnonzero(falling[:-1] > falling[1:])  # a cut behind this place
    if not len(cuts):
        raise InputError(
            "no threshold tells rows apart: all that could be selected have the same score, so any selection is as "
            "good as another and there is no rule"
        )
    taken = np.cumsum(members)[cuts]
    wrong = (cuts + 1 - taken) + (members.sum() - taken)
    off = np.abs(np.cumsum(sizes)[cuts] - sizes[members].sum())
    near = off <= max(OFF_SIZE * float(sizes[members].sum()), float(off.min()))
    best = cuts[near][np.lexsort((off[near], wrong[near]))[0]]
    high, low = float(falling[best]), float(falling[best + 1])
    middle = low + (high - low) / 2
    return middle if middle > low else high


def _notes(learned: Learned, facts: dict[str, Any]) -> tuple[str, ...]:
    """What whoever applies the recipe should know."""
    config, notes = learned.config, []
    if facts["otherwise"] > POOR_FIT * max(facts["selected"], 1):
        notes.append(
            f"{facts['otherwise']:,} rows come out otherwise than in the run, beside {facts['selected']:,} selected "
            "ones. At an optimum a rule is wrong about as many rows as there are dimensions "
            f"({learned.corpus.dim:,}); where a run ended elsewhere, about more. `--estimator relaxed` ends at one."
        )
    if config.collapse != "none":
        notes.append(
            f"The run kept the best of each family of near-copies (--collapse {config.collapse}). The rule looks at "
            "one row at a time: copies of a kept row are kept too. Remove them before or after."
        )
    if config.prune > 0:
        notes.append("Rows of less quality than the pruned ones had are left out, wherever they come from.")
    if config.quotas:
        notes.append(
            "Quotas became a threshold for each group. On other rows a group's share of the selection follows from "
            "these, and is no longer exact."
        )
    if facts["pinned"] or facts["left_out"]:
        notes.append(
            f"{facts['pinned']:,} pinned ids are kept and {facts['left_out']:,} banned or given ones left out wherever "
            "they occur, whatever their score."
        )
    return tuple(notes)


def slopes(recipe: Recipe) -> tuple[float, Sequence[tuple[str, float]]]:
    """The weights of quality and of every diversity term in the joint value, in raw units."""
    quality = recipe.lamb * slope(recipe.anchors, recipe.scale, "quality")
    return quality, [
        (name, (1.0 - recipe.lamb) * weight * slope(recipe.anchors, recipe.scale, name))
        for name, weight in recipe.terms
        if recipe.lamb < 1
    ]
