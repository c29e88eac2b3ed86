"""The result of a run in one sentence, made from its numbers."""

from __future__ import annotations

import math

from datamask import catalogue
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import outcome
from datamask.evaluation.result import NO_RESULT, RunResult
from datamask.measured import TermValues
from datamask.runs.store import Run

CLOSE = 1e-6
"""A gap below this share of the attainable gain is said in words."""


def sentence(run: Run) -> str:
    """How many were selected of how many, what they reach, and how far from the best possible at most. Plain text.

    Args:
        run: a done one.
    """
    result = run.status().result or NO_RESULT
    selected, n, tokens = result.size.selected or 0, result.size.n or 0, result.size.tokens
    text = f"The run selects {words.count(selected)} of {words.count(n)} rows"
    if n:
        text += f" ({words.percent(selected / n, 1)}"
        text += f", {words.count(tokens)} tokens)" if tokens else ")"
    reached = _reached(run, result.calibrated)
    proved = _proved(run, result)
    return text + (f": {reached}" if reached else "") + (f"; {proved}" if proved else "") + "."


def _reached(run: Run, shares: TermValues) -> str:
    config = run.config.selection
    parts = []
    diversity = f"diversity ({outcome.objective_label(config.objective)})"
    for term, name in (("quality", "quality"), ("diversity", diversity)):
        share = shares.of(term)
        if share is None:
            continue
        if share < 0:
            parts.append(f"less {name} than a random subset ({words.percent(share, 1)})")
        else:
            parts.append(f"{name} {words.percent(share, 1)}")
    balance = f" at λ = {config.lamb:g}" if catalogue.estimator(config.estimator).guided else ""
    return " and ".join(parts) + balance if parts else ""


def _proved(run: Run, result: RunResult) -> str:
    gap = result.certificate.gap
    if gap is None or not result.certificate.exact:
        return ""
    if run.config.selection.scale != "calibrated":
        most = f"{_at_most(gap)} (raw joint value)"
    else:
        percent = "a millionth" if gap < CLOSE else f"{_at_most(100 * gap)}{words.GAP}%"
        most = f"{percent} of the range from random to best"
    # it is quoted by itself, so it says of what it holds
    balance = (
        "this λ"
        if catalogue.estimator(run.config.selection.estimator).guided
        else (f"λ = {run.config.selection.lamb:g}")
    )
    size = "that fills these tokens" if result.size.budget else "of this size"
    bound = " under the same rules" if outcome.rules(run) else ""
    return f"by this objective at {balance}, no selection {size}{bound} is better by more than {most}"


def _at_most(number: float) -> str:
    """Two digits, rounded up: what is proved must be true as it is written."""
    if number <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(number)) - 1)
    # a number that has two digits already is not to be raised by what binary fractions lack
    return words.value(math.ceil(number / unit - 1e-6) * unit, 2)
