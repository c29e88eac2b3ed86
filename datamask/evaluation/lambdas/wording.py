"""An answer in sentences that say no more than the numbers do.

A lambda other than the best is called better or worse than random only at the confidence that verdicts are held to,
which grows with the number of curves; its own 95 % interval would do for a single one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datamask import catalogue
from datamask.evaluation.lambdas.statistics import runs_of, verdict

CIRCULAR = (
    "This target is circular: it was chosen by the quality that the selections maximize, so what wins here "
    "shows nothing. No lambda is recommended."
)


def worded(result: dict[str, Any]) -> dict[str, Any]:
    """The record with a ``sentence`` for every curve and a ``headline`` for the whole."""
    circular = result["target"]["circular"]
    for measure in result["measures"]:
        for curve in measure["curves"]:
            curve["sentence"] = curve_sentence(curve, measure["unit"], circular)
            curve["recommended"] = [] if circular or curve["verdict"] != "helps" else spans(curve)
    result["headline"] = headline(result["measures"][0]["curves"], circular, result["target"]["label"])
    return result


def spans(curve: Mapping[str, Any], chosen: Sequence[bool] | None = None) -> list[list[float]]:
    """First and last lambda of every run of chosen lambdas; None: those that are level with the best."""
    lambdas = [point["lamb"] for point in curve["points"]]
    chosen = [point["level"] for point in curve["points"]] if chosen is None else chosen
    return [[lambdas[low], lambdas[high]] for low, high in runs_of(chosen)]


def verdicts(curve: Mapping[str, Any]) -> list[str]:
    """``helps``, ``hurts`` or ``level`` for each lambda, at the confidence of the curve's own verdict."""
    best = next(point for point in curve["points"] if point["lamb"] == curve["best"])
    plain, held = (point["high"] - point["low"] for point in (best, curve["against_random"]))
    # an interval's width is the same multiple of its spread all along a curve
    wider = held / plain if plain > 0 else 1.0
    return [
        verdict(
            (
                point["difference"],
                point["difference"] + wider * (point["low"] - point["difference"]),
                point["difference"] + wider * (point["high"] - point["difference"]),
            )
        )
        for point in curve["points"]
    ]


def shown_better(curve: Mapping[str, Any]) -> str:
    """In brackets, which of the lambdas level with the best are better than random; empty if all of them are."""
    level = [point["level"] for point in curve["points"]]
    better = [flag and word == "helps" for flag, word in zip(level, verdicts(curve))]
    return f" (shown to be better than random: {spoken(spans(curve, better))})" if better != level else ""


def curve_sentence(curve: Mapping[str, Any], unit: str, circular: bool = False) -> str:
    """What one curve says."""
    name, gain = named(curve["objective"]), curve["against_random"]
    best = f"lambda {curve['best']:g}"
    size = f"{signed(gain['difference'])} {unit}, interval {signed(gain['low'])} to {signed(gain['high'])}"
    if curve["verdict"] == "level":
        of_points = verdicts(curve)
        if "hurts" not in of_points:
            return f"{name}: cannot be told apart from a random selection, not even at its best, {best} ({size})."
        return (
            f"{name}: at its best, {best}, cannot be told apart from a random selection ({size}); at "
            f"{spoken(spans(curve, [word == 'hurts' for word in of_points]))} it is worse."
        )
    if curve["verdict"] == "hurts":
        return f"{name}: does not help. Even its best, {best}, is worse than a random selection ({size})."
    if circular:
        return f"{name}: ahead of random at {best} ({size}), on a circular target."
    levels = [point["lamb"] for point in curve["points"] if point["level"]]
    others = (
        "every lambda tried is level with the best"
        if len(levels) == len(curve["points"])
        else "every other lambda tried is worse"
        if levels == [curve["best"]]
        else f"{spoken(spans(curve))} cannot be told apart from the best"
    )
    return f"{name}: helps. Best at {best} ({size} against random); {others}{shown_better(curve)}."


def headline(curves: Sequence[Mapping[str, Any]], circular: bool, target: str) -> str:
    """The answer in a sentence or two, by the first measure."""
    if circular:
        return CIRCULAR
    named_by = {
        word: [where(curve, curves) for curve in curves if curve["verdict"] == word]
        for word in ("helps", "level", "hurts")
    }
    if not named_by["helps"] and not named_by["level"]:
        return (
            f"Nothing tried here helps: on {target}, even the best lambda of every objective is worse than a "
            "random selection."
        )
    if named_by["helps"]:
        leading = next(
            (curve for curve in curves if curve["leads"] and curve["verdict"] == "helps"),
            next(curve for curve in curves if curve["verdict"] == "helps"),
        )
        others = [name for name in named_by["helps"] if name != where(leading, curves)]
        answer = (
            f"{where(leading, curves)} helps on {target}, most at {spoken(spans(leading))}"
            f"{'' if len(leading['levels']) == 1 else ', which cannot be told apart'}{shown_better(leading)}."
        )
        answer += f" So {'does' if len(others) == 1 else 'do'} {listed(others)}." if others else ""
        answer += "".join(f" {sentence}" for sentence in not_apart(curves))
    else:
        answer = " ".join(not_apart(curves, f" on {target}"))
    if named_by["hurts"]:
        answer += (
            f" {listed(named_by['hurts'])} {'does' if len(named_by['hurts']) == 1 else 'do'} not help: even the best "
            "lambda is worse."
        )
    return answer


def not_apart(curves: Sequence[Mapping[str, Any]], on: str = "") -> list[str]:
    """A sentence for those that nowhere differ from random, and one for each that only at its best does not.

    Args:
        on: the target, for the first of them.
    """
    level_curves = {
        where(curve, curves): (curve, spans(curve, [word == "hurts" for word in verdicts(curve)]))
        for curve in curves
        if curve["verdict"] == "level"
    }
    nowhere_apart = [name for name, (_, worse) in level_curves.items() if not worse]
    clauses = [(listed(nowhere_apart), "")] if nowhere_apart else []
    clauses += [
        (f"{name} at its best (lambda {curve['best']:g})", f"; at {spoken(worse)} it is worse")
        for name, (curve, worse) in level_curves.items()
        if worse
    ]
    return [
        f"{who} cannot be told apart from a random selection{'' if number else on}{end}."
        for number, (who, end) in enumerate(clauses)
    ]


def where(curve: Mapping[str, Any], curves: Sequence[Mapping[str, Any]]) -> str:
    """The curve's objective, and its ratio where several were tried."""
    name = named(curve["objective"])
    return name if len({other["ratio"] for other in curves}) == 1 else f"{name} at ratio {curve['ratio']:g}"


def named(objective: str) -> str:
    """An objective's label; a sum as it was written."""
    return next((entry.label for entry in catalogue.OBJECTIVES if entry.name == objective), objective)


def spoken_objective(objective: str) -> str:
    """`named` within a sentence: ``pair-wise similarity``, ``DiSF``."""
    name = named(objective)
    first = name.partition(" ")[0]
    return name if any(letter.isupper() for letter in first[1:]) else name[:1].lower() + name[1:]


def spoken(runs: Sequence[Sequence[float]]) -> str:
    """Runs of lambdas as words: ``lambda 0 to 0.2 and 0.5``."""
    return "lambda " + listed([f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in runs])


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def signed(number: float) -> str:
    """Three decimals with their sign."""
    return f"{number:+.3f}".replace("-", "−")
