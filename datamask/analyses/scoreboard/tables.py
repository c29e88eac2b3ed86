"""A stored scoreboard for people: its numbers, and who is best where that may be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from datamask.dashboard.drawing import words

RANDOM, TOP_QUALITY = "random", "top-quality"
BESIDE = {RANDOM: "a random subset", TOP_QUALITY: "top quality"}
HATCHED = "hatched"
READING = "In brackets: 95 % interval. *: the selection is made by this measure, and is not praised for it."


@dataclass(frozen=True)
class Place:
    """One selection on one measure.

    Attributes:
        key: the run's id, or one of `BESIDE`; letter: of a run, empty for what stands beside them; label: its words.
        low, high: 95 % interval, None without one.
        optimised: whether it was made by this measure, so that it may not be called best on it.
        note: what a person should know beside the number.
    """

    key: str
    letter: str
    label: str
    value: float
    low: float | None
    high: float | None
    optimised: bool
    note: str


@dataclass(frozen=True)
class Row:
    """One measure.

    Attributes:
        measure, label, says: its name, and what it measures in a sentence.
        better: ``higher``, ``lower`` or ``neither``.
        places: the selections; empty where it could not be measured, `verdict` then says why.
        verdict: who is best, in words.
        best: the run or reference that is best, or None.
    """

    measure: str
    label: str
    says: str
    better: str
    places: tuple[Place, ...]
    verdict: str
    best: str | None


def rows(board: Mapping, letters: Mapping[str, tuple[str, str]]) -> list[Row]:
    """The rows of a scoreboard in its order, those that are not measured yet last.

    Args:
        board: as `datamask.evaluation.scoreboard` gives it.
        letters: run id -> its letter and label, in the order to draw.
    """
    measured = []
    for measure in board["measures"]:
        cells = measure["selections"]
        places = tuple(
            Place(
                key,
                *letters.get(key, ("", BESIDE.get(key, key))),
                float(cell["value"]),
                cell["low"],
                cell["high"],
                cell["verdict"] == HATCHED,
                str(cell.get("note") or ""),
            )
            for key in (*letters, *BESIDE)
            if (cell := cells.get(key)) is not None and cell["value"] is not None
        )
        measured.append(
            Row(
                measure["measure"],
                measure["label"],
                measure["says"],
                measure["better"],
                places,
                _verdict(measure, letters, places),
                measure["best"],
            )
        )
    return measured + [
        Row(entry["measure"], entry["label"], "", "", (), "not measured yet", None) for entry in board.get("left", ())
    ]


def summary(table: list[Row], letters: Mapping[str, tuple[str, str]]) -> str:
    """Who is best on how many of the measures nobody optimised, in a sentence."""
    fair = [row for row in table if row.places and row.better != "neither" and not _makers(row.places)]
    if not fair:
        return "Each measure with a better direction is optimized by one of these runs, so none is called best."
    won = {key: sum(row.best == key for row in fair) for key in (*letters, *BESIDE)}
    wins = [
        f"{letters[key][0] if key in letters else BESIDE[key]} is best on {count}"
        for key, count in won.items()
        if count
    ]
    level = len(fair) - sum(won.values())
    head = (
        f"Of {len(fair)} measures that none of these runs optimizes, {', '.join(wins)}"
        if wins
        else f"On none of the {len(fair)} independent measures is one run clearly best"
    )
    return head + (f"; on {level} the best are level." if level and wins else ".")


def table(measured: Sequence[Row]) -> pd.DataFrame:
    """One row per measure: ``measure``, a column for each selection, ``verdict``, ``what it measures``, ``note``.

    A cell is a value with its 95 % interval, and a star where the selection was made by the measure.
    """
    labels = dict.fromkeys(place.label for row in measured for place in row.places)
    found = [
        {
            "measure": row.label,
            **dict.fromkeys(labels, "–"),
            **{place.label: _cell(place) for place in row.places},
            "verdict": row.verdict,
            "what it measures": row.says,
            "note": "; ".join(dict.fromkeys(place.note for place in row.places if place.note)),
        }
        for row in measured
    ]
    return pd.DataFrame(found, columns=["measure", *labels, "verdict", "what it measures", "note"])


def _cell(place: Place) -> str:
    text = words.value(place.value) + ("*" if place.optimised else "")
    return text if place.low is None else f"{text} ({words.value(place.low)} to {words.value(place.high)})"


def _verdict(measure: Mapping, letters: Mapping[str, tuple[str, str]], places: tuple[Place, ...]) -> str:
    def named(key: str) -> str:
        return letters[key][0] if key in letters else BESIDE.get(key, key)

    if not places:
        note = next((str(cell["note"]) for cell in measure["selections"].values() if cell.get("note")), "not measured")
        return note
    if measure["better"] == "neither":
        return "neither more nor less is better"
    makers = _makers(places)
    if makers:
        return f"optimized by {', '.join(makers)}, so no run is called best"
    if measure["best"]:
        return f"{named(measure['best'])} is best"
    tied = [named(key) for key in (*letters, *BESIDE) if key in measure["tied"]]
    if len(tied) > 1:
        return f"{', '.join(tied[:-1])} and {tied[-1]} are level"
    return "no intervals, so no run is called best"


def _makers(places: tuple[Place, ...]) -> list[str]:
    """Letters of the runs that were made by the measure; what only stands beside them competes with nobody."""
    return [place.letter for place in places if place.optimised and place.letter]
