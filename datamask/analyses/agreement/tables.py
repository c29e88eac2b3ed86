"""Which samples a run would keep again on a slightly different corpus: numbers, distribution, and who flips."""

from __future__ import annotations

import numpy as np
import pandas as pd

from datamask.dashboard.linked.agreed import CORE, Agreed

BINS = 18
"""Bars up to the core, a twentieth wide."""


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
