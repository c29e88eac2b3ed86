"""What is said of one sample under one run: the waterfall, witnesses, near-copies, and its place over lambda.

Pure: an answer in, small tables and sentences out. Amounts are in standard deviations of all scores, so that a bar of
one means the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pandas as pd

from datamask import catalogue
from datamask.dashboard.analyses.explanation.explanations import Along, Answer
from datamask.dashboard.drawing import words

if TYPE_CHECKING:
    from datamask.evaluation.explaining import Flip

UNIT = "standard deviations of all scores"
FOR, AGAINST, TOTAL = "for it", "against it", "in all"


def waterfall(answer: Answer) -> pd.DataFrame:
    """One row per bar, top to bottom: ``part, start, end, amount, kind``; the last one is the sum, from 0.

    A sample is in where the sum is above 0, the threshold.
    """
    told, unit = answer.told, answer.sd if answer.sd > 0 else 1.0
    rows, at = [], 0.0
    for part in told.parts:
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
    total = (told.score - told.threshold) / unit
    rows.append({"part": "this sample", "start": 0.0, "end": total, "amount": total, "kind": TOTAL})
    return pd.DataFrame(rows)


def part_label(name: str) -> str:
    """A bar's name for people."""
    if name in ("average sample", "quality"):
        return name
    return catalogue.objective(name).label.lower()


def strip(along: Along, run_id: str) -> pd.DataFrame:
    """One row per stored run of the curve: ``lambda, state, here``."""
    return pd.DataFrame(
        {
            "lambda": along.lambdas,
            "state": ["in" if inside else "out" for inside in along.inside],
            "here": [one == run_id for one in along.run_ids],
        }
    )


def along_sentence(along: Along) -> str:
    """Where over lambda the sample is in, by the stored runs."""
    count = len(along.lambdas)
    if count < 2:
        return (
            "No other stored run differs from this one in λ alone. A sweep on the Runs page, under Frontier, shows at "
            "which λ this sample is in."
        )
    if all(along.inside):
        return f"In at all {count:,} stored λ of this curve, {along.lambdas[0]:g} to {along.lambdas[-1]:g}."
    if not any(along.inside):
        return f"Out at all {count:,} stored λ of this curve, {along.lambdas[0]:g} to {along.lambdas[-1]:g}."
    said = [f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in along.intervals]
    return (
        f"In at λ {' and '.join([', '.join(said[:-1]), said[-1]] if len(said) > 1 else said)}, out at the other "
        f"stored λ of this curve; {count:,} runs in all."
    )


def flip_sentence(found: Flip) -> str:
    """What the exact search found."""
    made = (
        f"selected again at {found.solved:,} λ"
        if found.solved > 1
        else ("selected again at one λ" if found.solved else "told by the stored runs alone")
    )
    low, high = found.between
    if found.lamb is None:
        return (
            f"It is {'in' if found.below else 'out'} at λ {low:g} and {high:g} too, as it is here: no λ at which "
            f"it changes sides was found ({made})."
        )
    first, then = ("in", "out") if found.below else ("out", "in")
    return (
        f"It changes sides at λ **{found.lamb:.3f}**: {first} just below, {then} just above; {made} between "
        f"λ {low:g} and {high:g}."
    )


def witnesses(answer: Answer, objective: str, text_of: Callable[[int], str]) -> tuple[str, pd.DataFrame]:
    """A sentence on the witnesses of an objective, and a table of the largest; the table is empty where none is.

    Args:
        text_of: id and beginning of a row's text.
    """
    told, unit = answer.told, answer.sd if answer.sd > 0 else 1.0
    found, count = told.witnesses[objective], told.witness_counts[objective]
    if not found:
        if objective == "facility" and not told.selected:
            return "Every sample it could stand for has a closer member already.", pd.DataFrame()
        if objective == "facility":
            return "Every sample near it has another member that is closer.", pd.DataFrame()
        return "None of its near neighbours is selected.", pd.DataFrame()
    kind = found[0].kind
    if kind == "dimension":
        said = f"The {len(found):,} of {count:,} feature dimensions with the largest effect."
        return said, pd.DataFrame(
            {"dimension": [one.row for one in found], "adds": [one.amount / unit for one in found]}
        )
    more = f"; the {len(found):,} with the largest effect" if count > len(found) else ""
    said = {
        "covers": f"Other samples whose closest member it is: {count:,}{more}. “Otherwise” is their next closest.",
        "would cover": f"Other samples it would be closer to than any member: {count:,}{more}. “Otherwise” is "
        "their closest member now.",
        "similar": f"Near neighbours that are selected too: {count:,}{more}.",
    }[kind]
    table = pd.DataFrame(
        {
            "sample": [text_of(one.row) for one in found],
            "cosine": [one.similarity for one in found],
            "otherwise": [one.otherwise for one in found],
            "adds": [one.amount / unit for one in found],
        }
    )
    return said, table if kind != "similar" else table.drop(columns="otherwise")


def nearest_sentence(answer: Answer, text_of: Callable[[int], str]) -> str:
    """The nearest other selected sample, as a fact; Markdown."""
    told = answer.told
    if told.nearest_selected < 0:
        return "No other sample is selected."
    said = (
        f"Nearest selected sample: **{words.plain(text_of(told.nearest_selected), 160)}**, cosine "
        f"{told.nearest_similarity:.3f}."
    )
    if "pairwise" in [part.name for part in told.parts]:
        said += " A fact, not a reason: pair-wise similarity looks at the selection as a whole."
    return said


def copies_sentence(answer: Answer, text_of: Callable[[int], str]) -> str:
    """Near-copies and who won; empty where there are none."""
    told = answer.told
    if told.copy_of >= 0:
        return f"Kept instead of it: **{words.plain(text_of(told.copy_of), 160)}**."
    if not answer.copies:
        return ""
    names = ", ".join(words.plain(text_of(row), 60) for row in answer.copies[:3])
    more = f" and {len(answer.copies) - 3:,} more" if len(answer.copies) > 3 else ""
    return f"Left out as copies of it: {names}{more}."
