"""What is said of one sample under one run: the waterfall, witnesses, near-copies, and its place over lambda.

Pure: an answer in, small tables and sentences out. Amounts are in standard deviations of all scores, so that a bar of
one means the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from datamask import catalogue
from datamask.analyses.explanation.explanations import Along, Answer
from datamask.dashboard.drawing import words

if TYPE_CHECKING:
    from datamask.analyses.explanation.compute import Flip

UNIT = "standard deviations of all scores"
FOR, AGAINST, TOTAL = "for selection", "against selection", "in total"


def waterfall(answer: Answer) -> pd.DataFrame:
    """One row per bar, top to bottom: ``part, start, end, amount, kind``; the last one is the sum, from 0.

    A sample is in where the sum is above 0, the threshold.
    """
    explanation, unit = answer.explanation, answer.sd if answer.sd > 0 else 1.0
    rows, at = [], 0.0
    for part in explanation.parts:
        amount = part.value / unit
        rows.append(
            {
                "part": part_label(part.name),
                "start": at,
                "end": at + amount,
                "amount": amount,
                "kind": FOR if amount >= 0 else AGAINST,
            }
        )
        at += amount
    total = (explanation.score - explanation.threshold) / unit
    rows.append({"part": "this row", "start": 0.0, "end": total, "amount": total, "kind": TOTAL})
    return pd.DataFrame(rows)


def part_label(name: str) -> str:
    """A bar's name for people."""
    if name in ("average row", "quality"):
        return name
    return catalogue.objective(name).label.lower()


def along_line(along: Along, run_id: str) -> str:
    """The stored lambdas, each with whether the row is selected there, the run's own in bold; Markdown."""
    return "λ " + " · ".join(
        f"{'●' if inside else '○'}{words.GAP}{f'**{lamb:g}**' if listed == run_id else f'{lamb:g}'}"
        for lamb, inside, listed in zip(along.lambdas, along.inside, along.run_ids, strict=True)
    )


def along_sentence(along: Along) -> str:
    """Where over lambda the sample is in, by the stored runs."""
    count = len(along.lambdas)
    if count < 2:
        stored = (
            f"None of the {along.others:,} other stored runs has this method and these settings at another λ."
            if along.others > 1
            else "The other stored run has another method or other settings."
            if along.others
            else "No other run is stored on this corpus."
        )
        return f"{stored} The slider of the map, or the page Frontier, shows at which λ the row is selected."
    if all(along.inside):
        return f"Selected at all {count:,} stored λ of this curve, {along.lambdas[0]:g} to {along.lambdas[-1]:g}."
    if not any(along.inside):
        return (
            f"Not selected at any of the {count:,} stored λ of this curve, {along.lambdas[0]:g} to "
            f"{along.lambdas[-1]:g}."
        )
    ranges = [f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in along.intervals]
    return (
        f"Selected at λ {' and '.join([', '.join(ranges[:-1]), ranges[-1]] if len(ranges) > 1 else ranges)}, not "
        f"at the other stored λ of this curve ({count:,} runs)."
    )


def flip_sentence(flip: Flip) -> str:
    """What the exact search found."""
    made = (
        f"solved at {flip.solved:,} λ"
        if flip.solved > 1
        else ("solved at one λ" if flip.solved else "known from the stored runs")
    )
    low, high = flip.between
    if flip.lamb is None:
        return (
            f"It is {('selected' if flip.below else 'not selected')} at λ {low:g} and {high:g} too. No λ was "
            f"found at which this changes ({made})."
        )
    first, then = ("selected", "not selected") if flip.below else ("not selected", "selected")
    return (
        f"The selection of this row flips at λ **{flip.lamb:.3f}**: {first} just below, {then} just above ({made} "
        f"between λ {low:g} and {high:g})."
    )


def witnesses(answer: Answer, objective: str, text_of: Callable[[int], str]) -> tuple[str, pd.DataFrame]:
    """A sentence on the witnesses of an objective, and a table of the largest; the table is empty where none is.

    Args:
        text_of: id and beginning of a row's text.
    """
    explanation, unit = answer.explanation, answer.sd if answer.sd > 0 else 1.0
    shown, count = explanation.witnesses[objective], explanation.witness_counts[objective]
    if not shown:
        if explanation.selected:
            return "Every row near it has another selected row that is closer.", pd.DataFrame()
        return "Every row near it has a closer selected row already.", pd.DataFrame()
    kind = shown[0].kind
    if kind == "dimension":
        sentence = f"The {len(shown):,} of {count:,} feature dimensions with the largest effect."
        return sentence, pd.DataFrame(
            {"dimension": [witness.row for witness in shown], "adds": [witness.amount / unit for witness in shown]}
        )
    more = f"; the {len(shown):,} with the largest effect" if count > len(shown) else ""
    sentence = {
        "covers": f"Rows whose nearest selected row it is: {count:,}{more}. “Otherwise” is their next nearest.",
        "would cover": f"Rows that it would be nearer to than any selected row: {count:,}{more}. “Otherwise” is "
        "their nearest selected row now.",
    }[kind]
    return sentence, pd.DataFrame(
        {
            "row": [text_of(witness.row) for witness in shown],
            "cosine": [witness.similarity for witness in shown],
            "otherwise": [witness.otherwise for witness in shown],
            "adds": [witness.amount / unit for witness in shown],
        }
    )


def nearest_sentence(answer: Answer, text_of: Callable[[int], str]) -> str:
    """The nearest other selected sample, as a fact; Markdown."""
    explanation = answer.explanation
    if explanation.nearest_selected < 0:
        return "No other row is selected."
    sentence = (
        f"Nearest selected row: **{words.plain(text_of(explanation.nearest_selected), 160)}**, cosine "
        f"{explanation.nearest_similarity:.3f}."
    )
    if "pairwise" in [part.name for part in explanation.parts]:
        sentence += " This does not explain the score: pair-wise similarity depends on the whole selection."
    return sentence


def copies_sentence(answer: Answer, text_of: Callable[[int], str]) -> str:
    """Near-copies and who won; empty where there are none."""
    explanation = answer.explanation
    if explanation.copy_of >= 0:
        return f"Its duplicate was kept: **{words.plain(text_of(explanation.copy_of), 160)}**."
    if not answer.copies:
        return ""
    names = ", ".join(words.plain(text_of(row), 60) for row in answer.copies[:3])
    more = f" and {len(answer.copies) - 3:,} more" if len(answer.copies) > 3 else ""
    return f"Removed as duplicates of it: {names}{more}."
