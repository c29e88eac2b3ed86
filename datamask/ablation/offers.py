"""What a result says of the current selection, and what it offers: a lambda, a method, a baseline. It sets nothing."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.ablation.comparisons import BETTER, WORSE
from datamask.ablation.result import AblationResult, Method
from datamask.ablation.steering import COLORED, Track
from datamask.ablation.wording import within

TRIED = 5e-3
"""Half a step of the slider: a lambda within it of a tried one is that one. Nothing is said between tried ones."""


@dataclass(frozen=True)
class Offer:
    """A method to go to, and why.

    Attributes:
        sentence: what the result says of it.
        method: the method. moves: whether it is the current selection at another lambda.
    """

    sentence: str
    method: Method
    moves: bool = False


def offers(track: Track) -> list[Offer]:
    """What the result of a track recommends for its targets; empty where it may not.

    A recommendation needs a colored track. That no joint method beats the best simple baseline is said of every result
    that fits the current selection.
    """
    result = track.result
    if result is None or not track.fits:
        return []
    baseline = _baseline(result, track.target)
    recommended = _recommended(track, result) if track.state == COLORED else None
    if baseline is not None and recommended is not None and baseline.method == recommended.method:
        recommended = None
    return [offer for offer in (baseline, recommended) if offer is not None]


def _baseline(result: AblationResult, target: int | None) -> Offer | None:
    """The best simple baseline, where no joint method beats it."""
    at = _targets(result, target)
    simple, joint = _places(result, True), _places(result, False)
    if any(_better_than_simple(result, place, t) for place in joint for t in at):
        return None
    best = min(simple, key=lambda place: float((result.means[place, at] - result.means[:, at].min(axis=0)).max()))
    method = result.methods[best]
    if len(at) == 1:
        label = result.targets[at[0]].label
        return Offer(f"No tried λ beats the best simple baseline, {method.label}, for {label}.", method)
    return Offer(
        f"No tried λ beats the best simple baseline on any of {len(at)} targets. "
        f"Safest simple baseline: {method.label}.",
        method,
    )


def _recommended(track: Track, result: AblationResult) -> Offer | None:
    """For one target the best method better than random; for several the one whose largest regret is smallest."""
    at, objective = _targets(result, track.target), track.objective
    if len(at) > 1:
        summary = result.recommendation
        if summary is None:
            return None
        method = summary.method
        name = f"λ {method.lamb:g}" if _moves(method, objective) else method.label
        behind = (
            f"is the safest method for an unknown target: {within(summary.regret, result)}."
            if summary.regret > 0
            else f"is the best on each of {len(at)} targets."
        )
        if not summary.better and method != result.methods[0]:
            behind += " It is better than random on none of them."
        return Offer(f"{name} {behind}", method, _moves(method, objective))
    better = [
        place
        for place, method in enumerate(result.methods)
        if _moves(method, objective)
        and (difference := result.to_random(place, at[0])) is not None
        and difference.verdict == BETTER
    ]
    if not better:
        return None
    place = min(better, key=lambda place: float(result.means[place, at[0]]))
    assert result.comparisons is not None
    method, baseline = result.methods[place], result.methods[result.comparisons.best_simple[at[0]]].label
    difference = result.to_simple(place, at[0])
    verdict = "" if difference is None else difference.verdict
    compared = f"{verdict} than" if verdict in (BETTER, WORSE) else "level with"
    return Offer(
        f"λ {method.lamb:g} is better than random for {result.targets[at[0]].label}, and {compared} the best simple "
        f"baseline, {baseline}.",
        method,
        True,
    )


def measured(track: Track, lamb: float) -> str:
    """The part of the strip about the current selection: ``better than random for 2 of 6 targets``.

    Returns:
        "" where the result is not for the current objective, ratio and rules, its two proxy models disagree, or this
        lambda was not tried.
    """
    point = next((each for each in track.points if abs(each.lamb - lamb) < TRIED), None)
    if point is None or not track.fits:
        return ""
    where = track.targets[0].label if point.targets == 1 else ""
    if where:
        verdict = point.verdict
        return f"{verdict} than random for {where}" if verdict in (BETTER, WORSE) else f"level with random for {where}"
    worse = f", worse for {point.worse}" if point.worse else ""
    return f"better than random for {point.better} of {point.targets} targets{worse}"


def _targets(result: AblationResult, target: int | None) -> list[int]:
    return list(range(len(result.targets))) if target is None else [target]


def _moves(method: Method, objective: str) -> bool:
    """Whether it is the current selection at a lambda."""
    return method.along_lambda and method.objective == objective


def _places(result: AblationResult, simple: bool) -> list[int]:
    return [place for place, method in enumerate(result.methods) if method.simple == simple]


def _better_than_simple(result: AblationResult, method: int, target: int) -> bool:
    difference = result.to_simple(method, target)
    return difference is not None and difference.verdict == BETTER
