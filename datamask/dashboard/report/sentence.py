"""The result of a run in one sentence, made from its numbers."""

from __future__ import annotations

import math

from datamask import catalogue
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.runs.store import Run

CLOSE = 1e-6
"""A gap below this share of the attainable gain is said in words."""


def sentence(run: Run) -> str:
    """How many were selected of how many, what they reach, and how far from the best possible at most. Plain text.

    Args:
        run: a done one.
    """
    summary = run.status().summary or {}
    selected, n = int(summary.get("selected") or 0), int(summary.get("n") or 0)
    tokens = summary.get("tokens")
    text = f"{words.count(selected)} of {words.count(n)} samples were selected"
    if n:
        text += f" ({words.percent(selected / n, 1)}"
        text += f", {words.count(tokens)} tokens)" if tokens else ")"
    reached = _reached(run, summary.get("calibrated") or {})
    proved = _proved(run, summary)
    return text + (f"; they reach {reached}" if reached else "") + (f", and {proved}" if proved else "") + "."


def _reached(run: Run, shares: dict) -> str:
    config = run.config.selection
    parts = []
    diversity = f"diversity ({outcome.objective_label(config.objective)})"
    for term, name in (("quality", "quality"), ("diversity", diversity)):
        share = shares.get(term)
        if share is None:
            continue
        if share < 0:
            parts.append(f"less {name} than a random subset ({words.percent(share, 1)} of the attainable gain)")
        else:
            parts.append(f"{words.percent(share, 1)} of the attainable {name}")
    balance = f" at λ = {config.lamb:g}" if catalogue.estimator(config.estimator).guided else ""
    return " and ".join(parts) + balance if parts else ""


def _proved(run: Run, summary: dict) -> str:
    gap = summary.get("gap")
    if summary.get("upper_bound") is None or gap is None or summary.get("bound_holds_for", "exact") != "exact":
        return ""
    if run.config.selection.scale != "calibrated":
        most = f"{_at_most(gap)} (raw joint value)"
    else:
        most = f"{'a millionth' if gap < CLOSE else _at_most(100 * gap) + words.GAP + '%'} of the attainable gain"
    # it is quoted by itself, so it says of what it holds
    balance = (
        "this λ"
        if catalogue.estimator(run.config.selection.estimator).guided
        else (f"λ = {run.config.selection.lamb:g}")
    )
    size = "that fills these tokens" if summary.get("budget") else "of this size"
    bound = " under the same rules" if outcome.rules(run) else ""
    return (
        f"it is proved that, by this objective at {balance}, no selection {size}{bound} is better by more than {most}"
    )


def _at_most(number: float) -> str:
    """Two digits, rounded up: what is proved must be true as it is written."""
    if number <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    # a number that has two digits already is not to be raised by what binary fractions lack
    return words.value(math.ceil(number / unit - 1e-6) * unit, 2)
