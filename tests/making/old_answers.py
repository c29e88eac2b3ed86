"""Sentences of answers to "which lambda?" as versions before 0.4 stored them, in short."""

from __future__ import annotations

from typing import Any

from datamask import catalogue


def worded(result: dict[str, Any]) -> dict[str, Any]:
    """Give every curve its sentence and its recommended ranges of lambda, and the record its headline."""
    circular = result["target"]["circular"]
    for measure in result["measures"]:
        for curve in measure["curves"]:
            name = catalogue.objective(curve["objective"]).label
            against = curve["against_random"]["difference"]
            verdict = "circular" if circular else curve["verdict"]
            sentence = f"{name}: {verdict}. Best at lambda {curve['best']:g} ({against:+.3f} {measure['unit']})."
            curve["sentence"] = sentence.replace("-0", "−0")
            helps = not circular and curve["verdict"] == "helps"
            curve["recommended"] = _ranges(curve["points"]) if helps else []
    leader = result["measures"][0]["curves"][0]
    result["headline"] = f"{leader['sentence']} Target: {result['target']['label']}."
    return result


def _ranges(points: list[dict[str, Any]]) -> list[list[float]]:
    """First and last lambda of every run of points that are level with the best."""
    ranges: list[list[float]] = []
    before = False
    for point in points:
        if point["level"]:
            ranges.append([point["lamb"]] * 2) if not before else ranges[-1].__setitem__(1, point["lamb"])
        before = point["level"]
    return ranges
