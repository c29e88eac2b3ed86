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

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import InputError, OptionError
from datamask.options.duplicates import duplicates_named
from datamask.polling import Poll, no_poll
from datamask.recipes.learned import (
    LearningSelection,
    lengths_of,
    shares_of,
    standardisation,
    weighted_mean,
    weighted_moment,
)
from datamask.recipes.quality import total
from datamask.recipes.recipe import FeatureColumn, Recipe, ScoreRule, Thresholds
from datamask.recipes.sharpening import sharpened
from datamask.recipes.weights import Weights

MOST_IDS = 100_000
"""Pinned, banned and given ids that a recipe names, all together."""

POOR_FIT = 0.05
"""Share of the selection that comes out otherwise from which on a recipe says so."""


def refusal(config: SelectionConfig) -> str:
    """Why selections with these settings have no rule, in a sentence; "" where they have one."""
    ruled = " or ".join(catalogue.objective(name).label for name in catalogue.RULED)
    way_out = f"To get one, run {ruled}."
    if config.estimator == catalogue.IMPORTED.name:
        return f"Imported ids have no per-row rule (recipe). {way_out}"
    unruled = [name for name, _ in config.terms if name not in catalogue.RULED]
    if unruled and config.lamb < 1:
        if catalogue.objective(unruled[0]).proof == "relaxation":
            return f"Objective {unruled[0]} has no per-row rule (recipe). {way_out}"
        label = catalogue.objective(unruled[0]).label
        return f"{label} has no recipe: each row depends on others. {way_out}"
    return ""


def derive(learned: LearningSelection, poll: Poll = no_poll, **provenance: Any) -> Recipe:
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
    if corpus.provenance.config is not None and corpus.provenance.config.quality_within is not None:
        raise OptionError(
            "with --quality_within the quality of a row depends on the rows beside it, so no per-row rule (recipe) "
            "exists; write the ranks into the shards and select by them"
        )
    mask = learned.selected | learned.given
    shares = shares_of(learned, mask)
    columns = corpus.provenance.columns
    under_budget = config.budget is not None
    fixed = learned.pinned | learned.banned | learned.given
    if int(fixed.sum()) > MOST_IDS:
        raise InputError(
            f"the run pins, bans or was given {int(fixed.sum()):,} ids, and a recipe names at most {MOST_IDS:,}; make "
            "it of a run without them, and leave those ids out before or after"
        )
    whole = float(lengths_of(learned).sum()) if under_budget else float(len(corpus))
    amounts = np.ones(len(corpus)) if not under_budget else lengths_of(learned)
    recipe = Recipe(
        objective=config.objective,
        lamb=config.lamb,
        scale=config.scale,
        anchors=learned.anchors,
        share=(float(config.budget) if config.budget is not None else float(learned.selected.sum())) / whole,
        of="tokens" if under_budget else "rows",
        rule=ScoreRule(0.0),
        thresholds=Thresholds(0.0),
        quality=learned.quality,
        features=FeatureColumn(columns["feature"], corpus.dim, learned.center),
        id_column=columns["id"],
        length_column=columns.get("length") if under_budget else None,
        always=tuple(corpus.ids.filter(pa.array(learned.pinned)).to_pylist()),
        never=tuple(corpus.ids.filter(pa.array(learned.banned | learned.given)).to_pylist()),
    )
    rule = _rule(learned, Weights.of(recipe), mask, shares, poll)
    quality = total(recipe.quality, learned.quality_values)
    rule, scores, thresholds, needed = sharpened(learned, replace(recipe, rule=rule), quality, amounts, poll)
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
        "components": None if learned.components is None else learned.components.axes.shape[1],
        "quotas": [str(quota) for quota in config.quotas],
        "pinned": len(recipe.always),
        "left_out": len(recipe.never),
    }
    return replace(recipe, rule=rule, thresholds=thresholds, learned=provenance, notes=_notes(learned, provenance))


def _rule(learned: LearningSelection, weights: Weights, mask: np.ndarray, shares: np.ndarray, poll: Poll) -> ScoreRule:
    config, size, space = learned.config, int(mask.sum()), learned.space
    rule: dict[str, Any] = {"quality_weight": weights.quality}
    if weights.pairs > 0:
        rule["direction"] = weighted_mean(space.features, shares, poll)
        if config.budget is None:
            rule["crowding_weight"] = weights.crowding(size) if size > 1 else 0.0
        else:
            lengths = lengths_of(learned)
            most = float(config.budget) + float(lengths[learned.given].sum())
            counted = np.where(lengths <= most, lengths, 0.0)
            omega = float(counted @ (lengths / most)) / float(counted.sum())
            pairs = 1.0 / (1.0 - omega) if omega < 1.0 - 1e-9 else 0.0
            rule["length_weight"] = weights.pairs * pairs / most
            rule["crowding_weight"] = 2.0 * weights.pairs * pairs
    if weights.moments > 0:
        features = space.features
        if learned.components is not None:
            rule["axes"], features = learned.components.axes, learned.components.rows(features, poll)
        mean, inverse_sd = standardisation(features, poll)
        rule["moment_weight"] = weights.moment_weight(features.shape[1])
        rule["mean"], rule["inverse_sd"] = mean, inverse_sd
        rule["moment"] = weighted_moment(features, shares, mean, inverse_sd, poll)
    return ScoreRule(**rule)


def _notes(learned: LearningSelection, facts: dict[str, Any]) -> tuple[str, ...]:
    """What to know before the recipe is applied."""
    config, notes = learned.config, []
    if facts["otherwise"] > POOR_FIT * max(facts["selected"], 1):
        dim, names = learned.corpus.dim, dict(config.terms)
        kept = facts["components"] or dim
        unknowns = (dim if "pairwise" in names else 0) + (kept * (kept - 1) // 2 if "disf_fixed" in names else 0)
        way_out = "Select more rows." if config.estimator == "relaxed" else "--estimator relaxed ends at an optimum."
        notes.append(
            f"{facts['otherwise']:,} rows come out otherwise than in the run, which selected {facts['selected']:,}. "
            f"The rule has {unknowns:,} unknowns. At an optimum it is wrong about as many rows at most, elsewhere "
            f"about more. {way_out}"
        )
    if config.collapse != "none":
        named = duplicates_named(config.collapse, learned.corpus.provenance.columns)
        notes.append(
            f"The run selected the best row of {named}. The rule looks at one row at a time and selects their "
            "duplicates too. Remove them before or after."
        )
    if config.prune > 0:
        notes.append("Rows with lower quality than the pruned rows are not selected.")
    if config.quotas:
        notes.append("Quotas became a threshold for each group. On other rows the share of a group is no longer exact.")
    if facts["pinned"] or facts["left_out"]:
        notes.append(
            f"{facts['pinned']:,} pinned ids are selected and {facts['left_out']:,} banned or given ids are not, "
            "whatever their score."
        )
    return tuple(notes)
