"""Which rows a run selects again on random parts of the corpus: shares, core and coin-flips of its agreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PARTS, CORE, FLIP = 20, 0.9, (0.3, 0.7)
"""Parts that are drawn, by `datamask.analyses.agreement.compute`, which loads torch; the share of them from which on a
row is of the core, and the shares between which it is a coin-flip."""


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
