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
from dataclasses import replace
from pathlib import Path

import numpy as np

from datamask.errors import InputError, OptionError
from datamask.measured import is_bound
from datamask.recipes.apply import RECIPE_FILE, footer_digest, shard_stamp
from datamask.recipes.batches import Judge
from datamask.recipes.passes import BINS, Pass, pass_over, score_sd
from datamask.recipes.recipe import Recipe, ScoreRule, Thresholds, read_recipe
from datamask.recipes.stepping import next_rule, next_threshold, rule_of
from datamask.recipes.weights import Weights
from datamask.storage.address import is_address
from datamask.work.context import UNWATCHED, Work

PASSES = 2

OFF_SHARE = 0.01
"""Of the passes that keep the share to this part of it, the one of the highest value is taken."""


def refit(judge: Judge, work: Work = UNWATCHED) -> Recipe:
    """Estimate direction and threshold on all rows.

    Args:
        judge: the recipe on the shards. work: asked and told from this thread some ten times a second.

    Returns:
        The recipe with the new rule and threshold. Its `refit` says ``rows``, ``kept``, ``share_kept``, ``value``
        (joint, on the run's scale and between its anchors), ``upper_bound`` and ``gap`` (None where rounding could
        matter), ``passes``, and ``before``: the same of the learned direction with its threshold estimated anew, and
        ``share_kept`` of the learned threshold.

    Raises:
        OptionError: the recipe counts tokens, or has quotas, pins, bans or given rows.
        InputError: a shard is damaged, has a row that cannot be used, or all rows score alike.
        Stopped: on request.
    """
    recipe = judge.recipe
    check_refittable(recipe)
    weights = Weights.of(recipe)
    sd = score_sd(judge, work.poll)
    expected = float(recipe.thresholds.tau or 0.0)
    rule, done = rule_of(recipe, weights), []
    for step in range(PASSES):
        what, part = f"Pass {step + 1} of {PASSES} over", work.part(step / PASSES, (step + 1) / PASSES)
        done.append(pass_over(judge, rule, expected, sd, what, part))
        if step + 1 < PASSES:
            rule, expected = _stepped(recipe, done[-1], weights)
    return _refitted(judge, done, weights)


def kept_refit(judge: Judge, folder: Path) -> Recipe | None:
    """What was estimated from this recipe and these very shards before, and noted in the folder; None: nothing was."""
    try:
        noted = read_recipe(folder / RECIPE_FILE)
    except InputError:
        return None
    if noted.refit.get("of") != judge.recipe.digest:
        return None
    return noted if noted.refit.get("inputs") == inputs_digest(judge) else None


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
    """By what the shards are known to be the same: paths, sizes and times, and of those on the disk the footers.

    Raises:
        InputError: one is gone.
    """
    digest = hashlib.blake2b(digest_size=16)
    for shard in judge.source.shards:
        digest.update(json.dumps([shard.path, *shard_stamp(shard)[1], judge.drop_invalid]).encode())
        if not is_address(shard.path):
            digest.update(footer_digest(shard.path).encode())
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
        "dropped": dict(first.dropped),
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
    if not is_bound(bound, value):
        return {"upper_bound": None, "gap": None}
    return {"upper_bound": max(bound, value), "gap": max(bound - value, 0.0)}


def _stepped(recipe: Recipe, one_pass: Pass, weights: Weights) -> tuple[ScoreRule, float]:
    """The rule for the next pass, and the threshold that is expected for it."""
    cut, edge = (nearest(recipe.share * one_pass.rows) for nearest in (one_pass.cut_nearest, one_pass.edge_nearest))
    tau = float(one_pass.edges[edge])
    # beyond the cuts nothing is known of the members, nor of the curvature
    within_cuts = bool(one_pass.cuts[0] < edge < one_pass.cuts[-1])
    stepped = next_rule(one_pass, weights, one_pass.kept(cut), *one_pass.members(cut), known=within_cuts)
    return stepped, next_threshold(one_pass, tau, stepped) if within_cuts else tau
