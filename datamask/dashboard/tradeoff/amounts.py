"""How much to select, as one amount: a share of the rows, a number of rows, or tokens. Pure; no torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from datamask.config import SelectionConfig
from datamask.config.selection import PROBLEM, RULES
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.errors import OptionError
from datamask.options.amounts import parse_tokens, tokens_text

PERCENT, ROWS, TOKENS = "%", "rows", "tokens"
"""Units of an amount, as the map's slider names them."""


def keeping(settings: SelectionConfig, rows: int, amount: str, unit: str) -> SelectionConfig:
    """Return the settings with another amount, at the same λ and under the same rules.

    Args:
        rows: of the corpus. amount: as it was typed, in this unit.

    Raises:
        OptionError: it is no amount, selects nothing or everything, or does not go with the rules.
    """
    values = {name: getattr(settings, name) for name in (*PROBLEM, *RULES, "lamb", "seed")}
    del values["budget"], values["select_ratio"]
    if unit == TOKENS:
        values["budget"] = parse_tokens(amount)
    else:
        values["select_ratio"] = _ratio(amount, unit, rows)
    changed = SelectionConfig.from_options(**{name: value for name, value in values.items() if value != ()})
    if changed.budget is None:
        changed.size(rows)
    return changed


def _ratio(amount: str, unit: str, rows: int) -> float:
    try:
        number = float(amount.replace(",", "").rstrip(f"{PERCENT} "))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"Keep must be a number of {unit}, got {amount[:40]!r}")
    if unit == PERCENT:
        return float(f"{number / 100:.12g}")
    for digits in range(2, 17):
        ratio = float(f"{number / rows:.{digits}g}")
        if math.floor(ratio * rows + 0.5) == number:
            break
    return ratio


def words_of(settings: SelectionConfig) -> str:
    """``30 %`` of the rows, or ``20 M tokens``."""
    if settings.budget is not None:
        return f"{words.short(settings.budget)} tokens"
    return share_words(settings.select_ratio)


def share_words(ratio: float) -> str:
    """A select ratio as ``30 %`` or ``0.25 %``: as many digits as it has."""
    return f"{100 * ratio:.4g}{words.GAP}%"


def amount_of(settings: SelectionConfig, corpus: Corpus, selected: np.ndarray | None) -> dict[str, Any]:
    """What the slider of the amount shows of a problem.

    Args:
        selected: bool ``(N,)``, the current selection, whose rows tell how many tokens a row has; None: all rows do.

    Returns:
        ``unit``; ``share`` of all rows, or of all tokens; ``rows`` of the corpus; ``tokens`` of all of them and the
        ``mean`` of a row, None without lengths; ``budget`` in tokens as people write it.
    """
    lengths, total = corpus.lengths, None if corpus.lengths is None else float(corpus.lengths.sum())
    by_tokens = settings.budget is not None and bool(total)
    return {
        "unit": TOKENS if by_tokens else ROWS,
        "share": min(settings.budget / total, 1.0) if settings.budget is not None and total else settings.select_ratio,
        "rows": len(corpus),
        "tokens": total or None,
        "mean": None if lengths is None else float(lengths[slice(None) if selected is None else selected].mean()),
        "budget": tokens_text(settings.budget) if settings.budget is not None else "",
    }
