"""From the means of a pass over all rows to the rule of the next: Newton steps in the dual.

The dual is ``D(m, M) = const + (1/S) sum of max(0, h_i - t)`` at its best t (`datamask.out_of_core.streamed_dual`):
convex, least where m and M are the means of their own members. Its gradient is the way to those means, its curvature
that of the rows near the threshold: moving along a way changes their scores, and whoever crosses the threshold moves
the means back.

`datamask.learning.newton` solves the same equations in memory. There the curvature comes from smoothed weights of all
rows and the length of a step from products that are at hand, so a gap of 1e-8 can be reached. A pass over files knows a
band of rows and their density only, and pays for every look at the others. One step for both would be the weaker one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from datamask.errors import InputError
from datamask.recipes.passes import Pass
from datamask.recipes.recipe import Recipe, ScoreRule
from datamask.recipes.sharpening import newton_step
from datamask.recipes.weights import Weights

CONJUGATE_STEPS, CLOSE = 12, 0.03
"""Of the equations of a step with moments, which have a number for each pair of dimensions: so many at most, or until
this share of the right side is left. The rows near the threshold tell no more of the curvature than that."""


def rule_of(recipe: Recipe, weights: Weights, size: int | None = None) -> ScoreRule:
    """The recipe's rule with the weights of its objective, which a bound has to be made of.

    Args:
        size: S, where it is another than the recipe was made for.

    Raises:
        InputError: it lacks a part that its objective has.
    """
    rule = recipe.rule
    for part, weight, name in ((rule.direction, weights.pairs, "direction"), (rule.moment, weights.moments, "moment")):
        if part is None and weight > 0:
            raise InputError(
                f"the recipe has no {name}, and its objective {recipe.objective} asks for one; make it again"
            )
    crowding = rule.crowding_weight if size is None else weights.crowding(size)
    return replace(
        rule,
        quality_weight=weights.quality,
        direction=rule.direction if weights.pairs > 0 else None,
        crowding_weight=crowding if weights.pairs > 0 else 0.0,
        moment=rule.moment if weights.moments > 0 else None,
        moment_weight=weights.moment_weight(recipe.features.dim),
    )


def at_weights(rule: ScoreRule, before: Weights, after: Weights, size: int) -> tuple[ScoreRule, float]:
    """The same order of the rows as a rule of other weights, and by how much scores are multiplied."""
    factor = after.quality / before.quality if before.quality > 0 else 1.0
    pairs, moments = (
        factor * one / other if other > 0 else factor
        for one, other in ((before.pairs, after.pairs), (before.moments, after.moments))
    )
    return (
        replace(
            rule,
            quality_weight=after.quality,
            direction=None if rule.direction is None else rule.direction * pairs,
            crowding_weight=after.crowding(size) if after.pairs > 0 else factor * rule.crowding_weight / pairs,
            moment=None if rule.moment is None else rule.moment * moments,
            moment_weight=rule.moment_weight * factor / moments,
        ),
        factor,
    )


def next_rule(
    one_pass: Pass,
    weights: Weights,
    size: int,
    mean: np.ndarray | None,
    moment: np.ndarray | None,
    *,
    known: bool = True,
) -> ScoreRule:
    """The rule for the next pass.

    Args:
        size: S, rows above the threshold under the rule of this pass.
        mean: float64 ``(d,)``, moment: ``(d, d)``, of these rows; None: the rule has no such part.
        known: whether the pass looked closely enough at the rows near the threshold.
    """
    rule, pairs, (_, band) = one_pass.rule, weights.crowding(size), one_pass.band
    weight = pairs if rule.direction is not None else 0.0
    if not known or len(band) < 2:
        return replace(rule, crowding_weight=weight)
    density = one_pass.in_band / (2.0 * one_pass.width * size)
    if rule.moment is None and rule.direction is not None and mean is not None:
        stepped = replace(rule, direction=newton_step(rule.direction, mean, pairs * density, band))
    else:
        stepped = _moved(rule, mean, moment, band, density, pairs)
    return replace(stepped, crowding_weight=weight)


def slope_along(
    rule: ScoreRule, end: ScoreRule, mean: np.ndarray | None, moment: np.ndarray | None, pairs: float
) -> float:
    """The dual's derivative at a rule, by the share of the way from there to another.

    Args:
        mean: float64 ``(d,)``, moment: ``(d, d)``, of the members under the rule; None: it has no such part.
        pairs: what one unit of crowding takes from a score.
    """
    slope = 0.0
    if rule.direction is not None and mean is not None and end.direction is not None:
        slope += pairs * float((rule.direction - mean) @ (end.direction - rule.direction))
    if rule.moment is not None and moment is not None and end.moment is not None:
        slope += rule.moment_weight * float(((rule.moment - moment) * (end.moment - rule.moment)).sum())
    return slope


def between(start: ScoreRule, end: ScoreRule, share: float) -> ScoreRule:
    """The rule at a share of the way from one to another."""
    direction, moment = (
        None if first is None or second is None else first + share * (second - first)
        for first, second in ((start.direction, end.direction), (start.moment, end.moment))
    )
    return replace(end, direction=direction, moment=moment)


# -- steps with moments ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Way:
    """A change of direction and moment; None: the rule has no such part."""

    mean: np.ndarray | None
    moment: np.ndarray | None

    def plus(self, other: _Way, times: float) -> _Way:
        return _Way(
            None if self.mean is None or other.mean is None else self.mean + times * other.mean,
            None if self.moment is None or other.moment is None else self.moment + times * other.moment,
        )


@dataclass(frozen=True)
class _Curvature:
    """The second derivatives of the dual, from rows near the threshold.

    Attributes:
        x, y: float64 ``(r, d)``, their unit features, plain and standardised. density: members per unit of score there.
        pairs, moments: the weights of the two parts in a score.
    """

    x: np.ndarray
    y: np.ndarray
    density: float
    pairs: float
    moments: float

    def product(self, first: _Way, second: _Way) -> float:
        """The inner product in which the dual's constant part is a square."""
        product = 0.0
        if first.mean is not None and second.mean is not None:
            product += self.pairs * float(first.mean @ second.mean)
        if first.moment is not None and second.moment is not None:
            product += self.moments * float((first.moment * second.moment).sum())
        return product

    def changes(self, way: _Way) -> np.ndarray:
        """How much less the rows score further along, float64 ``(r,)``, less their mean: the threshold goes along."""
        change = np.zeros(len(self.x))
        if way.mean is not None:
            change += self.pairs * (self.x @ way.mean)
        if way.moment is not None:
            change += self.moments * ((self.y @ way.moment) * self.y).sum(axis=1)
        centered: np.ndarray = change - change.mean()
        return centered

    def times(self, way: _Way) -> _Way:
        """The way itself, and how far those who cross the threshold move the members' means back."""
        shares = self.changes(way) * (self.density / len(self.x))
        moment = None
        if way.moment is not None:
            moment = self.y.T @ (self.y * shares[:, None])
            np.fill_diagonal(moment, 0.0)
        back = _Way(None if way.mean is None else self.x.T @ shares, moment)
        return way.plus(back, 1.0)


def _moved(
    rule: ScoreRule,
    mean: np.ndarray | None,
    moment: np.ndarray | None,
    band: np.ndarray,
    density: float,
    pairs: float,
) -> ScoreRule:
    """The rule moved towards the least of the dual: a way by half of the band, how far along it by the other half.

    The equations are solved by conjugate gradients from the way to the members' means, and not to their end: the band
    has fewer rows than they have unknowns.
    """
    towards = _Way(
        None if rule.direction is None or mean is None else mean - rule.direction,
        None if rule.moment is None or moment is None else moment - rule.moment,
    )
    y = rule.standardised(band)
    half, rest = (
        _Curvature(band[part], y[part], density, pairs, rule.moment_weight)
        for part in (slice(0, None, 2), slice(1, None, 2))
    )
    way = _solved(half, towards)
    along = half.product(way, towards)
    bent = half.product(way, way) + density * float(np.square(rest.changes(way)).mean())
    length = along / bent if bent > 0 else 0.0
    return replace(
        rule,
        direction=None if rule.direction is None or way.mean is None else rule.direction + length * way.mean,
        moment=None if rule.moment is None or way.moment is None else rule.moment + length * way.moment,
    )


def _solved(curvature: _Curvature, right: _Way) -> _Way:
    """About the way whose image is `right`, by conjugate gradients."""
    zero = right.plus(right, -1.0)
    way, rest, along = zero, right, right
    left = whole = curvature.product(right, right)
    for _ in range(CONJUGATE_STEPS):
        if left <= CLOSE**2 * whole:
            break
        image = curvature.times(along)
        length = left / curvature.product(along, image)
        way, rest = way.plus(along, length), rest.plus(image, -length)
        before, left = left, curvature.product(rest, rest)
        along = rest.plus(along, left / before)
    return way
