"""How often to repeat each sample: whole counts from inclusion weights, without bias. Loads no torch.

A row of weight w is to be repeated ``w * A / sum of all weights`` times on average, where A samples are asked for. The
whole part is certain; the fractions are rounded together by one draw (systematic sampling; Madow 1949): laid end to
end on a line, a row gets one more where its stretch holds a point of a grid of spacing 1 with a random start. So every
row's mean over the seeds is its fraction, and all counts add to A. Where lengths are known rows lie on the line by
falling length, so that the tokens of the counts differ from those of the fractions by at most the longest row, as a
filled budget does (summation by parts: up to any place on the line the counts differ by less than 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from datamask import catalogue
from datamask.config import SelectionConfig
from datamask.errors import OptionError

STARTS = 1 << 24
"""Starts of the grid: so few that a start and any place on the line are added without rounding to the next whole."""

MOST = 10**12
"""Samples to ask for: up to here the rounding of all counts together stays far below one."""


@dataclass(frozen=True)
class Amount:
    """What the counts come to: so many samples, or so many tokens; neither: as many samples as were selected."""

    samples: int | None = None
    tokens: float | None = None


AS_SELECTED = Amount()


def weightless(estimator: str, why: str = "") -> str:
    """The sentence that an estimator has no inclusion weights, and which have.

    Args:
        why: it has none under these settings, as a sentence without its stop; empty: it only says which rows are in.
    """
    *relaxed, last = [entry.name for entry in catalogue.OBJECTIVES if entry.proof == "relaxation"]
    having = [entry.name for entry in catalogue.ESTIMATORS if entry.weighs and entry.name != "relaxed"]
    why = why or f"estimator {estimator} has no repeat weights: it only says which rows are selected"
    return f"{why}. Use relaxed with {', '.join(relaxed)} or {last}, or use {', '.join(having[:-1])} or {having[-1]}"


def refusal(config: SelectionConfig) -> str:
    """Why selections with these settings have no inclusion weights, a sentence without its stop; "": they have."""
    entry = catalogue.estimator(config.estimator)
    if not entry.weighs:
        return weightless(config.estimator)
    if entry.name == "relaxed":
        unrelaxed = [name for name, _ in config.terms if catalogue.objective(name).proof != "relaxation"]
        return weightless("relaxed", f"{unrelaxed[0]} has no repeat weights") if unrelaxed else ""
    if config.quotas:
        return (
            weightless(config.estimator, "masks under --quota have no repeat weights")
            + "; relaxed has them under quotas too"
        )
    return ""


def repeats(
    weights: np.ndarray,
    order: np.ndarray,
    seed: int,
    *,
    samples: int | None = None,
    tokens: float | None = None,
    lengths: np.ndarray | None = None,
) -> np.ndarray:
    """Whole counts from weights.

    Args:
        weights: float64 ``(n,)``, at least 0, not all 0.
        order: uint64 ``(n,)``, in which rows of one length lie on the line; a hash of seed and id, so that nothing of
            the corpus's own order is in it.
        seed: of the grid's start.
        samples: what the counts add to; tokens: what the rows hold together, each as often as it is repeated, to the
            longest row. None of the two: the counts add to the sum of the weights, up or down to a whole number.
        lengths: float64 ``(n,)``, tokens of the rows; None: unknown.

    Returns:
        int64 ``(n,)``.

    Raises:
        OptionError: both amounts are given, one is not above 0, or tokens are asked for and there are no lengths.
    """
    check_amounts(samples, tokens)
    if tokens is not None and lengths is None:
        raise OptionError(
            "--repeat_tokens needs the lengths of the rows; name their column with --length_column, or give --repeats"
        )
    total = float(weights.sum())
    if not total > 0:
        raise OptionError("weights must be above 0 for at least one row, and all are 0")
    factor = 1.0
    if samples is not None:
        factor = samples / total
    elif tokens is not None and lengths is not None:
        held = float(weights @ lengths)
        if not held > 0:
            raise OptionError(f"--repeat_tokens {tokens:,.0f}: the rows with a weight have no tokens; give --repeats")
        factor = tokens / held
        if factor * total > MOST:
            raise OptionError(f"--repeat_tokens must come to at most {MOST:,} rows, got {tokens:g}")
    expected = weights * factor
    counts = np.floor(expected)
    fractions = expected - counts
    line = np.lexsort((order,) if lengths is None else (order, -lengths))
    ends = np.cumsum(fractions[line])
    asked = round(float(ends[-1])) if samples is None else samples - int(counts.sum())
    if ends[-1] > 0 and (samples is not None or abs(ends[-1] - asked) < 1e-6 * max(1, asked)):
        # a whole number but for rounding
        ends *= asked / ends[-1]
        ends[-1] = asked
    start = (np.random.default_rng(seed).integers(STARTS) + 0.5) / STARTS
    points = np.floor(ends + start)
    counts[line] += np.diff(points, prepend=0.0)
    return counts.astype(np.int64)


def check_amounts(samples: int | None, tokens: float | None) -> None:
    """Refuse amounts that cannot be asked for.

    Raises:
        OptionError: both are given, or one is out of range.
    """
    if samples is not None and tokens is not None:
        raise OptionError(f"give either --repeats or --repeat_tokens, got {samples:,} and {tokens:,.0f}")
    if samples is not None and not 1 <= samples <= MOST:
        raise OptionError(f"--repeats must be a whole number of rows from 1 to {MOST:,}, got {samples:,}")
    if tokens is not None and not 0 < tokens < math.inf:
        raise OptionError(f"--repeat_tokens must be a number of tokens above 0, such as 150M or 1.5B, got {tokens:g}")
