"""Which samples a run would keep again on a slightly different corpus: numbers, distribution, and who flips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

PARTS, CORE, FLIP = 20, 0.9, (0.3, 0.7)
"""As `datamask.evaluation.agreement` has them, which loads torch."""

BINS = 18
"""Bars up to the core, a twentieth wide."""


@dataclass(frozen=True)
class Agreed:
    """Attributes:
    share: float64 ``(N,)``, of the parts that held a row those in which it was selected; NaN: in none.
    core: bool ``(N,)``, the consensus core; flips: bool ``(N,)``, the coin-flips.
    kept: of the rows that the run itself selected, the share in the core.
    repeated: of the rows that the run itself selected, the mean share of parts that select them again.
    """

    share: np.ndarray
    core: np.ndarray
    flips: np.ndarray
    kept: float
    repeated: float


def agreed(appeared: np.ndarray, selected: np.ndarray, own: np.ndarray) -> Agreed:
    """From the stored counts.

    Args:
        appeared, selected: int ``(N,)``, parts that held the row, and that selected it. own: bool ``(N,)`` of the run.
    """
    share = np.divide(selected, appeared, out=np.full(len(selected), np.nan), where=appeared > 0)
    core, flips = share >= CORE, (share >= FLIP[0]) & (share <= FLIP[1])
    inside = share[own & np.isfinite(share)]
    return Agreed(share, core, flips, float(core[own].mean()), float(inside.mean()) if len(inside) else np.nan)


def histogram(measured: Agreed, own: np.ndarray) -> pd.DataFrame:
    """The undecided by the share of parts that select them: ``low, high, of, rows, base, top``, selected ones below.

    The core and what no part ever selects are left out: they are nearly all, and one number each says it.
    """
    edges = np.linspace(0, CORE, BINS + 1)
    width, tables, base = CORE / BINS, [], np.zeros(BINS)
    for name, mask in (("selected by the run", own), ("not selected", ~own)):
        values = measured.share[mask & (measured.share > 0) & ~measured.core]
        # shares are fractions of a few parts: rounding must not move one across the edge of its bar
        counts = np.bincount(np.clip(np.floor(values / width + 1e-9).astype(int), 0, BINS - 1), minlength=BINS)
        tables.append(
            pd.DataFrame(
                {"low": edges[:-1], "high": edges[1:], "of": name, "rows": counts, "base": base, "top": base + counts}
            )
        )
        base = base + counts
    return pd.concat(tables, ignore_index=True)
