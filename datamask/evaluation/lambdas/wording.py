"""An answer in sentences that say no more than the numbers do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datamask import catalogue
from datamask.evaluation.lambdas.statistics import runs_of

CIRCULAR = ("This target is circular: it was chosen by the quality that the selections maximise, so what wins here "
            "shows nothing. No lambda is recommended.")


def worded(result: dict) -> dict:
    """The record with a ``sentence`` for every curve and a ``headline`` for the whole."""
    circular = result["target"]["circular"]
    for measure in result["measures"]:
        for curve in measure["curves"]:
            curve["sentence"] = curve_sentence(curve, measure["unit"], circular)
            curve["recommended"] = [] if circular or curve["verdict"] != "helps" else spans(curve)
    result["headline"] = headline(result["measures"][0]["curves"], circular, result["target"]["label"])
    return result


def spans(curve: Mapping) -> list[list[float]]:
    """First and last lambda of every run of lambdas that are level with the best."""
    lambdas = [point["lamb"] for point in curve["points"]]
    return [[lambdas[low], lambdas[high]] for low, high in runs_of([point["level"] for point in curve["points"]])]


def curve_sentence(curve: Mapping, unit: str, circular: bool = False) -> str:
    """What one curve says."""
    name, found = named(curve["objective"]), curve["against_random"]
    best = f"lambda {curve['best']:g}"
    size = f"{signed(found['difference'])} {unit}, interval {signed(found['low'])} to {signed(found['high'])}"
    if curve["verdict"] == "level":
        return (f"{name}: cannot be told apart from a random selection, not even at its best, {best} ({size}).")
    if curve["verdict"] == "hurts":
        return f"{name}: does not help. Even its best, {best}, is worse than a random selection ({size})."
    if circular:
        return f"{name}: ahead of random at {best} ({size}), on a circular target."
    levels = [point["lamb"] for point in curve["points"] if point["level"]]
    rest = ("every lambda tried is level with the best" if len(levels) == len(curve["points"]) else
            "every other lambda tried is worse" if levels == [curve["best"]] else
            f"{spoken(spans(curve))} cannot be told apart from the best")
    return f"{name}: helps. Best at {best} ({size} against random); {rest}."


def headline(curves: Sequence[Mapping], circular: bool, target: str) -> str:
    """The answer in a sentence or two, by the first measure."""
    if circular:
        return CIRCULAR
    said = {word: [where(curve, curves) for curve in curves if curve["verdict"] == word]
            for word in ("helps", "level", "hurts")}
    if not said["helps"] and not said["level"]:
        return (f"Nothing tried here helps: on {target}, even the best lambda of every objective is worse than a "
                "random selection.")
    if said["helps"]:
        leading = next((curve for curve in curves if curve["leads"] and curve["verdict"] == "helps"),
                       next(curve for curve in curves if curve["verdict"] == "helps"))
        others = [name for name in said["helps"] if name != where(leading, curves)]
        found = (f"{where(leading, curves)} helps on {target}, most at {spoken(spans(leading))}"
                 f"{'' if len(leading['levels']) == 1 else ', which cannot be told apart'}.")
        found += f" So {'does' if len(others) == 1 else 'do'} {listed(others)}." if others else ""
        found += f" {listed(said['level'])} cannot be told apart from a random selection." if said["level"] else ""
    else:
        found = f"{listed(said['level'])} cannot be told apart from a random selection on {target}."
    if said["hurts"]:
        found += (f" {listed(said['hurts'])} {'does' if len(said['hurts']) == 1 else 'do'} not help: even the best "
                  "lambda is worse.")
    return found


def where(curve: Mapping, curves: Sequence[Mapping]) -> str:
    """The curve's objective, and its ratio where several were tried."""
    name = named(curve["objective"])
    return name if len({one["ratio"] for one in curves}) == 1 else f"{name} at ratio {curve['ratio']:g}"


def named(objective: str) -> str:
    """An objective's label; a sum as it was written."""
    return next((entry.label for entry in catalogue.OBJECTIVES if entry.name == objective), objective)


def spoken_objective(objective: str) -> str:
    """`named` within a sentence: ``pair-wise similarity``, ``DiSF``."""
    name = named(objective)
    first = name.partition(" ")[0]
    return name if any(letter.isupper() for letter in first[1:]) else name[:1].lower() + name[1:]


def spoken(found: Sequence[Sequence[float]]) -> str:
    """Runs of lambdas as words: ``lambda 0 to 0.2 and 0.5``."""
    return "lambda " + listed([f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in found])


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def signed(number: float) -> str:
    """Three decimals with their sign."""
    return f"{number:+.3f}".replace("-", "−")
