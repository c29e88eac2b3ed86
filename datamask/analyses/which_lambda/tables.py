"""Answers to "which lambda?" as small tables. Pure: the stored record in, data frames and sentences out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from datamask import catalogue
from datamask.config.target import STEERING
from datamask.dashboard.drawing import words
from datamask.dashboard.map.places import cut
from datamask.dashboard.tradeoff.lambda_points import Mark

TOP_QUALITY = "top-quality"
WORDS = {"helps": "better than random", "hurts": "worse than random", "level": "level with random"}
NATS = (
    "The mean surprise of the model per word of the target texts (−log probability). A value lower by 0.1 makes "
    "every word about 10 % more likely."
)
FAR = 3.0
"""Beside something better than random, what is so many times as much worse may be left outside the picture."""


def label(objective: str) -> str:
    """An objective's name for people."""
    return next((entry.label for entry in catalogue.OBJECTIVES if entry.name == objective), objective)


def ratios(answer: Mapping) -> list[float]:
    """The ratios that were tried."""
    return sorted({curve["ratio"] for curve in answer["measures"][0]["curves"]})


def measure(answer: Mapping, name: str) -> Mapping:
    """One measure's record."""
    return next(entry for entry in answer["measures"] if entry["name"] == name)


def counts_of(record: Mapping) -> str:
    """What the training text of a measure is counted in: words, or bytes."""
    return str(record.get("counts", "words"))


def nats_help(record: Mapping) -> str:
    """What the number of a measure means."""
    if record["name"] != "cross_entropy":
        return str(record["says"])
    return NATS if counts_of(record) == "words" else NATS.replace("word", "byte")


def main_measure(answer: Mapping) -> Mapping:
    """The record of the measure that verdicts go by."""
    first: Mapping = answer["measures"][0]
    return first


def second_measure(answer: Mapping) -> Mapping | None:
    """The record of the second opinion; None where there is none, as with examples without texts."""
    return next(iter(answer["measures"][1:]), None)


def curves(record: Mapping, ratio: float) -> list[Mapping]:
    """A measure's curves at one ratio."""
    return [curve for curve in record["curves"] if curve["ratio"] == ratio]


def points(record: Mapping, ratio: float) -> pd.DataFrame:
    """One row per point: ``objective, lambda, difference, low, high, level, best``."""
    rows = [
        {
            "objective": label(curve["objective"]),
            "lambda": point["lamb"],
            "difference": point["difference"],
            "low": point["low"],
            "high": point["high"],
            "level": point["level"],
            "best": point["lamb"] == curve["best"],
        }
        for curve in curves(record, ratio)
        for point in curve["points"]
    ]
    return pd.DataFrame(rows)


def recommended(record: Mapping, ratio: float) -> pd.DataFrame:
    """The recommended lambdas of the leading curve: one row per run of them, ``objective, low, high``; empty where
    nothing is recommended."""
    ranges = [
        {"objective": label(curve["objective"]), "low": low, "high": high}
        for curve in curves(record, ratio)
        if curve["leads"]
        for low, high in curve["recommended"]
    ]
    return pd.DataFrame(ranges, columns=["objective", "low", "high"])


def table(record: Mapping, ratio: float, held_out: int) -> pd.DataFrame:
    """Every selection at one ratio, best first: what it differs from random by, and what that says."""
    rows = []
    for curve in curves(record, ratio):
        for point in curve["points"]:
            interval = (point["low"], point["high"])
            rows.append(
                {
                    "selection": f"{label(curve['objective'])}, λ {point['lamb']:g}",
                    **_row(point, interval, curve),
                    "against random": _against(*interval),
                    "level with its best": "yes" if point["level"] else "no",
                }
            )
    for named in record["named"]:
        if named["ratio"] == ratio:
            interval = (named["low"], named["high"])
            rows.append(
                {
                    "selection": "Top quality",
                    **_row(named, interval, named),
                    "against random": WORDS[named["verdict"]],
                    "level with its best": "",
                }
            )
    for random in record["random"]:
        if random["ratio"] == ratio:
            rows.append(
                {
                    "selection": "Random",
                    "value": random["value"],
                    "difference": 0.0,
                    "interval": "",
                    "rows": random["selected"],
                    "words": random["words"],
                    "against random": "",
                    "level with its best": "",
                }
            )
    sorted_rows = pd.DataFrame(rows).sort_values("value", kind="stable", ignore_index=True)
    sorted_rows["texts predicted"] = held_out
    table = sorted_rows[
        [
            "selection",
            "difference",
            "interval",
            "against random",
            "level with its best",
            "value",
            "rows",
            "words",
            "texts predicted",
        ]
    ]
    if counts_of(record) == "bytes":
        table = table.rename(columns={"words": "bytes"})
    if record["name"] == "nearness":  # nothing is trained, and nothing predicted
        table = table.drop(columns="words").rename(columns={"texts predicted": "examples asked"})
    return table


def _row(point: Mapping, interval: tuple[float, float], common: Mapping) -> dict:
    return {
        "value": point["value"],
        "difference": point["difference"],
        "interval": " to ".join(f"{end:+.4f}".replace("-", "−") for end in interval),
        "rows": common["selected"],
        "words": common["words"],
    }


def _against(low: float, high: float) -> str:
    return WORDS["helps" if high < 0 else "hurts" if low > 0 else "level"]


def span(record: Mapping, ratio: float, *, near: bool = False) -> tuple[float, float]:
    """Bottom and top of the picture: every interval and random, with some air.

    Args:
        near: show what lies around random, and leave what is far worse outside.
    """
    values = [
        value for curve in curves(record, ratio) for point in curve["points"] for value in (point["low"], point["high"])
    ] + [0.0]
    low, high = min(values), max(values)
    if near and lopsided(record, ratio):
        high = FAR * -low
    air = 0.08 * (high - low or 1.0)
    return low - air, high + air


def lopsided(record: Mapping, ratio: float) -> bool:
    """Whether what is worse than random would squeeze what is better into a line."""
    low, high = span(record, ratio)
    return low < 0 and high > 1.5 * FAR * -low


def top_quality(record: Mapping, ratio: float) -> Mapping | None:
    """Top quality's record at one ratio."""
    return next((entry for entry in record["named"] if entry["ratio"] == ratio), None)


def titles(answers: Sequence[Mapping]) -> dict[str, str]:
    """A short line for a menu by each answer's key: target and when, and between them what tells apart the answers on
    one target."""
    names = {answer["key"]: _short(answer["target"]) for answer in answers}
    facts = {
        answer["key"]: (
            ", ".join(answer["question"]["objectives"]),
            _shares(answer["question"]),
            f"{len(answer['question']['lambdas'])} lambdas",
            f"seed {answer['question']['seed']}",
            answer["question"].get("judge", "bigram"),
        )
        for answer in answers
    }
    by_key = {}
    for answer in answers:
        key = answer["key"]
        alike = [facts[other] for other in names if names[other] == names[key]]
        differs = [fact for place, fact in enumerate(facts[key]) if len({other[place] for other in alike}) > 1]
        by_key[key] = " · ".join([names[key], *differs, words.ago(answer["created"])])
    return by_key


def _short(target: Mapping) -> str:
    label = target["label"].removeprefix("held-out text with ")
    if target["kind"] in STEERING:
        label = label.removeprefix("the ")
        label = label[:1].upper() + label[1:]
    return {"random": "Held-out text", "quality": "Best by quality"}.get(target["kind"], label)


def _shares(question: Mapping) -> str:
    return ", ".join(words.percent(ratio, 0 if ratio >= 0.01 else 1) for ratio in question["ratios"])


def asked(question: Mapping, target: str) -> str:
    """A question in a line: target, objectives, ratios."""
    objectives = ", ".join(map(label, question["objectives"]))
    return f"{target[:1].upper()}{target[1:]} · {objectives} · {_shares(question)}"


def effect(answer: Mapping, record: Mapping) -> str:
    """What the difference at the best lambda of the leading curve means for each word; empty unless one helps."""
    if answer["target"]["circular"] or record["name"] != "cross_entropy":
        return ""
    helping = [curve for curve in record["curves"] if curve["leads"] and curve["verdict"] == "helps"]
    if not helping:
        return ""
    curve = min(helping, key=lambda curve: curve["against_random"]["difference"])
    times = [math.exp(-curve["against_random"][end]) for end in ("difference", "high", "low")]
    if times[0] >= 2:
        at, low, high = (f"{factor:.1f}" for factor in times)
        size = f"{at} times as likely as with a random selection ({low} to {high} times)"
    else:
        at, low, high = (words.percent(factor - 1) for factor in times)
        size = f"{at} more likely than with a random selection ({low} to {high})"
    where = (
        f" and ratio {words.percent(curve['ratio'])}" if len({entry["ratio"] for entry in record["curves"]}) > 1 else ""
    )
    return f"At the best λ, {curve['best']:g}{where}, each held-out {counts_of(record).removesuffix('s')} is {size}."


def reading(record: Mapping, ratio: float) -> str:
    """How the first picture is read."""
    shaded = "" if recommended(record, ratio).empty else (" Shaded: λ that are level with the best.")
    return (
        "Difference to random; below 0 is better. Band: 95 % interval. Ring: the best λ, chosen on other texts "
        f"than those drawn.{shaded}"
    )


def caption(answer: Mapping, record: Mapping, ratio: float) -> str:
    """What was measured, in plain words."""
    curve = curves(record, ratio)[0]
    target = answer["target"]
    near = f"{target['near_copies']:,} near-duplicates of them"
    taken = (
        f"Near-duplicates of your {('examples' if target['kind'] in STEERING else 'texts')} "
        f"({target['near_copies']:,} rows) were removed from the corpus first."
        if target["kind"] == "texts" or target["kind"] in STEERING
        else f"In each of {answer['splits']} rounds, {target['held_out']:,} other rows and {near} were removed "
        "from the corpus first."
    )
    # answers kept by earlier versions have intervals without it
    luck = ", which includes the spread of random selections" if "luck" in record["random"][0] else ""
    halves = (
        f"The line is the difference to random and the band its 95 % interval{luck}. Half of the texts choose the "
        "best λ (ring), and the other half is drawn."
    )
    if record["name"] == "nearness":
        return (
            f"{taken} Each λ selects {curve['selected']:,} of the remaining rows. Each of {target['texts']:,} "
            "examples is measured by its nearest selected row, among the features of the corpus. "
            f"{halves.replace('texts', 'examples')}"
        )
    counts = counts_of(record)
    model = (
        "model" if counts == "words" else ("transformer, from the same random weights for each selection of a half,")
    )
    return (
        f"{taken} Each λ selects {curve['selected']:,} of the remaining rows, and {curve['words']:,} {counts} are "
        f"drawn from each, equally many for all. A small {model} learns from them and predicts {target['texts']:,} "
        f"held-out texts ({target['words']:,} words). {halves}"
    )


def second_caption(answer: Mapping) -> str:
    """What the second measure is, and how independent."""
    return " ".join(
        [
            "Distance from each target text to the nearest training text in a space of word counts, against "
            "random; lower is nearer.",
            *(note for note in answer["notes"] if "second measure" in note),
        ]
    )


def other_notes(answer: Mapping) -> Sequence[str]:
    """What a person should know besides."""
    return [note for note in answer["notes"] if "second measure" not in note]


def recommended_marks(answers: Iterable[Mapping[str, Any]], objective: str, ratio: float | None) -> list[Mark]:
    """Return as marks what the search "which lambda?" recommends for an objective: the newest answer of each target.

    Args:
        answers: stored ones on this corpus, newest first.
        ratio: that of the selection; the nearest that was tried is taken, and said. None: under a budget.
    """
    marks: list[Mark] = []
    targets = set()
    for answer in answers:
        if answer["target"]["kind"] in STEERING:  # a lambda between diversity and another quality than the corpus's
            continue
        target = str(answer["target"]["label"])
        curves = [curve for curve in measure(answer, "cross_entropy")["curves"] if curve["objective"] == objective]
        if target in targets or not curves:
            continue
        targets.add(target)
        near = min(curves, key=lambda curve: abs(curve["ratio"] - (ratio or 0.0)))
        where = "" if ratio is not None and np.isclose(near["ratio"], ratio) else f" at {words.percent(near['ratio'])}"
        for low, high in near["recommended"]:
            spread = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            marks.append(Mark("judge", float(low), float(high), f"{cut(target, 40)}{where}: {spread}"))
    return marks
