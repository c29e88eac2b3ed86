"""What a result says of the current selection, and what it offers: a lambda, a method, a baseline. It sets nothing."""

from __future__ import annotations

from dataclasses import dataclass

from datamask import catalogue
from datamask.ablation.comparisons import BETTER, WORSE
from datamask.ablation.methods import method_of
from datamask.ablation.result import AblationResult, Method
from datamask.ablation.steering import COLORED, Track, TrackPoint
from datamask.ablation.wording import within
from datamask.config import SelectionConfig

TRIED = 5e-3
"""Half a step of the slider: a lambda within it of a tried one is that one. Nothing is said between tried ones."""


@dataclass(frozen=True)
class Offer:
    """What the result recommends, and why.

    Attributes:
        sentence: what the result says.
        method: the method to go to; None: nothing is better than random. moves: whether it is the current selection
            at another lambda.
    """

    sentence: str
    method: Method | None
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
    if not any(_better_than_random(result, place, t) for place in (*simple, *joint) for t in at):
        where = f"on any of {len(at)} targets" if len(at) > 1 else f"for {result.targets[at[0]].label}"
        return Offer(f"In the ablation, no λ and no simple baseline beats random {where}.", None)
    if len(at) == 1:
        method = result.methods[min(simple, key=lambda place: float(result.means[place, at[0]]))]
        label = result.targets[at[0]].label
        return Offer(f"No tried λ beats the best simple baseline, {method.label}, for {label}.", method)
    safest = min((result.summaries[place] for place in simple), key=lambda summary: summary.regret)
    method, regret = safest.method, safest.regret
    return Offer(
        f"No tried λ beats the best simple baseline on any of {len(at)} targets. The safest simple baseline is "
        f"{method.label}: {within(regret, result)}.",
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
    point = _tried(track, lamb)
    return "" if point is None else against_random(point, track)


def solved_at(point: TrackPoint, track: Track) -> str:
    """One tried lambda, such as ``Solved at λ 0.7: better than random for 6 of 8 targets, worse for 1``."""
    return f"Solved at λ {point.lamb:g}: {against_random(point, track)}"


def against_random(point: TrackPoint, track: Track) -> str:
    """``better than random for 2 of 6 targets``, ``level with random for all 6 targets``; of one target its name."""
    if point.targets == 1:
        where, verdict = track.targets[0].label, point.verdict
        return f"{verdict} than random for {where}" if verdict in (BETTER, WORSE) else f"level with random for {where}"
    if not point.better and not point.worse:
        return f"level with random for all {point.targets} targets"
    worse = f", worse for {point.worse}" if point.worse else ""
    if not point.better:
        return f"worse than random for {point.worse} of {point.targets} targets"
    return f"better than random for {point.better} of {point.targets} targets{worse}"


def instead_of(settings: SelectionConfig, track: Track, rows: int) -> list[str]:
    """What was measured in the place of a selection by another method, in sentences: solved selections.

    Args:
        settings: of the selection. track: of its problem. rows: of the corpus.

    Returns:
        Nothing where its own method was measured or uses no lambda, or the result does not fit.
    """
    entry = catalogue.estimator(settings.estimator)
    # a baseline is compared with solved selections, not replaced by them
    by_itself = not entry.guided or entry.name == catalogue.auto(settings.objective)
    if by_itself or track.result is None or not track.fits or method_of(track.result, settings, rows) is not None:
        return []
    said = f"The ablation did not test this run's method, {'learned masks' if entry.draws_masks else entry.label}."
    point = _tried(track, settings.lamb)
    if point is None:
        return [said]
    return [said, f"At λ {point.lamb:g}, a selection by Solve is {against_random(point, track)}."]


def _tried(track: Track, lamb: float) -> TrackPoint | None:
    """The point of a lambda; None: it was not tried, or the result does not fit."""
    return next((point for point in track.points if track.fits and abs(point.lamb - lamb) < TRIED), None)


def _targets(result: AblationResult, target: int | None) -> list[int]:
    return list(range(len(result.targets))) if target is None else [target]


def _moves(method: Method, objective: str) -> bool:
    """Whether it is the current selection at a lambda."""
    return method.along_lambda and method.objective == objective


def _places(result: AblationResult, simple: bool) -> list[int]:
    return [place for place, method in enumerate(result.methods) if method.simple == simple]


def _better_than_random(result: AblationResult, method: int, target: int) -> bool:
    difference = result.to_random(method, target)
    return difference is not None and difference.verdict == BETTER


def _better_than_simple(result: AblationResult, method: int, target: int) -> bool:
    difference = result.to_simple(method, target)
    return difference is not None and difference.verdict == BETTER
