"""How the rate of semantic duplicates grows with the corpus, as a curve."""

from __future__ import annotations

import numpy as np
import pandas as pd

from datamask.corpus.copy_growth import FARTHEST, CopyGrowth

COPY_PARTS, COPY_POINTS = 64, 25
"""The rate is drawn from so small a part of the corpus, at so many sizes, and as far as it can be projected."""


def copy_curve(growth: CopyGrowth) -> pd.DataFrame:
    """Return columns ``rows, rate, low, high, of, whole``: the rate in subsamples and in larger corpora.

    Both curves have the corpus itself, of which ``whole`` is true once.
    """
    inside = np.unique(np.geomspace(max(2.0, growth.n / COPY_PARTS), growth.n, COPY_POINTS).round().astype(int))
    lines = []
    for rows in inside.tolist():
        rate = growth.within(rows)
        lines.append((rows, rate, rate, rate, "counted", rows == growth.n))
    for times in np.geomspace(1.0, FARTHEST, COPY_POINTS).tolist():
        value, low, high = growth.beyond(times)
        lines.append((round(growth.n * times), value, low, high, "projected", False))
    return pd.DataFrame(lines, columns=["rows", "rate", "low", "high", "of", "whole"])
